"""The members of a fitted ensemble as plain arrays."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit

from precbench.solvers.common.random_features import ROWS_AT_ONCE, RandomFeatures
from precbench.solvers.common.rows import as_rows, linear_scores
from precbench.solvers.others.trees import AGAIN, Trees

_LEAST_SHARE = 1e-3  # some hundred trees cannot tell a smaller probability from 0


@dataclass(frozen=True, eq=False)
class Member:
    """A ranking by weights of (random) features or by trees, and its weight."""

    name: str
    coef: NDArray[np.float64] | None = None
    trees: Trees | None = None
    random_features: RandomFeatures | None = None
    weight: float = 1.0

    @property
    def n_features(self) -> int:
        """Number of features of a row, before any map to random features."""
        if self.random_features is not None:
            return self.random_features.weights.shape[1]
        if self.trees is not None:
            return self.trees.n_features
        assert self.coef is not None
        return len(self.coef)

    def scores(self, X: Any) -> NDArray[np.float64]:
        """Return a score for each row of X: log odds if the member is a forest."""
        rows = X if self.random_features is None else self.random_features.transform(X)
        if self.trees is None:
            assert self.coef is not None
            return linear_scores(as_rows(rows), self.coef)
        scores = self.trees.scores(rows)
        return log_odds(scores) if self.trees.is_forest else scores

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the member's arrays by name: ``coef``, ``random_…`` and ``tree_…``."""
        arrays: dict[str, NDArray[Any]] = {}
        if self.coef is not None:
            arrays["coef"] = self.coef
        if self.random_features is not None:
            for name, array in vars(self.random_features).items():
                arrays[f"random_{name}"] = array
        if self.trees is not None:
            for name, array in self.trees.to_arrays().items():
                arrays[f"tree_{name}"] = array
        return arrays

    @classmethod
    def from_arrays(
        cls,
        arrays: dict[str, NDArray],
        *,
        name: str,
        trees: Mapping[str, Any] | None,
        **more: Any,
    ) -> Self:
        """Rebuild a member from untrusted arrays and its other fields.

        `trees` holds the options of `Trees.from_arrays`, or is None for a member
        without trees. Raise a KeyError, TypeError or ValueError if an array is missing,
        of another type or shape, or not finite, or if the name is not text or the
        weight not a number.
        """
        parts: dict[str, dict[str, NDArray[Any]]] = {
            "random": {},
            "tree": {},
            "coef": {},
        }
        for full_name, array in arrays.items():
            # "tree_root" is the array "root" of "tree", and "coef" the array "" of
            # "coef".
            part, _separator, array_name = full_name.partition("_")
            parts[part][array_name] = array
        coef = parts["coef"].get("")
        if coef is None:
            assert trees is not None
            rebuilt = Trees.from_arrays(parts["tree"], **trees)
            width = rebuilt.n_features
        else:
            if parts["tree"] or trees is not None:
                raise ValueError(
                    f"member {name!r} has both weights and trees, not just one; {AGAIN}"
                )
            _check_weights(coef, name)
            rebuilt = None
            width = len(coef)
        features = None
        if parts["random"]:
            features = _random_features(parts["random"], width, name)
        member = cls(name, coef, trees=rebuilt, random_features=features, **more)
        has_right_types = type(member.name) is str and type(member.weight) is float
        is_valid = (
            has_right_types and np.isfinite(member.weight) and member.n_features >= 1
        )
        if not is_valid:
            raise ValueError(
                f"member {member.name!r} has the weight {member.weight!r} and"
                f" {member.n_features} features; needed are a text as name, a finite"
                " weight and a feature; " + AGAIN
            )
        return member


def _check_weights(coef: NDArray[Any], name: str) -> None:
    """Raise an error if untrusted weights are no vector of finite numbers."""
    if not is_vector(coef):
        raise ValueError(
            f"member {name!r} has weights of the type {coef.dtype} and shape"
            f" {coef.shape}, not a vector of finite numbers; {AGAIN}"
        )


def _random_features(
    arrays: dict[str, NDArray], width: int, name: str
) -> RandomFeatures:
    """Rebuild the map of a member from untrusted arrays.

    The map must yield `width` features: those that the member weighs, or compares in
    its trees.
    """
    features = RandomFeatures(**arrays)
    weights, offset = features.weights, features.offset
    if not (is_vector(weights.ravel()) and is_vector(offset) and len(offset)):
        raise ValueError(
            f"member {name!r} has random features that are no finite numbers; {AGAIN}"
        )
    if weights.ndim != 2 or len(weights) != len(offset):
        raise ValueError(
            f"member {name!r} has {len(offset):,} random features, but their weights"
            f" have shape {weights.shape}, not a row for each; {AGAIN}"
        )
    if len(offset) != width:
        raise ValueError(
            f"member {name!r} has {len(offset):,} random features, but its weights or"
            f" trees are for {width:,}; {AGAIN}"
        )
    return features


def log_odds(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the log odds, clipped, of a forest's scores, probabilities less 1/2."""
    return logit(np.clip(scores + 0.5, _LEAST_SHARE, 1 - _LEAST_SHARE))


def is_vector(array: NDArray[Any]) -> bool:
    """Return whether an array is a vector of finite numbers of float64."""
    return (
        array.ndim == 1 and array.dtype == np.float64 and bool(np.isfinite(array).all())
    )


def weighted_scores(members: Iterable[Member], X: Any) -> NDArray[np.float64]:
    """Return the weighted sum of the members' scores of each row."""
    scores = np.zeros(X.shape[0])
    for member in members:
        # Few rows at a time limit the memory of random features.
        for start in range(0, X.shape[0], ROWS_AT_ONCE):
            rows = slice(start, start + ROWS_AT_ONCE)
            scores[rows] += member.weight * member.scores(X[rows])
    return scores

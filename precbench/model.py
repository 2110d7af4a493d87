"""A fitted ranking for rows of the user: fit, save, load, score and rank."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils import check_array

from precbench.data.own.encoding import Encoding
from precbench.data.preprocess import Scaler, Scaling
from precbench.errors import InputError, did_you_mean
from precbench.files import write_whole, writing
from precbench.npz import pack, unpack
from precbench.solvers import SOLVERS, LinearRanker
from precbench.solvers.base import untraced
from precbench.solvers.rows import as_rows, linear_scores

__all__ = ["Model", "make_solver"]

_SCHEMA = 1


def make_solver(name: str, params: Mapping[str, Any]) -> LinearRanker:
    """Return an unfitted solver.

    Parameters
    ----------
    name : str
        In the registry.
    params : mapping
        Parameters of the solver; their values are checked when it is fitted.

    Returns
    -------
    LinearRanker

    Raises
    ------
    InputError
        An unknown solver or parameter (the sentence lists the known ones), a solver without
        weights, or true or false for what is neither.
    """
    if name not in SOLVERS:
        raise InputError(
            f"unknown solver {name!r}{did_you_mean(name, SOLVERS)}: choose one of "
            f"{', '.join(SOLVERS)}"
        )
    solver = SOLVERS[name]()
    if not isinstance(solver, LinearRanker):
        linear = ", ".join(n for n in SOLVERS if isinstance(SOLVERS[n](), LinearRanker))
        raise InputError(
            f"{name} has no weights, and a model is weights: run it in a config, or choose one of "
            f"{linear}"
        )
    known = solver.get_params()
    for param, value in params.items():
        if param not in known:
            raise InputError(
                f"{name} has no parameter {param!r}{did_you_mean(param, known)}: it has "
                f"{', '.join(known)}"
            )
        if isinstance(value, bool) and not isinstance(known[param], bool):  # else True is 1
            raise InputError(f"{name}: {param} is not true or false, found {value}")
    return solver.set_params(**params)


@dataclass(frozen=True, eq=False)
class Model:
    """Weights, scaling and encoding: all that scoring new rows needs.

    Attributes
    ----------
    solver : str
        Name in the registry.
    params : dict
        Parameters of the solver.
    coef : ndarray of shape (n_features,)
        Weights of the scaled features.
    scaler : Scaler
    encoding : Encoding or None
        How rows of a file become features; None for a model of bare arrays.
    about : dict
        Further facts, as values of JSON.
    intercept : float
        Added to all scores; 0 unless the solver was fitted to the objective "f1".
    """

    solver: str
    params: dict[str, Any]
    coef: NDArray[np.float64]
    scaler: Scaler
    encoding: Encoding | None = None
    about: dict[str, Any] = field(default_factory=dict)
    intercept: float = 0.0

    @classmethod
    def fit(
        cls,
        X: Any,
        y: Any,
        solver: str = "sgd-avg",
        *,
        scaling: Scaling = "none",
        encoding: Encoding | None = None,
        **params: Any,
    ) -> Self:
        """Fit a solver to rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Not changed.
        y : array-like of shape (n_samples,)
            Two labels, the greater is the positive class.
        solver : str, default="sgd-avg"
            Name in the registry.
        scaling : {"standardise", "unit", "unit-norm", "standardise-unit-norm", "none"}
            See `precbench.data.preprocess.Scaler`; default "none".
        encoding : Encoding, optional
        **params
            Parameters of the solver.

        Returns
        -------
        Model

        Raises
        ------
        InputError
            If the solver does not accept X, y or a parameter, or the weights overflow.
        """
        unfitted = make_solver(solver, params)
        X = _matrix(X)
        unfitted.require_memory(X.shape[1])  # the scaler holds vectors too
        scaler = Scaler(scaling).fit(X)
        scaled = X if scaling == "none" else scaler.transform_in_place(X.copy())
        try:
            fitted = unfitted.fit(scaled, y, trace=untraced)
        except InputError:
            raise
        except ValueError as error:  # of scikit-learn's checks
            raise InputError(f"{solver}: {error}") from error
        if fitted.overflowed:
            raise InputError(
                f"{solver}: the weights have overflowed; scale the features, or take shorter steps"
            )
        kept = {n: v for n, v in fitted.get_params().items() if n != "random_state"}
        intercept = float(getattr(fitted, "intercept_", 0.0))
        return cls(solver, kept, fitted.coef_, scaler, encoding, intercept=intercept)

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Score rows; larger is more likely positive.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Unscaled; not changed.

        Returns
        -------
        ndarray of shape (n_samples,)
            Equal rows of one matrix have equal scores.

        Raises
        ------
        InputError
            If X has another number of features or a value that is not finite, or a score overflows.
        """
        X = _matrix(X)
        if X.shape[1] != len(self.coef):
            raise InputError(
                f"the rows have {X.shape[1]} features and the model {len(self.coef)}: score rows "
                "of the kind that it was fitted to"
            )
        with np.errstate(over="ignore", invalid="ignore"):
            weights, constant = self.coef, self.intercept
            if self.scaler.shift is not None and self.scaler.scale is not None:
                weights = weights / self.scaler.scale
                constant -= float(self.scaler.shift @ weights)
            scores = linear_scores(as_rows(X), weights) + constant
        if not np.isfinite(scores).all():
            raise InputError(
                "the scores overflow: the rows or the weights of the model are too large"
            )
        return scores

    def rank(self, X: Any, top: int | None = None) -> pd.DataFrame:
        """List rows from the highest score down.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        top : int, optional
            Number of rows to list; default all.

        Returns
        -------
        pandas.DataFrame
            Columns ``rank`` (from 1), ``row`` (from 1, in the order of X) and ``score``. Of equal
            scores the earlier row comes first.
        """
        if top is not None and top < 1:
            raise InputError(f"top must be at least 1, found {top}")
        scores = self.decision_function(X)
        order = np.argsort(-scores, kind="stable")[:top]
        return pd.DataFrame(
            {"rank": np.arange(1, len(order) + 1), "row": order + 1, "score": scores[order]}
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model as one npz file of plain arrays, whole or not at all.

        Parameters
        ----------
        path : path-like
            An existing file is replaced; through a symbolic link, the file that it leads to.

        Raises
        ------
        InputError
            If the file cannot be written.
        PrecbenchError
            If the disk is full.
        """
        described = {
            "schema": _SCHEMA,
            "solver": self.solver,
            "params": self.params,
            "intercept": self.intercept,
            "scaling": self.scaler.kind,
            "encoding": None if self.encoding is None else self.encoding.to_dict(),
            "about": self.about,
        }
        arrays: dict[str, Any] = {
            "description": np.array(json.dumps(described, default=_plain)),
            "coef": self.coef,
            **{f"scaler_{name}": array for name, array in self.scaler.to_arrays().items()},
        }
        target = Path(os.path.realpath(path))  # through a link, which stays
        with writing(Path(path), "choose another place", refused=InputError):
            if target.exists() and not target.is_file():
                raise OSError("it is a folder" if target.is_dir() else "it is not a regular file")
            write_whole({target: pack(arrays)})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a model; no pickle is ever read.

        Parameters
        ----------
        path : path-like

        Returns
        -------
        Model

        Raises
        ------
        InputError
            If there is no such file, it is not a model, or a newer precbench wrote it.
        """
        try:
            arrays = unpack(Path(path), kinds="fU")
            described = json.loads(str(arrays.pop("description")))
            schema = described["schema"]
            model = None if schema > _SCHEMA else cls._rebuilt(described, arrays)
        except FileNotFoundError:
            raise InputError(
                f"no model {path}: precbench fit FILE --save {path} creates one"
            ) from None
        except Exception as error:  # a damaged file has many ways to fail
            raise InputError(
                f"{path} is not a model, or a damaged one: expected a file that precbench fit has "
                "saved"
            ) from error
        if model is None:
            raise InputError(
                f"{path} was saved by a newer precbench (schema {schema}, this one knows "
                f"{_SCHEMA}): update precbench"
            )
        return model

    @classmethod
    def _rebuilt(cls, described: dict[str, Any], arrays: dict[str, NDArray]) -> Self:
        coef = arrays.pop("coef")
        scaler = Scaler.from_arrays(
            described["scaling"], {name.removeprefix("scaler_"): a for name, a in arrays.items()}
        )
        encoding = described["encoding"] and Encoding.from_dict(described["encoding"])
        intercept = float(described.get("intercept", 0.0))  # older files have none
        is_whole = (
            all(a.shape == coef.shape and np.isfinite(a).all() for a in [coef, *arrays.values()])
            and coef.ndim == 1
            and (scaler.scale is None or (scaler.scale > 0).all())
            and np.isfinite(intercept)
            and (encoding is None or encoding.n_features == len(coef))
            and scaler.learns == (scaler.shift is not None) == (scaler.scale is not None)
        )
        if not is_whole:
            raise ValueError("the parts do not fit together")
        return cls(
            solver=described["solver"],
            params=described["params"],
            coef=coef,
            scaler=scaler,
            encoding=encoding,
            about=described["about"],
            intercept=intercept,
        )


def _matrix(X: Any) -> Any:
    try:
        return check_array(X, accept_sparse="csr", dtype=np.float64, order="C", input_name="X")
    except ValueError as error:
        raise InputError(f"{error}".partition("\n")[0]) from error


def _plain(value: Any) -> Any:
    """Convert NumPy scalars and arrays to values that JSON can represent."""
    return value.tolist()

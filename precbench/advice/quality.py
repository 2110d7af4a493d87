"""The quality of a model on rows that it was not fitted to, and boosted trees for comparison."""

import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from precbench.advice.importance import Importance, Shuffling
from precbench.advice.length import Length, share_of_list
from precbench.data import Dataset
from precbench.data.own.encoding import Encoding
from precbench.data.splits import RowSplit, rule_for_new_lists, split_rows
from precbench.errors import InputError
from precbench.metrics import auc, precision_at_k
from precbench.model.model import Model
from precbench.statistics import (
    LEVEL,
    NO_WIDTH,
    binomial_interval,
    resampled_test,
    share_interval,
)
from precbench.strict_json import Count, Fields, Number, checked
from precbench.topk import HeldOut, TopK, resolve_k

# As good as the best trees of docs/which-method.md, without a further package.
RECOMMENDED = "hist-gradient-boosting"
_MOST_VALUES = 20_000_000  # with which the trees of one split take some ten seconds
_DAY, _MOST_DAYS = 86_400_000_000, 1e12  # in microseconds; more days than any list has
_METRICS = ("precision_at_k", "auc")

_Interval = Annotated[list[Number], Field(min_length=2, max_length=2)] | None


class _Measured(Fields):
    precision_at_k: Number
    precision_at_k_interval: _Interval = None
    auc: Number
    auc_interval: _Interval = None


class _Beside(_Measured):
    solver: str
    p: Number | None = None


class Quality(_Measured):
    """What a model says about its quality, as values of JSON.

    Means over the splits: of the numbers of held-out rows, and of the metrics with their 95 %
    intervals; of one split the interval of its list, and for the AUC None. Under ``boosted_trees``
    these of them on the same splits, with the p-value of the difference; None if they were not
    measured. Under ``length`` what a new list holds, under ``importance`` which columns matter;
    None where it was not measured.
    """

    split: Literal["random", "time"] = "random"
    splits: Count = 1
    held_out_rows: Count
    held_out_positives: Count
    k: Count | Number | str
    by_chance: Number
    boosted_trees: _Beside | None = None
    length: Length | None = None
    importance: Importance | None = None

    def to_dict(self) -> dict[str, Any]:
        return self.model_dump(exclude_unset=True)


def quality_of(model: Model, name: str) -> Quality | None:
    """Return what a model says about its quality; None if it was not measured."""
    try:
        return checked(model.about, Quality) if "precision_at_k" in model.about else None
    except ValueError as error:
        raise InputError(f"{name}: the description in the model is damaged: {error}") from error


def held_out_splits(dataset: Dataset, n_splits: int, seed: int) -> list[RowSplit]:
    """Divide rows several times; warn where a part would have one class, and leave it out."""
    rule = rule_for_new_lists(dataset, n_splits)
    splits, refusals = [], []
    for index in range(n_splits):
        try:
            splits.append(
                split_rows(dataset, index=index, n_splits=n_splits, seed=seed, **rule._asdict())
            )
        except InputError as error:
            refusals.append(error)
    if not splits:
        raise refusals[0]
    if refusals:
        warnings.warn(
            f"{len(refusals)} of {n_splits} splits are left out: {refusals[0]}", stacklevel=2
        )
    return splits


def held_out_quality(
    dataset: Dataset,
    splits: Sequence[RowSplit],
    k: TopK,
    how: Mapping[str, Any],
    weights: NDArray[np.float64] | None = None,
    amounts: NDArray[np.float64] | None = None,
    encoding: Encoding | None = None,
    list_rows: int | None = None,
) -> tuple[Quality, list[HeldOut], float]:
    """Measure models that are fitted as the whole will be, by the first `k` of `list_rows` rows.

    Boosted trees are measured beside them, unless they are the model itself, take too long or
    refuse the rows. Returns the quality, the held-out list of each split, and the share of rows
    held out.
    """
    shuffling, top = Shuffling(encoding), share_of_list(k, list_rows or len(dataset.y))
    lists = held_out_lists(dataset, splits, how, weights, amounts, shuffling)
    trees = None
    n_values = max(len(split.train) for split in splits) * dataset.X.shape[1]
    if (how["solver"] != RECOMMENDED or "fourier" in how) and n_values <= _MOST_VALUES:
        with suppress(InputError):  # of unscaled rows, which the model may scale
            trees = _measured(
                held_out_lists(
                    dataset, splits, {"solver": RECOMMENDED, "random_state": 0}, weights
                ),
                top,
            )

    share = _test_share(splits)
    split: Any = "random" if dataset.time is None else "time"
    labels = [held.y > 0 for held in lists]
    n_pos = round(np.mean([np.count_nonzero(held) for held in labels]))
    n_rows = round(np.mean([len(held) for held in labels]))
    own, count = _measured(lists, top), resolve_k(top, n_pos, n_rows)
    quality = Quality(
        splits=len(lists),
        held_out_rows=n_rows,
        held_out_positives=n_pos,
        k=k,
        by_chance=float(np.mean([held.mean() for held in labels])),
        **_means(own, share, count),
        split=split,
        importance=shuffling.importance(share),
    )
    if trees is not None:
        p = resampled_test(np.array(own)[:, 0], np.array(trees)[:, 0], share).p
        beside = _Beside(
            solver=RECOMMENDED, **_means(trees, share, count), p=None if np.isnan(p) else p
        )
        quality = quality.model_copy(update={"boosted_trees": beside})
    return quality, lists, share


def importance_of(
    dataset: Dataset,
    splits: Sequence[RowSplit],
    how: Mapping[str, Any],
    encoding: Encoding | None,
) -> Importance | None:
    """Measure the importance of columns; None where it takes too long or cannot be explained."""
    most = max((len(split.train) for split in splits), default=0)
    if not 0 < most * dataset.X.shape[1] <= _MOST_VALUES:
        return None
    shuffling = Shuffling(encoding)
    held_out_lists(dataset, splits, how, shuffling=shuffling)
    return shuffling.importance(_test_share(splits))


def _test_share(splits: Sequence[RowSplit]) -> float:
    n_held = sum(len(split.test) for split in splits)
    return n_held / (n_held + sum(len(split.train) for split in splits))


def _measured(lists: Sequence[HeldOut], k: TopK) -> list[tuple[float, float]]:
    return [(precision_at_k(held.y, held.scores, k), auc(held.y, held.scores)) for held in lists]


def held_out_lists(
    dataset: Dataset,
    splits: Sequence[RowSplit],
    how: Mapping[str, Any],
    weights: NDArray[np.float64] | None = None,
    amounts: NDArray[np.float64] | None = None,
    shuffling: Shuffling | None = None,
) -> list[HeldOut]:
    """Fit a model on each split, and score its held-out rows."""
    lists = []
    for split in splits:
        of_rows = None if weights is None else weights[split.train]
        with warnings.catch_warnings():  # the fit to all rows gives them too
            warnings.simplefilter("ignore")
            train = dataset.gathered(split.train, split.train)
            model = Model.fit(train, dataset.y[split.train], sample_weight=of_rows, **how)
            test = dataset.gathered(split.test, split.train)
            scores = model.decision_function(test)
        if shuffling is not None:
            shuffling.measure(model, test, dataset.y[split.test])
        lists.append(held_out(dataset, split.test, scores, amounts))
    return lists


def held_out(
    dataset: Dataset,
    rows: NDArray[np.intp],
    scores: NDArray[np.float64],
    amounts: NDArray[np.float64] | None,
) -> HeldOut:
    """Return the held-out rows with their scores, days, amounts and groups."""
    days = None
    if dataset.time is not None:
        # Dates are microseconds since 1970; smaller numbers are taken for days.
        of_day = _DAY if np.abs(dataset.time).max() > _MOST_DAYS else 1
        days = np.floor_divide(dataset.time, of_day).astype(np.int64)
    columns: tuple[Any, ...] = (amounts, days, dataset.groups)
    return HeldOut(dataset.y[rows], scores, *[None if c is None else c[rows] for c in columns])


def _means(values: Sequence[tuple[float, float]], test_share: float, top: int) -> dict[str, Any]:
    """Return means and intervals; a precision without variance has that of a single list."""
    means: dict[str, Any] = {}
    for name, of_metric in zip(_METRICS, zip(*values, strict=True), strict=True):
        mean, low, high = share_interval(of_metric, test_share)
        if name == "precision_at_k" and not high - low > NO_WIDTH:
            low, high = binomial_interval(min(mean, 1.0), top)
        means[name] = mean
        means[f"{name}_interval"] = None if np.isnan(low) else [low, high]
    return means


def describe_quality(quality: Quality) -> list[str]:
    """Describe the quality of a model, and that of boosted trees, in a line each."""
    n, k, length = quality.splits, quality.k, quality.length
    if isinstance(k, int) and length is not None:
        top = share_of_list(k, length.rows)
        k = resolve_k(top, quality.held_out_positives, quality.held_out_rows)
    if quality.split == "time":
        rows = f"{n} periods of about" if n > 1 else "the latest"
        rows += f" {quality.held_out_rows:,} rows"
    elif n > 1:
        rows = f"{n} splits, about {quality.held_out_rows:,} held-out rows each"
    else:
        rows = f"1 split, {quality.held_out_rows:,} held-out rows"
    lines = [
        f"{rows}, {quality.held_out_positives:,} positive: "
        f"prec@{k} {_written(quality.precision_at_k, quality.precision_at_k_interval)}, by chance "
        f"{quality.by_chance:.3f}, AUC {_written(quality.auc, quality.auc_interval)}"
    ]
    trees = quality.boosted_trees
    if trees is not None:
        verdict = ""
        if trees.p is not None:
            is_better = trees.precision_at_k > quality.precision_at_k
            verdict = f"significantly {'better' if is_better else 'worse'}"
            verdict = f", {verdict if trees.p < LEVEL else 'no significant difference'}"
        lines.append(
            f"{trees.solver} on the same rows: prec@{k} "
            f"{_written(trees.precision_at_k, trees.precision_at_k_interval)}{verdict}; "
            f"AUC {_written(trees.auc, trees.auc_interval)}"
        )
    return lines


def _written(mean: float, interval: list[float] | None) -> str:
    """Format a mean with its interval."""
    if interval is None or interval[0] == interval[1]:  # equal values show no variance
        return f"{mean:.3f}"
    return f"{mean:.3f} ({interval[0]:.3f} to {interval[1]:.3f})"

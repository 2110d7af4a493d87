"""The quality of a model on rows that it was not fitted to."""

import warnings
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from precbench.advice.importance import Importance, Shuffling
from precbench.advice.length import Length, share_of_list
from precbench.core.errors import InputError
from precbench.core.strict_json import Count, Fields, Number, checked
from precbench.data import Dataset
from precbench.data.splits import RowSplit, rule_for_new_lists, split_rows
from precbench.model.model import Model
from precbench.ranking.metrics import auc, precision_at_k
from precbench.ranking.statistics import (
    Interval,
    auc_interval,
    binomial_interval,
    distinct_rows,
    share_interval,
)
from precbench.ranking.topk import HeldOut, TopK, resolve_k
from precbench.tables.encoding import Encoding
from precbench.tables.reading import Label

# As good as the best trees of docs/which-method.md, without a further package.
RECOMMENDED = "hist-gradient-boosting"
# Of training rows: the trees of one split then take some ten seconds.
_MOST_VALUES = 20_000_000

_Interval = Annotated[list[Number], Field(min_length=2, max_length=2)] | None


class Quality(Fields):
    """The quality that a model states, as values of JSON.

    Numbers of held-out rows and metrics are means over the splits, with 95 % intervals.
    A single split has the interval of one list, and none for the AUC. ``length`` says
    what a new list holds, ``importance`` which columns matter; both are None where not
    measured. ``label`` is the column of the labels of a table, ``positive`` has the
    labels of the hits if they were named.
    """

    precision_at_k: Number
    precision_at_k_interval: _Interval = None
    auc: Number
    auc_interval: _Interval = None
    split: Literal["random", "time"] = "random"
    splits: Count = 1
    held_out_rows: Count
    held_out_positives: Count
    k: Count | Number | str
    by_chance: Number
    length: Length | None = None
    importance: Importance | None = None
    label: str | None = None
    positive: list[str] | None = None


def quality_of(model: Model, name: str) -> Quality | None:
    """Return the quality that a model states; None if it was not measured."""
    if "precision_at_k" not in model.about:
        return None
    try:
        return checked(model.about, Quality)
    except ValueError as error:
        raise InputError(
            f"{name}: the stored quality is damaged ({error}); fit and save the model"
            " again"
        ) from error


def as_texts(positive: Label | Sequence[Label] | None) -> list[str] | None:
    """Return the labels of the hits as a model states them; None if none was named."""
    if positive is None:
        return None
    if isinstance(positive, str | int | float):
        return [str(positive)]
    return [str(label) for label in positive] or None


def held_out_splits(dataset: Dataset, n_splits: int, seed: int) -> list[RowSplit]:
    """Return up to `n_splits` divisions of the rows.

    Leave out impossible ones with a warning.
    """
    options = rule_for_new_lists(dataset, n_splits)._asdict()
    options |= {"n_splits": n_splits, "seed": seed}
    splits = []
    refusals = []
    for index in range(n_splits):
        try:
            splits.append(split_rows(dataset, index=index, **options))
        except InputError as error:  # such as too few positives for this split
            refusals.append(error)
    if not splits:
        raise refusals[0]
    if refusals:
        warnings.warn(
            f"quality is measured on {len(splits)} of {n_splits} splits only; the"
            f" others are impossible: {refusals[0]}",
            stacklevel=2,
        )
    return splits


class MeasuredQuality(NamedTuple):
    """The quality of models on held-out lists.

    Attributes
    ----------
    quality : Quality
    lists : list of HeldOut
    test_share : float
        Share of the rows that a split holds out.
    """

    quality: Quality
    lists: list[HeldOut]
    test_share: float


def held_out_quality(
    dataset: Dataset,
    splits: Sequence[RowSplit],
    k: TopK,
    how: Mapping[str, Any],
    weights: NDArray[np.float64] | None = None,
    amounts: NDArray[np.float64] | None = None,
    encoding: Encoding | None = None,
    list_rows: int | None = None,
) -> MeasuredQuality:
    """Return the quality of models that are fitted to splits, with what was measured.

    `how` has the arguments of `Model.fit`; precision is that of the first `k` of
    `list_rows` rows.
    """
    # A count k of rows is measured as a share, since held-out lists are shorter than
    # `list_rows`.
    top = share_of_list(k, list_rows or len(dataset.y))
    shuffling = Shuffling(encoding)
    lists = held_out_lists(dataset, splits, how, weights, amounts, shuffling)
    test_share = _test_share(splits)
    n_held_pos = round(np.mean([np.count_nonzero(held.y > 0) for held in lists]))
    n_held = round(np.mean([len(held.y) for held in lists]))
    n_top = resolve_k(top, n_held_pos, n_held)
    precisions = [precision_at_k(held.y, held.scores, top) for held in lists]
    precision = _precision_interval(precisions, n_top, test_share)
    aucs = [auc(held.y, held.scores) for held in lists]
    n_pos = int(np.count_nonzero(dataset.y > 0))
    mean_auc = auc_interval(aucs, test_share, n_pos, len(dataset.y) - n_pos)
    quality = Quality(
        precision_at_k=precision.mean,
        precision_at_k_interval=[precision.low, precision.high],
        auc=mean_auc.mean,
        auc_interval=[mean_auc.low, mean_auc.high] if len(lists) > 1 else None,
        split="random" if dataset.time is None else "time",
        splits=len(lists),
        held_out_rows=n_held,
        held_out_positives=n_held_pos,
        k=k,
        by_chance=float(np.mean([np.mean(held.y > 0) for held in lists])),
        importance=shuffling.importance(test_share),
    )
    return MeasuredQuality(quality, lists, test_share)


def _precision_interval(
    precisions: Sequence[float], n_top: int, test_share: float
) -> Interval:
    """Return the mean precision of the first `n_top` rows of lists, and its interval.

    The interval is at least that of as many rows as were at the top of a list: values
    of few splits may agree by chance.
    """
    measured = share_interval(precisions, test_share)
    n_tested = n_top
    if len(precisions) > 1:
        n_tested = round(distinct_rows(len(precisions), n_top, test_share))
    least_low, least_high = binomial_interval(min(measured.mean, 1.0), n_tested)
    # The ends of one split are NaN, which fmin and fmax ignore.
    return Interval(
        mean=measured.mean,
        low=float(np.fmin(measured.low, least_low)),
        high=float(np.fmax(measured.high, least_high)),
    )


def importance_of(
    dataset: Dataset,
    splits: Sequence[RowSplit],
    how: Mapping[str, Any],
    encoding: Encoding | None,
) -> Importance | None:
    """Return the importance of columns, for models that `how` fits to splits.

    None if this would take too long.
    """
    n_train = max((len(split.train) for split in splits), default=0)
    n_values = n_train * dataset.X.shape[1]
    if n_values == 0 or n_values > _MOST_VALUES:
        return None
    shuffling = Shuffling(encoding)
    # The lists are not needed, only what `shuffling` measures of each model.
    held_out_lists(dataset, splits, how, shuffling=shuffling)
    return shuffling.importance(_test_share(splits))


def _test_share(splits: Sequence[RowSplit]) -> float:
    """Return the share of all rows that is held out, on average."""
    n_held = sum(len(split.test) for split in splits)
    n_train = sum(len(split.train) for split in splits)
    return n_held / (n_held + n_train)


def held_out_lists(
    dataset: Dataset,
    splits: Sequence[RowSplit],
    how: Mapping[str, Any],
    weights: NDArray[np.float64] | None = None,
    amounts: NDArray[np.float64] | None = None,
    shuffling: Shuffling | None = None,
) -> list[HeldOut]:
    """Return the held-out rows of each split, scored by a model fitted to the others.

    `shuffling` measures each model.
    """
    lists = []
    for split in splits:
        train_weights = None if weights is None else weights[split.train]
        with warnings.catch_warnings():  # the fit to all rows repeats the warnings
            warnings.simplefilter("ignore")
            # Gaps are filled from the training rows.
            train = dataset.gathered(split.train, split.train)
            model = Model.fit(
                train, dataset.y[split.train], sample_weight=train_weights, **how
            )
            test = dataset.gathered(split.test, split.train)
            scores = model.decision_function(test)
        if shuffling is not None:
            shuffling.measure(model, test, dataset.y[split.test])
        gains = None if amounts is None else amounts[split.test]
        lists.append(HeldOut(dataset.y[split.test], scores, gains))
    return lists


def describe_quality(quality: Quality) -> str:
    """Return the quality of a model in words, as one line."""
    k = quality.k
    # A count k is of a list as long as the file: shorter held-out lists were cut at
    # fewer rows.
    if isinstance(k, int) and quality.length is not None:
        top = share_of_list(k, quality.length.rows)
        k = resolve_k(top, quality.held_out_positives, quality.held_out_rows)
    n = quality.splits
    n_rows = f"{quality.held_out_rows:,}"
    if quality.split == "time" and n > 1:
        rows = f"{n} periods of about {n_rows} rows"
    elif quality.split == "time":
        rows = f"the latest {n_rows} rows"
    elif n > 1:
        rows = f"{n} splits, about {n_rows} held-out rows each"
    else:
        rows = f"1 split, {n_rows} held-out rows"
    return (
        f"{rows}, {quality.held_out_positives:,} positive: prec@{k}"
        f" {_written(quality.precision_at_k, quality.precision_at_k_interval)}, by"
        f" chance {quality.by_chance:.3f}, AUC"
        f" {_written(quality.auc, quality.auc_interval)}"
    )


def _written(mean: float, interval: list[float] | None) -> str:
    """Format a mean with its interval, if there is one with a width."""
    if interval is None or interval[0] == interval[1]:  # equal values show no variance
        return f"{mean:.3f}"
    return f"{mean:.3f} ({interval[0]:.3f} to {interval[1]:.3f})"

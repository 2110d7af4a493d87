"""The hits of a saved model on new labelled rows, and whether they were forecast."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Unpack

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from precbench.advice.quality import Quality, quality_of
from precbench.core.errors import InputError
from precbench.core.text import count
from precbench.model.model import Model
from precbench.model.scored_list import TableModel, model_of_table
from precbench.ranking.metrics import auc
from precbench.ranking.statistics import LEVEL, Interval
from precbench.ranking.topk import TopK, first_rows, resolve_k, split_at
from precbench.tables.encoding import Encoding
from precbench.tables.own_file import FRAME, read_labels, read_new_blocks
from precbench.tables.reading import Label, LayoutOptions

_DEFAULT_K = 0.25  # that of `fit`
Verdict = Literal["kept", "fewer", "more"]


class ListComparison(NamedTuple):
    """The hits of two lists among the rows that only one of the two has.

    Attributes
    ----------
    hits : float
        Hits on the whole list of the other model.
    rows : int
        Rows that each list has alone, equally many on both.
    own, others : int
        Hits among these rows on the list of the model, and of the other model.
    p : float
        Of Fisher's exact test that both have equally many hits.
    """

    hits: float
    rows: int
    own: int
    others: int
    p: float

    def sentence(self) -> str:
        """Return the comparison in words, with the verdict at the level of 5 %."""
        verdict = "no significant difference"
        if self.p < LEVEL:
            more_or_fewer = "more" if self.own > self.others else "fewer"
            verdict = f"significantly {more_or_fewer}"
        return (
            f"{_hits_in_words(self.hits)}; of {count(self.rows, 'row')} on only one of"
            f" the lists, {self.own:,} against {self.others:,} are hits: {verdict} (p ="
            f" {self.p:.2g})"
        )


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation:
    """The hits of a model among the first rows of its list.

    Attributes
    ----------
    file : str
        Name of the rows.
    rows, positives : int
        Their number, and how many are hits.
    k : int
        Rows on the list.
    hits : float
        Hits on the list; the mean over all orders of rows that are tied at its end.
    n_tied : int
        Rows that are tied at the end of the list, 0 if their order does not count.
    precision : float
        Hits as a share of the list.
    auc : float or None
        None if all rows are of one class.
    precision_when_fitted : float or None
        What the model had on held-out rows, for a list of the same share of the rows.
    forecast : Interval or None
        Hits that the model expected of this list; None if it is not calibrated.
    verdict : {"kept", "fewer", "more"} or None
        Whether the hits lie in the interval of the forecast.
    training_rows : str or None
        A warning if more training rows are among the rows than chance explains.
    against : ListComparison or None
        The comparison with another model.
    against_name : str
        Name of the other model.
    """

    file: str
    rows: int
    positives: int
    k: int
    hits: float
    n_tied: int
    precision: float
    auc: float | None
    precision_when_fitted: float | None = None
    forecast: Interval | None = None
    verdict: Verdict | None = None
    training_rows: str | None = None
    against: ListComparison | None = None
    against_name: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the evaluation as values of JSON, without what was not measured."""
        values: dict[str, Any] = {
            "rows": self.rows,
            "positives": self.positives,
            "k": self.k,
            "hits": self.hits,
            "precision": self.precision,
            "auc": self.auc,
        }
        if self.precision_when_fitted is not None:
            values["precision_when_fitted"] = self.precision_when_fitted
        if self.forecast is not None:
            values["promised"] = self.forecast._asdict()
            values["verdict"] = self.verdict
        if self.against is not None:
            values["against"] = self.against._asdict()
        return values

    def sentences(self) -> list[str]:
        """Return the evaluation in words."""
        hits = f"{_hits_in_words(self.hits)} among the first {self.k:,}"
        hits += f": precision {self.precision:.3f}"
        if self.precision_when_fitted is not None:
            hits += f" ({self.precision_when_fitted:.3f} when fitted)"
        if self.auc is not None:
            hits += f", AUC {self.auc:.3f}"
        sentences = [
            f"{self.file}: {self.rows:,} rows, {self.positives:,} positive",
            hits,
        ]
        if self.n_tied:
            sentences.append(
                f"{count(self.n_tied, 'row')} tied at the end of the list: hits are a"
                " mean over all orders"
            )
        if self.forecast is not None:
            mean, low, high = self.forecast
            verdict = f"{self.verdict} than forecast"
            if self.verdict == "kept":
                verdict = "as forecast"
            sentences.append(
                f"forecast: about {mean:,.1f} hits ({low:,.0f} to {high:,.0f}); "
                f"found {self.hits:g}, {verdict}"
            )
        if self.training_rows is not None:
            sentences.append(self.training_rows)
        if self.against is not None:
            sentences.append(f"{self.against_name}: {self.against.sentence()}")
        return sentences

    def __repr__(self) -> str:
        """Return the evaluation in words."""
        return "\n".join(self.sentences())


def evaluate(
    model: Model | str | os.PathLike[str],
    rows: str | os.PathLike[str] | pd.DataFrame,
    *,
    label: str | None = None,
    positive: Label | Sequence[Label] | None = None,
    k: TopK | None = None,
    against: Model | str | os.PathLike[str] | None = None,
    **layout: Unpack[LayoutOptions],
) -> Evaluation:
    """Count the hits of a model on new labelled rows, as ``precbench evaluate`` does.

    Parameters
    ----------
    model : Model or path
        Fitted to a table or a file, by `fit`, `compare` or `Model.fit`.
    rows : path or DataFrame
        Rows whose labels are known by now, with the columns of the model.
    label : str, optional
        Column of the labels; by default that of the model.
    positive : str or number, or a list of these, optional
        Labels of the hits; by default those of the model.
    k : int, float or str, optional
        Length of the list. An int is a number of rows, a float in (0, 1] a fraction of
        the positives, and text such as "1 %" a fraction of the rows; fractions are
        rounded up. So 1 is a single row, and 1.0 as many rows as there are positives.
        By default that of the model, or else 0.25.
    against : Model or path, optional
        Another model, whose list is compared by Fisher's exact test.
    **layout
        ``format``, and how the file is written; see `precbench.tables.layout.Layout`.

    Returns
    -------
    Evaluation
        With ``hits``, ``precision``, ``forecast`` and ``verdict``.

    Raises
    ------
    InputError
        If a label is not known, the rows lack a column of the model, or `k` is no
        length of a list of these rows.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> import precbench
    >>> x = np.random.default_rng(0).standard_normal((2, 800))
    >>> table = pd.DataFrame({"age": x[0], "bill": x[1], "churned": x[0] + x[1] > 2})
    >>> model = precbench.fit(table[:400], label="churned", k=20, n_splits=2)
    >>> precbench.evaluate(model, table[400:]).k
    20
    """
    of_table = model_of_table(model)
    fitted, encoding = of_table
    other = None if against is None else model_of_table(against)  # raises at once
    name = FRAME if isinstance(rows, pd.DataFrame) else str(rows)
    quality = quality_of(
        fitted, "the model" if isinstance(model, Model) else str(model)
    )
    if quality is not None:
        label = label or quality.label
        positive = positive or quality.positive
    label_layout: LayoutOptions = {**layout}
    label_layout.setdefault("decimal", _decimal_of(encoding))  # as at the fit
    is_hit = read_labels(rows, label, positive, **label_layout) > 0
    n_rows = len(is_hit)
    n_pos = int(np.count_nonzero(is_hit))
    length = _length(k, quality, n_pos, n_rows, name)
    scores, n_known = _scores(of_table, rows, layout)
    listed = _listing_probabilities(scores, length)
    hits = _count_hits(listed, is_hit)
    forecast = None
    verdict = None
    if fitted.calibration is not None:
        top_scores = scores[first_rows(scores, length)]
        forecast = fitted.calibration.expected(top_scores, n_rows)
        verdict = _verdict(hits, forecast)
    warning = None
    if fitted.training_rows is not None:
        warning = fitted.training_rows.sentence(n_known, n_rows)
    comparison = None
    if other is not None:
        other_scores = _scores(other, rows, layout).scores
        other_listed = _listing_probabilities(other_scores, length)
        comparison = _compare_lists(listed, other_listed, is_hit)
    return Evaluation(
        file=name,
        rows=n_rows,
        positives=n_pos,
        k=length,
        hits=hits,
        n_tied=int(np.count_nonzero((listed > 0) & (listed < 1))),
        precision=hits / length,
        auc=auc(is_hit, scores) if 0 < n_pos < n_rows else None,
        precision_when_fitted=_precision_when_fitted(quality, length / n_rows),
        forecast=forecast,
        verdict=verdict,
        training_rows=warning,
        against=comparison,
        against_name="the other model" if isinstance(against, Model) else str(against),
    )


def _decimal_of(encoding: Encoding) -> str | None:
    """Return the decimal mark of the model's training numbers, if it is known."""
    for column in encoding.columns:
        if column.notation in (".", ","):
            return column.notation
    return None


def _length(
    k: TopK | None, quality: Quality | None, n_pos: int, n_rows: int, name: str
) -> int:
    """Return the number of rows on the list: `k`, or else that of the model."""
    if k is None:
        k = _DEFAULT_K if quality is None else quality.k
    if isinstance(k, float) and n_pos == 0:
        raise InputError(
            f"{name}: no row is positive, so a k of {k} gives no length; give --k as a"
            " number of rows"
        )
    return resolve_k(k, n_pos, n_rows)


def _precision_when_fitted(quality: Quality | None, share: float) -> float | None:
    """Return the held-out precision of a list of a share of the rows, if measured."""
    if quality is None or quality.length is None:
        return None
    curve = quality.length.curve
    value = np.interp(share * quality.length.rows, curve["length"], curve["precision"])
    return float(value)


class _ScoredRows(NamedTuple):
    """The scores of rows, and how many of the rows are training rows."""

    scores: NDArray[np.float64]
    n_known: int


def _scores(
    of_table: TableModel,
    rows: str | os.PathLike[str] | pd.DataFrame,
    layout: LayoutOptions,
) -> _ScoredRows:
    """Score rows by a model, and count the training rows among them."""
    model, encoding = of_table
    parts: list[NDArray[np.float64]] = []
    n_known = 0
    for X, _texts in read_new_blocks(rows, encoding, **layout):
        parts.append(model.decision_function(X, n_jobs=-1))
        if model.training_rows is not None:
            n_known += model.training_rows.count(X)
    return _ScoredRows(np.concatenate(parts), n_known)


def _listing_probabilities(
    scores: NDArray[np.float64], length: int
) -> NDArray[np.float64]:
    """Return the probability that each row is on the list.

    Tied rows are in random order.
    """
    top = split_at(scores, length)
    listed = np.zeros(len(scores))
    listed[top.above] = 1
    listed[top.tied] = top.n_tied_in_top / len(top.tied)
    return listed


def _count_hits(listed: NDArray[np.float64], is_hit: NDArray[np.bool_]) -> float:
    """Return the expected hits on a list.

    Tied rows count in part; the error of summing the parts is rounded away.
    """
    return round(float(listed @ is_hit), 6)


def _verdict(hits: float, forecast: Interval) -> Verdict:
    if hits < forecast.low:
        return "fewer"
    if hits > forecast.high:
        return "more"
    return "kept"


def _compare_lists(
    own: NDArray[np.float64], other: NDArray[np.float64], is_hit: NDArray[np.bool_]
) -> ListComparison:
    """Compare the hits among the rows that only one of two lists has, by Fisher's test.

    `own` and `other` are probabilities that a row is listed. Ties make fractions of
    rows, which are rounded, as the test needs whole numbers.
    """
    from scipy.stats import fisher_exact

    only_own = np.maximum(own - other, 0)
    only_other = np.maximum(other - own, 0)
    n_rows = round(float(only_own.sum()))
    own_hits = round(float(only_own @ is_hit))
    other_hits = round(float(only_other @ is_hit))
    hits_and_misses = [[own_hits, n_rows - own_hits], [other_hits, n_rows - other_hits]]
    return ListComparison(
        hits=_count_hits(other, is_hit),
        rows=n_rows,
        own=own_hits,
        others=other_hits,
        p=float(fisher_exact(hits_and_misses).pvalue),
    )


def _hits_in_words(n: float) -> str:
    return count(int(n), "hit") if n.is_integer() else f"{n:,.1f} hits"

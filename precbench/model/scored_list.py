"""Rank new rows by a saved model, and say what to expect of the list."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Unpack

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from precbench.core.errors import InputError
from precbench.model.drift import describe_drift
from precbench.model.model import Model
from precbench.model.reasons import Reasons, ReasonsOfList, reason_columns
from precbench.ranking.statistics import Interval
from precbench.tables.encoding import Encoding, Gaps
from precbench.tables.list_file import with_numbers, write_list
from precbench.tables.own_file import read_new_blocks
from precbench.tables.own_table import TABLES, format_of
from precbench.tables.problems import column_of
from precbench.tables.reading import LayoutOptions


class Overlap(NamedTuple):
    """How many rows of a list were on an earlier list.

    Attributes
    ----------
    listed : int
        Different rows of the list.
    before : int
        Different rows of the earlier list.
    again : int
        Rows on both lists.
    jaccard : float
        Rows on both lists, as a share of the rows on either.
    """

    listed: int
    before: int
    again: int
    jaccard: float


@dataclass(frozen=True, eq=False, repr=False)
class ScoredList:
    """Rows in the order of their scores, the highest first.

    Attributes
    ----------
    ranking : DataFrame
        The columns ``rank``, ``row`` (its number in the file; both from 1), those of
        `id` and `keep` as text, ``score``, and with `probability` the ``probability``
        of a hit.
    n_rows : int
        Number of ranked rows, listed or not.
    hits : Interval or None
        Expected hits on the list, with a 95 % interval; None if the model is not
        calibrated.
    drift : dict or None
        With `drift`: how far the rows are from the training rows, see `Drift.summary`.
    last : Overlap or None
        With `last`: how many rows were on the earlier list.
    training_rows : str or None
        A warning if more training rows are among the rows than chance explains.
    reasons : list of dict, or None
        With `explain`: for each listed row the columns that raise (``raises``) and that
        lower (``lowers``) its score most, with ``column``, ``value`` and
        ``contribution``.
    n_reasons : int
        Number of columns ``raises_1`` ... of `rows`.
    """

    ranking: pd.DataFrame
    n_rows: int
    hits: Interval | None = None
    drift: dict[str, Any] | None = None
    last: Overlap | None = None
    training_rows: str | None = None
    reasons: list[Reasons] | None = None
    n_reasons: int = 0

    @property
    def rows(self) -> pd.DataFrame:
        """The list as a table: `ranking`, with ``raises_1`` ... and ``lowers_1``."""
        if self.reasons is None:
            return self.ranking
        return self.ranking.assign(**reason_columns(self.reasons, self.n_reasons))

    @property
    def has_drifted(self) -> bool:
        """Whether a column or the scores have drifted.

        False if this was not asked for.
        """
        return self.drift is not None and self.drift["drift"]

    def records(self) -> list[dict[str, Any]]:
        """Return the listed rows as values of JSON."""
        rows = with_numbers(self.ranking).to_dict("records")
        records = [{str(name): value for name, value in row.items()} for row in rows]
        if self.reasons is None:
            return records
        return [row | why for row, why in zip(records, self.reasons, strict=True)]

    def to_dict(self) -> dict[str, Any]:
        """Return the whole result as values of JSON."""
        return {
            "list": self.records(),
            "hits": None if self.hits is None else self.hits._asdict(),
            "drift": self.drift,
            "last": None if self.last is None else self.last._asdict(),
        }

    def sentences(self) -> list[str]:
        """Return in words what is known of the list."""
        sentences = []
        if self.hits is not None:
            mean, low, high = self.hits
            sentences.append(
                f"expect about {mean:,.1f} hits among the listed rows "
                f"({low:,.0f} to {high:,.0f} in 95 % of such lists)"
            )
        if self.training_rows is not None:
            sentences.append(self.training_rows)
        if self.drift is not None:
            sentences.append(describe_drift(self.drift))
        if self.last is not None:
            sentences.append(
                f"{self.last.again:,} of the {self.last.listed:,} listed rows were on"
                f" the last list of {self.last.before:,} (Jaccard"
                f" {self.last.jaccard:.2f})"
            )
        return sentences

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the list as CSV, Excel or Parquet, whole or not at all."""
        write_list(self.rows, Path(path))

    def __repr__(self) -> str:
        """Return the list and what is known of it."""
        return "\n".join([f"{self.rows}", *self.sentences()])


def score(
    model: Model | str | os.PathLike[str],
    rows: str | os.PathLike[str] | pd.DataFrame,
    *,
    top: int | None = None,
    id: str | None = None,  # noqa: A002
    keep: Sequence[str] = (),
    probability: bool = False,
    drift: bool = False,
    last: str | os.PathLike[str] | pd.DataFrame | None = None,
    explain: int | None = None,
    refuse_gaps: bool = False,
    **layout: Unpack[LayoutOptions],
) -> ScoredList:
    """Rank new rows by a model, as ``precbench score`` does.

    A table in a file is read in chunks, so it may be larger than memory.

    Parameters
    ----------
    model : Model or path
        Fitted to a table or a file, by `fit`, `compare` or `Model.fit`.
    rows : path or DataFrame
        Rows with the columns of the model; further columns are ignored. No label is
        needed.
    top : int, optional
        Number of rows to list; by default all.
    id : str, optional
        Column that identifies the rows, to list and to compare with `last`.
    keep : sequence of str
        Columns to list beside the scores; ``["all"]`` is every column.
    probability : bool, default=False
        Whether to add the probability of a hit, calibrated on held-out rows.
    drift : bool, default=False
        Whether to measure how far the rows are from the training rows of the model.
    last : path or DataFrame, optional
        An earlier list, of which the rows that are listed again are counted. They are
        compared by `id`, or else by the number of the row.
    explain : int, optional
        Number of columns to name, for each listed row, that raise its score most; needs
        `top`.
    refuse_gaps : bool, default=False
        Whether a missing value is an error.
    **layout
        ``format``, and how the file is written; see `precbench.tables.layout.Layout`.

    Returns
    -------
    ScoredList
        With the table ``rows``, the expected ``hits``, and ``write(path)``.

    Raises
    ------
    InputError
        If the rows lack a column of the model, or have a value that the model cannot
        take; if the model lacks what an option needs: probabilities, a profile of its
        training rows.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> import precbench
    >>> x = np.random.default_rng(0).standard_normal((2, 400))
    >>> table = pd.DataFrame({"age": x[0], "bill": x[1], "churned": x[0] + x[1] > 2})
    >>> model = precbench.fit(table, label="churned", k=20, n_splits=2)
    >>> listed = precbench.score(model, table, top=3, keep=["age"])
    >>> listed.rows.columns.tolist()
    ['rank', 'row', 'age', 'score']
    """
    if explain is not None and top is None:
        raise InputError("explain needs top, the number of rows to list")
    earlier_names = None if last is None else _names_of_list(last, id or "row")
    fitted, encoding = model_of_table(model)
    if probability:
        # Raises before the rows are read, if the model has no probabilities.
        fitted.probabilities([])
    monitor = fitted.drift() if drift else None
    gaps = Gaps() if monitor is None else monitor.gaps
    gaps.refuse = refuse_gaps
    explainer = None if explain is None else ReasonsOfList(fitted, explain)
    n_known = 0  # training rows among the rows

    def watch(X: Any, scores: NDArray[np.float64]) -> None:
        """Count the drift and the training rows of a block."""
        nonlocal n_known
        if monitor is not None:
            monitor.add(X, scores)
        if fitted.training_rows is not None:
            n_known += fitted.training_rows.count(X)

    columns = [*keep] if id is None else [id, *keep]
    blocks = read_new_blocks(rows, encoding, keep=columns, gaps=gaps, **layout)
    encoded_rows = None
    if explainer is not None:
        blocks = explainer.noting(blocks, gaps)
        encoded_rows = explainer.rows  # of the listed rows, filled by `rank_blocks`
    ranking, n_rows = fitted.rank_blocks(
        blocks, top, n_jobs=-1, watch=watch, listed=encoded_rows
    )
    reasons = None
    if explainer is not None:
        reasons = explainer.reasons(ranking["row"].tolist())
    scores = ranking["score"].to_numpy()
    if probability:
        ranking["probability"] = fitted.probabilities(scores)
    # Numbers in the file count blank rows.
    ranking["row"] = gaps.places_of(ranking["row"])
    hits = None
    if fitted.calibration is not None and len(scores):
        hits = fitted.calibration.expected(scores, n_rows)
    warning = None
    if fitted.training_rows is not None:
        warning = fitted.training_rows.sentence(n_known, n_rows)
    overlap = None
    if earlier_names is not None:
        names = set(ranking[id or "row"].astype(str))
        overlap = _overlap(names, earlier_names)
    return ScoredList(
        ranking=ranking,
        n_rows=n_rows,
        hits=hits,
        drift=None if monitor is None else monitor.summary(),
        last=overlap,
        training_rows=warning,
        reasons=reasons,
        n_reasons=0 if explainer is None else explainer.n,
    )


class TableModel(NamedTuple):
    """A model fitted to a table, and the encoding of its columns."""

    model: Model
    encoding: Encoding


def model_of_table(model: Model | str | os.PathLike[str]) -> TableModel:
    """Return a model and the encoding of its columns.

    Refuse a model fitted to arrays.
    """
    fitted = model if isinstance(model, Model) else Model.load(model)
    if fitted.encoding is None:
        name = "the model" if isinstance(model, Model) else os.fspath(model)
        raise InputError(
            f"{name} was fitted to arrays, not to a table; in Python, rank arrays with"
            " Model.rank"
        )
    return TableModel(fitted, fitted.encoding)


def _names_of_list(
    earlier: str | os.PathLike[str] | pd.DataFrame, column: str
) -> set[str]:
    """Return a column of an earlier list, its ids or numbers of rows, as text."""
    if isinstance(earlier, pd.DataFrame):
        return set(column_of(earlier, column, "last").astype(str))
    kind = format_of(Path(earlier))
    if kind not in TABLES:
        raise InputError(
            f"{earlier} is {kind}; as the earlier list, give a CSV or Parquet list that"
            " score wrote"
        )
    no_features = Encoding("csv", n_features=0, dense=True)
    blocks = read_new_blocks(earlier, no_features, keep=[column])
    return {name for _X, texts in blocks for name in texts[column]}


def _overlap(names: set[str], earlier_names: set[str]) -> Overlap:
    again = len(names & earlier_names)
    return Overlap(
        listed=len(names),
        before=len(earlier_names),
        again=again,
        jaccard=again / len(names | earlier_names),
    )

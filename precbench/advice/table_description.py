"""Describe a table, and what `compare` would do with it, before anything is trained."""

import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack

import joblib

from precbench.advice.contest import prepare
from precbench.core.text import count, duration
from precbench.ranking.topk import TopK, several_k
from precbench.report.table import Table, text_table
from precbench.results.store import Store
from precbench.runner.cost import expected_seconds
from precbench.tables.own_table import OwnTable, Source, open_table
from precbench.tables.profile import ColumnProfile, TableProfile, profile_table
from precbench.tables.reading import ReadingOptions

_MOST_SHOWN = 40  # columns


def profile(
    table: Source,
    *,
    label: str | None = None,
    k: TopK | Sequence[TopK] = 0.25,
    allow: Sequence[str] = (),
    gain_column: str | None = None,
    **reading: Unpack[ReadingOptions],
) -> TableProfile:
    """Describe a table, as ``precbench profile`` does; nothing is trained.

    Parameters
    ----------
    table : path or DataFrame
        See `precbench.tables.own_file.read_own_file`.
    label : str, optional
        Column of the labels.
    k : int, float or str, or a list of these, default=0.25
        Length of the top of the list to score. An int is a number of rows, a float in
        (0, 1] a fraction of the positives, and text such as "1 %" a fraction of the
        rows; fractions are rounded up. So 1 is a single row, and 1.0 as many rows as
        there are positives.
    allow : sequence of str
        Columns to use although they look like a leak, an identifier or a code.
    gain_column : str, optional
        Column with the gain of each row as a hit; it is checked.
    **reading
        ``positive``, ``groups``, ``time``, ``drop``, ``id``, ``categorical``,
        ``numeric``, ``missing`` and ``format`` of
        `precbench.tables.own_file.read_own_file`.

    Returns
    -------
    TableProfile
        With the table ``frame`` of the columns, and why the table is refused, if it is.

    Raises
    ------
    InputError
        If the file cannot be read as a table.

    Examples
    --------
    >>> import pandas as pd
    >>> import precbench
    >>> table = pd.DataFrame({"age": range(200), "churned": [0, 0, 0, 1] * 50})
    >>> profiled = precbench.profile(table, label="churned")
    >>> profiled.positives, profiled.columns[0].high
    (50, '199')
    """
    options = {"label": label, **reading}
    own = open_table(table, options)
    profiled = profile_table(own, options, allow, gain_column)
    can_train = profiled.refusal is None and profiled.positives is not None
    if not can_train:
        return profiled
    return replace(profiled, outlook=_outlook(own, options, several_k(k)))


def columns_table(columns: Sequence[ColumnProfile], title: str) -> Table:
    """Lay out the first `_MOST_SHOWN` columns of a profile."""
    shown = columns[:_MOST_SHOWN]
    header = ["column", "holds", "different", "gaps", "from", "to", "AUC alone"]
    notes = []
    if len(columns) > len(shown):
        n_more = len(columns) - len(shown)
        notes.append(f"and {count(n_more, 'column')} more (--json has all)")
    return text_table(
        title, header, [_column_cells(column) for column in shown], *notes
    )


def _column_cells(column: ColumnProfile) -> list[str]:
    return [
        column.name,
        column.holds,
        f"{column.distinct:,}",
        f"{column.missing:,}",
        column.low,
        column.high,
        "" if column.auc is None else f"{column.auc:.3f}",
    ]


def _outlook(own: OwnTable, options: dict[str, Any], ks: Sequence[TopK]) -> str:
    """Return a sentence about what compare would train on a table, and for how long."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the profile shows what the warnings would say
        contest = prepare({"file": own, **options}, ks)
    # An earlier compare has left its times in this folder.
    store = Store(Path("results") / contest.experiment.name)
    trials = [trial for trial, _data in contest.plan.trials]
    seconds = sum(expected_seconds(contest.plan, store, trials))
    n_methods = len(contest.experiment.solvers)
    n_splits = contest.experiment.protocol.n_splits
    return (
        f"compare would train {count(n_methods, 'method')} on"
        f" {count(n_splits, 'split')} with {contest.dataset.X.shape[1]:,} features,"
        f" about {duration(seconds / joblib.cpu_count())}"
    )

"""``precbench profile``."""

import json
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from precbench.cli.options import Json, takes
from precbench.cli.own import OwnRows
from precbench.cli.screen import screen
from precbench.cli.screen_tables import print_table
from precbench.core.text import count, duration, one_line
from precbench.report.table import Table, text_table

if TYPE_CHECKING:
    from precbench.tables.own_table import OwnTable

_MOST_SHOWN = 40  # columns


@dataclass(frozen=True, kw_only=True)
class ProfileOptions(OwnRows):
    as_json: Json = False


@takes(ProfileOptions)
def profile(options: ProfileOptions) -> int:
    """Describe a table: rows, positives, columns, missing values, and what compare would do.

    For each column: type, number of different and of missing values, smallest and largest value
    (for text, the most frequent one), and AUC alone, which reveals leaks. Nothing is trained.

    \b
    Examples:
      precbench profile customers.csv --label churned --positive yes
    """
    from precbench.tables.profile import profile_table
    from precbench.tables.roles import number_groups

    console = screen(quiet=options.as_json)
    options.checked_worth()  # refuses what compare would refuse
    own = options.table()
    profiled = profile_table(own, options.reading, options.allow or (), options.gain_column)
    n_rows, n_pos, n_copies, columns, table_error = profiled.values()  # of keys in this order
    rows = f"{one_line(options.file.name)}: {n_rows:,} rows"
    rows += "" if n_pos is None else f", {n_pos:,} positive ({n_pos / n_rows:.2%})"
    if options.groups is not None and options.groups in own.frame:
        groups = {*number_groups(own.column(options.groups), own.where).tolist()}
        rows += f", {count(len(groups), 'group')}"
    rows += f", {n_copies:,} duplicates of an earlier row" if n_copies else ""
    console.print(rows)
    print_table(columns_table(columns, options.file.name), console)
    refusal, outlook = None, None
    if table_error is not None:  # compare would raise this error
        refusal = options.with_remedy("compare", table_error)
        console.print(f"compare refuses the table: {refusal}")
    elif n_pos is not None:  # the label is known
        outlook = _outlook(options, own)
        console.print(outlook)
    if options.as_json:
        print(json.dumps({**profiled, "refusal": refusal, "compare": outlook}, indent=1))
    return 0


def columns_table(columns: Sequence[dict[str, Any]], title: str) -> Table:
    """Lay out the first `_MOST_SHOWN` of the columns that `profile_columns` describes."""
    shown = columns[:_MOST_SHOWN]
    cells = [
        [
            *(column["name"], column["holds"]),
            *(f"{column[number]:,}" for number in ("distinct", "missing")),
            *(column["low"], column["high"]),
            "" if column["auc"] is None else f"{column['auc']:.3f}",
        ]
        for column in shown
    ]
    header = ["column", "holds", "different", "gaps", "from", "to", "AUC alone"]
    more = len(columns) - len(shown)
    notes = [f"and {count(more, 'column')} more (--json has all)"] if more else []
    return text_table(title, header, cells, *notes)


def _outlook(options: ProfileOptions, own: "OwnTable") -> str:
    # Return a sentence about what compare would train on this table, and for how long.
    import joblib

    from precbench.advice.contest import prepare
    from precbench.results.store import Store
    from precbench.runner.cost import expected_seconds

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the profile shows what the warnings would say
        contest = prepare({"file": own, **options.reading}, options.lengths)
    store = Store(Path("results") / contest.experiment.name)  # has the times of an earlier compare
    trials = [trial for trial, _ in contest.plan.trials]
    seconds = sum(expected_seconds(contest.plan, store, trials))
    n_methods, n_splits = len(contest.experiment.solvers), contest.experiment.protocol.n_splits
    return (
        f"compare would train {count(n_methods, 'method')} on {count(n_splits, 'split')} with "
        f"{contest.dataset.X.shape[1]:,} features, about {duration(seconds / joblib.cpu_count())}"
    )

"""``precbench diff``."""

import json
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
import typer

from precbench.cli.options import RESULTS, Json
from precbench.cli.screen import screen
from precbench.cli.screen_tables import print_table
from precbench.core.errors import InputError
from precbench.ranking.statistics import resampled_test
from precbench.report.table import Table, text_table
from precbench.results.folders import find_result_folders
from precbench.results.read import Run, read_run

# columns of a cell: a value per split
_CELL = ["dataset", "sweep", "metric", "part", "solver"]
_TRIAL = [*_CELL, "split"]
_UNEQUAL_COUNTS = {  # keys of what `_difference` returns, with words for each count
    "differing": "differ",
    "only_first": "only in the first",
    "only_second": "only in the second",
}
_MOST_ROWS = 40


def compare_results(
    first: Annotated[Path, typer.Argument(help=RESULTS)],
    second: Annotated[
        Path, typer.Argument(help="Second folder, with the same experiments.")
    ],
    tolerance: Annotated[
        float,
        typer.Option(
            min=0,
            help=(
                "Ignore differences up to this share of the larger number, such as"
                " 1e-9."
            ),
        ),
    ] = 0.0,
    as_json: Json = False,
) -> int:
    """Compare two folders of results, cell by cell.

    Counts the final numbers that are the same, bit for bit or to within a tolerance,
    and for the others shows the means, their difference and its paired interval.

    Exit code 1: the numbers differ, or one folder has some that the other lacks.

    \b
    Examples:
      precbench diff results other-machine/results
      precbench diff results/letter before/letter --json
      precbench diff results other-blas/results --tolerance 1e-9
    """
    # two folders each; names of other experiments
    pairs, unpaired = _pairs(first, second)
    differences = [
        _difference(read_run(one), read_run(other), tolerance) for one, other in pairs
    ]
    same = not unpaired and not any(
        difference[name] for difference in differences for name in _UNEQUAL_COUNTS
    )
    console = screen(quiet=as_json)
    if as_json:
        print(
            json.dumps(
                {"same": same, "only_one": unpaired, "experiments": differences},
                indent=1,
            )
        )
    for difference in differences:
        console.print(_sentence(difference))
        if difference["cells"]:
            print_table(_table(difference, first, second), console)
    for name in unpaired:
        console.print(f"{name}: only in one of the two folders")
    return int(not same)


def _pairs(first: Path, second: Path) -> tuple[list[tuple[Path, Path]], list[str]]:
    """Return the folders of common experiments, and the names of others."""
    folders = [find_result_folders(folder, "results.csv") for folder in (first, second)]
    if folders == [[first], [second]]:  # single experiments, maybe with other names
        return [(first, second)], []
    in_first, in_second = ({path.name for path in paths} for paths in folders)
    common = sorted(in_first & in_second)
    if not common:
        raise InputError(
            f"{first} and {second} have no experiment in common; give two folders with"
            " results of the same experiments"
        )
    return [(first / name, second / name) for name in common], sorted(
        in_first ^ in_second
    )


def _difference(first: Run, second: Run, tolerance: float) -> dict[str, Any]:
    """Count the equal and the differing final values.

    Compare the means of cells that differ.
    """
    finals_a, finals_b = _finals(first), _finals(second)  # a value by cell and split
    common = finals_a.add_suffix("_first").join(
        finals_b.add_suffix("_second"), how="inner"
    )
    a, b = common["value_first"].to_numpy(), common["value_second"].to_numpy()
    with np.errstate(invalid="ignore"):  # inf - inf is NaN, which is not near
        near = np.abs(a - b) <= tolerance * np.maximum(np.abs(a), np.abs(b))
    # NaN twice: equal
    common["differs"] = ~((a == b) | near | (np.isnan(a) & np.isnan(b)))
    cells = [
        _cell(dict(zip(_CELL, map(str, cell), strict=True)), rows, first.test_shares)
        # cell: values of _CELL
        for cell, rows in common.groupby(level=_CELL, sort=False)
        if rows["differs"].any()
    ]
    return {
        "experiment": first.name,
        "equal": int((~common["differs"]).sum()),
        "differing": int(common["differs"].sum()),
        "only_first": len(finals_a.index.difference(finals_b.index)),
        "only_second": len(finals_b.index.difference(finals_a.index)),
        "cells": cells,
    }


def _finals(run: Run) -> pd.DataFrame:
    """Return the final values by trial; a failed trial has a missing value."""
    rows = run.results[run.results["final"] | (run.results["status"] != "ok")]
    return rows.set_index(_TRIAL)[["value"]]


def _cell(
    place: dict[str, str], rows: pd.DataFrame, shares: dict[str, float]
) -> dict[str, Any]:
    # Compare the means of a cell, such as the AUC of a solver, over the splits that the
    # runs share. `place` names the cell; `shares` has the share of test rows of each
    # data set. ``low`` to ``high`` is the paired 95 % interval of the difference; None
    # stands for no interval.
    pair = rows[["value_first", "value_second"]].dropna().to_numpy()
    first, second = pair.mean(axis=0) if len(pair) else (np.nan, np.nan)
    low = high = None
    share = shares.get(place["dataset"])
    if len(pair) > 1 and share is not None and np.isfinite(pair).all():
        # second - first
        _mean, low, high, _p = resampled_test(pair[:, 1], pair[:, 0], share)
    return {
        **place,
        "first": _json_number(first),
        "second": _json_number(second),
        "difference": _json_number(second - first),
        "low": low,
        "high": high,
        "differing": int(rows["differs"].sum()),
        "splits": len(rows),
    }


def _json_number(value: float) -> float | None:
    # None for NaN and inf, which JSON lacks
    return float(value) if np.isfinite(value) else None


def _sentence(difference: dict[str, Any]) -> str:
    # the counts that `_difference` returns, in words
    parts = [f"{difference['equal']:,} numbers are the same in both"]
    parts += [
        f"{n:,} {text}"
        for name, text in _UNEQUAL_COUNTS.items()
        if (n := difference[name])
    ]
    return f"{difference['experiment']}: {', '.join(parts)}"


def _table(difference: dict[str, Any], first: Path, second: Path) -> Table:
    """Lay out the cells that differ, a row for each.

    `first` and `second` are the folders.
    """
    rows = [
        [
            cell["dataset"],
            cell["solver"],
            f"{cell['metric']} {cell['sweep']}".rstrip(),
            *(_shown(cell[name], ".4f") for name in ("first", "second")),
            _shown(cell["difference"], "+.4g"),
            "" if cell["low"] is None else f"{cell['low']:+.4f} to {cell['high']:+.4f}",
            f"{cell['differing']} of {cell['splits']}",
        ]
        for cell in difference["cells"][:_MOST_ROWS]
    ]
    header = [
        *("data", "solver", "metric", "first", "second", "difference", "interval"),
        "splits that differ",
    ]
    notes = [
        f"First: {first}; second: {second}.",
        "Means over the splits that both folders have; the interval (95 %) is paired.",
    ]
    if (n_more := len(difference["cells"]) - _MOST_ROWS) > 0:
        notes.append(f"{n_more:,} more cells differ; --json lists all.")
    return text_table(difference["experiment"], header, rows, *notes)


def _shown(value: float | None, form: str) -> str:  # a dash for None
    return "–" if value is None else format(value, form)

"""``precbench diff``."""

import json
from pathlib import Path
from typing import Annotated, Any, NamedTuple

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

# Columns of results.csv that name a cell, which has a value for each split
_CELL = ["dataset", "sweep", "metric", "part", "solver"]
_TRIAL = [*_CELL, "split"]
# Counts that `_difference` returns of values that are not equal, in words
_UNEQUAL_COUNTS = {
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
    pairs, unpaired = _pairs(first, second)
    differences = [
        _difference(read_run(pair.first), read_run(pair.second), tolerance)
        for pair in pairs
    ]
    same = not unpaired and all(map(_is_equal, differences))
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


class _Pair(NamedTuple):
    """The folders of an experiment in both places."""

    first: Path
    second: Path


def _pairs(first: Path, second: Path) -> tuple[list[_Pair], list[str]]:
    """Return both folders of each common experiment, and the names of others."""
    folders_first = find_result_folders(first, "results.csv")
    folders_second = find_result_folders(second, "results.csv")
    if folders_first == [first] and folders_second == [second]:
        # Two single experiments are compared whatever their names.
        return [_Pair(first, second)], []
    names_first = {path.name for path in folders_first}
    names_second = {path.name for path in folders_second}
    common = sorted(names_first & names_second)
    if not common:
        raise InputError(
            f"{first} and {second} have no experiment in common; give two folders with"
            " results of the same experiments"
        )
    pairs = [_Pair(first / name, second / name) for name in common]
    return pairs, sorted(names_first ^ names_second)


def _difference(first: Run, second: Run, tolerance: float) -> dict[str, Any]:
    """Count final values that are equal, differ, or are in one run only.

    ``cells`` has the comparison of each cell in which a value differs, see `_cell`.
    """
    finals_first = _finals(first)
    finals_second = _finals(second)
    common = finals_first.join(
        finals_second, how="inner", lsuffix="_first", rsuffix="_second"
    )
    common["differs"] = _differs(
        common["value_first"].to_numpy(), common["value_second"].to_numpy(), tolerance
    )
    cells = []
    for names, rows in common.groupby(level=_CELL, sort=False):
        if rows["differs"].any():
            place = dict(zip(_CELL, map(str, names), strict=True))
            cells.append(_cell(place, rows, first.test_shares))
    return {
        "experiment": first.name,
        "equal": int((~common["differs"]).sum()),
        "differing": int(common["differs"].sum()),
        "only_first": len(finals_first.index.difference(finals_second.index)),
        "only_second": len(finals_second.index.difference(finals_first.index)),
        "cells": cells,
    }


def _is_equal(difference: dict[str, Any]) -> bool:
    return not any(difference[name] for name in _UNEQUAL_COUNTS)


def _differs(first: np.ndarray, second: np.ndarray, tolerance: float) -> np.ndarray:
    """Return where values differ by more than a share of the larger; NaN equals NaN."""
    with np.errstate(invalid="ignore"):  # inf - inf is NaN, which is not near
        larger = np.maximum(np.abs(first), np.abs(second))
        near = np.abs(first - second) <= tolerance * larger
    both_missing = np.isnan(first) & np.isnan(second)
    return ~((first == second) | near | both_missing)


def _finals(run: Run) -> pd.DataFrame:
    """Return the final values by trial; a failed trial has a missing value."""
    rows = run.results[run.results["final"] | (run.results["status"] != "ok")]
    return rows.set_index(_TRIAL)[["value"]]


def _cell(
    place: dict[str, str], rows: pd.DataFrame, shares: dict[str, float]
) -> dict[str, Any]:
    """Compare the means of a cell, such as the AUC of a solver, over common splits.

    `place` names the cell; `shares` has the share of test rows of each data set.
    ``low`` to ``high`` is the paired 95 % interval of the difference; None stands for
    no interval.
    """
    pairs = rows[["value_first", "value_second"]].dropna().to_numpy()
    mean_first = mean_second = np.nan
    if len(pairs) > 0:
        mean_first, mean_second = pairs.mean(axis=0)
    low = high = None
    share = shares.get(place["dataset"])
    if len(pairs) > 1 and share is not None and np.isfinite(pairs).all():
        test = resampled_test(pairs[:, 1], pairs[:, 0], share)  # of second - first
        low, high = test.low, test.high
    return {
        **place,
        "first": _json_number(mean_first),
        "second": _json_number(mean_second),
        "difference": _json_number(mean_second - mean_first),
        "low": low,
        "high": high,
        "differing": int(rows["differs"].sum()),
        "splits": len(rows),
    }


def _json_number(value: float) -> float | None:
    """Return None for NaN and infinity, which JSON lacks."""
    return float(value) if np.isfinite(value) else None


def _sentence(difference: dict[str, Any]) -> str:
    """Return the counts of `_difference` in words."""
    parts = [f"{difference['equal']:,} numbers are the same in both"]
    for name, text in _UNEQUAL_COUNTS.items():
        if difference[name]:
            parts.append(f"{difference[name]:,} {text}")
    return f"{difference['experiment']}: {', '.join(parts)}"


def _table(difference: dict[str, Any], first: Path, second: Path) -> Table:
    """Lay out the cells of two folders that differ, a row for each."""
    header = [
        "data",
        "solver",
        "metric",
        "first",
        "second",
        "difference",
        "interval",
        "splits that differ",
    ]
    notes = [
        f"First: {first}; second: {second}.",
        "Means over the splits that both folders have; the interval (95 %) is paired.",
    ]
    cells = difference["cells"]
    n_more = len(cells) - _MOST_ROWS
    if n_more > 0:
        notes.append(f"{n_more:,} more cells differ; --json lists all.")
    rows = [_row(cell) for cell in cells[:_MOST_ROWS]]
    return text_table(difference["experiment"], header, rows, *notes)


def _row(cell: dict[str, Any]) -> list[str]:
    interval = ""
    if cell["low"] is not None:
        interval = f"{cell['low']:+.4f} to {cell['high']:+.4f}"
    return [
        cell["dataset"],
        cell["solver"],
        f"{cell['metric']} {cell['sweep']}".rstrip(),
        _shown(cell["first"], ".4f"),
        _shown(cell["second"], ".4f"),
        _shown(cell["difference"], "+.4g"),
        interval,
        f"{cell['differing']} of {cell['splits']}",
    ]


def _shown(value: float | None, form: str) -> str:
    return "–" if value is None else format(value, form)

"""``precbench show``."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from pydantic import Field

from precbench.cli.options import Json
from precbench.cli.screen_tables import print_table, show_length
from precbench.cli.trial_facts import show_trial
from precbench.core.errors import InputError
from precbench.core.strict_json import Count, Fields, checked
from precbench.core.text import count, one_line
from precbench.tables.encoding import Column
from precbench.tables.problems import listed

if TYPE_CHECKING:
    from precbench.advice.quality import Quality
    from precbench.model.model import Model
    from precbench.solvers.others.members import Member

_WIDTH = 100
_MOST_SHOWN = 10  # columns, categories and features, each


class _Provenance(Fields):
    """What a model was fitted to, and the versions of the programs that fitted it."""

    rows: Count | None = None
    features: Count | None = None
    positives: Count | None = None
    fitted: str | None = None
    weight: str | None = None
    versions: dict[str, str] = Field(default_factory=dict)


def show(
    what: Annotated[
        str,
        typer.Argument(
            metavar="WHAT",
            help=(
                "Model file, or a trial: a key, the beginning of a key, or"
                " DATASET/SOLVER/SPLIT."
            ),
        ),
    ],
    results: Annotated[
        Path,
        typer.Option(
            help="Folder of results, or of one experiment, that has the trial."
        ),
    ] = Path("results"),
    as_json: Json = False,
) -> None:
    """Describe a saved model, or a trial behind a number of a table.

    For a model: its solver, rows, columns, measured quality, and the importance of each
    column (the drop in average precision on held-out rows when the column is shuffled).
    Weights are for scaled features. --json lists all columns.

    For a trial: its record, with solver, data, chosen parameters, times and warnings;
    its metrics and machine; which of solver and tuning have new versions, so that the
    trial would run again; and the command that repeats the trial. Keys are in the `key`
    column of results.csv.

    \b
    Examples:
      precbench show top.npz
      precbench show letter/sgd-avg/0
      precbench show 000bda98 --results results/letter
    """
    if Path(what).exists():
        _show_model(what, as_json)
    elif Path(what).suffix == ".npz":
        raise InputError(
            f"there is no model {what}; precbench fit FILE --save {what} creates one"
        )
    else:
        show_trial(what, results, as_json)


def _show_model(path: str, as_json: bool) -> None:
    """Print what a model is and its quality, if measured; in words, or as JSON."""
    from precbench.advice.importance import importance_table
    from precbench.advice.quality import describe_quality, quality_of
    from precbench.model.model import Model

    model = Model.load(path)
    quality = quality_of(model, path)
    try:
        provenance = checked(model.about, _Provenance)
    except ValueError as error:
        raise InputError(
            f"{path}: damaged ({error}); fit and save the model again"
        ) from error
    if as_json:
        print(json.dumps(_facts(path, model, provenance, quality)))
        return
    print(f"{path}: {one_line(model.solver)}, {_kind(model)}")
    _print_section("fitted", [_provenance_in_words(provenance)])
    if quality:
        _print_section("label", [quality.label or ""])
        _print_section("positive", quality.positive or [])
        _print_section("quality", [describe_quality(quality)])
    params = [
        f"{name}={value}" for name, value in model.params.items() if value is not None
    ]
    _print_section("parameters", [", ".join(params)])
    _print_section("scaling", [model.scaler.kind])
    _print_section("columns", _columns(model))
    members = [f"{member.name}: {member.weight:.2f}" for member in _by_weight(model)]
    _print_section("members", members)
    most_used = "most weight" if model.trees is None else "most splits"
    _print_section(most_used, [_most_used(model)])
    versions = [
        f"{library} {version}" for library, version in provenance.versions.items()
    ]
    _print_section("versions", [", ".join(versions)])
    if quality and quality.importance:
        print_table(importance_table(quality.importance, "Importance of the columns"))
    if quality and quality.length:
        show_length(quality.length)


def _print_section(title: str, lines: Sequence[str]) -> None:
    """Print the lines that are not empty, the first one after the title."""
    filled = [line for line in lines if line]
    if not filled:
        return
    first, *others = filled
    _print_wrapped(f"{title}: {first}", indent="  ")
    for line in others:
        _print_wrapped(line, indent="    ")


def _print_wrapped(text: str, indent: str) -> None:
    print(
        fill(
            one_line(text),
            _WIDTH,
            initial_indent=indent,
            subsequent_indent="      ",
        )
    )


def _kind(model: "Model") -> str:
    """Describe a model by kind and size, such as "20 trees with 900 nodes"."""
    features = count(model.n_features, "feature")
    if model.random_features is not None:
        features = (
            f"{len(model.random_features.offset):,} random Fourier features of"
            f" {features}"
        )
    if model.members:
        return f"{count(len(model.members), 'member')} on {features}"
    if model.trees is None:
        return f"weights of {features}"
    n_trees = len(model.trees.root)
    n_nodes = len(model.trees.feature)
    return f"{count(n_trees, 'tree')} with {n_nodes:,} nodes on {features}"


def _provenance_in_words(provenance: _Provenance) -> str:
    """Describe when a model was fitted, to how many rows, and how they are weighted."""
    parts = []
    if provenance.fitted:
        parts.append(f"on {provenance.fitted}")
    if provenance.rows is not None and provenance.positives is not None:
        parts.append(f"to {provenance.rows:,} rows, {provenance.positives:,} positive")
        if provenance.weight:
            parts.append(f"weighted by {provenance.weight}")
    return ", ".join(parts)


def _columns(model: "Model") -> list[str]:
    """Describe the first columns of the file of a model, a column in each line."""
    if model.encoding is None:
        return ["unnamed, of arrays in Python"]
    columns = model.encoding.columns
    if not columns:
        return [f"unnamed, of {model.encoding.format}"]
    lines = [_column(column) for column in columns[:_MOST_SHOWN]]
    n_more = len(columns) - _MOST_SHOWN
    if n_more > 0:
        lines.append(f"and {n_more:,} more, see --json")
    return lines


def _column(column: Column) -> str:
    """Describe what a column holds, and what replaces its missing values."""
    content = "number"
    if column.origin is not None:
        content = f"days since {column.origin}"
    elif column.categories is not None:
        content = f"one of {listed(column.categories, _MOST_SHOWN)}"
    filled = "" if column.fill is None else f"; missing values as {column.fill}"
    return f"{column.name}: {content}{filled}"


def _by_weight(model: "Model") -> "list[Member]":
    """Return the members of an ensemble, the heaviest first."""
    return sorted(model.members, key=lambda member: -member.weight)


def _most_used(model: "Model") -> str:
    """List the features with the largest weights; for trees, with the most splits.

    Return "" if features have no names, or neither weights nor splits of their own.
    """
    if model.members or model.random_features is not None:
        return ""
    names = model.encoding and model.encoding.feature_names
    if not names:
        return ""
    if model.trees is None:
        values: Any = model.coef
        form = ".3g"
    else:
        values = model.trees.to_arrays()["splits"]  # counts
        form = ","
    largest_first = np.argsort(-np.abs(values), kind="stable")
    return ", ".join(
        f"{names[j]} {values[j]:{form}}"
        for j in largest_first[:_MOST_SHOWN]
        if values[j]
    )


def _facts(
    path: str, model: "Model", provenance: _Provenance, quality: "Quality | None"
) -> dict[str, Any]:
    """Return what --json prints of a model."""
    n_random = n_trees = file_format = None
    if model.random_features is not None:
        n_random = len(model.random_features.offset)
    if model.trees is not None:
        n_trees = len(model.trees.root)
    columns = []
    if model.encoding:
        file_format = model.encoding.format
        columns = [asdict(column) for column in model.encoding.columns]
    return {
        "model": path,
        "solver": model.solver,
        "params": model.params,
        "scaling": model.scaler.kind,
        "n_features": model.n_features,
        "random_features": n_random,
        "trees": n_trees,
        "members": [
            {"name": member.name, "weight": member.weight}
            for member in _by_weight(model)
        ],
        "format": file_format,
        "columns": columns,
        **provenance.model_dump(),
        "quality": quality and quality.model_dump(),
    }

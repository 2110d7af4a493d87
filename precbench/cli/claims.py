"""``precbench claims``."""

import csv
import json
from io import StringIO
from pathlib import Path
from textwrap import indent
from typing import Annotated, Any, NamedTuple

import typer
import yaml

from precbench.claims import Claim
from precbench.claims.published import SUFFIX, parse_claims
from precbench.cli import completion
from precbench.cli.options import Json
from precbench.core.errors import InputError
from precbench.core.files import write_whole
from precbench.core.text import count
from precbench.core.yaml.document import load, parse
from precbench.core.yaml.models import repeats, unknown
from precbench.experiment import Experiment, load_config

_ENTRY_NAME = "the new entry"  # in messages, in place of a file


class _Entry(NamedTuple):
    """A new entry of a file of claims."""

    head: dict[str, str]  # paper and experiment, of the whole file
    list_name: str  # the list of the file that gets the entry: claims or tables
    values: dict[str, Any]


class _Indented(yaml.SafeDumper):
    """Indents lists, as the files of claims do."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, indentless=False)  # whatever PyYAML asks


def new_claims(
    paper: Annotated[
        str, typer.Argument(help="Key of the paper, for example kar2015.")
    ],
    place: Annotated[
        str,
        typer.Argument(
            help="Place in the paper, or a part of it: table-5, section-6/avg."
        ),
    ],
    fields: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FIELD=VALUE]...",
            help=(
                "More fields of each claim (see precbench list claims --json), such as"
                " runs=5."
            ),
        ),
    ] = None,
    config: Annotated[
        str,
        typer.Option(
            help="Config whose runs decide the claim.",
            autocompletion=completion.configs,
        ),
    ] = ...,  # type: ignore[assignment]  # required
    printed: Annotated[
        str, typer.Option(help="The number or words that the paper prints.")
    ] = "",
    table: Annotated[
        Path | None,
        typer.Option(
            "--csv", help="CSV file of a printed table, with column and row names."
        ),
    ] = None,
    columns: Annotated[
        str,
        typer.Option(
            help="Field of a claim whose values are the column names of --csv."
        ),
    ] = "solver",
    rows: Annotated[
        str,
        typer.Option(help="Field of a claim whose values are the row names of --csv."),
    ] = "metric",
    to: Annotated[
        Path | None, typer.Option(help=f"Add the entry to file NAME{SUFFIX}.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Write a printed number, or a whole table, as an entry of a file of claims.

    The digits stay as printed. The entry is checked as `precbench validate` does, and
    its solvers, data sets and metrics are looked up in the config. The entry is
    printed, or added with --to.

    \b
    Examples:
      precbench claims new kar2015 section-6/avg --printed 0.55 --config letter \\
          dataset=letter solver=sgd-avg metric=auc runs=5
      precbench claims new kar2015 table-9 --csv table-9.csv --config letter \\
          dataset=letter --to letter-9.published.yaml
    """
    experiment = load_config(config)
    common: dict[str, Any] = {"kind": "mean"}
    for text in fields or []:
        name, value = _parse_field(text)
        common[name] = value
    values: dict[str, Any] = {
        "id": place,
        "where": _where(place),
        "kind": common.pop("kind"),
    }
    if table is None:
        list_name = "claims"
        values |= {"printed": printed, **common}
    else:
        list_name = "tables"
        values |= {"common": common, **_cells(table, columns, rows)}
    head = {"paper": paper, "experiment": experiment.name}
    entry = _Entry(head, list_name, values)
    new_file = _as_yaml({**head, list_name: [values]})
    claims = parse_claims(new_file, _ENTRY_NAME, config)  # raises if invalid
    if isinstance(experiment, Experiment):  # a study names no solvers
        _refuse_unknown_names(claims, experiment)
    if to is not None:
        _add_entry(to, entry, config)
    if as_json:
        facts = {
            "ids": [claim.id for claim in claims],
            "entry": values,
            "file": None if to is None else str(to),
        }
        print(json.dumps(facts))
    elif to is None:
        print(new_file, end="")
    else:
        print(f"{to}: {count(len(claims), 'claim')} added")


def _where(place: str) -> str:
    """Return the place in words, such as "Table 5" for table-5/avg."""
    first, _slash, _rest = place.partition("/")
    return first.replace("-", " ").capitalize()


def _add_entry(to: Path, entry: _Entry, config: str) -> None:
    """Add an entry to a file of claims, made if missing; raise if it is invalid."""
    if not to.name.endswith(SUFFIX):
        raise InputError(
            f"--to {to}: a file of claims must be called NAME{SUFFIX}; change --to"
        )
    if to.exists():
        text = _with_entry(to, entry)
    else:
        content: dict[str, Any] = dict(entry.head)
        # By default the config is the one with the name of the file.
        if to.name != f"{Path(config).stem}{SUFFIX}":
            content["common"] = {"config": config}
        content[entry.list_name] = [entry.values]
        text = _as_yaml(content)
    parse_claims(text, str(to), config)  # raises if the file would be invalid
    write_whole({to: text})


def _parse_field(text: str) -> tuple[str, Any]:
    """Return name and value of a field, such as "runs" and the number 5 for runs=5.

    The value is read as YAML.
    """
    name, equals, value = text.partition("=")
    if not equals:
        raise InputError(
            f"{text!r} has no value; write FIELD=VALUE, for example runs=5"
        )
    return name, parse(f"value: {value}", text).data["value"]


def _cells(path: Path, columns: str, rows: str) -> dict[str, Any]:
    """Read "columns" and "rows" of an entry from a CSV table.

    The first row and the first column of the table hold names. `columns` is the field,
    such as solver, whose values are the column names; likewise `rows`.
    """
    lines = []
    try:
        text = StringIO(path.read_text(encoding="utf-8-sig"))
        for line in csv.reader(text):
            if any(line):
                lines.append([cell.strip() for cell in line])
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path}: {error}; save the table as CSV in UTF-8") from error
    if len(lines) < 2 or len(lines[0]) < 2:
        raise InputError(
            f"{path}: no table; put names in the first row and the first column"
        )
    header, *body = lines
    _corner, *column_names = header
    _refuse_repeats("columns", column_names, path)
    _refuse_repeats("rows", [line[0] for line in body], path)
    return {
        "columns": {name: {columns: name} for name in column_names},
        "rows": {
            name: {"fields": {rows: name}, "printed": cells} for name, *cells in body
        },
    }


def _refuse_repeats(what: str, names: list[str], path: Path) -> None:
    places = repeats(names)
    if places:
        name = names[places[0]]
        raise InputError(f"{path}: two {what} are named {name!r}; change a name")


def _refuse_unknown_names(claims: list[Claim], experiment: Experiment) -> None:
    """Raise if claims name what the config does not have."""
    datasets = [dataset.name for dataset in experiment.datasets]
    metrics = [metric.label for metric in experiment.metrics]
    problems: list[str] = []
    for claim in claims:
        for name in claim.data:
            problems += unknown(f"data set of {experiment.name}", name, datasets)
        for name in claim.labels:
            problems += unknown(
                f"solver of {experiment.name}", name, experiment.solvers
            )
        metric = getattr(claim, "metric", "")  # claims of some kinds have none
        if metric:
            problems += unknown(f"metric of {experiment.name}", metric, metrics)
    if problems:
        raise InputError(
            "\n".join(f"{_ENTRY_NAME}: {text}" for text in dict.fromkeys(problems))
        )


def _with_entry(path: Path, entry: _Entry) -> str:
    """Return the text of a file of claims with an entry put first in its list.

    Comments stay. Raise if the file has another head.
    """
    old = load(path).data or {}
    text = path.read_text(encoding="utf-8")
    for name, value in entry.head.items():
        if old.get(name) != value:
            raise InputError(
                f"{path} has {name}: {old.get(name)}, not {value}; give another file"
            )
    indented = indent(_as_yaml([entry.values]), "  ")
    # A name stands between two line breaks. One is put before the text, since the name
    # may stand on the first line.
    padded = f"\n{text}"
    name_line = f"\n{entry.list_name}:\n"
    if name_line not in padded:  # the file has no such list yet
        return f"{text.rstrip()}{name_line}{indented}"
    before, _name_line, after = padded.partition(name_line)
    return f"{before}{name_line}{indented}{after}".removeprefix("\n")


def _as_yaml(data: Any) -> str:
    """Write data in the style of the files of claims."""
    return yaml.dump(
        data,
        Dumper=_Indented,
        sort_keys=False,
        allow_unicode=True,
        width=100,
        default_flow_style=None,
    )

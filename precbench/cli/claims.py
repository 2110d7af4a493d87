"""``precbench claims``."""

import csv
import json
from io import StringIO
from pathlib import Path
from textwrap import indent
from typing import Annotated, Any

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
    # default: mean
    common = {"kind": "mean", **dict(_parse_field(text) for text in fields or [])}
    # "Table 5" of table-5/avg
    where = place.partition("/")[0].replace("-", " ").capitalize()
    entry: dict[str, Any] = {"id": place, "where": where, "kind": common.pop("kind")}
    if table is None:
        key = "claims"  # the list of the file that gets the entry
        entry |= {"printed": printed, **common}
    else:
        key = "tables"
        entry |= {"common": common, **_cells(table, columns, rows)}
    # of the whole file of claims
    head = {"paper": paper, "experiment": experiment.name}
    new_file = _as_yaml({**head, key: [entry]})
    # raises if the entry is invalid
    claims = parse_claims(new_file, _ENTRY_NAME, config)
    if isinstance(experiment, Experiment):  # a study names no solvers
        _refuse_unknown_names(claims, experiment)
    if to is not None:
        _add_entry(to, head, key, entry, config)
    if as_json:
        facts = {
            "ids": [claim.id for claim in claims],
            "entry": entry,
            "file": to and str(to),
        }
        print(json.dumps(facts))
    elif to is None:
        print(new_file, end="")
    else:
        print(f"{to}: {count(len(claims), 'claim')} added")


def _add_entry(
    to: Path, head: dict[str, str], key: str, entry: dict[str, Any], config: str
) -> None:
    """Add an entry to a file of claims, created if missing.

    Raise if the file would be invalid. `head` has paper and experiment of the file;
    `key` names the list: claims or tables.
    """
    if not to.name.endswith(SUFFIX):
        raise InputError(
            f"--to {to}: a file of claims must be called NAME{SUFFIX}; change --to"
        )
    if to.exists():
        text = _with_entry(to, head, key, entry)
    else:  # without the key config, the file has the name of the config
        of_file = (
            {}
            if to.name == f"{Path(config).stem}{SUFFIX}"
            else {"common": {"config": config}}
        )
        text = _as_yaml({**head, **of_file, key: [entry]})
    parse_claims(text, str(to), config)  # raises if the file would be invalid
    write_whole({to: text})


def _parse_field(text: str) -> tuple[str, Any]:  # "runs=5" becomes ("runs", 5)
    name, equals, value = text.partition("=")
    if not equals:
        raise InputError(
            f"{text!r} has no value; write FIELD=VALUE, for example runs=5"
        )
    return name, parse(f"value: {value}", text).data["value"]


def _cells(path: Path, columns: str, rows: str) -> dict[str, Any]:
    # Return "columns" and "rows" of an entry, read from a CSV table with names in its
    # first row and column. `columns` is the field, such as solver, that the column
    # names give; likewise `rows`.
    try:
        text = StringIO(path.read_text(encoding="utf-8-sig"))
        lines = [
            [cell.strip() for cell in line] for line in csv.reader(text) if any(line)
        ]
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path}: {error}; save the table as CSV in UTF-8") from error
    if len(lines) < 2 or len(lines[0]) < 2:
        raise InputError(
            f"{path}: no table; put names in the first row and the first column"
        )
    header, *body = lines  # the corner, header[0], is not used
    for what, names in ("columns", header[1:]), ("rows", [name for name, *_ in body]):
        for i in repeats(names):  # indices of repeated names
            raise InputError(
                f"{path}: two {what} are named {names[i]!r}; change a name"
            )
    return {
        "columns": {name: {columns: name} for name in header[1:]},
        "rows": {
            name: {"fields": {rows: name}, "printed": cells} for name, *cells in body
        },
    }


def _refuse_unknown_names(claims: list[Claim], experiment: Experiment) -> None:
    """Raise if claims name what the config does not have."""
    known = {
        "data set": [dataset.name for dataset in experiment.datasets],
        "solver": experiment.solvers,
        "metric": [metric.label for metric in experiment.metrics],
    }
    problems = []
    for claim in claims:
        # not of all kinds
        metrics = [metric] if (metric := getattr(claim, "metric", "")) else []
        for what, names in (
            ("data set", claim.data),
            ("solver", claim.labels),
            ("metric", metrics),
        ):
            for name in names:
                # or nothing
                problems += unknown(f"{what} of {experiment.name}", name, known[what])
    if problems:
        raise InputError(
            "\n".join(f"{_ENTRY_NAME}: {text}" for text in dict.fromkeys(problems))
        )


def _with_entry(
    path: Path, head: dict[str, str], key: str, entry: dict[str, Any]
) -> str:
    # Return the text of a file of claims, comments kept, with an entry put first in the
    # list `key`. `head` is what the file must say of paper and experiment.
    old = load(path).data or {}
    text = path.read_text(encoding="utf-8")
    for name, value in head.items():
        if old.get(name) != value:
            raise InputError(
                f"{path} has {name}: {old.get(name)}, not {value}; give another file"
            )
    indented = indent(_as_yaml([entry]), "  ")
    # The key is found by the line breaks around the key; the first line gets a line
    # break before.
    before, key_line, after = f"\n{text}".partition(f"\n{key}:\n")
    if not key_line:  # the file has no list under `key` yet
        return f"{text.rstrip()}\n{key}:\n{indented}"
    return f"{before}{key_line}{indented}{after}".removeprefix("\n")


def _as_yaml(data: Any) -> str:  # in the style of the files of claims
    return yaml.dump(
        data,
        Dumper=_Indented,
        sort_keys=False,
        allow_unicode=True,
        width=100,
        default_flow_style=None,
    )

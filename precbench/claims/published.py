"""Reader of ``NAME.published.yaml``, the printed numbers and sentences of the papers.

A file holds the claims that the results of ``NAME.yaml`` can decide, as printed tables
or one by one. An entry of its ``claims`` is a claim, or fields that the ``claims`` in
it share; ``for`` repeats either for each combination of values, whose names stand as
``{name}`` in texts. In a table ``{row}`` and ``{column}`` stand for the names of the
row and of the column.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import (
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
)

from precbench.claims.kinds import KINDS, Claim
from precbench.core.locations import shipped
from precbench.core.yaml.document import Document, Keys, load, parse
from precbench.core.yaml.models import (
    Items,
    Name,
    Problem,
    Section,
    at,
    refuse,
    repeats,
    unknown,
    validated,
)

SUFFIX = ".published.yaml"  # after the name of a config
DEVIATIONS = f"deviations{SUFFIX}"

Fields = dict[str, Any]
_PLACEHOLDER = re.compile(r"\{([A-Za-z_]\w*)\}")
# fields whose entries are joined when claims inherit them
_JOINED = ("cell", "by", "trivial")


class _Row(Section):  # of a printed table
    printed: Items[str]
    fields: Fields = Field(default_factory=dict)
    best: str | None = None  # group of columns that the paper calls the best
    exceptions: dict[str, Fields] = Field(default_factory=dict)


class _Table(Section):
    """A printed table: fields of its claims, common or by column, row or cell."""

    id: Name
    where: str
    kind: Literal["exact", "mean"]
    common: Fields = Field(default_factory=dict)
    columns: Annotated[dict[str, Fields], Field(min_length=1)]
    rows: dict[str, _Row]
    groups: dict[str, Items[str]] = Field(default_factory=dict, validate_default=True)

    @field_validator("groups")
    @classmethod
    def _check_names_in_groups(
        cls, groups: dict[str, tuple[str, ...]], info: Any
    ) -> Any:
        """Refuse unknown columns in groups, unknown best groups, and columns that lack a solver."""
        # {} if refused
        columns, rows = info.data.get("columns", {}), info.data.get("rows", {})
        best = {name: row.best for name, row in rows.items() if row.best is not None}
        problems: list[Problem] = [
            ((name, i), text)
            for name, members in groups.items()
            for i, column in enumerate(members)
            for text in unknown("column of this table", column, columns)
        ]
        for name, group in best.items():  # (): the place is ``groups`` itself
            problems += at((), unknown(f"group (best of row {name})", group, groups))
        # The best group of a row is a claim about solvers, so that each column needs a
        # solver.
        lacking = [
            column
            for column, fields in columns.items()
            if best and "solver" not in fields
        ]
        refuse(
            problems
            + at((), [f"column {c} has no solver, which best needs" for c in lacking])
        )
        return groups

    @field_validator("rows")
    @classmethod
    def _fit_the_columns(cls, rows: dict[str, _Row], info: Any) -> Any:
        """Refuse rows without exactly a cell for each column, and exceptions in unknown columns."""
        # checked before; {} if they were refused
        columns = info.data.get("columns", {})
        problems: list[Problem] = [
            (
                (name, "printed"),
                f"has {len(row.printed)} cells for {len(columns)} columns",
            )
            for name, row in rows.items()
            if len(row.printed) != len(columns)
        ]
        problems += [
            ((name, "exceptions", column), text)
            for name, row in rows.items()
            for column in row.exceptions
            for text in unknown("column of this table", column, columns)
        ]
        refuse(problems)
        return rows


def _as_mapping(values: Any) -> Any:
    """Return a list of values as a mapping from each value to no fields.

    Refuse repeated values.
    """
    if not isinstance(values, list):
        return values  # a mapping already
    refuse(
        ((i,), "should be text or a number")
        for i, value in enumerate(values)
        if not isinstance(value, str | int | float)
    )
    refuse(((i,), "is repeated") for i in repeats(values))
    return {value: {} for value in values}


# the values of a name under ``for``, each with the fields that it brings
_Values = Annotated[
    dict[str | int | float, Fields], BeforeValidator(_as_mapping), Field(min_length=1)
]


class _Entry(Section):
    """A claim, or fields that several claims share."""

    model_config = ConfigDict(extra="allow")

    # Names, each with the values that it takes in turn; a value may bring fields.
    repeat: dict[Name, _Values] = Field(default_factory=dict, alias="for")
    # inherit these fields; None if the entry is a claim
    claims: Items["_Entry"] | None = None


class Deviation(Section):
    """A place where we deliberately deviate from the paper."""

    paper: str
    where: str
    says: str
    ours: str
    evidence: str  # the command that shows why
    # whether the text can mean ours and no print decides: no departure
    reading: bool = False


class _Published(Section):  # the content of a file of claims
    paper: Name
    experiment: str
    common: Fields = Field(default_factory=dict)
    tables: Annotated[tuple[_Table, ...], Field(strict=False)] = ()
    claims: Annotated[tuple[_Entry, ...], Field(strict=False)] = ()


class _Deviations(Section):  # the content of the file of deviations
    deviations: dict[Name, Deviation]


def load_claims() -> list[Claim]:  # of all shipped files
    folder = shipped("configs")
    paths = sorted(set(folder.rglob("*" + SUFFIX)) - {_deviations_file()})
    return _checked(
        (load(path), path.relative_to(folder).as_posix().removesuffix(SUFFIX))
        for path in paths
    )


def read_claims(path: Path) -> list[Claim]:  # of one file
    return _checked([(load(path), path.name.removesuffix(SUFFIX))])


def parse_claims(text: str, file: str, config: str) -> list[Claim]:
    """Read claims from text; `file` is its name in messages."""
    return _checked([(parse(text, file), config)])


def _checked(documents: Iterable[tuple[Document, str]]) -> list[Claim]:
    """Return the claims of (document, config) pairs.

    Refuse equal ids and unknown deviations.
    """
    deviations = load_deviations()
    claims: dict[str, Claim] = {}
    for document, config in documents:
        problems: list[Problem] = []
        for keys, claim in _claims_of(document, config):
            if claim.id in claims:
                problems += at(
                    keys, [f"a second claim has the id {claim.id}; give another id"]
                )
            for deviation in claim.all_deviations():
                problems += at(keys, unknown("deviation", deviation, deviations))
            claims[claim.id] = claim
        if problems:
            raise document.refusal(problems)
    return list(claims.values())


def load_deviations(path: Path | None = None) -> dict[str, Deviation]:
    """Read the documented deviations, by id; by default the shipped ones."""
    return validated(load(path or _deviations_file()), _Deviations).deviations


def _deviations_file() -> Path:
    return shipped("configs") / DEVIATIONS


class _Unchecked(NamedTuple):
    """The fields of a claim, before they are checked."""

    keys: Keys  # the place of the claim in the file
    fields: Fields
    values: Mapping[str, Any]  # of placeholders such as {row}, by name
    places: Mapping[str, Keys]  # of inherited fields, by name; others are at `keys`

    def place_of(self, field: str) -> Keys:  # of the mapping in which the field stands
        return self.places.get(field, self.keys)


def _claims_of(document: Document, config: str) -> Iterator[tuple[Keys, Claim]]:
    """Yield the place and the claim for each valid claim.

    Raise at the end if any is invalid.
    """
    published = validated(document, _Published)
    common = {"experiment": published.experiment, "config": config, **published.common}
    mistakes: dict[Problem, str] = {}  # each once, with the id of the first claim
    for entry in _unchecked(published, common):
        problems: list[Problem] = []
        fields = {  # with placeholders filled in; `problems` gets unknown placeholders
            name: _filled(value, entry.values, (*entry.place_of(name), name), problems)
            for name, value in entry.fields.items()
        }
        claim_id, kind = fields.get("id"), str(fields.get("kind", ""))
        if claim_id is not None:
            fields["id"] = f"{published.paper}/{claim_id}"
        problems += at(
            (*entry.place_of("kind"), "kind"), unknown("kind of claim", kind, KINDS)
        )
        try:
            if not problems:
                yield entry.keys, KINDS[kind].model_validate(fields)
        except ValidationError as error:
            for detail in error.errors():
                # a field and the keys in it; () for the whole claim
                loc = detail["loc"]
                place = entry.place_of(str(loc[0])) if loc else entry.keys
                problems.append(((*place, *loc), detail["msg"]))
        for problem in problems:
            mistakes.setdefault(problem, f"{claim_id}: " if claim_id else "")
    if mistakes:
        raise document.refusal(
            (keys, prefix + text) for (keys, text), prefix in mistakes.items()
        )


def _unchecked(published: _Published, common: Fields) -> Iterator[_Unchecked]:
    """Yield the fields of each claim of a file.

    Of its tables, then of single claims.
    """
    # A claim of a table has no places of inherited fields ({}): mistakes are reported
    # at its row.
    places: dict[str, Keys] = dict.fromkeys(published.common, ("common",))
    for number, table in enumerate(published.tables):
        for name, row in table.rows.items():
            keys = ("tables", number, "rows", name)
            for column, fields in _cells(table, name, row):
                yield _Unchecked(
                    keys, _merged(common, fields), {"row": name, "column": column}, {}
                )
            if row.best is not None:
                yield _Unchecked(
                    keys, _merged(common, _best(table, name, row)), {"row": name}, {}
                )
    for number, entry in enumerate(published.claims):
        yield from _repeated(entry, _Unchecked(("claims", number), common, {}, places))


def _repeated(entry: _Entry, outer: _Unchecked) -> Iterator[_Unchecked]:
    """Yield the claims of an entry, once for each combination of the values under ``for``."""
    # The claims inherit the fields and the values of placeholders of the `outer`
    # entries. own: all keys but ``for`` and ``claims``
    keys, own = outer.keys, entry.model_extra or {}
    # For each name under ``for``: triples of the name, a value, and the fields that it
    # brings
    axes = [
        [(name, *item) for item in values.items()]
        for name, values in entry.repeat.items()
    ]
    for triples in product(*axes):  # a triple per name; without ``for`` a single ()
        places = {
            f: (*keys, "for", name, str(v))
            for name, v, fields in triples
            for f in fields
        }
        claim = _Unchecked(
            keys,
            # last wins
            fields=_merged(outer.fields, *(fields for _, _, fields in triples), own),
            values={**outer.values, **{name: value for name, value, _ in triples}},
            # own fields: here
            places={**outer.places, **places, **dict.fromkeys(own, keys)},
        )
        if entry.claims is None:  # the entry is a claim itself
            yield claim
        # the claims inside inherit `claim`
        for number, inner in enumerate(entry.claims or ()):
            yield from _repeated(inner, claim._replace(keys=(*keys, "claims", number)))


def _filled(
    piece: Any, values: Mapping[str, Any], keys: Keys, problems: list[Problem]
) -> Any:
    """Return a piece of YAML with each ``{name}`` replaced by its value."""
    # A text that is nothing but ``{name}`` becomes the value itself, which may be a
    # number. Unknown names are appended to `problems`; `keys` is the place of the
    # piece.
    if isinstance(piece, dict):
        return {k: _filled(v, values, (*keys, k), problems) for k, v in piece.items()}
    if isinstance(piece, list):
        return [_filled(v, values, (*keys, i), problems) for i, v in enumerate(piece)]
    names = _PLACEHOLDER.findall(piece) if isinstance(piece, str) else []
    mistakes = [text for name in names for text in unknown("placeholder", name, values)]
    problems += at(keys, mistakes)
    if mistakes or not names:
        return piece
    if piece == f"{{{names[0]}}}":  # nothing but one placeholder
        return values[names[0]]
    return _PLACEHOLDER.sub(lambda match: str(values[match[1]]), piece)


def _cells(table: _Table, name: str, row: _Row) -> Iterator[tuple[str, Fields]]:
    """Yield for each cell of a row the name of its column, and the fields of its claim."""
    of_first_cell: Fields = {}
    # the trend of a cell is its difference from the first of its row
    if table.kind == "mean":
        of_first_cell = {
            "row": f"{table.id}/{name}",
            "first_solver": next(iter(table.columns.values())).get("solver"),
            "first_printed": row.printed[0],
        }
    for (column, fields), printed in zip(
        table.columns.items(), row.printed, strict=True
    ):
        cell = {
            "id": f"{table.id}/{column}/{name}",
            "where": f"{table.where}, {name}, {column}",
            "kind": table.kind,
            "printed": printed,
        }
        exception = row.exceptions.get(column, {})
        # Of equal names the last wins: cell over row, row over column.
        yield (
            column,
            _merged(table.common, of_first_cell, fields, row.fields, exception, cell),
        )


def _best(table: _Table, name: str, row: _Row) -> Fields:
    """Return the fields of a claim.

    The best cell of a row is in the row's `best` group.
    """
    assert row.best is not None
    best = table.groups[row.best]  # names of columns
    solvers = {column: fields["solver"] for column, fields in table.columns.items()}
    fields = _merged(table.common, row.fields)
    # An order compares no digits, and a claim of this kind has no fields about digits.
    of_order = {
        n: v for n, v in fields.items() if n not in ("power_of_ten", "logarithm")
    }
    return {
        **of_order,
        "id": f"{table.id}/best/{name}",
        "where": f"{table.where}, {name}, column best",
        "kind": "order",
        "one_draw": True,
        "printed": row.best,
        "better": [solvers[column] for column in best],
        "worse": [solver for column, solver in solvers.items() if column not in best],
    }


def _merged(*parts: Mapping[str, Any]) -> Fields:
    """Return merged fields: of equal names the last wins.

    Selections and deviations are joined.
    """
    merged: Fields = {}
    for part in parts:
        for name, value in part.items():
            if name in _JOINED and isinstance(value, dict):  # a selection of rows
                value = {**merged.get(name, {}), **value}
            elif name == "deviations" and isinstance(value, list):
                value = [*merged.get(name, []), *value]
            merged[name] = value
    return merged

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
# fields that select rows of a study; their entries are joined when claims inherit them
_SELECTIONS = ("cell", "by", "trivial")


class _Row(Section):
    """A row of a printed table."""

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
        """Refuse unknown columns and best groups, and columns that lack a solver."""
        # Columns and rows were checked before; they are missing if they were refused.
        columns = info.data.get("columns", {})
        rows = info.data.get("rows", {})
        problems: list[Problem] = []
        for name, members in groups.items():
            for i, column in enumerate(members):
                mistakes = unknown("column of this table", column, columns)
                problems += at((name, i), mistakes)
        best_of_rows = {
            row_name: row.best for row_name, row in rows.items() if row.best is not None
        }
        for row_name, group in best_of_rows.items():
            mistakes = unknown(f"group (best of row {row_name})", group, groups)
            problems += at((), mistakes)  # the place is ``groups`` itself
        # The best group of a row is a claim about solvers.
        if best_of_rows:
            for column, fields in columns.items():
                if "solver" not in fields:
                    mistake = f"column {column} has no solver, which best needs"
                    problems += at((), [mistake])
        refuse(problems)
        return groups

    @field_validator("rows")
    @classmethod
    def _fit_the_columns(cls, rows: dict[str, _Row], info: Any) -> Any:
        """Refuse rows without a cell for each column, and exceptions elsewhere."""
        # The columns were checked before; they are missing if they were refused.
        columns = info.data.get("columns", {})
        problems: list[Problem] = []
        for name, row in rows.items():
            if len(row.printed) != len(columns):
                mistake = f"has {len(row.printed)} cells for {len(columns)} columns"
                problems += at((name, "printed"), [mistake])
        for name, row in rows.items():
            for column in row.exceptions:
                mistakes = unknown("column of this table", column, columns)
                problems += at((name, "exceptions", column), mistakes)
        refuse(problems)
        return rows


def _as_mapping(values: Any) -> Any:
    """Return a list of different values as a mapping from each value to no fields."""
    if not isinstance(values, list):
        return values  # a mapping already
    wrong_type: list[Problem] = [
        ((i,), "should be text or a number")
        for i, value in enumerate(values)
        if not isinstance(value, str | int | float)
    ]
    refuse(wrong_type)  # if there are any
    repeated: list[Problem] = [((i,), "is repeated") for i in repeats(values)]
    refuse(repeated)
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


class _Published(Section):
    """The content of a file of claims."""

    paper: Name
    experiment: str
    common: Fields = Field(default_factory=dict)
    tables: Annotated[tuple[_Table, ...], Field(strict=False)] = ()
    claims: Annotated[tuple[_Entry, ...], Field(strict=False)] = ()


class _Deviations(Section):
    """The content of the file of deviations."""

    deviations: dict[Name, Deviation]


def load_claims() -> list[Claim]:
    """Read the claims of all shipped files."""
    folder = shipped("configs")
    paths = sorted(set(folder.rglob("*" + SUFFIX)) - {_deviations_file()})
    return _checked(
        (load(path), path.relative_to(folder).as_posix().removesuffix(SUFFIX))
        for path in paths
    )


def read_claims(path: Path) -> list[Claim]:
    """Read the claims of one file."""
    return _checked([(load(path), path.name.removesuffix(SUFFIX))])


def parse_claims(text: str, file: str, config: str) -> list[Claim]:
    """Read claims from text; `file` is its name in messages."""
    return _checked([(parse(text, file), config)])


def _checked(documents: Iterable[tuple[Document, str]]) -> list[Claim]:
    """Return the claims of documents, each with the name of its config.

    Equal ids and unknown deviations are refused.
    """
    deviations = load_deviations()
    claims: dict[str, Claim] = {}
    for document, config in documents:
        problems: list[Problem] = []
        for keys, claim in _claims_of(document, config):
            if claim.id in claims:
                mistake = f"a second claim has the id {claim.id}; give another id"
                problems += at(keys, [mistake])
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
    # of inherited fields, by name: the mapping in which each stands; others are at
    # `keys`
    places: Mapping[str, Keys]

    def place_of(self, field: str) -> Keys:
        """Return the place of the mapping in which a field stands."""
        return self.places.get(field, self.keys)


def _claims_of(document: Document, config: str) -> Iterator[tuple[Keys, Claim]]:
    """Yield the place and the claim for each valid claim.

    Raise at the end if any is invalid.
    """
    published = validated(document, _Published)
    common = {"experiment": published.experiment, "config": config, **published.common}
    # A mistake in fields that several claims inherit is reported once, with the id of
    # the first of these claims.
    prefixes: dict[Problem, str] = {}
    for entry in _unchecked(published, common):
        problems: list[Problem] = []
        fields = {}
        for name, value in entry.fields.items():
            place = (*entry.place_of(name), name)
            fields[name] = _filled(value, entry.values, place, problems)
        claim_id = fields.get("id")
        if claim_id is not None:
            fields["id"] = f"{published.paper}/{claim_id}"
        kind = str(fields.get("kind", ""))
        place_of_kind = (*entry.place_of("kind"), "kind")
        problems += at(place_of_kind, unknown("kind of claim", kind, KINDS))
        if not problems:
            try:
                yield entry.keys, KINDS[kind].model_validate(fields)
            except ValidationError as error:
                problems += _problems_in(error, entry)
        for problem in problems:
            prefixes.setdefault(problem, f"{claim_id}: " if claim_id else "")
    if prefixes:
        raise document.refusal(
            (keys, prefix + text) for (keys, text), prefix in prefixes.items()
        )


def _problems_in(error: ValidationError, entry: _Unchecked) -> Iterator[Problem]:
    """Yield what is wrong with a claim, at the places of its fields in the file."""
    for detail in error.errors():
        loc = detail["loc"]  # a field and the keys in it; () for the whole claim
        place = entry.place_of(str(loc[0])) if loc else entry.keys
        yield (*place, *loc), detail["msg"]


def _unchecked(published: _Published, common: Fields) -> Iterator[_Unchecked]:
    """Yield the fields of the claims of a file: its tables, then single claims.

    All claims inherit the fields `common`.
    """
    for number, table in enumerate(published.tables):
        for name, row in table.rows.items():
            # Mistakes in the claims of a row are reported at the row: no places.
            keys = ("tables", number, "rows", name)
            for column, fields in _cells(table, name, row):
                values = {"row": name, "column": column}
                yield _Unchecked(keys, _merged(common, fields), values, places={})
            if row.best is not None:
                fields = _best(table, name, row.best)
                values = {"row": name}
                yield _Unchecked(keys, _merged(common, fields), values, places={})
    places: dict[str, Keys] = dict.fromkeys(published.common, ("common",))
    for number, entry in enumerate(published.claims):
        outer = _Unchecked(("claims", number), common, values={}, places=places)
        yield from _repeated(entry, outer)


class _Choice(NamedTuple):
    """One of the values that a name under ``for`` takes in turn."""

    name: str
    value: str | int | float
    fields: Fields  # that the value brings


def _repeated(entry: _Entry, outer: _Unchecked) -> Iterator[_Unchecked]:
    """Yield the claims of an entry, once for each combination of values under ``for``.

    They inherit the fields and the values of placeholders of the entries around this
    one, which `outer` holds with the place of this one.
    """
    keys = outer.keys
    own = entry.model_extra or {}  # all keys but ``for`` and ``claims``
    axes = [
        [_Choice(name, value, fields) for value, fields in values.items()]
        for name, values in entry.repeat.items()
    ]
    for choices in product(*axes):  # without ``for`` once, with no choices
        # Of equal names the last wins: own fields over those of a value, these over
        # those of the outer entries.
        fields = _merged(outer.fields, *(choice.fields for choice in choices), own)
        values = dict(outer.values)
        places = dict(outer.places)
        for choice in choices:
            values[choice.name] = choice.value
            place = (*keys, "for", choice.name, str(choice.value))
            places.update(dict.fromkeys(choice.fields, place))
        places.update(dict.fromkeys(own, keys))
        claim = _Unchecked(keys, fields, values, places)
        if entry.claims is None:  # the entry is a claim itself
            yield claim
        else:
            for number, inner in enumerate(entry.claims):
                inner_keys = (*keys, "claims", number)
                yield from _repeated(inner, claim._replace(keys=inner_keys))


def _filled(
    piece: Any, values: Mapping[str, Any], keys: Keys, problems: list[Problem]
) -> Any:
    """Return a piece of YAML with each ``{name}`` replaced by its value.

    A text that is nothing but ``{name}`` becomes the value itself, which may be a
    number. Unknown names are appended to `problems`; `keys` is the place of the piece.
    """
    if isinstance(piece, dict):
        return {k: _filled(v, values, (*keys, k), problems) for k, v in piece.items()}
    if isinstance(piece, list):
        return [_filled(v, values, (*keys, i), problems) for i, v in enumerate(piece)]
    if not isinstance(piece, str):
        return piece
    names = _PLACEHOLDER.findall(piece)
    mistakes = [text for name in names for text in unknown("placeholder", name, values)]
    problems += at(keys, mistakes)
    if mistakes or not names:
        return piece
    if piece == f"{{{names[0]}}}":  # nothing but one placeholder
        return values[names[0]]
    return _PLACEHOLDER.sub(lambda match: str(values[match[1]]), piece)


def _cells(table: _Table, name: str, row: _Row) -> Iterator[tuple[str, Fields]]:
    """Yield the column and the fields of the claim of each cell of row `name`."""
    of_row: Fields = {}
    if table.kind == "mean":
        # The trend of a mean is its difference from the first cell of its row.
        first_column = next(iter(table.columns.values()))
        of_row = {
            "row": f"{table.id}/{name}",
            "first_solver": first_column.get("solver"),
            "first_printed": row.printed[0],
        }
    cells = zip(table.columns.items(), row.printed, strict=True)
    for (column, of_column), printed in cells:
        of_cell = {
            "id": f"{table.id}/{column}/{name}",
            "where": f"{table.where}, {name}, {column}",
            "kind": table.kind,
            "printed": printed,
        }
        exceptions = row.exceptions.get(column, {})
        # Of equal names the last wins: cell over row, row over column.
        yield (
            column,
            _merged(table.common, of_row, of_column, row.fields, exceptions, of_cell),
        )


# An order compares no digits, and a claim of this kind has no fields about digits.
_ABOUT_DIGITS = ("power_of_ten", "logarithm")


def _best(table: _Table, name: str, group: str) -> Fields:
    """Return the fields of the claim that the best cell of row `name` is in a group."""
    fields = _merged(table.common, table.rows[name].fields)
    for field in _ABOUT_DIGITS:
        fields.pop(field, None)
    in_group = table.groups[group]  # names of columns
    others = [column for column in table.columns if column not in in_group]
    return {
        **fields,
        "id": f"{table.id}/best/{name}",
        "where": f"{table.where}, {name}, column best",
        "kind": "order",
        "one_draw": True,
        "printed": group,
        "better": [table.columns[column]["solver"] for column in in_group],
        "worse": [table.columns[column]["solver"] for column in others],
    }


def _merged(*parts: Mapping[str, Any]) -> Fields:
    """Return merged fields, of equal names the last.

    Selections of rows are joined, as are lists of deviations.
    """
    merged: Fields = {}
    for part in parts:
        for name, value in part.items():
            if name in _SELECTIONS and isinstance(value, dict):
                merged[name] = {**merged.get(name, {}), **value}
            elif name == "deviations" and isinstance(value, list):
                merged[name] = [*merged.get(name, []), *value]
            else:
                merged[name] = value
    return merged

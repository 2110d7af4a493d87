"""The printed numbers and sentences of the papers, as strict objects.

A file ``NAME.published.yaml`` holds the claims that the results of ``NAME.yaml`` can decide, one
by one or as the tables in which they were printed. A claim without a config says so by standing
beside none.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    Discriminator,
    Field,
    PositiveFloat,
    TypeAdapter,
    ValidationError,
    field_validator,
    model_validator,
)

from precbench.claims.verdicts import parse_printed
from precbench.errors import InputError
from precbench.locations import shipped
from precbench.yaml.document import Document, Keys, load
from precbench.yaml.models import Items, Name, Problem, Section, at, refuse, unknown, validated

__all__ = [
    "BoundClaim",
    "Claim",
    "Deviation",
    "ExactClaim",
    "FactClaim",
    "MeanClaim",
    "OrderClaim",
    "RatioClaim",
    "StatementClaim",
    "load_claims",
    "load_deviations",
]

SUFFIX = ".published.yaml"
Scalar = str | int | float
Cell = dict[str, Scalar]
"""A cell of a table in long form: what its columns hold."""
ClaimId = Annotated[str, Field(pattern=r"^[a-z0-9]+(/[A-Za-z0-9_.,=@()-]+)+$")]


class Reading(Section):
    """One way to read the paper; `deviation` is the id of the documented one, if it is ours."""

    cell: Cell = Field(default_factory=dict)
    deviation: str | None = None


class _Claim(Section):
    """What every claim has.

    Attributes
    ----------
    id : str
        Permanent: paper, place, row or column.
    where : str
        Where in the paper.
    printed : str
        As printed, hence with its digits.
    says : str
        The sentence, for a claim that is not a cell of a table.
    experiment : str
        Name of the experiment whose results decide; the file's, unless the claim names another.
    config : str
        The config of that experiment; may not exist yet.
    deviations : tuple of str
        Ids of the documented deviations under which we measure.
    protocol : str
        How the paper measured, as far as it says.
    untested : str
        Why no experiment decides it yet.
    """

    id: ClaimId
    where: str
    printed: str
    says: str = ""
    experiment: str
    config: str
    deviations: Annotated[tuple[str, ...], Field(strict=False)] = ()
    protocol: str = ""
    untested: str = ""

    @property
    def paper(self) -> str:
        """The key of the paper."""
        return self.id.partition("/")[0]

    @property
    def place(self) -> str:
        """The table, figure or section, as in the id."""
        return self.id.split("/")[1]


class ExactClaim(_Claim):
    """A number that follows from the paper's own definitions, without chance.

    Attributes
    ----------
    cell : dict
        Columns of the illustration's ``values.csv`` that select one row.
    argmin : str or None
        Instead of a value, the entry of this column that has the least value was printed.
    among : tuple of str
        The entries that compete.
    readings : tuple of Reading
        Are tried in turn; the first that agrees decides.
    truncated : bool
        The digits after the last were cut off instead of rounded: a documented deviation.
    expected, at_least : float or None
        The number, or what it must reach, where the paper says it in words.
    """

    kind: Literal["exact"]
    cell: Cell = Field(default_factory=dict)
    argmin: str | None = None
    among: Annotated[tuple[str, ...], Field(strict=False)] = ()
    readings: Items[Reading] = (Reading(),)
    truncated: bool = False
    expected: float | None = None
    at_least: float | None = None


class BoundClaim(_Claim):
    """Some values of an illustration lie below others: a theorem, or an order of curves.

    Attributes
    ----------
    cell, by : dict
        Columns of the illustration's ``values.csv`` that select the values on the left and those
        on the right. A value on the left meets the one that equals it in all other columns; a
        lone value on the right meets all.
    idle : dict or None
        In the same way, what no learning comes to. Bounds above it hold whatever a method does:
        where all of them lie there, they decide nothing.
    factor, margin : float
        The claim is ``left <= factor * right + margin``.
    """

    kind: Literal["bound"]
    cell: Cell
    by: Cell
    idle: Cell | None = None
    factor: float = 1.0
    margin: float = 0.0


class _Measured(_Claim):
    """A claim about a metric.

    Attributes
    ----------
    dataset, metric, part : str
    checkpoint : int or None
        That of the curve at which to look; None for the final weights.
    """

    dataset: str
    metric: str
    part: Literal["test", "training"] = "test"
    checkpoint: int | None = None


class MeanClaim(_Measured):
    """A number from one draw of the data; ours are many.

    Attributes
    ----------
    solver : str
        Label in the results.
    averaged : bool
        The number is a mean over many draws: ours should agree to half a unit of its last digit.
    power_of_ten : int
        The power that was dropped in print.
    logarithm : bool
        Whether distances are taken between logarithms.
    first_solver, first_printed : str
        Of the first column of the row: the trend is the difference from it.
    """

    kind: Literal["mean"]
    solver: str
    averaged: bool = False
    power_of_ten: int = 0
    logarithm: bool = False
    first_solver: str = ""
    first_printed: str = ""


class OrderClaim(_Measured):
    """One side is better than the other, paired over the splits.

    Attributes
    ----------
    better, worse : tuple of str
        Labels of solvers.
    of : {"best", "gap"}
        What is compared: the best value of each side, or how far the two values of each side lie
        apart (then the smaller gap is the better).
    """

    kind: Literal["order"]
    better: Items[str]
    worse: Items[str]
    of: Literal["best", "gap"] = "best"


class RatioClaim(_Claim):
    """One side takes so many times as long as the other.

    Attributes
    ----------
    dataset, slower, faster : str
    read_as : float or None
        The ratio, where the paper says it in words.
    at_least : bool
        Whether a larger ratio agrees too.
    """

    kind: Literal["ratio"]
    dataset: str
    slower: str
    faster: str
    read_as: PositiveFloat | None = None
    at_least: bool = False


class FactClaim(_Claim):
    """A count that describes a data set.

    Attributes
    ----------
    dataset : str
    of : str
        "share" is the percentage of positives.
    ours : int or None
        The count under a documented deviation.
    """

    kind: Literal["fact"]
    dataset: str
    of: Literal["rows", "features", "positives", "negatives", "share", "positives_per_fold"]
    ours: int | None = None


class StatementClaim(_Claim):
    """A sentence, definition or formula that no other kind of claim holds.

    Attributes
    ----------
    reason : str
        Why no run can decide it. If a run could, but none does yet, `untested` says so instead.
    """

    kind: Literal["statement"]
    reason: str = ""

    @model_validator(mode="after")
    def _says_why(self) -> Self:
        if bool(self.reason) == bool(self.untested):
            refuse(at((), ["needs either a reason (no run can decide it) or untested (none does)"]))
        return self


Claim = ExactClaim | BoundClaim | MeanClaim | OrderClaim | RatioClaim | FactClaim | StatementClaim
_CLAIM: TypeAdapter[Claim] = TypeAdapter(Annotated[Claim, Discriminator("kind")])
Fields = dict[str, Any]


class _Row(Section):
    """A printed row; `best` names the group of columns that the paper calls the best."""

    printed: Items[str]
    fields: Fields = Field(default_factory=dict)
    best: str | None = None
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
    def _known_to_the_table(cls, groups: dict[str, tuple[str, ...]], info: Any) -> Any:
        columns, rows = info.data.get("columns", {}), info.data.get("rows", {})
        problems: list[Problem] = []
        for name, members in groups.items():
            for i, column in enumerate(members):
                problems += at((name, i), unknown("column of this table", column, columns))
        for name, row in rows.items():
            if row.best is not None:
                problems += at((), unknown(f"group (best of row {name})", row.best, groups))
        if any(row.best for row in rows.values()):
            problems += at(
                (), [f"column {c} has no solver" for c in columns if "solver" not in columns[c]]
            )
        refuse(problems)
        return groups

    @field_validator("rows")
    @classmethod
    def _as_wide_as_the_table(cls, rows: dict[str, _Row], info: Any) -> Any:
        columns = info.data.get("columns", {})
        problems: list[Problem] = []
        for name, row in rows.items():
            if len(row.printed) != len(columns):
                text = f"has {len(row.printed)} cells, the table has {len(columns)} columns"
                problems.append(((name, "printed"), text))
            for column in row.exceptions:
                where = (name, "exceptions", column)
                problems += at(where, unknown("column of this table", column, columns))
        refuse(problems)
        return rows


class Deviation(Section):
    """Where we do not do what the paper says.

    Attributes
    ----------
    paper, where, says, ours : str
    evidence : str
        The command that shows why.
    """

    paper: str
    where: str
    says: str
    ours: str
    evidence: str


class _Published(Section):
    paper: Name
    experiment: str
    common: Fields = Field(default_factory=dict)
    tables: Annotated[tuple[_Table, ...], Field(strict=False)] = ()
    claims: Annotated[tuple[Fields, ...], Field(strict=False)] = ()


class _Deviations(Section):
    deviations: dict[Name, Deviation]


def load_claims() -> list[Claim]:
    """Read all claims.

    Returns
    -------
    list of Claim
        By file, each in the order of its file.

    Raises
    ------
    InputError
        With one line for each mistake: a key, a value, an id that stands twice, or a deviation
        that is not documented.
    """
    deviations = load_deviations()
    folder = shipped("configs")
    claims: dict[str, Claim] = {}
    for path in sorted(folder.rglob("*" + SUFFIX)):
        if path == _deviations_file():
            continue
        document = load(path)
        config = path.relative_to(folder).as_posix().removesuffix(SUFFIX)
        problems: list[Problem] = []
        for keys, claim in _claims_of(document, config):
            if claim.id in claims:
                problems += at(keys, [f"a second claim with the id {claim.id}"])
            for name in _deviations_of(claim):
                problems += at(keys, unknown("deviation", name, deviations))
            problems += at(keys, _not_a_number(claim))
            claims[claim.id] = claim
        if problems:
            raise document.refusal(problems)
    return list(claims.values())


def load_deviations() -> dict[str, Deviation]:
    """Read the documented deviations, by id.

    Raises
    ------
    InputError
        With one line for each mistake.
    """
    document = load(_deviations_file())
    return validated(document, _Deviations).deviations


def _deviations_file() -> Path:
    return shipped("configs") / f"deviations{SUFFIX}"


def _deviations_of(claim: Claim) -> Iterator[str]:
    yield from claim.deviations
    for reading in claim.readings if isinstance(claim, ExactClaim) else ():
        if reading.deviation is not None:
            yield reading.deviation


def _not_a_number(claim: Claim) -> list[str]:
    """Return what is wrong with what is printed, where a verdict needs a number."""
    if isinstance(claim, ExactClaim):
        in_words = claim.argmin is not None or (claim.expected, claim.at_least) != (None, None)
    else:
        in_words = isinstance(claim, OrderClaim | BoundClaim | StatementClaim)
        in_words |= isinstance(claim, RatioClaim) and claim.read_as is not None
    if claim.untested or in_words:
        return []
    try:
        value = parse_printed(claim.printed).value
    except InputError as error:
        return [f"{claim.id}: {error}"]
    needs_positive = isinstance(claim, RatioClaim) or (
        isinstance(claim, MeanClaim) and claim.logarithm
    )
    return [f"{claim.id}: should be above 0"] if needs_positive and value <= 0 else []


def _claims_of(document: Document, config: str) -> Iterator[tuple[Keys, Claim]]:
    """Yield each claim with its place in the file."""
    published = validated(document, _Published)
    common = {"experiment": published.experiment, "config": config, **published.common}
    problems: list[Problem] = []
    for keys, fields in _fields_of(published):
        given = _merged(common, fields)
        try:
            claim = _CLAIM.validate_python(given)
        except ValidationError as error:
            # The first piece of a place is the kind of the claim.
            problems += [
                ((*keys, *e["loc"][1:]), f"{given.get('id')}: {e['msg']}") for e in error.errors()
            ]
            continue
        yield keys, claim
    if problems:
        raise document.refusal(problems)


def _fields_of(published: _Published) -> Iterator[tuple[Keys, Fields]]:
    for number, table in enumerate(published.tables):
        for name, row in table.rows.items():
            place = ("tables", number, "rows", name)
            yield from ((place, f) for f in _cells(published.paper, table, name, row))
            if row.best is not None:
                yield place, _best(published.paper, table, name, row)
    for number, fields in enumerate(published.claims):
        whole = {"id": f"{published.paper}/{fields['id']}"} if "id" in fields else {}
        yield ("claims", number), {**fields, **whole}


def _cells(paper: str, table: _Table, name: str, row: _Row) -> Iterator[Fields]:
    trend: Fields = {}
    if table.kind == "mean":
        first = next(iter(table.columns.values()))
        trend = {"first_solver": first.get("solver"), "first_printed": row.printed[0]}
    for (column, fields), printed in zip(table.columns.items(), row.printed, strict=True):
        about = {
            "id": f"{paper}/{table.id}/{column}/{name}",
            "where": f"{table.where}, {name}, {column}",
            "kind": table.kind,
            "printed": printed,
        }
        exception = row.exceptions.get(column, {})
        yield _merged(table.common, trend, fields, row.fields, exception, about)


def _best(paper: str, table: _Table, name: str, row: _Row) -> Fields:
    """Return the claim that the best of a row is among some of the columns."""
    assert row.best is not None
    best = table.groups[row.best]
    solvers = {column: fields["solver"] for column, fields in table.columns.items()}
    fields = _merged(table.common, row.fields)
    measured = {n: v for n, v in fields.items() if n not in ("power_of_ten", "logarithm")}
    return {
        **measured,
        "id": f"{paper}/{table.id}/best/{name}",
        "where": f"{table.where}, {name}, column best",
        "kind": "order",
        "printed": row.best,
        "better": [solvers[column] for column in best],
        "worse": [solver for column, solver in solvers.items() if column not in best],
    }


def _merged(*parts: Mapping[str, Any]) -> Fields:
    """Return all fields; cells are joined, and so are deviations."""
    merged: Fields = {}
    for part in parts:
        for name, value in part.items():
            if name == "cell":
                value = {**merged.get(name, {}), **value}
            elif name == "deviations":
                value = [*merged.get(name, []), *value]
            merged[name] = value
    return merged

"""Problems of a table, collected, with the options that would solve them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from precbench.core.errors import InputError, did_you_mean

if TYPE_CHECKING:
    import pandas as pd

# What an option may name beside columns
OPTION_WORDS: dict[str, tuple[str, ...]] = {
    "categorical": ("error", "one-hot"),
    "numeric": (),
}
_SHOWN = 20  # lines of a message
_FEW_ROWS = 9  # at most so many wrong rows may be repeated names, units or totals
_LEAVES_OUT = ("drop", "id")  # options that leave a column out of the features
# What is said of several columns with the same problem
_TOGETHER = {
    "text": "hold text: encode it (categorical one-hot), or drop the columns",
    "missing": (
        "have missing values: fill them (missing: mean, median or most-frequent), or"
        " drop the columns"
    ),
    "codes": "may hold codes, not numbers: name them in categorical or in numeric",
    "identifier": (
        "look like identifiers (a different value in every row, gaps or few aside): "
        "add them to --id or --drop, or to --allow to use them"
    ),
    "count": (
        "have no name of their own and count rows, as the index of a data frame does:"
        " add them to --drop, or to --allow to use them"
    ),
    "leak": (
        "look like leaks of the label: add them to --drop, or to --allow to use them"
    ),
    "rows": (
        "are wrong in the same few rows only: remove these from the file if they hold"
        " names, units or totals, else correct them"
    ),
}


def listed(names: Iterable[object], most: int = 8) -> str:
    """Return the first `most` names joined for a message, and how many more follow."""
    texts = [f"{name:.15g}" if isinstance(name, float) else str(name) for name in names]
    more = f" and {len(texts) - most} more" if len(texts) > most else ""
    return ", ".join(texts[:most]) + more


class Remedy(NamedTuple):
    """An option of `precbench.tables.own_file.read_own_file` that solves a problem."""

    option: str
    value: object  # or an entry of a list; of drop and id a column


@dataclass(frozen=True)
class Problem:
    """One problem of a table."""

    message: str  # begins with the name of the table
    kind: str = ""  # problems of a kind in `_TOGETHER` share a line
    column: str = ""
    place: str = ""  # of a wrong value, such as its row
    rows: tuple[int, ...] = ()  # all wrong rows; () if they are too many to be names
    remedy: Remedy | None = None

    @property
    def named(self) -> str:
        """The column, as a shared line names it."""
        return f"{self.column!r} ({self.place})" if self.place else repr(self.column)


class TableError(InputError):
    """One problem of a table, or several problems."""

    def __init__(
        self,
        where: str,
        text: str,
        *,
        kind: str = "",
        column: str = "",
        place: str = "",
        rows: Collection[int] = (),
        remedy: Remedy | None = None,
    ) -> None:
        message = f"{where}: {text}"
        super().__init__(message)
        self.problems = [
            Problem(
                message=message,
                kind=kind,
                column=column,
                place=place,
                rows=tuple(rows) if len(rows) <= _FEW_ROWS else (),
                remedy=remedy,
            )
        ]

    @property
    def remedies(self) -> list[Remedy]:
        """The remedies that are needed for all problems."""
        remedies = []
        left_out = set()  # columns, which need no other remedy
        for problem in self.problems:
            if problem.remedy is not None and problem.remedy.option in _LEAVES_OUT:
                left_out.add(problem.remedy.value)
        for problem in self.problems:
            remedy = problem.remedy
            if remedy is None:
                continue
            if remedy.option in _LEAVES_OUT or problem.column not in left_out:
                remedies.append(remedy)
        return remedies

    @property
    def is_enough(self) -> bool:
        """Whether the remedies leave no problem."""
        return all(problem.remedy is not None for problem in self.problems)


def column_of(
    table: pd.DataFrame, name: str, where: str, remedy: Remedy | None = None
) -> pd.Series:
    """Return a column; refuse an unknown name, and offer the nearest and `remedy`."""
    if name in table.columns:
        return table[name]
    near = did_you_mean(name, map(str, table.columns))
    raise TableError(
        where,
        f"no column {name!r}{near}; name one of {listed(table.columns)}",
        remedy=remedy,
    )


def named_columns(
    texts: Collection[str],
    names: Collection[str],
    option: str,
    words: Sequence[str] = (),
) -> list[str]:
    """Return the columns that an option names; a text may name several with commas.

    `words` are valid in place of a column; a word that is given alone, not in a list,
    is left out.
    """
    if isinstance(texts, str):
        texts = [] if texts in words else [texts]
    named: list[str] = []
    for text in texts:
        is_one_name = text in names or "," not in text  # a name may have a comma
        if is_one_name:
            named.append(text)
        else:
            named += [part.strip() for part in text.split(",")]
    for name in named:
        if name not in names and name not in words:
            near = did_you_mean(name, [*words, *map(str, names)])
            raise InputError(
                f"{option}: no column {name!r}{near}; name one of {listed(names)}"
            )
    return named


class Problems:
    """The problems of a table, collected in order to be raised together."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.errors: list[InputError] = []

    @contextmanager
    def collected(self) -> Iterator[None]:
        """Collect an `InputError` instead of raising it."""
        try:
            yield
        except InputError as error:
            self.add(error)

    def add(self, error: InputError) -> None:
        self.errors.append(error)

    @property
    def problems(self) -> list[Problem]:
        """The problems of all errors, of which one may have several."""
        problems = []
        for error in self.errors:
            if isinstance(error, TableError):
                problems += error.problems
            else:
                problems.append(Problem(str(error)))
        return problems

    def raise_if_any(self) -> None:
        """Raise the collected errors, if any, with one line for each problem."""
        if len(self.errors) == 1:
            raise self.errors[0]
        if self.errors:
            raise _SeveralError(self.where, self.problems)


class _SeveralError(TableError):
    """All problems of a table as one error."""

    def __init__(self, where: str, problems: Sequence[Problem]) -> None:
        problems = _with_shared_rows(problems)
        lines = _lines(where, problems)
        text = lines[0]
        if len(lines) > 1:
            shown = [f"{len(problems):,} problems"]
            shown += [f"  {line}" for line in lines[:_SHOWN]]
            if len(lines) > _SHOWN:
                shown.append(f"  and {len(lines) - _SHOWN:,} more")
            text = "\n".join(shown)
        super().__init__(where, text)
        self.problems = problems


def _with_shared_rows(problems: Sequence[Problem]) -> list[Problem]:
    """Return the problems; columns that are wrong in the same rows get the kind "rows".

    They have no remedy, as no option drops rows.
    """
    n_columns = Counter(problem.rows for problem in problems)
    judged = []
    for problem in problems:
        if problem.rows and n_columns[problem.rows] > 1:
            problem = replace(problem, kind="rows", remedy=None)
        judged.append(problem)
    return judged


def _lines(where: str, problems: Sequence[Problem]) -> list[str]:
    """Return a line for each problem, but one line for those of a kind."""
    names: dict[str, list[str]] = {}  # of columns, by kind
    for problem in problems:
        names.setdefault(problem.kind, []).append(problem.named)
    lines = []
    written = set()  # kinds whose line is written
    for problem in problems:
        kind = problem.kind
        if kind not in _TOGETHER or len(names[kind]) == 1:
            lines.append(problem.message.removeprefix(f"{where}: "))
        elif kind not in written:
            written.add(kind)
            columns = f"{len(names[kind]):,} columns"
            lines.append(f"{columns} {_TOGETHER[kind]}: {listed(names[kind])}")
    return lines

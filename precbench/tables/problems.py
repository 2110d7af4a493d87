"""Problems of a table, collected, with the options that would solve them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

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


class TableError(InputError):
    """One problem of a table, or several problems.

    Problems of one `kind` are reported together. A remedy is an option of
    `precbench.tables.own_file.read_own_file`, and the value, or the entry of a list,
    that solves the problem (of drop and id a column); `is_enough` says whether the
    remedies leave no problem.
    """

    def __init__(
        self,
        where: str,
        text: str,
        *,
        kind: str = "",  # problems of one kind share a line
        column: str = "",
        place: str = "",  # such as the row
        rows: Collection[int] = (),  # all wrong rows
        remedy: tuple[str, object] | None = None,
    ) -> None:
        super().__init__(f"{where}: {text}")
        self.kind, self.column = kind, column
        # (): too many to be names
        self.rows = tuple(rows) if len(rows) <= _FEW_ROWS else ()
        # in a shared line
        self.named = f"{column!r} ({place})" if place else repr(column)
        self.remedies = [] if remedy is None else [remedy]
        self.is_enough = remedy is not None  # the remedy leaves no problem


def column_of(
    table: pd.DataFrame, name: str, where: str, remedy: tuple[str, object] | None = None
) -> pd.Series:
    """Return a column; an unknown name is reported with the nearest valid one."""
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
    """Return the columns that an option names.

    A text may name several, separated by commas.

    `words` are valid in place of a column; a word that is given alone, not in a list,
    is left out.
    """
    texts = {texts}.difference(words) if isinstance(texts, str) else texts
    named: list[str] = []
    for text in texts:  # the name of a column may have a comma
        named += (
            [text]
            if text in names or "," not in text
            else map(str.strip, text.split(","))
        )
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

    def add(self, error: InputError) -> None:  # a collection of problems as its parts
        self.errors += getattr(error, "parts", [error])

    def raise_if_any(self) -> None:
        """Raise the collected errors, if any, with one line for each problem."""
        if self.errors:
            error, *others = self.errors
            raise _SeveralError(self.where, self.errors) if others else error


class _SeveralError(TableError):
    # All problems of a table as one error, with the remedies that are needed for all.
    def __init__(self, where: str, parts: Sequence[InputError]) -> None:
        self.parts = list(parts)
        # others have no remedy
        of_table = [part for part in parts if isinstance(part, TableError)]
        # columns wrong in just these rows
        n_columns = Counter(part.rows for part in of_table)
        for part in of_table:
            if part.rows and n_columns[part.rows] > 1:  # in place: no option drops rows
                part.kind, part.remedies, part.is_enough = "rows", [], False
        lines = _lines(where, self.parts)  # fewer than parts, if some share a line
        shown = [
            f"{len(self.parts):,} problems",
            *(f"  {line}" for line in lines[:_SHOWN]),
        ]
        if len(lines) > _SHOWN:
            shown.append(f"  and {len(lines) - _SHOWN:,} more")
        super().__init__(where, "\n".join(shown) if len(lines) > 1 else lines[0])
        remedies = [
            (part.column, remedy) for part in of_table for remedy in part.remedies
        ]
        # A column that is left out needs no other remedy (of drop and id the value is a
        # column).
        left_out = {value for _, (option, value) in remedies if option in _LEAVES_OUT}
        self.remedies = [
            (option, value)
            for column, (option, value) in remedies
            if option in _LEAVES_OUT or column not in left_out
        ]
        self.is_enough = all(getattr(part, "is_enough", False) for part in parts)


def _lines(where: str, parts: Sequence[InputError]) -> list[str]:
    # Return a line for each problem, but a single line for all columns with one kind of
    # problem. by the kind that shares a line, else by `id` of the problem
    lines: dict[object, str] = {}
    for part in parts:
        kind = getattr(part, "kind", "")  # only a TableError has one
        names = [p.named for p in parts if isinstance(p, TableError) and p.kind == kind]
        if kind in _TOGETHER and len(names) > 1:  # the same line for all of the kind
            lines[kind] = f"{len(names):,} columns {_TOGETHER[kind]}: {listed(names)}"
        else:
            lines[id(part)] = str(part).removeprefix(f"{where}: ")
    return list(lines.values())

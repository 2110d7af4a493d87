"""Tables and figure of a study, from ``values.csv`` and ``illustration.json``."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd

from precbench.core.errors import InputError
from precbench.core.studies import STUDIES, Result, SubFigure
from precbench.core.text import one_line
from precbench.report.sheet import Sheet
from precbench.report.summary_tables import three_digits
from precbench.report.table import Table, text_table
from precbench.results.read import read_csv

_TITLE = 0.25  # inches for the title, which the size of a kind of study includes


def read_study(measured: Result) -> Result:
    """Return a study with values in its column types, and the size in the title."""
    if measured.kind not in STUDIES:
        raise InputError(
            f"{measured.folder / 'illustration.json'}: the kind of study"
            f" {measured.kind!r} is not installed; update precbench, or install the"
            " package that adds this kind"
        )
    kind = STUDIES[measured.kind]
    columns: dict[str, type] = {}
    for name in kind.text:
        columns[name] = str
    for name in (*kind.numbers, "value"):
        columns[name] = float
    values = read_csv(measured.folder / "values.csv", columns)
    title = f"{measured.title}, smoke size" if measured.smoke else measured.title
    return measured.model_copy(update={"values": values, "title": title})


def study_tables(study: Result) -> list[Table]:
    with _reporting_bad_values(study):
        return list(STUDIES[study.kind].tables(study))


def draw_study(study: Result, sources: Sequence[Path] = ()) -> list[Path]:
    """Write ``figures/<kind>`` unless newer than `sources`; return the paths.

    The formats are PDF, PNG and SVG.
    """
    kind = STUDIES[study.kind]
    width, height = kind.size

    def draw(figure: SubFigure) -> None:
        kind.draw(figure, study)

    with _reporting_bad_values(study):
        sheet = Sheet(
            study.title,
            draw,
            width=width,
            height=height - _TITLE,
            caption=[kind.caption.format(**study.parameters)],
        )
        return sheet.save(study.folder / "figures" / study.kind, sources=sources)


def value_table(
    result: Result,
    rows: pd.DataFrame,
    columns: list[str],
    note: str = "",
    across: str = "",
) -> Table:
    """Lay out ``value``, with a line for each combination of `columns`.

    With `across`, a line has a value for each entry of this column. The first column
    has no name.
    """
    if across:
        column_of_row = rows[across].map(_entry)
    else:
        column_of_row = pd.Series("value", rows.index)
    value_columns = list(dict.fromkeys(column_of_row))
    line_of_row = zip(*(rows[name].map(_entry) for name in columns), strict=True)
    values: dict[tuple[str, ...], dict[str, str]] = {}  # by line, then by column
    for line, column, value in zip(
        line_of_row, column_of_row, rows["value"], strict=True
    ):
        text = "" if np.isnan(value) else three_digits(value)
        values.setdefault(line, {})[column] = text
    cells = [
        [*line, *(of_line.get(column, "") for column in value_columns)]
        for line, of_line in values.items()
    ]
    header = ["", *columns[1:], *value_columns]
    notes = [note] if note else []
    return text_table(result.title, header, cells, *notes)


def tabulate(
    columns: list[str],
    note: str = "",
    across: str = "",
    rows: Callable[[pd.DataFrame], pd.DataFrame] = lambda values: values,
) -> Callable[[Result], list[Table]]:
    """Return the ``tables`` of a kind of study that has one `value_table`.

    The table shows what `rows` makes of the values of the study, by default all values.
    """

    def tables(result: Result) -> list[Table]:
        return [value_table(result, rows(result.values), columns, note, across)]

    return tables


def _entry(key: str | float) -> str:
    """Return an entry of a column as text, "" for a missing number."""
    if isinstance(key, str):
        return key
    return "" if np.isnan(key) else f"{key:,.10g}"


@contextmanager
def _reporting_bad_values(study: Result) -> Iterator[None]:
    """Raise `InputError` if the body fails because of numbers or parameters."""
    try:
        yield
    except (
        LookupError,
        TypeError,
        ValueError,
        ArithmeticError,
        AttributeError,
    ) as error:
        raise InputError(
            f"{study.folder / 'values.csv'} and illustration.json do not hold what a"
            f" study of the kind {study.kind} shows ({type(error).__name__}:"
            f" {one_line(str(error))}); run the study again"
        ) from error

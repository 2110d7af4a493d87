"""Writers of ranked lists: CSV, Excel or Parquet."""

from pathlib import Path

import pandas as pd

from precbench.core.errors import InputError
from precbench.core.files import replacing

_MOST_ROWS = 2**20 - 1  # of a sheet, below the names
_MOST_COLUMNS = 2**14  # of a sheet
_LONGEST = 32_767  # characters of a cell
_MOST_EXACT = 10**15  # larger integers lose digits in a spreadsheet


def write_list(ranking: pd.DataFrame, path: Path) -> None:
    """Write a list in the format of the suffix, whole or not at all."""
    with replacing(path) as unfinished, unfinished.open("wb") as stream:
        if path.suffix == ".csv":
            ranking.to_csv(stream, index=False)
        elif path.suffix == ".parquet":
            ranking.to_parquet(stream, index=False)
        else:
            require_sheet(ranking, path)
            with pd.ExcelWriter(stream, engine="openpyxl") as book:
                with_numbers(ranking).to_excel(book, index=False)
                for row in book.book.active.iter_rows():
                    for cell in row:
                        if isinstance(cell.value, str):
                            cell.data_type = "s"  # =1+1 and #N/A stay text


def require_sheet(ranking: pd.DataFrame, path: Path) -> None:
    """Raise an error if a workbook cannot hold `ranking`.

    It is a list, or before any training the columns of ids alone.
    """
    from openpyxl.cell.cell import ILLEGAL_CHARACTERS_RE

    n_rows, n_columns = ranking.shape
    if n_rows > _MOST_ROWS or n_columns > _MOST_COLUMNS:
        raise InputError(
            f"{path}: {n_rows:,} rows and {n_columns:,} columns are too many for a"
            " sheet; write CSV"
        )
    for name, values in ranking.select_dtypes(exclude="number").items():
        texts = [str(text) for text in (name, *values)]
        if any(ILLEGAL_CHARACTERS_RE.search(text) for text in texts):
            raise InputError(
                f"{path}: column {name!r} has control characters; write CSV"
            )
        if max(len(text) for text in texts) > _LONGEST:
            raise InputError(
                f"{path}: column {name!r} has a text of more than {_LONGEST:,} "
                "characters; write CSV"
            )


def with_numbers(ranking: pd.DataFrame) -> pd.DataFrame:
    """Return a list with numbers in place of texts, in columns where no text changes.

    Columns with a text such as 007 or a number of more than 15 digits stay text.
    """
    numbers = ranking.apply(pd.to_numeric, errors="coerce")
    is_plain = (numbers.astype(str) == ranking) & (numbers.abs() < _MOST_EXACT)
    return ranking.assign(**numbers.loc[:, is_plain.all()])

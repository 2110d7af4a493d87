"""Reader of Parquet."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from precbench.tables.layout import (
    Block,
    as_text,
    columns_to_keep,
    with_exact_integers,
    with_text_names,
)


def _columns_of_parquet(path: Path, names: list[str]) -> dict[str, Any]:
    """Return columns with integers as they are stored, and gaps."""
    frame = pd.read_parquet(path, columns=names, dtype_backend="numpy_nullable")
    return {str(name): values for name, values in frame.items()}


def read_parquet(
    path: Path, rows_at_once: int | None, keep: Sequence[str]
) -> Iterator[Block]:
    """Yield blocks as `read_blocks` does.

    Without `rows_at_once` one block of all rows, and no text.
    """
    if rows_at_once is None:
        frame = _with_index(pd.read_parquet(path), 0, path)
        frame = with_exact_integers(frame, partial(_columns_of_parquet, path))
        yield frame, pd.DataFrame()
        return
    from pyarrow.parquet import ParquetFile

    n_rows = 0
    with ParquetFile(path) as file:
        # One pass over all row groups would keep their buffers.
        for group in range(file.num_row_groups):
            for batch in file.iter_batches(rows_at_once, [group]):
                frame = _with_index(batch.to_pandas(), n_rows, path)
                n_rows += len(frame)
                frame = with_exact_integers(frame, partial(_lists_of, batch))
                names = columns_to_keep(keep, [*frame.columns], path)
                yield frame, _texts_of(batch, names)


def _lists_of(batch: Any, names: list[str]) -> Mapping[str, Any]:
    """Return columns of a batch of Parquet as arrays of Python's numbers."""
    return {
        name: np.array(batch.column(name).to_pylist(), dtype=object) for name in names
    }


def _texts_of(batch: Any, names: list[str]) -> pd.DataFrame:
    return as_text({name: batch.column(name).to_pylist() for name in names})


def _with_index(frame: pd.DataFrame, n_before: int, path: Path) -> pd.DataFrame:
    """Return a frame with named levels of its index as columns.

    Its rows are numbered from `n_before`.
    """
    frame = with_text_names(frame, path)
    named = [name for name in frame.index.names if name is not None]
    if named:
        frame = frame.reset_index(level=named, names=[str(name) for name in named])
    return frame.set_axis(pd.RangeIndex(n_before, n_before + len(frame)))

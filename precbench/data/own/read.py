"""Read files of the user: svmlight, CSV, TSV, Parquet, XLSX or npz."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import re
import warnings
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from difflib import get_close_matches
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast, get_args

import numpy as np
from numpy.typing import NDArray

from precbench.data.dataset import Dataset, Dtype, Imputed, stored
from precbench.data.formats import SUFFIXES, Format, find_format, opened
from precbench.data.own.encoding import (
    Categorical,
    Column,
    Encoding,
    Gaps,
    Missing,
    canonical,
    column_of,
    named_columns,
    number_groups,
    order_in_time,
    signs,
)
from precbench.data.own.encoding import (
    is_table as is_frame,
)
from precbench.data.own.problems import Problems, TableError, listed
from precbench.data.own.suspects import look_for_suspects
from precbench.data.svmlight import LARGEST_INDEX, MOST_ENTRIES, dense_if_full, read_svmlight
from precbench.errors import InputError
from precbench.npz import DamagedError, unpack

if TYPE_CHECKING:
    import pandas as pd
    from scipy.sparse import csr_matrix

    from precbench.data.dataset import Matrix

_FEWEST_ROWS, _MOST_ROWS, _MOST_VALUES = 256, 1 << 16, 1 << 22  # of a block: 32 MiB
MOST_COLUMNS = 100_000  # a column takes some KiB, however short it is
VERSION = 2  # raise it when the same file gives other arrays: it is part of their identity

_LABEL = re.compile("label|target|class|outcome|churn|fraud|^y$", re.IGNORECASE)
_WORKBOOKS = (".xls", ".xlsb", ".ods")
_SEPARATORS = {"csv": ",", "tsv": "\t"}
_SEPARATED = {
    ";": ("semicolons", "save it with commas between them, and with points in numbers"),
    "\t": ("tabs", "read it as tsv (format)"),
    ",": ("commas", "read it as csv (format)"),
}
_TABLES = (*_SEPARATORS, "parquet", "xlsx")
_NAMELESS = "Unnamed: "  # as pandas names a column without a name, before its place


def read_own_file(
    path: Source,
    *,
    format: Format | None = None,  # noqa: A002
    label: str | None = None,
    positive: str | float | None = None,
    groups: str | None = None,
    time: str | None = None,
    drop: Sequence[str] = (),
    id: Sequence[str] = (),  # noqa: A002
    categorical: Categorical = "error",
    numeric: Sequence[str] = (),
    missing: Missing = "error",
    allow: Sequence[str] | None = None,
    dtype: Dtype = "float64",
) -> tuple[Dataset, Encoding]:
    """Read a labelled file of the user.

    Parameters
    ----------
    path : path, DataFrame or OwnTable
        The last from `open_table`, with the same `format` and `categorical`.
    format : {"svmlight", "csv", "tsv", "parquet", "xlsx", "npz"}, optional
        By default known from the suffix: ``.svm``, ``.libsvm``, ``.svmlight``, ``.txt``; ``.csv``;
        ``.tsv``; ``.parquet``; ``.xlsx``, of one sheet; ``.npz``. Text may be packed (``.gz``,
        ``.bz2``, ``.xz``). A table has its column names in the first line. An npz file holds ``X``
        (or the parts ``data``, ``indices``, ``indptr``, ``shape`` of a CSR matrix) and ``y``.
    label : str
        Column of the labels, for a table.
    positive : str or number, optional
        The label of the positive class; may be left out if the labels are 0 and 1, or -1 and 1.
    groups : str, optional
        Column (or array of an npz file) whose equal values keep rows together in a split; not a
        feature.
    time : str, optional
        Column (or array of an npz file) of the order of the rows, for splits by time: numbers, or
        dates in ISO 8601, taken as UTC where they name no zone; not a feature.
    drop : sequence of str
        Columns to leave out of the features.
    id : sequence of str
        Columns that name each row, with a value of its own: left out, too.
    categorical : {"error", "one-hot"} or sequence of str
        Treatment of text, or the columns whose values are categories, be they text, numbers or
        some of both (``["zip", "doors"]``, or ``["zip,doors"]``); ``"one-hot"`` among them stands
        for all columns of text. Dates in ISO 8601 are not text: they are converted to days since
        the first one. What a column holds is found from all rows.
    numeric : sequence of str
        Columns in which nothing but numbers is allowed.
    missing : {"error", "mean", "median", "most-frequent"}
        Treatment of missing values in a table; in text the most frequent value replaces them.
    allow : sequence of str, optional
        If given, columns of a table that look like a leak, an identifier or a code are refused,
        but for these. Those are columns which alone have an AUC above 0.99, which have another
        value in each row, and of whole numbers that all have as many digits, or zeros before them.
    dtype : {"float64", "float32"}
        Type of the values of X. A table is encoded in float64 first.

    Returns
    -------
    dataset : Dataset
        Its random splits follow the labels, not the name of the file: copies, and the same rows
        in another format, are split alike.
    encoding : Encoding
        For `read_new_rows`.

    Raises
    ------
    InputError
        An unknown format, a malformed or empty file. Of a table, as `TableError` and all at once: a
        column that does not exist, one class only, an unknown positive label; text, missing values
        or infinity, or a time that is neither a number nor a date, with column and row; texts of
        which there are too many.

    Warns
    -----
    UserWarning
        If rows of several labels count as negative.
    """
    path, kind, table, is_file = open_table(path, format, categorical)
    where = str(path)
    if missing not in get_args(Missing):
        raise InputError(f"missing must be one of {listed(get_args(Missing))}, found {missing!r}")
    X: Matrix
    imputed: Imputed | None = None
    if table is not None:
        named, problems = _categories(categorical), Problems(where)
        y, numbered, order, features = _roles(
            problems, table, label, positive, groups, time, drop, id
        )
        with problems.collected():
            encoding = Encoding.learn(table, features, categorical, missing, where, kind, numeric)
        if allow is not None:
            columns = [str(name) for name in table.columns]
            with problems.collected():
                allowed = named_columns(allow, columns, f"{where}: allow")
                numbers = _several(numeric)
                looked_at = [name for name in features if name not in allowed]
                unnamed = [name for name in looked_at if name not in {*named, *numbers}]
                look_for_suspects(
                    table,
                    looked_at,
                    y,
                    problems,
                    categorical=named,
                    numeric=numbers,
                    padded=_padded(path, kind, table, unnamed),
                )
        problems.tell()
        _warn_of_negatives(where, table[label], y)
        X = encoding.encode(table, where)
        imputed = encoding.imputed(table, missing)
        del table  # or it would be in memory beside a float32 copy of X, too
    else:
        only_tables = {
            "label": label is not None,
            "drop": bool(drop),
            "id": bool(id),
            "categorical": categorical != "error",
            "numeric": bool(numeric),
            "missing": missing != "error",
            "groups": groups is not None and kind == "svmlight",
            "time": time is not None and kind == "svmlight",
        }
        if any(only_tables.values()):
            wrong = listed(option for option, is_given in only_tables.items() if is_given)
            raise InputError(f"{path}: {wrong} has no meaning for {kind}, which has no columns")
        X, arrays = _matrix(path, kind, dtype)
        column = partial(_vector, path, arrays, X.shape[0])
        y = signs(path, column("y").tolist(), positive)
        _warn_of_negatives(where, column("y"), y)
        numbered = None if groups is None else number_groups(path, column(groups).tolist())
        order = None if time is None else order_in_time(column(time), where)
        encoding = Encoding(kind, X.shape[1], isinstance(X, np.ndarray))

    how = categorical if isinstance(categorical, str) else list(categorical)
    options: list[Any] = [VERSION, kind, label, positive, groups, list(drop), how, missing]
    options += [] if time is None else [time]
    options += [] if imputed is None else ["filled in by split"]
    options += [{"id": list(id), "numeric": list(numeric)}] if id or numeric else []
    digest = hashlib.sha256(json.dumps(options).encode())
    if is_file:
        with path.open("rb") as file:
            hashlib.file_digest(file, lambda: digest)
    name = path.name.split(".")[0]
    dataset = Dataset(
        name=name,
        title=name,
        X=stored(X, dtype, where),
        y=y,
        sha256=digest.hexdigest() if is_file else "",
        groups=numbered,
        feature_names=encoding.feature_names,
        split_key=hashlib.sha256((y > 0).tobytes()).hexdigest(),
        time=order,
        imputed=imputed,
    )
    return dataset, encoding


class OwnTable(NamedTuple):
    """What `read_own_file` and others read, parsed once.

    Attributes
    ----------
    path : pathlib.Path
        Of the file, or the name of a frame in messages.
    format : {"svmlight", "csv", "tsv", "parquet", "xlsx", "npz"}
    frame : pandas.DataFrame or None
        None for a file without named columns.
    is_file : bool
    """

    path: Path
    format: Format
    frame: pd.DataFrame | None
    is_file: bool


Source: TypeAlias = "str | os.PathLike[str] | pd.DataFrame | OwnTable"


def open_table(
    source: Source,
    format: Format | None = None,  # noqa: A002
    categorical: Categorical = "error",
) -> OwnTable:
    """Parse a file, if it has named columns; those named as categories stay text.

    Raises
    ------
    InputError
        An unknown format, a malformed or empty table.
    """
    if isinstance(source, OwnTable):
        return source
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        kind = _format(path, format)
        frame = next(_tables(path, kind, _categories(categorical)))[0] if kind in _TABLES else None
        return OwnTable(path, kind, frame, is_file=True)
    if not is_frame(source):
        raise InputError(f"expected a path or a data frame, found {type(source).__name__}")
    return OwnTable(Path("table"), "parquet", source, is_file=False)  # keeps what a frame knows


def read_numbers(table: OwnTable, column: str, option: str) -> NDArray[np.float64]:
    """Return a column of numbers of at least 0, which an option names."""
    path, kind, frame, _ = table
    if frame is None:
        raise InputError(f"{path}: {option} names a column of a table, and this file has none")
    alone = Encoding(kind, 1, dense=True, columns=(Column(column),))
    numbers = alone.encode(frame, str(path))[:, 0]
    if (numbers < 0).any():
        row = int(np.argmax(numbers < 0))
        raise InputError(
            f"{path}: column {column!r}, row {row + 1}: {option} takes numbers of at least 0, "
            f"found {numbers[row]:g}"
        )
    return numbers


def _roles(
    problems: Problems,
    table: pd.DataFrame,
    label: str | None,
    positive: str | float | None,
    groups: str | None,
    time: str | None,
    drop: Sequence[str],
    ids: Sequence[str],
) -> tuple[Any, Any, Any, list[str]]:
    """Return labels, groups, times and the columns of features, beside problems."""
    where, path = problems.where, Path(problems.where)
    column = partial(column_of, table, where=where)
    if label is None or label not in table.columns:
        likely = _likely_label(table, label)
        remedy = None if likely is None else ("label", likely)
        with problems.collected():
            if label is not None:
                column(label, remedy=remedy)
            text = f"name the label column, one of {listed(table.columns)}"
            raise TableError(where, text, remedy=remedy)
        label = likely
    y = numbered = order = None
    if label is not None:
        with problems.collected():
            y = signs(path, table[label].tolist(), positive)
    if groups is not None:
        with problems.collected():
            numbered = number_groups(path, column(groups).tolist())
    if time is not None:
        with problems.collected():
            order = order_in_time(column(time), where)
    for name in drop:
        with problems.collected():
            column(name)
    named = list[str]()
    with problems.collected():
        named = named_columns(ids, table.columns, f"{where}: id")
    for name in named:
        with problems.collected():
            _check_id(column(name), where)
    others = {label, groups, time, *drop, *named}
    features = [name for name in table.columns if name not in others]
    if not features:
        problems.add(InputError(f"{where}: no column is left as a feature"))
    return y, numbered, order, features


def _warn_of_negatives(where: str, labels: pd.Series, y: NDArray[np.float64]) -> None:
    """Say which labels count as negative, if there are several."""
    counts = labels[y < 0].value_counts()
    counts = counts.groupby(counts.index.map(canonical), sort=False).sum()
    if len(counts) < 2:
        return
    positive = canonical(labels[y > 0].iloc[0])
    said = f"{where}: these labels count as negative: "
    said += listed([f"{listed([label])} ({n:,})" for label, n in counts.items()])
    folded = str(positive).casefold()
    if alike := [label for label in counts.index if str(label).casefold() == folded]:
        said += f"; but for the case like {positive}: {listed(alike)}"
    warnings.warn(said, stacklevel=3)


def _several(given: Sequence[str]) -> list[str]:
    """Return names that may be joined by commas, beside the texts as they were given."""
    return [*given, *(part.strip() for text in given for part in text.split(","))]


def _categories(categorical: Categorical) -> list[str]:
    return _several([categorical] if isinstance(categorical, str) else categorical)


def _has_zeros(texts: pd.Series) -> bool:
    """Whether there are zeros before some number."""
    return bool(texts.dropna().astype(str).str.match(r"[+-]?0\d").any())


def _padded(path: Path, kind: Format, table: pd.DataFrame, names: list[str]) -> set[str]:
    """Return which of the columns have zeros before some of their numbers in the file."""
    import pandas as pd

    found = {name for name in names if table[name].dtype.kind in "OT" and _has_zeros(table[name])}
    whole = [
        name
        for name in names
        if table[name].dtype.kind in "iuf" and (table[name].dropna() % 1 == 0).all()
    ]
    if kind not in _SEPARATORS or not whole:
        return found
    options: dict[str, Any] = {"sep": _SEPARATORS[kind], "index_col": False, "usecols": whole}
    options |= {"dtype": "str", "na_filter": False, "chunksize": _MOST_ROWS}
    with opened(path) as text:
        for block in pd.read_csv(text, **options):
            found |= {name for name in whole if name not in found and _has_zeros(block[name])}
    return found


def _check_id(values: pd.Series, where: str) -> None:
    n_distinct = values.map(str).nunique()
    if n_distinct < len(values):
        raise InputError(
            f"{where}: column {values.name!r} has {n_distinct:,} different values in "
            f"{len(values):,} rows, so it is no id of a row: if rows with the same value belong "
            "together, name it in groups, or else in drop"
        )


def _likely_label(table: pd.DataFrame, given: str | None) -> str | None:
    """Return the column that was perhaps meant: one of two values, best with a name like it."""
    two = [str(name) for name in table.columns if table[name].map(str).nunique() == 2]
    if given is not None:
        return next(iter(get_close_matches(str(given).lower(), two, 1)), None)
    return next((name for name in two if _LABEL.search(name)), two[-1] if two else None)


def is_table(path: str | os.PathLike[str], format: Format | None = None) -> bool:  # noqa: A002
    """Return whether a file, as `read_own_file` knows its format, has named columns."""
    return _format(Path(path), format) in _TABLES


def read_new_rows(
    path: str | os.PathLike[str],
    encoding: Encoding,
    format: Format | None = None,  # noqa: A002
) -> Matrix:
    """Read all rows to be scored as `read_new_blocks` does, as one array or matrix."""
    blocks = [X for X, _ in read_new_blocks(path, encoding, format)]
    return blocks[0] if len(blocks) == 1 else np.concatenate(blocks)


def read_new_blocks(
    path: str | os.PathLike[str],
    encoding: Encoding,
    format: Format | None = None,  # noqa: A002
    row_id: str | None = None,
    gaps: Gaps | None = None,
) -> Iterator[tuple[Matrix, list[str] | None]]:
    """Read rows to be scored, encoded as the training rows were; those of a table block by block.

    Parameters
    ----------
    path : path
    encoding : Encoding
        Encoding of the training rows.
    format : str, optional
        By default known from the suffix.
    row_id : str, optional
        Column of a table with the names of the rows.
    gaps : Gaps, optional
        Counts what the rows of a table lack.

    Yields
    ------
    X : ndarray or csr_matrix of shape (n_block, n_features)
    names : list of str or None
        As they stand in the file: ``007`` stays ``007``, a missing value is ``""``; None without
        `row_id`.

    Raises
    ------
    InputError
        As `Encoding.encode`, or a file of another kind (table, svmlight or npz) than the
        encoding's. No label column is needed.

    Warns
    -----
    UserWarning
        Counts missing values that were filled in, and categories that the training rows did not
        have.
    """
    path = Path(path)
    kind = _format(path, format)
    if kind != encoding.format and not {kind, encoding.format} <= set(_TABLES):
        raise InputError(f"{path}: the model was fitted to {encoding.format} rows, found {kind}")
    if kind not in _TABLES:
        if row_id is not None:
            raise InputError(f"{path}: {kind} rows have no named columns, so no column {row_id!r}")
        X, _ = _matrix(path, kind, "float64", encoding.n_features)
        if X.shape[1] != encoding.n_features:
            raise InputError(f"{path}: expected {encoding.n_features} features, found {X.shape[1]}")
        yield X.toarray() if encoding.dense and not isinstance(X, np.ndarray) else X, None
        return
    fitting = _MOST_VALUES // max(1, encoding.n_features)
    rows_at_once = max(_FEWEST_ROWS, min(_MOST_ROWS, fitting))
    text = [column.name for column in encoding.columns if column.categories is not None]
    gaps = Gaps() if gaps is None else gaps
    for table, names in _tables(path, kind, text, rows_at_once, row_id):
        yield encoding.encode(table, str(path), gaps), names
    for sentence in gaps.sentences():
        warnings.warn(f"{path}: {sentence}", stacklevel=2)


def read_labels(
    path: str | os.PathLike[str],
    label: str | None = None,
    positive: str | float | None = None,
    format: Format | None = None,  # noqa: A002
) -> NDArray[np.float64]:
    """Read -1 and +1 for each row, with the parameters of `read_own_file`."""
    path = Path(path)
    kind = _format(path, format)
    if kind not in _TABLES:
        if label is not None:
            raise InputError(f"{path}: label has no meaning for {kind}, which has no columns")
        X, arrays = _matrix(path, kind, "float64")
        return signs(path, _vector(path, arrays, X.shape[0], "y").tolist(), positive)
    labels: list[object] = []
    for table, _ in _tables(path, kind, (), _MOST_ROWS):
        if label is None:
            raise InputError(f"{path}: name the label column, one of {listed(table.columns)}")
        labels += column_of(table, label, str(path)).tolist()
    return signs(path, labels, positive)


# --- files ---


def _format(path: Path, given: str | None) -> Format:
    kind = find_format(path, given)
    if kind in get_args(Format):
        return cast("Format", kind)
    if kind.lower() in _WORKBOOKS:
        raise InputError(f"{path}: unknown format {kind!r}: save the sheet as XLSX or CSV")
    suffixes = [suffix for suffix, name in SUFFIXES.items() if name in get_args(Format)]
    raise InputError(
        f"{path}: unknown format {kind!r}; name one of {listed(get_args(Format))}, or use one of "
        f"the suffixes {listed(suffixes)}"
    )


def _matrix(
    path: Path, kind: Format, dtype: Dtype, n_features: int | None = None
) -> tuple[Matrix, dict[str, NDArray]]:
    """Read X from a file without named columns, and the arrays beside it, for labels as y.

    svmlight rows of unknown width come out dense if most values are not zero.
    """
    if kind == "npz":
        return read_npz(path, dtype)
    X, y = read_svmlight(path, n_features, dtype, n_jobs=-1)
    if X.shape[1] == 0:
        raise InputError(f"{path}: no row has a feature")
    return X if n_features else dense_if_full(X), {"y": y}


def _tables(
    path: Path,
    kind: Format,
    kept: Collection[str] = (),
    rows_at_once: int | None = None,
    row_id: str | None = None,
) -> Iterator[tuple[pd.DataFrame, list[str] | None]]:
    """Read a table, by default at once, and beside it a column as text.

    Columns named in `kept` stay text though all their values may be numbers.
    """
    import pandas as pd

    if kind == "parquet":
        blocks = _parquet(path, rows_at_once, row_id)
    elif kind == "xlsx":
        blocks = _xlsx(path, row_id)
    else:
        blocks = _csv(path, _SEPARATORS[kind], kept, rows_at_once, row_id)
    is_empty = True
    while True:
        with _readable(path), warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            block = next(blocks, None)
        if block is None:
            break
        table, texts = block
        if not table.empty:
            is_empty = False
            yield (_without_nameless(table) if rows_at_once is None else table), texts
    if is_empty:
        raise InputError(f"{path}: the file has no rows")


def _without_nameless(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table without columns that have neither a name nor a value, as Excel leaves them."""
    nameless = [name for name in table if str(name).startswith(_NAMELESS)]
    return table.drop(columns=[name for name in nameless if table[name].isna().all()])


def _csv(
    path: Path,
    separator: str,
    kept: Collection[str],
    rows_at_once: int | None,
    row_id: str | None,
) -> Iterator[tuple[pd.DataFrame, list[str] | None]]:
    import pandas as pd

    with opened(path) as text:
        lines = csv.reader(io.TextIOWrapper(text, "utf-8-sig", newline=""), delimiter=separator)
        rows = filter(None, lines)
        header = next(rows, [])
        _check_separator(path, separator, header, rows)
        _check_header(path, header)
    options: dict[str, Any] = {
        "sep": separator,
        "index_col": False,
        "low_memory": False,
        "iterator": True,
        "chunksize": rows_at_once,
    }
    if tuple(map(int, pd.__version__.split(".")[:2])) < (3, 1):  # later ones are always exact
        options["float_precision"] = "round_trip"
    with opened(path) as text, opened(path) as again:
        names = None
        for table in pd.read_csv(text, dtype=dict.fromkeys(kept, "str"), **options):
            if row_id is None:
                yield table, None
                continue
            column_of(table, row_id, str(path))
            names = names or pd.read_csv(
                again, usecols=[row_id], dtype="str", na_filter=False, **options
            )
            yield table, next(names)[row_id].tolist()


def _parquet(
    path: Path, rows_at_once: int | None, row_id: str | None
) -> Iterator[tuple[pd.DataFrame, list[str] | None]]:
    import pandas as pd

    if rows_at_once is None:
        yield _with_index(pd.read_parquet(path)), None
        return
    from pyarrow.parquet import ParquetFile

    with ParquetFile(path) as file:
        groups = range(file.num_row_groups)  # one by one: the buffers of a reading stay to its end
        for batch in chain.from_iterable(file.iter_batches(rows_at_once, [i]) for i in groups):
            table, names = _with_index(batch.to_pandas()), None
            if row_id is not None:
                column_of(table, row_id, str(path))
                values = batch.column(row_id).to_pylist()
                names = ["" if value is None or value != value else str(value) for value in values]
            yield table, names


def _with_index(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table with the columns that pandas made its index, as they stand in the file."""
    named = [name for name in table.index.names if name is not None]
    return table.reset_index(level=named) if named else table


def _xlsx(path: Path, row_id: str | None) -> Iterator[tuple[pd.DataFrame, list[str] | None]]:
    """Read the only sheet of a workbook, whole: it has a million rows at most."""
    import pandas as pd
    from openpyxl import load_workbook

    with ExitStack() as stack:
        book = stack.enter_context(closing(load_workbook(path, read_only=True, data_only=True)))
        if len(book.sheetnames) > 1:
            raise InputError(
                f"{path}: {len(book.sheetnames)} sheets, {listed(book.sheetnames)}; save the one "
                "to read as a file of its own"
            )
        sheet: Any = book.worksheets[0]
        sheet.reset_dimensions()  # which a file may claim
        cells = stack.enter_context(closing(sheet.iter_rows(values_only=True)))
        lines = (line for line in cells if set(line) - {None})
        first = next(lines, ())
        header = [f"{_NAMELESS}{i}" if name is None else str(name) for i, name in enumerate(first)]
        _check_header(path, header)
        width, rows = len(header), []
        for line in lines:
            if set(line[width:]) - {None}:
                raise InputError(f"{path}: a row has more values than there are column names")
            rows.append([*line[:width], *[None] * (width - len(line))])
    table, names = pd.DataFrame(rows, columns=header), None
    if row_id is not None:
        column_of(table, row_id, str(path))
        named = (row[header.index(row_id)] for row in rows)
        names = ["" if name is None else str(name) for name in named]
    yield table, names


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Report the errors of pandas on a damaged file in one line."""
    import pandas as pd

    try:
        yield
    except pd.errors.EmptyDataError as error:
        raise InputError(f"{path}: the file is empty") from error
    except pd.errors.ParserWarning as error:
        raise InputError(
            f"{path}: the rows have more values than there are column names"
        ) from error
    except InputError:
        raise
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path}:{_first_line_of_another_encoding(path)}: not UTF-8 text; save the table as "
            "UTF-8"
        ) from error
    except ImportError as error:
        needs = "Parquet files need pyarrow; install precbench[parquet]"
        if path.suffix.lower() != ".parquet":
            needs = "workbooks need openpyxl; install precbench[excel]"
        raise InputError(f"{path}: {needs}") from error
    except Exception as error:  # a damaged file has many ways to fail
        reason = " ".join(str(error).split()) or type(error).__name__
        raise InputError(f"{path}: the file cannot be read: {reason}") from error


def _first_line_of_another_encoding(path: Path) -> int:
    with opened(path) as text:
        for number, line in enumerate(text, 1):
            try:
                line.decode()
            except UnicodeDecodeError:
                return number
    return 1


def _check_separator(
    path: Path, separator: str, header: list[str], rows: Iterator[list[str]]
) -> None:
    """Refuse a table of one column, of which another separator would make several."""
    for other, (name, advice) in _SEPARATED.items():
        if len(header) == 1 and other in header[0]:
            values = separator.join(next(rows, []))
            if values.count(other) == header[0].count(other):
                raise InputError(f"{path}: the columns seem to be separated by {name}; {advice}")


def _check_header(path: Path, names: list[str]) -> None:
    """Refuse a header that pandas would silently repair, or that takes too much memory."""
    import pandas as pd

    if len(names) > MOST_COLUMNS:
        raise InputError(
            f"{path}: {len(names):,} columns, and a table may have {MOST_COLUMNS:,}; save the rows "
            "as svmlight or npz"
        )
    if names and not pd.to_numeric(pd.Series(names), errors="coerce").isna().any():
        raise InputError(
            f"{path}: the first line must hold the column names, found {listed(names)}"
        )
    twice = pd.Series(names).duplicated() & (pd.Series(names) != "")
    if twice.any():
        raise InputError(f"{path}: two columns are named {names[int(twice.argmax())]!r}")


def read_npz(path: Path, dtype: Dtype = "float64") -> tuple[Matrix, dict[str, NDArray]]:
    """Read an npz file; return X and all arrays."""
    from scipy.sparse import csc_matrix, csr_matrix

    parts = ("data", "indices", "indptr", "shape")
    try:
        arrays = unpack(path, kinds="fiubUS", packed=True)
        texts = [
            name for name in ("X", *parts) if name in arrays and arrays[name].dtype.kind in "US"
        ]
        if texts:
            raise DamagedError(f"{texts[0]} holds text")
        if "X" in arrays:
            X: Matrix = np.ascontiguousarray(stored(arrays["X"], dtype, str(path)))
        elif set(parts) <= set(arrays):
            data, indices, indptr, shape = (arrays[part] for part in parts)
            if max(shape, default=0) > LARGEST_INDEX:
                raise InputError(f"{path}: X has more than {LARGEST_INDEX:,} rows or columns")
            data = stored(data, dtype, str(path))
            kind = str(arrays["format"].astype(str)) if "format" in arrays else "csr"
            if kind not in ("csr", "csc"):
                raise InputError(f"{path}: the matrix is stored as {kind}: save it as CSR (tocsr)")
            made = csr_matrix if kind == "csr" else csc_matrix
            matrix = made((data, indices, indptr), shape=tuple(shape))
            matrix.check_format(full_check=True)
            X = matrix.tocsr()
            X.sum_duplicates()
        else:
            raise InputError(
                f"{path}: expected X, or data, indices, indptr and shape, found {listed(arrays)}"
            )
    except InputError:
        raise
    except (ValueError, TypeError, AttributeError, OverflowError) as error:
        raise InputError(f"{path}: not an npz file of plain arrays: {error}") from error
    if X.ndim != 2 or 0 in X.shape:
        raise InputError(f"{path}: X must have rows and columns, found the shape {X.shape}")
    if not isinstance(X, np.ndarray) and X.indptr.dtype != np.int32:
        if X.nnz > MOST_ENTRIES:
            raise InputError(f"{path}: X has more than 2**31 - 1 entries")
        X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    wrong = np.argwhere(~np.isfinite(X if isinstance(X, np.ndarray) else X.data))
    if len(wrong):
        row, column = wrong[0] if isinstance(X, np.ndarray) else _entry(X, int(wrong[0][0]))
        raise InputError(f"{path}: row {row + 1}, column {column + 1}: not a finite number")
    return X, arrays


def _entry(X: csr_matrix, entry: int) -> tuple[int, int]:
    return int(np.searchsorted(X.indptr, entry, side="right")) - 1, int(X.indices[entry])


def _vector(path: Path, arrays: dict[str, NDArray], length: int, name: str) -> pd.Series:
    import pandas as pd

    if name not in arrays:
        raise InputError(f"{path}: no array {name!r}; the file holds {listed(arrays)}")
    if arrays[name].shape != (length,):
        raise InputError(
            f"{path}: {name} must have the shape ({length},), found {arrays[name].shape}"
        )
    return pd.Series(arrays[name].tolist(), name=name)

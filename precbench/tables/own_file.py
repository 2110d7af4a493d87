"""Readers of the user's files: svmlight, CSV, TSV, Parquet, XLSX or npz."""

import hashlib
import json
import os
import re
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from precbench.core.errors import InputError
from precbench.core.kinds import Dtype, Format
from precbench.core.npz import unpack
from precbench.core.text import count
from precbench.data.dataset import Dataset, Imputed, Matrix, split_key_of, to_dtype
from precbench.data.svmlight import (
    LARGEST_INDEX,
    MOST_ENTRIES,
    dense_if_full,
    read_svmlight,
)
from precbench.tables.detectors import LARGEST_QUANTITY, content_of
from precbench.tables.encoding import Encoding, Gaps
from precbench.tables.layout import Layout, as_text, columns_to_keep
from precbench.tables.own_table import (
    TABLES,
    OwnTable,
    Source,
    format_of,
    open_table,
    read_blocks,
    several,
    table_of,
)
from precbench.tables.problems import (
    Problems,
    Remedy,
    TableError,
    column_of,
    listed,
    named_columns,
)
from precbench.tables.protected import advice_on, protected_columns
from precbench.tables.reading import Categorical, Label, Missing
from precbench.tables.roles import (
    dotted_error,
    number_groups,
    order_in_time,
    require_unique,
    signs,
    warn_of_missing_id,
)
from precbench.tables.suspects import look_for_suspects

FRAME = "the frame"  # as messages name rows that are in no file
_FEWEST_ROWS = 256  # of a block
_MOST_ROWS = 1 << 16  # of a block
_MOST_VALUES = 1 << 22  # of a block, which takes 32 MiB
_SPARSE_PARTS = ("data", "indices", "indptr", "shape")
_MANY_COPIES = 0.1  # share of the rows
VERSION = 8  # part of the identity of data; increase when a file gives other arrays
_LABEL = re.compile("label|target|class|outcome|churn|fraud|^y$", re.IGNORECASE)


def read_own_file(
    path: Source,
    *,
    format: Format | None = None,  # noqa: A002
    label: str | None = None,
    positive: Label | Sequence[Label] | None = None,
    groups: str | None = None,
    time: str | None = None,
    drop: Sequence[str] = (),
    id: Sequence[str] = (),  # noqa: A002
    categorical: Categorical = "error",
    numeric: Sequence[str] = (),
    missing: Missing = "error",
    allow: Sequence[str] | None = None,
    dtype: Dtype = "float64",
    **layout: Any,
) -> tuple[Dataset, Encoding]:
    """Read a labelled file of the user.

    Parameters
    ----------
    path : path, DataFrame or OwnTable
        An OwnTable comes from `precbench.tables.own_table.open_table` with the same
        options.
    format : {"svmlight", "csv", "tsv", "parquet", "xlsx", "npz"}, optional
        By default known from the suffix. An npz file holds ``X`` (or the parts
        ``data``, ``indices``, ``indptr``, ``shape`` of a CSR matrix) and ``y``.
    label : str
        Column of the labels, for a table.
    positive : str or number, or a list of these, optional
        The labels of the positive class; not needed for 0 and 1, or -1 and 1.
    groups : str, optional
        Column (or array of an npz file) whose equal values keep rows together in a
        split; not a feature.
    time : str, optional
        Column (or array of an npz file) of the order of the rows, for splits by time:
        numbers, or dates, in UTC without a zone; not a feature.
    drop : sequence of str
        Columns to leave out of the features; ``["zip,doors"]`` are two.
    id : sequence of str
        Columns with a different value in each row, to leave out of the features.
    categorical : {"error", "one-hot"} or sequence of str
        Treatment of text, or the columns whose text or numbers are categories
        (``["zip", "doors"]`` or ``["zip,doors"]``); ``"one-hot"`` in a list stands for
        all columns of text. In named columns, NA and None are words. Dates are
        converted to days since the first date, amounts such as $ 7,200.00 or 9.75 % to
        numbers.
    numeric : sequence of str
        Columns in which only numbers are allowed.
    missing : {"error", "mean", "median", "most-frequent"}
        Treatment of missing values in a table; in text the most frequent value replaces
        them. A further feature, ``column is missing``, marks the rows.
    allow : sequence of str, optional
        If given, columns that look like a leak (an AUC above 0.99 alone), an identifier
        (another value in each row), a code (whole numbers of one length, with leading
        zeros or like 5E3) or a count of rows (a column without a name, as of the index
        of a frame) are refused, except these; and so are rows of which no feature
        varies.
    dtype : {"float64", "float32"}
        Type of the values of X. A table is encoded in float64 first.
    **layout
        See `precbench.tables.layout.Layout`.

    Returns
    -------
    dataset : Dataset
        Its random splits follow the labels, not the name of the file: the same rows in
        another file or format are split alike.
    encoding : Encoding
        For `read_new_blocks`.

    Raises
    ------
    InputError
        An unknown format, a malformed or empty file; for a table a `TableError` with
        all problems, with column and row.
    """
    own = open_table(
        path,
        {
            "format": format,
            "label": label,
            "groups": groups,
            "id": id,
            "categorical": categorical,
            **asdict(Layout(**layout)),
        },
    )
    where = own.where
    if missing not in get_args(Missing):
        raise InputError(
            f"missing must be one of {listed(get_args(Missing))}, found {missing!r}"
        )
    options = _Options(
        label=label,
        positive=positive,
        groups=groups,
        time=time,
        drop=drop,
        id=id,
        categorical=categorical,
        numeric=numeric,
        missing=missing,
        allow=allow,
    )
    if own.frame is not None:
        rows = _rows_of_table(own, options)
    else:
        rows = _rows_of_arrays(own, options, dtype)
    if allow is not None and not _varies(rows.X):
        raise InputError(
            f"{where}: no column varies: each feature has one value in all rows, so no"
            " method can rank them; add columns in which rows differ"
        )
    # How the file is read is part of the identity of the data set.
    reading = {
        "label": label,
        "positive": positive,
        "groups": groups,
        "time": time,
        **layout,
        "drop": [*drop],
        "id": [*id],
        "numeric": [*numeric],
        "missing": missing,
        "categorical": categorical if isinstance(categorical, str) else [*categorical],
    }
    name = own.path.name.split(".")[0]
    dataset = Dataset(
        name=name,
        title=name,
        X=to_dtype(rows.X, dtype, where),
        y=rows.roles.y,
        sha256=_identity(own, reading) if own.is_file else "",
        groups=rows.roles.groups,
        feature_names=rows.encoding.feature_names,
        split_key=split_key_of(rows.roles.y),
        time=rows.roles.time,
        imputed=rows.imputed,
    )
    return dataset, rows.encoding


@dataclass(frozen=True, kw_only=True)
class _Options:
    """The options of `read_own_file` that say what columns are used for."""

    label: str | None
    positive: Label | Sequence[Label] | None
    groups: str | None
    time: str | None
    drop: Sequence[str]
    id: Sequence[str]
    categorical: Categorical
    numeric: Sequence[str]
    missing: Missing
    allow: Sequence[str] | None


class _Roles(NamedTuple):
    """The columns that are no features; None where a table has none."""

    y: Any
    groups: NDArray[np.int64] | None = None
    time: NDArray[np.int64] | NDArray[np.float64] | None = None


class _Rows(NamedTuple):
    """The labelled rows of a file, and how they became features."""

    X: Matrix
    roles: _Roles
    encoding: Encoding
    imputed: Imputed | None = None


def _rows_of_table(own: OwnTable, options: _Options) -> _Rows:
    """Return the rows of a table, of which all problems are raised together."""
    where = own.where
    problems = Problems(where)
    roles, features = _assign_roles(problems, own, options)
    with problems.collected():
        encoding = Encoding.learn(
            own, features, options.categorical, options.missing, options.numeric
        )
    if options.allow is not None:
        columns = [str(name) for name in own.frame.columns]
        with problems.collected():
            allowed = named_columns(options.allow, columns, f"{where}: allow")
            not_allowed = [name for name in features if name not in allowed]
            look_for_suspects(
                own,
                not_allowed,
                roles.y,
                problems,
                categorical=several(options.categorical),
                numeric=several(options.numeric),
            )
            if protected := protected_columns(not_allowed):
                warnings.warn(f"{where}: {advice_on(protected)}", stacklevel=3)
    problems.raise_if_any()
    for name in named_columns(options.id, own.frame.columns, f"{where}: id"):
        warn_of_missing_id(own.column(name), where)
    if options.groups is None:
        _warn_of_copies(own, features)
    X = encoding.encode(own.frame, where)
    return _Rows(X, roles, encoding, encoding.imputed(own.frame, options.missing))


def _rows_of_arrays(own: OwnTable, options: _Options, dtype: Dtype) -> _Rows:
    """Return the rows of an svmlight or npz file."""
    _refuse_named_columns(own, options)
    X, arrays = _matrix(own.path, own.format, dtype)
    column = partial(_vector, own.path, arrays, X.shape[0])  # by the name of an array
    roles = _Roles(signs(column("y"), own.where, options.positive))
    if options.groups is not None:
        roles = roles._replace(groups=number_groups(column(options.groups), own.where))
    if options.time is not None:
        roles = roles._replace(time=order_in_time(column(options.time), own.where))
    encoding = Encoding(own.format, X.shape[1], dense=isinstance(X, np.ndarray))
    return _Rows(X, roles, encoding)


def _refuse_named_columns(own: OwnTable, options: _Options) -> None:
    """Refuse options that name columns, of a file that has none."""
    is_given = {
        "label": options.label is not None,
        "drop": bool(options.drop),
        "id": bool(options.id),
        "categorical": options.categorical != "error",
        "numeric": bool(options.numeric),
        "missing": options.missing != "error",
    }
    if own.format == "svmlight":  # in npz these are names of arrays
        is_given["groups"] = options.groups is not None
        is_given["time"] = options.time is not None
    wrong = [option for option, given in is_given.items() if given]
    if not wrong:
        return
    advice = f"leave out {listed(wrong)}"
    if own.format == "svmlight":
        advice += ", or, if the file is a table, add --format tsv"
    raise InputError(f"{own.where}: {own.format} files have no named columns; {advice}")


def _varies(X: Matrix) -> bool:
    """Return whether any feature has different values."""
    if isinstance(X, np.ndarray):
        return bool((X[0] != X).any())
    return (X.max(axis=0) != X.min(axis=0)).nnz > 0


def _warn_of_copies(own: OwnTable, names: Sequence[str]) -> None:
    """Warn of many copies of rows, unless rows may be equal by chance."""
    # Copies are equal in these columns as well: often that spares a look at all.
    first_columns = own.frame.iloc[:, :4]
    if first_columns.duplicated().mean() < _MANY_COPIES:
        return
    is_copy = own.frame.duplicated()
    if is_copy.mean() < _MANY_COPIES:
        return
    distinct = own.frame[is_copy].drop_duplicates()
    sample = distinct.sample(frac=1, random_state=0).head(200)
    # Where some column differs in nearly all copied rows, they are not equal by chance.
    n_values = sample[[*names]].nunique()
    if (n_values > max(20, 0.9 * len(sample))).any():
        warnings.warn(
            f"{own.where}: {is_copy.sum():,} of {len(is_copy):,} rows are copies of"
            " others, so results on held-out rows are too good; remove them, or keep"
            " them together with groups",
            stacklevel=4,
        )


def _identity(own: OwnTable, reading: dict[str, Any]) -> str:
    """Return the hash of a file and of the options of reading."""
    digest = hashlib.sha256(json.dumps([VERSION, own.format, reading]).encode())
    with own.path.open("rb") as file:
        hashlib.file_digest(file, lambda: digest)  # adds the content to `digest`
    return digest.hexdigest()


def _assign_roles(
    problems: Problems, table: OwnTable, options: _Options
) -> tuple[_Roles, list[str]]:
    """Return labels, groups and times, and the names of the features.

    Errors are added to `problems`; a role with a problem is None.
    """
    where = table.where
    frame = table.frame
    label = options.label
    if label is None or label not in frame.columns:
        likely = _likely_label(frame, label)
        remedy = None if likely is None else Remedy("label", likely)
        with problems.collected():
            if label is not None:
                column_of(frame, label, where, remedy)  # raises, with the nearest name
            raise TableError(
                where,
                f"name the label column, one of {listed(frame.columns)}",
                remedy=remedy,
            )
        label = likely  # go on with a guess, to find further problems
    roles = _Roles(None)
    with problems.collected():
        if label is not None:
            roles = roles._replace(y=signs(frame[label], where, options.positive))
    with problems.collected():
        if options.groups is not None:
            groups = number_groups(table.column(options.groups), where)
            roles = roles._replace(groups=groups)
    with problems.collected():
        if options.time is not None:
            _refuse_dotted_time(table, options.time)
            times = table.column(options.time)
            moments = order_in_time(times, where, table.layout.date_format)
            roles = roles._replace(time=moments)
    others = {label, options.groups, options.time}
    with problems.collected():
        others.update(named_columns(options.drop, frame.columns, f"{where}: drop"))
    with problems.collected():
        for name in named_columns(options.id, frame.columns, f"{where}: id"):
            others.add(name)
            with problems.collected():
                require_unique(table.column(name), where)
    features = [name for name in frame.columns if name not in others]
    if not features:
        problems.add(
            InputError(f"{where}: no column is left as a feature; drop fewer columns")
        )
    return roles, features


def _refuse_dotted_time(table: OwnTable, time: str) -> None:
    """Refuse times such as 01.2023 whose order as numbers is not that of the dates."""
    values = table.column(time)
    content = content_of(
        values, table.where, date_format=table.layout.date_format, is_time=True
    )
    if content.holds != "numbers":
        return
    date = table.dotted_date(time, is_time=True)
    if date is not None:
        raise dotted_error(values, date, table.written(time), table.where, is_time=True)


def _likely_label(frame: pd.DataFrame, label: str | None) -> str | None:
    """Return the column of two values that is most likely the label, or None.

    It is named like `label`; without `label` it has a usual name, or is the last one.
    """
    binary = [
        str(name) for name in frame.columns if frame[name].map(str).nunique() == 2
    ]
    if label is not None:
        by_lower_case = {name.lower(): name for name in binary}
        near = get_close_matches(str(label).lower(), by_lower_case, 1)
        return by_lower_case[near[0]] if near else None
    for name in binary:
        if _LABEL.search(name):
            return name
    return binary[-1] if binary else None


def read_amounts(table: OwnTable, column: str, option: str) -> NDArray[np.float64]:
    """Return the numbers of the column that an option names.

    Refuse gaps and numbers below 0.
    """
    if table.frame is None:
        raise InputError(
            f"{table.path}: the file has no named columns; leave out {option}"
        )
    # raises if there is no such column
    is_missing = table.column(column).isna().to_numpy()
    encoding = Encoding.learn(table, [column], missing="median", numeric=[column])
    numbers = encoding.encode(table.frame, table.where)[:, 0]
    is_wrong = is_missing | (numbers < 0)
    if is_wrong.any():
        first = int(np.argmax(is_wrong))
        value = "no value" if is_missing[first] else f"{numbers[first]:g}"
        raise TableError(
            table.where,
            f"column {column!r}, row {table.frame.index[first] + 1}: {option} takes"
            f" numbers of at least 0, found {value}; correct it",
        )
    return numbers


def read_new_blocks(
    path: str | os.PathLike[str] | pd.DataFrame,
    encoding: Encoding,
    /,  # `layout` may have an `encoding` of its own, that of the text
    format: Format | None = None,  # noqa: A002
    keep: Sequence[str] = (),
    gaps: Gaps | None = None,
    **layout: Any,
) -> Iterator[tuple[Matrix, pd.DataFrame]]:
    """Yield rows to be scored, encoded as the training rows were.

    A table comes block by block. Beside the features come the columns of `keep` ("all"
    for all) as they stand in the file: ``007`` stays ``007``, a missing value is
    ``""``. No label column is needed. Filled and unseen values are counted in `gaps`,
    and warned of at the end. A frame is one block.
    """
    gaps = Gaps() if gaps is None else gaps
    file_layout = Layout(**layout)
    if isinstance(path, pd.DataFrame):
        yield _encoded_frame(path, encoding, keep, gaps)
        _warn_of_gaps(FRAME, gaps)
        return
    path = Path(path)
    kind = format_of(path, format, file_layout.sheet)
    are_tables = kind in TABLES and encoding.format in TABLES
    if kind != encoding.format and not are_tables:
        raise InputError(
            f"{path}: the model takes {encoding.format}, not {kind}; convert the file"
        )
    if kind not in TABLES:
        if keep:
            raise InputError(
                f"{path}: {kind} files have no named columns; do not keep {keep[0]!r}"
            )
        yield _new_matrix(path, kind, encoding), pd.DataFrame()
        return
    encoding = encoding.with_notation(file_layout.decimal, file_layout.date_format)
    # Read as text: categories such as 007, what has a notation, and 1.234, which may be
    # 1234.
    texts = []
    for column in encoding.columns:
        if column.categories or column.notation or column.has_thousands:
            texts.append(column.name)
    rows_of_most_values = _MOST_VALUES // max(1, encoding.n_features)
    blocks = read_blocks(
        path,
        kind,
        file_layout,
        texts=texts,
        words=[column.name for column in encoding.columns if column.words],
        rows_at_once=max(_FEWEST_ROWS, min(_MOST_ROWS, rows_of_most_values)),
        keep=keep,
    )
    for table, raw in blocks:
        gaps.places.append(table.index)
        yield encoding.encode(table, str(path), gaps), raw
    _warn_of_gaps(str(path), gaps)


def _encoded_frame(
    frame: pd.DataFrame, encoding: Encoding, keep: Sequence[str], gaps: Gaps
) -> tuple[Matrix, pd.DataFrame]:
    """Return the features of a frame, and its columns to keep as text."""
    if not encoding.columns:
        raise InputError(
            f"the model takes {encoding.format}, which has no named columns; give a"
            " file, or the rows as a matrix to Model.rank"
        )
    table = table_of(frame, FRAME).frame
    names = columns_to_keep(keep, [*table.columns], Path(FRAME))
    texts = as_text({name: table[name].tolist() for name in names})
    return encoding.encode(table, FRAME, gaps), texts


def _new_matrix(path: Path, kind: Format, encoding: Encoding) -> Matrix:
    """Return new rows of an svmlight or npz file, with the features of training."""
    X, _ = _matrix(path, kind, "float64", encoding.n_features)
    if X.shape[1] != encoding.n_features:
        raise InputError(
            f"{path}: found {X.shape[1]} features; give {encoding.n_features}, as"
            " in training"
        )
    if encoding.dense and not isinstance(X, np.ndarray):
        return X.toarray()
    return X


def _warn_of_gaps(where: str, gaps: Gaps) -> None:
    for sentence in gaps.sentences():
        warnings.warn(f"{where}: check the new rows: {sentence}", stacklevel=3)


def read_labels(
    path: str | os.PathLike[str] | pd.DataFrame,
    label: str | None = None,
    positive: Label | Sequence[Label] | None = None,
    format: Format | None = None,  # noqa: A002
    **layout: Any,
) -> NDArray[np.float64]:
    """Read -1 or +1 for each row as `read_own_file` does.

    All rows may be of one class.
    """
    own = open_table(
        path, {"format": format, "label": label} | asdict(Layout(**layout))
    )
    if own.frame is not None:
        if label is None:
            raise InputError(
                f"{own.path}: name the label column among {listed(own.frame.columns)}"
            )
        return signs(own.column(label), own.where, positive, one_class=True)
    if label is not None:
        raise InputError(
            f"{path}: {own.format} files have no named columns; leave out label"
        )
    X, arrays = _matrix(own.path, own.format, "float64")
    labels = _vector(own.path, arrays, X.shape[0], "y")
    return signs(labels, own.where, positive, one_class=True)


# --- files without named columns ---


def _matrix(
    path: Path, kind: Format, dtype: Dtype, n_features: int | None = None
) -> tuple[Matrix, dict[str, NDArray]]:
    """Return X of an svmlight or npz file, and the other arrays, labels as ``y``.

    With `n_features`, the number in training, X of svmlight stays sparse and gets as
    many features.
    """
    if kind == "npz":
        return read_npz(path, dtype)
    X, y = read_svmlight(path, dtype=dtype)
    _require_quantities(path, X)
    if n_features is not None:
        return _without_unseen(X, n_features, path), {"y": y}
    if X.shape[1] == 0:
        raise InputError(
            f"{path}: no row has a feature; give at least one as index:value"
        )
    return dense_if_full(X), {"y": y}


def _without_unseen(X: Any, n_features: int, path: Path) -> Matrix:
    """Return new rows of svmlight, cut in place to the features of training.

    Warn of other features, such as unseen words.
    """
    unseen = np.unique(X.indices[X.indices >= n_features]) + 1  # as in the file, from 1
    if len(unseen):
        n_unseen_of_row = np.diff(X[:, n_features:].indptr)
        n_rows = int(np.count_nonzero(n_unseen_of_row))
        features = count(len(unseen), "feature")
        warnings.warn(
            f"{path}: {features} above {n_features:,}, the last one in training, will"
            f" be ignored ({listed(unseen, 3)}), in {count(n_rows, 'row')}",
            stacklevel=5,
        )
    X.resize(X.shape[0], n_features)
    return X


def read_npz(path: Path, dtype: Dtype = "float64") -> tuple[Matrix, dict[str, NDArray]]:
    """Return X, dense or joined from its sparse parts, and all arrays of an npz file.

    Refuse an X that is no matrix of finite numbers.
    """
    try:
        # numbers and text, also compressed
        arrays = unpack(path, kinds="fiubUS", packed=True)
        X = _matrix_of_arrays(path, arrays, dtype)
    except InputError:
        raise
    except (ValueError, TypeError, AttributeError, OverflowError) as error:
        raise InputError(
            f"{path}: not an npz file of plain arrays: {error}; save arrays of numbers"
            " or text with numpy.savez"
        ) from error
    if X.ndim != 2 or 0 in X.shape:
        raise InputError(
            f"{path}: X has the shape {X.shape}; save a matrix of at least 1 x 1"
        )
    # a `Dataset` has int32
    if not isinstance(X, np.ndarray) and X.indptr.dtype != np.int32:
        if X.nnz > MOST_ENTRIES:
            raise InputError(
                f"{path}: X has more than 2**31 - 1 entries; save fewer rows"
            )
        X.indices = X.indices.astype(np.int32)
        X.indptr = X.indptr.astype(np.int32)
    _require_quantities(path, X)
    return X, arrays


def _matrix_of_arrays(path: Path, arrays: dict[str, NDArray], dtype: Dtype) -> Matrix:
    """Return X, dense if an array has this name, or sparse from its four parts."""
    for name in ("X", *_SPARSE_PARTS):
        # NumPy would read 1_1 as 11.
        if name in arrays and arrays[name].dtype.kind in "US":
            raise InputError(f"{path}: the array {name} holds text; save numbers")
    if "X" in arrays:
        return np.ascontiguousarray(to_dtype(arrays["X"], dtype, str(path)))
    if set(_SPARSE_PARTS) <= set(arrays):
        return _sparse_matrix(path, arrays, dtype)
    raise InputError(
        f"{path}: found the arrays {listed(arrays)}; give X, or the four parts of a"
        " sparse matrix: data, indices, indptr and shape"
    )


def _require_quantities(path: Path, X: Matrix) -> None:
    """Refuse a matrix with a value that is not finite, or stands for a missing one."""
    from scipy.sparse import coo_matrix

    values = X if isinstance(X, np.ndarray) else X.data
    if values.size == 0:
        return
    largest = max(values.max(), -values.min())  # NaN if there is any
    if largest < LARGEST_QUANTITY:
        return
    entries = coo_matrix(X)
    is_right = np.abs(entries.data) < LARGEST_QUANTITY  # false for NaN
    first_wrong = np.argmin(is_right)
    row = entries.row[first_wrong] + 1
    column = entries.col[first_wrong] + 1
    value = entries.data[first_wrong]
    if not np.isfinite(value):
        fault = "not a finite number; correct it"
    else:
        fault = f"{value:.3g} is too large for a quantity; correct it, or leave it out"
    raise InputError(f"{path}: row {row}, column {column}: {fault}")


def _sparse_matrix(path: Path, arrays: dict[str, NDArray], dtype: Dtype) -> Matrix:
    """Return a CSR matrix from what `scipy.sparse.save_npz` writes for CSR or CSC."""
    from scipy.sparse import csc_matrix, csr_matrix

    data, indices, indptr, shape = (arrays[part] for part in _SPARSE_PARTS)
    if max(shape, default=0) > LARGEST_INDEX:
        raise InputError(
            f"{path}: X has more than {LARGEST_INDEX:,} rows or columns; save fewer"
        )
    is_csc = "format" in arrays and str(arrays["format"].astype(str)) == "csc"
    values = to_dtype(data, dtype, str(path))
    make = csc_matrix if is_csc else csr_matrix
    matrix = make((values, indices, indptr), shape=tuple(shape))
    matrix.check_format(full_check=True)  # raises for indices out of range
    X = matrix.tocsr()
    X.sum_duplicates()
    return X


def _vector(
    path: Path, arrays: dict[str, NDArray], length: int, name: str
) -> pd.Series:
    """Return an array with a value for each row as a column of a table.

    Refuse other shapes.
    """
    if name not in arrays:
        raise InputError(
            f"{path}: no array {name!r}, only {listed(arrays)}; save one of that name"
        )
    if arrays[name].shape != (length,):
        raise InputError(
            f"{path}: {name} must have a value for each row and so the shape"
            f" ({length},), found {arrays[name].shape}"
        )
    # From a list, so that pandas chooses a type of column that a table may have.
    return pd.Series(arrays[name].tolist(), name=name)

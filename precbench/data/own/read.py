"""One's own data: svmlight, CSV, TSV, Parquet or npz, and how to encode new rows the same way."""

from __future__ import annotations

import hashlib
import json
import lzma
import os
import warnings
import zipfile
import zlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self, cast, get_args

import numpy as np
from numpy.typing import NDArray

from precbench.data.cards.parsers import DENSE_ABOVE
from precbench.data.dataset import Dataset
from precbench.data.svmlight import MOST_ENTRIES, read_svmlight
from precbench.errors import InputError, did_you_mean

if TYPE_CHECKING:
    import pandas as pd
    from scipy.sparse import csr_matrix

    from precbench.data.dataset import Matrix

VERSION = 1  # raise it when the same file gives other arrays: it is part of their identity
MOST_CATEGORIES = 1000

Format = Literal["svmlight", "csv", "tsv", "parquet", "npz"]
Categorical = Literal["error", "one-hot"]
Missing = Literal["error", "mean", "median", "most-frequent"]

_FORMATS: dict[str, Format] = {
    ".svm": "svmlight",
    ".libsvm": "svmlight",
    ".svmlight": "svmlight",
    ".txt": "svmlight",
    ".csv": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
    ".npz": "npz",
}
_PACKED = (".gz", ".bz2", ".xz")
_SEPARATORS = {"csv": ",", "tsv": "\t"}
_TABLES = (*_SEPARATORS, "parquet")


@dataclass(frozen=True)
class Column:
    """One column of a table and what becomes of it.

    Attributes
    ----------
    name : str
    categories : tuple of str or None
        None for numbers; else the values that get a column of their own. Any other value of a
        new row gets zeros.
    fill : float or str or None
        What replaces a missing value; None refuses it.
    """

    name: str
    categories: tuple[str, ...] | None = None
    fill: float | str | None = None


@dataclass(frozen=True)
class Encoding:
    """How rows of a file become rows of X; the same for training rows and new ones.

    Attributes
    ----------
    format : {"svmlight", "csv", "tsv", "parquet", "npz"}
    n_features : int
    dense : bool
    columns : tuple of Column
        Of a table; empty for svmlight and npz, whose features go by their place.
    """

    format: Format
    n_features: int
    dense: bool
    columns: tuple[Column, ...] = ()

    def encode(self, table: pd.DataFrame, name: str = "the table") -> NDArray[np.float64]:
        """Turn rows of a table into features.

        Parameters
        ----------
        table : pandas.DataFrame of n_samples rows
            Columns that the encoding does not know are left out.
        name : str
            What messages call the table.

        Returns
        -------
        ndarray of shape (n_samples, n_features), float64

        Raises
        ------
        InputError
            A missing column; text in a column of numbers, infinity, or a missing value, with
            column and row.
        """
        X = np.zeros((len(table), self.n_features))
        place = 0
        for column in self.columns:
            values = _column(table, column.name, name)
            if column.categories is None:
                X[:, place] = _numbers(values, column.fill, name)
                place += 1
            else:
                codes = _codes(values, column.categories, column.fill, name)
                known = np.flatnonzero(codes >= 0)
                X[known, place + codes[known]] = 1.0
                place += len(column.categories)
        return X

    def read(self, path: str | os.PathLike[str], format: Format | None = None) -> Matrix:  # noqa: A002
        """Read new rows from a file; a label column is not needed.

        Parameters
        ----------
        path : path
        format : str, optional
            By default told by the suffix.

        Returns
        -------
        ndarray or csr_matrix of shape (n_samples, n_features)

        Raises
        ------
        InputError
            As `encode`, or a file of another kind (table, svmlight or npz) than the encoding's.
        """
        path = Path(path)
        found = _format(path, format)
        if found != self.format and not {found, self.format} <= set(_TABLES):
            raise InputError(f"{path}: the model was fitted to {self.format} rows, found {found}")
        if found in _TABLES:
            text = [column.name for column in self.columns if column.categories is not None]
            return self.encode(_table(path, found, text), str(path))
        if found == "svmlight":
            X: Matrix = read_svmlight(path, self.n_features)[0]
        else:
            X = _npz(path)[0]
        if X.shape[1] != self.n_features:
            raise InputError(f"{path}: expected {self.n_features} features, found {X.shape[1]}")
        return X.toarray() if self.dense and not isinstance(X, np.ndarray) else X

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """Names of the columns of X: ``column`` or ``column=category``; None without a table."""
        if not self.columns:
            return None
        return tuple(
            name
            for column in self.columns
            for name in (
                [column.name]
                if column.categories is None
                else [f"{column.name}={category}" for category in column.categories]
            )
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the encoding as JSON can hold it."""
        return json.loads(json.dumps(asdict(self)))

    @classmethod
    def from_dict(cls, description: dict[str, Any]) -> Self:
        """Rebuild an encoding from what `to_dict` gave."""
        columns = tuple(
            Column(
                name=column["name"],
                categories=None if column["categories"] is None else tuple(column["categories"]),
                fill=column["fill"],
            )
            for column in description["columns"]
        )
        return cls(**{**description, "columns": columns})


def read_own_file(
    path: str | os.PathLike[str],
    *,
    format: Format | None = None,  # noqa: A002
    label: str | None = None,
    positive: str | float | None = None,
    groups: str | None = None,
    drop: Sequence[str] = (),
    categorical: Categorical = "error",
    missing: Missing = "error",
) -> tuple[Dataset, Encoding]:
    """Read a labelled file of one's own.

    Parameters
    ----------
    path : path
    format : {"svmlight", "csv", "tsv", "parquet", "npz"}, optional
        By default told by the suffix: ``.svm``, ``.libsvm``, ``.svmlight``, ``.txt``; ``.csv``;
        ``.tsv``; ``.parquet``; ``.npz``. Text may be packed (``.gz``, ``.bz2``, ``.xz``). A table
        has its column names in the first line. An npz file holds ``X`` (or the parts ``data``,
        ``indices``, ``indptr``, ``shape`` of a CSR matrix) and ``y``.
    label : str
        Column of the labels, for a table.
    positive : str or number, optional
        The label of the positive class; may be left out if the labels are 0 and 1, or -1 and 1.
    groups : str, optional
        Column (or array of an npz file) of which equal values keep rows together in a split; not
        a feature.
    drop : sequence of str
        Columns that are no features.
    categorical : {"error", "one-hot"}
        What to do with text.
    missing : {"error", "mean", "median", "most-frequent"}
        What to do with missing values of a table; in text the most frequent value replaces them.

    Returns
    -------
    dataset : Dataset
    encoding : Encoding
        For rows to be scored later.

    Raises
    ------
    InputError
        An unknown format, a malformed or empty file, a column that does not exist, one class
        only, an unknown positive label; text, missing values or infinity, with column and row.
    """
    path = Path(path)
    found = _format(path, format)
    _check_option("categorical", categorical, get_args(Categorical))
    _check_option("missing", missing, get_args(Missing))
    if found in _TABLES:
        own = _own_table(path, found, label, positive, groups, drop, categorical, missing)
    else:
        only_tables = {
            "label": label is not None,
            "drop": bool(drop),
            "categorical": categorical != "error",
            "missing": missing != "error",
            "groups": groups is not None and found == "svmlight",
        }
        if any(only_tables.values()):
            wrong = _listed(option for option, given in only_tables.items() if given)
            raise InputError(f"{path}: {wrong} has no meaning for {found}, which has no columns")
        if found == "svmlight":
            own = _own_svmlight(path, positive)
        else:
            own = _own_npz(path, positive, groups)

    options = [VERSION, found, label, positive, groups, list(drop), categorical, missing]
    digest = hashlib.sha256(json.dumps(options).encode())
    with path.open("rb") as file:
        while piece := file.read(1 << 20):
            digest.update(piece)
    name = path.name.split(".")[0]
    dataset = Dataset(
        name=name,
        title=name,
        X=own.X,
        y=own.y,
        sha256=digest.hexdigest(),
        groups=own.groups,
        feature_names=own.encoding.feature_names,
    )
    return dataset, own.encoding


def read_table_column(
    path: str | os.PathLike[str],
    name: str,
    format: Format | None = None,  # noqa: A002
) -> list[str]:
    """Read one column of a table as text, for example the names of its rows.

    Parameters
    ----------
    path : path
        Of a CSV, TSV or Parquet file.
    name : str
    format : str, optional
        By default told by the suffix.

    Returns
    -------
    list of str
        One per row, as it stands in the file: ``007`` stays ``007``, nothing is ``""``.

    Raises
    ------
    InputError
        If the file is no table, or has no such column.
    """
    import pandas as pd

    path = Path(path)
    found = _format(path, format)
    if found not in _TABLES:
        raise InputError(f"{path}: {found} rows have no named columns, so no column {name!r}")
    with _readable(path):
        if found == "parquet":
            table = pd.read_parquet(path, dtype_backend="numpy_nullable")
            return _column(table, name, str(path)).astype("string").fillna("").tolist()
        separator = _SEPARATORS[found]
        _column(pd.read_csv(path, sep=separator, index_col=False, nrows=0), name, str(path))
        table = pd.read_csv(
            path, sep=separator, index_col=False, usecols=[name], dtype="str", na_filter=False
        )
        return table[name].tolist()


class _Own(NamedTuple):
    X: Matrix
    y: NDArray[np.float64]
    groups: NDArray[np.int64] | None
    encoding: Encoding


def _own_table(
    path: Path,
    found: Format,
    label: str | None,
    positive: str | float | None,
    groups: str | None,
    drop: Sequence[str],
    categorical: str,
    missing: Missing,
) -> _Own:
    table = _table(path, found)
    if label is None:
        raise InputError(f"{path}: name the label column, one of {_listed(table.columns)}")
    y = signs(path, _column(table, label, str(path)).tolist(), positive)
    numbered = None
    if groups is not None:
        numbered = _numbered(path, _column(table, groups, str(path)).tolist())
    others = [label, *drop, *([groups] if groups else [])]
    for name in drop:
        _column(table, name, str(path))
    names = [name for name in table.columns if name not in others]
    if not names:
        raise InputError(f"{path}: no column is left as a feature")
    columns = tuple(_learnt(table[name], categorical, missing, str(path)) for name in names)
    width = sum(1 if column.categories is None else len(column.categories) for column in columns)
    encoding = Encoding(found, width, dense=True, columns=columns)
    return _Own(encoding.encode(table, str(path)), y, numbered, encoding)


def _own_svmlight(path: Path, positive: str | float | None) -> _Own:
    X: Matrix
    X, labels = read_svmlight(path)
    if X.shape[1] == 0:
        raise InputError(f"{path}: no row has a feature")
    y = signs(path, labels.tolist(), positive)
    if X.nnz > DENSE_ABOVE * X.shape[0] * X.shape[1]:
        X = X.toarray()
    return _Own(X, y, None, Encoding("svmlight", X.shape[1], isinstance(X, np.ndarray)))


def _own_npz(path: Path, positive: str | float | None, groups: str | None) -> _Own:
    X, arrays = _npz(path)
    y = signs(path, _vector(path, arrays, "y", X.shape[0]), positive)
    numbered = None
    if groups is not None:
        numbered = _numbered(path, _vector(path, arrays, groups, X.shape[0]))
    return _Own(X, y, numbered, Encoding("npz", X.shape[1], isinstance(X, np.ndarray)))


# --- files ---


def _format(path: Path, given: str | None) -> Format:
    if not path.is_file():
        raise InputError(f"{path}: {'a folder, not a file' if path.is_dir() else 'no such file'}")
    suffixes = [suffix for suffix in path.suffixes if suffix not in _PACKED]
    found = given or _FORMATS.get(suffixes[-1] if suffixes else "")
    if found not in _FORMATS.values():
        raise InputError(
            f"{path}: unknown format {found or path.suffix!r}; name one of "
            f"{_listed(dict.fromkeys(_FORMATS.values()))}, or use one of the suffixes "
            f"{_listed(_FORMATS)}"
        )
    return cast("Format", found)


def _check_option(name: str, value: object, valid: Sequence[str]) -> None:
    if value not in valid:
        raise InputError(f"{name} is one of {_listed(valid)}, found {value!r}")


def _table(path: Path, found: Format, text: Collection[str] = ()) -> pd.DataFrame:
    """Read a table; columns named in `text` stay text though all their values may be numbers."""
    import pandas as pd

    with _readable(path):
        if found == "parquet":
            table = pd.read_parquet(path)
        else:
            options: dict[str, Any] = {"sep": _SEPARATORS[found], "index_col": False}
            with warnings.catch_warnings():
                warnings.simplefilter("error", pd.errors.ParserWarning)
                table = pd.read_csv(
                    path, dtype=dict.fromkeys(text, "str"), low_memory=False, **options
                )
            header = pd.read_csv(path, header=None, nrows=1, dtype="str", **options)
            _check_header(path, header.iloc[0].tolist())
    if table.empty:
        raise InputError(f"{path}: the file has no rows")
    return table


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Turn what pandas finds in a damaged file into a sentence."""
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
    except ImportError as error:
        raise InputError(
            f"{path}: Parquet files need pyarrow; install precbench[parquet]"
        ) from error
    except (ValueError, OSError, EOFError, zlib.error, lzma.LZMAError) as error:
        reason = " ".join(str(error).split())  # pandas' own errors are ValueErrors
        raise InputError(f"{path}: the file cannot be read: {reason}") from error


def _check_header(path: Path, names: list[object]) -> None:
    """Refuse what pandas would mend in silence."""
    import pandas as pd

    if not pd.to_numeric(pd.Series(names), errors="coerce").isna().any():
        raise InputError(
            f"{path}: the first line must hold the column names, found {_listed(names)}"
        )
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise InputError(f"{path}: two columns are named {twice[0]!r}")


def _npz(path: Path) -> tuple[Matrix, dict[str, NDArray]]:
    """Read an npz file; give X and all arrays."""
    from scipy.sparse import csr_matrix

    parts = ("data", "indices", "indptr", "shape")
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        if "X" in arrays:
            X: Matrix = np.ascontiguousarray(arrays["X"], dtype=np.float64)
        elif set(parts) <= set(arrays):
            data, indices, indptr, shape = (arrays[part] for part in parts)
            X = csr_matrix((data, indices, indptr), shape=tuple(shape), dtype=np.float64)
            X.check_format(full_check=True)
            X.sum_duplicates()
        else:
            raise InputError(
                f"{path}: expected X, or data, indices, indptr and shape, found {_listed(arrays)}"
            )
    except InputError:
        raise
    except (ValueError, TypeError, OSError, EOFError, AttributeError, zipfile.BadZipFile) as error:
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


def _vector(path: Path, arrays: dict[str, NDArray], name: str, length: int) -> list[object]:
    if name not in arrays:
        raise InputError(f"{path}: no array {name!r}; the file holds {_listed(arrays)}")
    if arrays[name].shape != (length,):
        raise InputError(
            f"{path}: {name} must have the shape ({length},), found {arrays[name].shape}"
        )
    return arrays[name].tolist()


# --- columns ---


def _column(table: pd.DataFrame, name: str, where: str) -> pd.Series:
    if name in table.columns:
        return table[name]
    near = did_you_mean(name, map(str, table.columns))
    raise InputError(f"{where}: no column {name!r}{near}; it has {_listed(table.columns)}")


def _learnt(values: pd.Series, categorical: str, missing: Missing, where: str) -> Column:
    """Learn from the training rows what a column holds and what replaces a missing value."""
    from pandas.api.types import is_bool_dtype, is_numeric_dtype
    from sklearn.impute import SimpleImputer
    from sklearn.preprocessing import OneHotEncoder

    name = str(values.name)
    if values.isna().all():
        raise InputError(f"{where}: column {name!r} has no values; drop it")
    strategy = missing.replace("-", "_")
    is_text = None if is_numeric_dtype(values) or is_bool_dtype(values) else _text(values)
    if is_text is None or not is_text.any():
        fill = None
        if missing != "error":
            numbers = _numbers(values, np.nan, where)[:, np.newaxis]
            fill = float(SimpleImputer(strategy=strategy).fit(numbers).statistics_[0])
        return Column(name, fill=fill)
    _refuse_text(values, is_text, categorical, where)
    present = values.dropna().astype(str).to_numpy(dtype=object)[:, np.newaxis]
    categories = OneHotEncoder().fit(present).categories_[0].tolist()
    if len(categories) > MOST_CATEGORIES:
        raise InputError(
            f"{where}: column {name!r} has {len(categories):,} different texts, more than "
            f"{MOST_CATEGORIES:,}; drop it"
        )
    most_frequent = None
    if missing != "error":
        most_frequent = SimpleImputer(strategy="most_frequent").fit(present).statistics_[0]
    return Column(name, tuple(categories), most_frequent)


def _text(values: pd.Series) -> NDArray[np.bool_]:
    """Tell which values are neither missing nor to be read as a number."""
    import pandas as pd

    is_text = values.notna()
    if values.dtype.kind not in "mM":  # a date would be read as a number of nanoseconds
        is_text &= pd.to_numeric(values, errors="coerce").isna()
    return is_text.to_numpy()


def _refuse_text(
    values: pd.Series, is_text: NDArray[np.bool_], categorical: str, where: str
) -> None:
    """Refuse text, unless it was asked for and is not a slip in a column of numbers."""
    is_date = values.dtype.kind in "mM"
    if is_text.sum() > values.notna().sum() / 2 and categorical == "one-hot" and not is_date:
        return
    row = int(np.argmax(is_text))
    advice = "drop the column" if is_date else "correct it or drop the column"
    if categorical == "error" and not is_date:
        advice = "drop the column, or encode text with categorical: one-hot"
    raise InputError(
        f"{where}: column {values.name!r}, row {row + 1}: {values.iloc[row]} is not a number; "
        f"{advice}"
    )


def _numbers(values: pd.Series, fill: float | str | None, where: str) -> NDArray[np.float64]:
    import pandas as pd

    numbers = pd.to_numeric(values, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
    is_missing = values.isna().to_numpy()
    _refuse(values, np.isnan(numbers) & ~is_missing, "is not a number", where)
    _refuse(values, np.isinf(numbers), "is not a finite number", where)
    return _filled(values, numbers, fill, where)


def _codes(
    values: pd.Series, categories: tuple[str, ...], fill: float | str | None, where: str
) -> NDArray[np.intp]:
    import pandas as pd

    text = _filled(values, values.astype(str).to_numpy(dtype=object), fill, where)
    return pd.Index(categories, dtype=object).get_indexer(pd.Index(text))


def _filled(values: pd.Series, array: NDArray, fill: float | str | None, where: str) -> NDArray:
    is_missing = values.isna().to_numpy()
    if not is_missing.any():
        return array
    if fill is None:
        row = int(np.argmax(is_missing)) + 1
        raise InputError(
            f"{where}: column {values.name!r}, row {row}: the value is missing; fill it, drop the "
            "column, or impute with missing: mean, median or most-frequent"
        )
    return np.where(is_missing, fill, array)


def _refuse(values: pd.Series, wrong: NDArray[np.bool_], what: str, where: str) -> None:
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InputError(
            f"{where}: column {values.name!r}, row {row + 1}: {values.iloc[row]} {what}"
        )


# --- labels and groups ---


def signs(
    path: Path, labels: Sequence[object], positive: str | float | None
) -> NDArray[np.float64]:
    """Turn labels into -1 and +1, or say why they cannot be."""
    codes, distinct = _factorised(path, labels, "label")
    names = [_canonical(label) for label in distinct]
    if positive is None:
        if not set(names) <= {-1.0, 0.0, 1.0}:
            raise InputError(
                f"{path}: name the positive label (positive), one of {_listed(distinct)}"
            )
        positive = 1
    is_positive = np.array([name == _canonical(positive) for name in names])
    if len(set(names)) == 1:
        raise InputError(f"{path}: one class only, every label is {_listed(distinct)}")
    if not is_positive.any():
        raise InputError(
            f"{path}: no row has the positive label {positive!r}; found {_listed(distinct)}"
        )
    return np.where(is_positive[codes], 1.0, -1.0)


def _canonical(label: object) -> object:
    """Make 1, 1.0, True, "1" and "+1" the same label."""
    try:
        return float(label)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return str(label).strip()


def _numbered(path: Path, groups: Sequence[object]) -> NDArray[np.int64]:
    return _factorised(path, groups, "group")[0].astype(np.int64)


def _factorised(
    path: Path, values: Sequence[object], what: str
) -> tuple[NDArray[np.intp], list[object]]:
    import pandas as pd

    codes, distinct = pd.factorize(np.fromiter(values, dtype=object, count=len(values)))
    if codes.min() < 0:
        raise InputError(f"{path}: row {int(np.argmin(codes)) + 1}: the {what} is missing")
    return codes, list(distinct)


def _listed(names: Iterable[object], most: int = 8) -> str:
    shown = [f"{name:.15g}" if isinstance(name, float) else str(name) for name in names]
    more = f" and {len(shown) - most} more" if len(shown) > most else ""
    return ", ".join(shown[:most]) + more

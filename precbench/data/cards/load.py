"""Loading of data sets by name, and the cache of their arrays.

The arrays are memory-mapped, so that processes share them. The folder
``prepared/<name>-<first 16 digits of the sha256>/``, followed by ``-float32`` for that
dtype, holds one ``.npy`` per array. The folder is written under another name, then
renamed.
"""

import contextlib
import json
import os
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from precbench.core.errors import DataUnavailableError, InputError
from precbench.core.files import temporary
from precbench.core.keys import key_of
from precbench.core.kinds import Dtype
from precbench.core.locations import cache_folder
from precbench.data.cards import generated, parsers
from precbench.data.cards.card import Card
from precbench.data.cards.catalogue import find_card
from precbench.data.cards.fetch import fetch
from precbench.data.dataset import Arrays, Dataset, parts, to_dtype


def load_dataset(
    name: str,
    mirror: str | os.PathLike[str] | None = None,
    on_missing: Literal["error", "stand-in"] = "error",
    dtype: Dtype = "float64",
) -> Dataset:
    """Load a data set from the cache, a mirror, or its official addresses.

    Parameters
    ----------
    name : str
        A key of ``DATASETS``.
    mirror : str or path, optional
        A folder or address with ``<folder of the card>/<file name>``; default
        ``$PRECBENCH_MIRROR``.
    on_missing : {"error", "stand-in"}
        What to do if the files cannot be obtained. A stand-in is synthetic, and its
        title says so.
    dtype : {"float64", "float32"}
        Type of the values of X; solvers sum in float64 either way.

    Returns
    -------
    Dataset
        With read-only arrays: memory maps if the cache is writable.

    Raises
    ------
    DataUnavailableError
        The files cannot be obtained, and ``on_missing="error"``.
    InputError
        An unknown name, or files that do not match the card.

    Examples
    --------
    >>> from precbench import load_dataset
    >>> data = load_dataset("synthetic-linear-1-in-10")
    >>> data.X.shape, int((data.y > 0).sum())
    ((30000, 20), 3000)
    """
    if on_missing not in ("error", "stand-in"):
        raise InputError(
            f"on_missing must be 'error' or 'stand-in', found {on_missing!r}"
        )
    card = find_card(name)
    title = card.title
    is_stand_in = False
    try:
        rows = _rows_of(card, mirror)
    except DataUnavailableError:
        if on_missing == "error":
            raise
        rows = _rows_of_stand_in(card)
        title = f"{card.title} (stand-in, synthetic)"
        is_stand_in = True
    sha256 = key_of(rows.identity)
    arrays = _prepared(name, sha256, dtype, rows.make)
    return Dataset(
        name=name,
        title=title,
        sha256=sha256,
        stand_in=is_stand_in,
        n_train=card.train_rows,
        **arrays._asdict(),
    )


class _Rows(NamedTuple):
    """The rows of a data set before they are made."""

    identity: dict[str, Any]  # what is hashed
    make: Callable[[], Arrays]


def _rows_of(card: Card, mirror: str | os.PathLike[str] | None) -> _Rows:
    """Return the rows of a data set; fetch its files.

    Keys that were added to cards later are left out of the identity at their default,
    so that earlier hashes stay the same.
    """
    if card.format == "synthetic":
        keys = {
            "name",
            "generator",
            "gamma",
            "swapped",
            "rows",
            "features",
            "positives",
        }
        identity = {"synthetic": generated.VERSION} | card.model_dump(include=keys)
        identity |= card.model_dump(include={"non_linear"}, exclude_defaults=True)
        return _Rows(identity, partial(generated.generate, card))
    files = fetch(card, mirror)
    identity = {
        "parser": parsers.VERSION,
        "files": [file.sha256 for file in files],
        **card.model_dump(include={"format", "label_column", "positive", "features"}),
        **card.model_dump(
            include={"separator", "feature_columns"}, exclude_defaults=True
        ),
    }
    paths = [file.path for file in files]
    return _Rows(identity, partial(parsers.parse, card, paths))


def _rows_of_stand_in(card: Card) -> _Rows:
    keys = {"name", "format", "rows", "features", "positives", "stand_in"}
    identity = {"generator": generated.STAND_IN_VERSION} | card.model_dump(include=keys)
    return _Rows(identity, partial(generated.generate_stand_in, card))


def _prepared(
    name: str, sha256: str, dtype: Dtype, make: Callable[[], Arrays]
) -> Arrays:
    """Return read-only arrays: memory maps from the cache, if that is writable.

    Arrays that are not there are made, or converted from those in float64.
    """
    cached = _load_prepared(name, sha256, dtype)
    if cached is not None:
        return cached
    exact = _load_prepared(name, sha256, "float64")
    if exact is None:
        exact = make()
    arrays = exact._replace(X=to_dtype(exact.X, dtype, name))
    _store_prepared(name, sha256, arrays, dtype)
    stored = _load_prepared(name, sha256, dtype)
    if stored is not None:
        return stored
    return _read_only(arrays)


def _read_only(arrays: Arrays) -> Arrays:
    """Make the arrays read-only in place, and return them."""
    for array in (*parts(arrays.X), arrays.y, arrays.groups, arrays.optimum):
        if array is not None:
            array.flags.writeable = False
    return arrays


def _load_prepared(name: str, sha256: str, dtype: Dtype) -> Arrays | None:
    """Map the cached arrays into memory, read-only; None if any cannot be read."""
    folder = _folder(name, sha256, dtype)
    try:
        shape = json.loads((folder / "shape.json").read_text(encoding="ascii"))  # of X
        # By the field of `Arrays`, or the array of a CSR matrix
        loaded: dict[str, Any] = {}
        for path in folder.glob("*.npy"):
            mapped = np.load(path, mmap_mode="r", allow_pickle=False)
            # A plain array, as every small operation on a memmap is slow
            loaded[path.stem] = np.asarray(mapped)
        if "data" in loaded:  # X is sparse
            from scipy.sparse import csr_matrix

            data = loaded.pop("data")
            indices = loaded.pop("indices")
            indptr = loaded.pop("indptr")
            loaded["X"] = csr_matrix((data, indices, indptr), shape=shape)
        return Arrays(**loaded)
    except Exception:  # a missing or damaged file has many ways to fail
        return None


def _store_prepared(name: str, sha256: str, arrays: Arrays, dtype: Dtype) -> None:
    """Write each array of a data set to a file in the cache, if that is writable."""
    folder = _folder(name, sha256, dtype)
    stored = {
        part: array for part, array in arrays._asdict().items() if array is not None
    }
    if not isinstance(arrays.X, np.ndarray):
        X = stored.pop("X")
        stored |= {"data": X.data, "indices": X.indices, "indptr": X.indptr}
    with contextlib.suppress(OSError), temporary(folder) as unfinished:
        unfinished.mkdir(parents=True)
        for part, array in stored.items():
            np.save(unfinished / f"{part}.npy", array, allow_pickle=False)
        (unfinished / "shape.json").write_text(
            json.dumps(arrays.X.shape), encoding="ascii"
        )
        # Another process may have stored them meanwhile.
        is_cached = _load_prepared(name, sha256, dtype) is not None
        if not is_cached:
            shutil.rmtree(folder, ignore_errors=True)
            unfinished.replace(folder)


def _folder(name: str, sha256: str, dtype: Dtype) -> Path:
    """Return the folder of the cached arrays of a data set."""
    suffix = "" if dtype == "float64" else f"-{dtype}"
    return cache_folder() / "prepared" / f"{name}-{sha256[:16]}{suffix}"

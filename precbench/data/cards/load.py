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
from typing import Any, Literal

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
    is_stand_in = False
    try:
        # what is hashed; the function that makes the arrays
        identity, make = _source(card, mirror)
    except DataUnavailableError:
        if on_missing == "error":
            raise
        is_stand_in = True
        keys = {"name", "format", "rows", "features", "positives", "stand_in"}
        identity = {"generator": generated.STAND_IN_VERSION} | card.model_dump(
            include=keys
        )
        make = partial(generated.generate_stand_in, card)
    sha256 = key_of(identity)
    arrays = _load_prepared(name, sha256, dtype)
    if arrays is None:
        # the float64 arrays in the cache, if any
        new = _load_prepared(name, sha256) or make()
        new = new._replace(X=to_dtype(new.X, dtype, name))
        _store_prepared(name, sha256, new, dtype)
        # cannot be cached
        arrays = _load_prepared(name, sha256, dtype) or _read_only(new)
    return Dataset(
        name=name,
        title=f"{card.title} (stand-in, synthetic)" if is_stand_in else card.title,
        sha256=sha256,
        stand_in=is_stand_in,
        n_train=card.train_rows,
        **arrays._asdict(),
    )


def _source(
    card: Card, mirror: str | os.PathLike[str] | None
) -> tuple[dict[str, Any], Callable[[], Arrays]]:
    # Return the identity of a data set, for its hash, and the function that makes its
    # arrays. Keys of cards added later are left out at their default, so that earlier
    # hashes stay the same.
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
        return identity, partial(generated.generate, card)
    files = fetch(card, mirror)
    identity = {
        "parser": parsers.VERSION,
        "files": [file.sha256 for file in files],
        **card.model_dump(include={"format", "label_column", "positive", "features"}),
        **card.model_dump(
            include={"separator", "feature_columns"}, exclude_defaults=True
        ),
    }
    return identity, partial(parsers.parse, card, [file.path for file in files])


def _read_only(arrays: Arrays) -> Arrays:
    """Make the arrays read-only in place, and return them."""
    for array in (*parts(arrays.X), arrays.y, arrays.groups, arrays.optimum):
        if array is not None:
            array.flags.writeable = False
    return arrays


def _load_prepared(name: str, sha256: str, dtype: Dtype = "float64") -> Arrays | None:
    """Map the cached arrays into memory, read-only.

    Return None if any cannot be read.
    """
    folder = _folder(name, sha256, dtype)
    try:
        shape = json.loads((folder / "shape.json").read_text(encoding="ascii"))  # of X
        # `asarray` makes plain arrays of memmaps, as every small operation on a memmap
        # is slow. by the field of `Arrays`, or the array of a CSR matrix
        loaded: dict[str, Any] = {
            path.stem: np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))
            for path in folder.glob("*.npy")
        }
        if "data" in loaded:  # X is sparse
            from scipy.sparse import csr_matrix

            sparse = tuple(loaded.pop(part) for part in ("data", "indices", "indptr"))
            loaded["X"] = csr_matrix(sparse, shape=shape)
        return Arrays(**loaded)
    except Exception:  # a missing or damaged file has many ways to fail
        return None


def _store_prepared(
    name: str, sha256: str, arrays: Arrays, dtype: Dtype = "float64"
) -> None:
    """Write each array of a data set to a file in the cache, if that is writable."""
    folder = _folder(name, sha256, dtype)
    stored = {
        part: array for part, array in arrays._asdict().items() if array is not None
    }
    if not isinstance(arrays.X, np.ndarray):
        X = stored.pop("X")
        stored |= {"data": X.data, "indices": X.indices, "indptr": X.indptr}
    # removed unless moved
    with contextlib.suppress(OSError), temporary(folder) as unfinished:
        unfinished.mkdir(parents=True)
        for part, array in stored.items():
            np.save(unfinished / f"{part}.npy", array, allow_pickle=False)
        (unfinished / "shape.json").write_text(
            json.dumps(arrays.X.shape), encoding="ascii"
        )
        # else another process was faster
        if _load_prepared(name, sha256, dtype) is None:
            shutil.rmtree(folder, ignore_errors=True)
            unfinished.replace(folder)


def _folder(name: str, sha256: str, dtype: Dtype) -> Path:  # of the cached arrays
    kind = "" if dtype == "float64" else f"-{dtype}"
    return cache_folder() / "prepared" / f"{name}-{sha256[:16]}{kind}"

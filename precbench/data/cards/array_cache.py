"""Arrays in the cache, parsed once, so that many processes share one memory map.

``prepared/<name>-<first 16 digits of the sha256>/`` holds one ``.npy`` per array, and with
``-float32`` behind its name the same with the values of X as float32. A folder
appears whole (written under another name, then renamed) or not at all.
"""

from __future__ import annotations

import contextlib
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from precbench.data.dataset import Arrays, Dtype
from precbench.files import temporary
from precbench.locations import cache_folder

_DTYPES = {
    **dict.fromkeys(("y", "optimum"), np.float64),
    **dict.fromkeys(("indices", "indptr"), np.int32),
    "groups": np.int64,
}


def load_prepared(name: str, sha256: str, dtype: Dtype = "float64") -> Arrays | None:
    """Map the arrays of a data set into memory, read-only; None unless all are as written."""
    folder = _folder(name, sha256, dtype)
    parts: dict[str, Any]
    try:
        shape = json.loads((folder / "shape.json").read_text(encoding="ascii"))
        parts = {path.stem: _mapped(path, dtype) for path in folder.glob("*.npy")}
        if "data" in parts:
            from scipy.sparse import csr_matrix

            sparse = tuple(parts.pop(part) for part in ("data", "indices", "indptr"))
            parts["X"] = csr_matrix(sparse, shape=shape)
        arrays = Arrays(**parts)
        whole = (arrays.X.shape, arrays.y.shape) == (tuple(shape), (shape[0],))
        return arrays if whole else None
    except Exception:  # a damaged file has many ways to fail
        return None


def store_prepared(name: str, sha256: str, arrays: Arrays, dtype: Dtype = "float64") -> None:
    """Write the arrays of a data set into the cache, if it can be written."""
    folder = _folder(name, sha256, dtype)
    parts = {part: array for part, array in arrays._asdict().items() if array is not None}
    if not isinstance(arrays.X, np.ndarray):
        X = parts.pop("X")
        parts |= {"data": X.data, "indices": X.indices, "indptr": X.indptr}
    with contextlib.suppress(OSError), temporary(folder) as unfinished:
        unfinished.mkdir(parents=True)
        for part, array in parts.items():
            np.save(unfinished / f"{part}.npy", array, allow_pickle=False)
        (unfinished / "shape.json").write_text(json.dumps(arrays.X.shape), encoding="ascii")
        if load_prepared(name, sha256, dtype) is None:  # else another process was faster
            shutil.rmtree(folder, ignore_errors=True)
            unfinished.replace(folder)


def _folder(name: str, sha256: str, dtype: Dtype) -> Path:
    kind = "" if dtype == "float64" else f"-{dtype}"
    return cache_folder() / "prepared" / f"{name}-{sha256[:16]}{kind}"


def _mapped(path: Path, dtype: Dtype) -> NDArray:
    array = np.load(path, mmap_mode="r", allow_pickle=False)
    whole = array.offset + array.nbytes == path.stat().st_size
    if not whole or array.dtype != _DTYPES.get(path.stem, dtype):  # the kernels trust both
        raise ValueError(f"{path} is damaged")
    return np.asarray(array)  # a plain view: memmap costs time in every small operation

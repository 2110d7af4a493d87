"""The cache of parsed arrays, memory-mapped so that processes share them.

``prepared/<name>-<first 16 digits of the sha256>/``, followed by ``-float32`` for that dtype,
holds one ``.npy`` per array. A folder is written under another name, then renamed.
"""

from __future__ import annotations

import contextlib
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np

from precbench.data.dataset import Arrays, Dtype
from precbench.files import temporary
from precbench.locations import cache_folder


def load_prepared(name: str, sha256: str, dtype: Dtype = "float64") -> Arrays | None:
    """Map the cached arrays into memory, read-only; None unless all can be read."""
    folder = _folder(name, sha256, dtype)
    try:
        shape = json.loads((folder / "shape.json").read_text(encoding="ascii"))
        # As plain views: those of type memmap cost time in every small operation.
        parts: dict[str, Any] = {
            path.stem: np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))
            for path in folder.glob("*.npy")
        }
        if "data" in parts:
            from scipy.sparse import csr_matrix

            sparse = tuple(parts.pop(part) for part in ("data", "indices", "indptr"))
            parts["X"] = csr_matrix(sparse, shape=shape)
        return Arrays(**parts)
    except Exception:  # a damaged file has many ways to fail
        return None


def store_prepared(name: str, sha256: str, arrays: Arrays, dtype: Dtype = "float64") -> None:
    """Write the arrays of a data set to the cache, if it is writable."""
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

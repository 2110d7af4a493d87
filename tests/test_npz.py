"""Untrusted npz files: read exactly, or refused with a reason, in memory that they pay for."""

import io
import zipfile

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from precbench.npz import DamagedError, pack, unpack
from tests.sentences import raises

ARRAYS = {
    "coef": np.arange(12.0).reshape(3, 4), "rows_seen": np.array([1, 2, 3]),
    "scalar": np.array(2.5), "columns": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    "big_endian": np.array([1.0, 2.0], dtype=">f8"),
}  # fmt: skip


def test_arrays_come_back(tmp_path):
    file = tmp_path / "arrays.npz"
    file.write_bytes(pack(ARRAYS))
    read = unpack(file)
    assert list(read) == list(ARRAYS) and list(unpack(file, ["coef"])) == ["coef"]
    with np.load(file, allow_pickle=False) as loaded:
        for name, array in ARRAYS.items():
            assert_array_equal(read[name], array, strict=array.dtype.isnative)
            assert_array_equal(loaded[name], array)
            assert read[name].dtype.isnative


def test_compressed_arrays_only_where_they_are_accepted(tmp_path):
    path = tmp_path / "packed.npz"
    np.savez_compressed(path, X=np.zeros(100_000))
    with raises(DamagedError):
        unpack(path)
    assert_array_equal(unpack(path, packed=True)["X"], np.zeros(100_000))


@pytest.mark.parametrize(
    "array",
    [np.array([1j]), np.array(["a"]), np.array(["2020-01-01"], dtype="M8[D]"), np.array([True])],
)
def test_what_is_not_a_real_number_is_refused(tmp_path, array):
    path = tmp_path / "odd.npz"
    path.write_bytes(pack({"X": array}))
    with raises(DamagedError):
        unpack(path)
    assert_array_equal(unpack(path, kinds=array.dtype.kind)["X"], array)


def npy(shape, content=b""):
    stream = io.BytesIO()
    described = {"descr": "<f8", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(stream, described)
    return stream.getvalue() + content


@pytest.mark.promise("R14")
@pytest.mark.parametrize("shape", [(10**15,), (2**40, 2**40), (3,), (0, 4)])
def test_a_shape_that_its_bytes_do_not_fill_is_refused(tmp_path, shape):
    path = tmp_path / "lies.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("X.npy", npy(shape, bytes(16)))
    with raises(DamagedError):
        unpack(path)


@pytest.mark.parametrize("content", [b"", b"PK", b"not an archive", b"PK\x05\x06" + bytes(18)])
def test_other_files(tmp_path, content):
    path = tmp_path / "other.npz"
    with pytest.raises(FileNotFoundError):
        unpack(path)
    path.write_bytes(content)
    with pytest.raises(DamagedError):
        unpack(path, ["coef"])

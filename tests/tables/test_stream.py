"""Rows read block by block.

Each once per pass, in seeded order, within the memory limit.
"""

import os
import sys
from functools import partial
from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy.sparse import csr_matrix, issparse, vstack

from precbench.core.errors import InputError
from precbench.core.kinds import Scaling
from precbench.data import Dataset, stream_dataset
from precbench.data.preprocess import Scaler
from precbench.experiment.division import in_share
from precbench.solvers import OnePMB, SGDAtK
from precbench.tables.streamed_files import open_stream
from tests.helpers import printed_numbers
from tests.sentences import raises

RNG = np.random.default_rng(0)
N_ROWS, N_FEATURES = 700, 5
DENSE = RNG.integers(-3, 4, (N_ROWS, N_FEATURES)).astype(float)
DENSE[:, 0] = np.arange(1, N_ROWS + 1)  # names the row, and fixes the width
SPARSE = np.where(
    (RNG.random(DENSE.shape) < 0.2) | (np.arange(N_FEATURES) == 0), DENSE, 0.0
)
Y = np.where(RNG.random(N_ROWS) < 0.2, 1.0, -1.0)
KINDS = ["svmlight, dense", "svmlight, sparse", "npy", "arrays", "csr"]


def matrix(kind):
    return SPARSE if "sparse" in kind or kind == "csr" else DENSE


def svmlight(X, y):
    lines = ["# a comment", ""]
    for row, label in zip(X, y, strict=True):
        entries = " ".join(f"{j + 1}:{v:g}" for j, v in enumerate(row) if v)
        lines.append(f"{label:g} {entries}")
    return "\n".join(lines)  # the last line without an end


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("streams")
    for name, X in (("dense", DENSE), ("sparse", SPARSE)):
        (folder / f"{name}.svm").write_text(svmlight(X, Y))
    np.save(folder / "X.npy", DENSE)
    np.save(folder / "y.npy", Y.astype(np.int8))
    return folder


def opened(folder, kind, **sizes):
    if kind.startswith("svmlight"):
        return open_stream(folder / f"{kind.split()[-1]}.svm", **sizes).X
    if kind == "npy":
        return open_stream(folder / "X.npy", labels=folder / "y.npy", **sizes).X
    X = DENSE if kind == "arrays" else csr_matrix(SPARSE)
    return stream_dataset(Dataset("toy", "toy", X, Y, ""), **sizes).X


def collected(pieces):
    pieces = list(pieces)
    matrices = [X.toarray() if issparse(X) else X for X, _ in pieces]
    return np.concatenate(matrices), np.concatenate([y for _, y in pieces])


SIZES = st.fixed_dictionaries(
    {"block_bytes": st.integers(1, 30_000), "buffer_bytes": st.integers(1, 60_000)}
)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=6)
@given(sizes=SIZES, batch_size=st.integers(1, 900), seed=st.integers(0, 9))
def test_every_row_once_per_pass(folder, kind, sizes, batch_size, seed):
    stream = opened(folder, kind, **sizes)
    assert stream.shape == DENSE.shape
    assert stream.n_pos == np.sum(Y > 0)
    for _ in range(2):
        X, y = collected(stream)
        assert_array_equal(X, matrix(kind))
        assert_array_equal(y, Y)
    for rng in (None, np.random.default_rng(seed)):
        pieces = [(X.copy(), y) for X, y in stream.batches(batch_size, rng)]
        assert all(len(y) % batch_size == 0 for _, y in pieces[:-1])
        X, y = collected(pieces)
        order = np.argsort(X[:, 0])
        assert rng is not None or (np.diff(order) == 1).all()
        assert_array_equal(X[order], matrix(kind))
        assert_array_equal(y[order], Y)


def test_a_buffer_of_all_rows_shuffles_fully(folder):
    stream = opened(folder, "npy", block_bytes=400, buffer_bytes=2**30)
    firsts = [
        next(stream.batches(1, np.random.default_rng(s)))[0][0, 0] for s in range(100)
    ]
    assert len(set(firsts)) > 80  # of 700 rows


def test_blocks_are_split_only_at_the_buffer(folder):
    stream = opened(folder, "npy", block_bytes=40 * 10, buffer_bytes=1)
    names = collected(stream.batches(1, np.random.default_rng(0)))[0][:, 0].reshape(
        70, 10
    )
    assert (np.ptp(names, axis=1) == 9).all()  # ten neighbours, in some order
    assert (np.diff(names[:, 0]) < 0).any()
    assert (np.diff(names, axis=1) < 0).any()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scaling", get_args(Scaling))
def test_parts_are_disjoint_and_share_the_scaling(folder, kind, scaling):
    stream = opened(folder, kind, block_bytes=700)
    sparse = kind in ("svmlight, sparse", "csr")
    chosen = in_share(np.arange(N_ROWS), ["a", 1], 0, 0.3)
    assert 0.2 < chosen.mean() < 0.4
    test = stream.part(lambda rows: in_share(rows, ["a", 1], 0, 0.3))
    train = stream.part(lambda rows: ~in_share(rows, ["a", 1], 0, 0.3))
    if sparse and scaling.startswith("standardise"):
        with raises(InputError):
            test.scaled(scaling, train)
        return
    X = csr_matrix(SPARSE) if sparse else DENSE
    scaler = Scaler(scaling).fit(X[~chosen])
    for part, rows in ((test, chosen), (train, ~chosen)):
        found, y = collected(part.scaled(scaling, train))
        expected = scaler.transform_in_place(X[rows].copy())
        np.testing.assert_allclose(
            found, expected.toarray() if sparse else expected, atol=1e-12
        )
        assert_array_equal(y, Y[rows])
        assert_array_equal(part.labels(), Y[rows])
        assert part.shape == (rows.sum(), N_FEATURES)
        assert part.n_pos == np.sum(Y[rows] > 0)


def test_the_part_of_a_row_does_not_depend_on_other_rows():
    whole = in_share(np.arange(1000), ["x"], 0.25, 0.5)
    pieces = [
        in_share(np.arange(i, i + 10), ["x"], 0.25, 0.5) for i in range(0, 1000, 10)
    ]
    assert_array_equal(whole, np.concatenate(pieces))
    assert abs(in_share(np.arange(100_000), ["x"], 0.25, 0.5).mean() - 0.25) < 0.01
    assert (whole != in_share(np.arange(1000), ["y"], 0.25, 0.5)).any()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "solver", [SGDAtK(batch_size=50), OnePMB(batch_size=64, radius=1.0)]
)
def test_stored_order_equals_a_pass_in_memory(folder, kind, solver):
    """Bit for bit, for partial_fit on pieces and for the way without its checks."""
    whole = solver.set_params(shuffle=False, epochs=2).fit(matrix(kind), Y).coef_
    stream = opened(folder, kind, block_bytes=900)
    piecewise = type(solver)(**solver.get_params())
    for _ in range(2):
        for X, y in stream.batches(solver.batch_size):
            piecewise.partial_fit(X, y, classes=[-1, 1])
    assert_array_equal(piecewise.coef_, whole)
    seen = []
    batches = partial(stream.visits, solver.batch_size)
    piecewise.fit_pieces(N_FEATURES, batches, lambda s: seen.append(s.n_rows_seen_))
    assert_array_equal(piecewise.coef_, whole)
    assert (piecewise.n_iter_, piecewise.n_rows_seen_) == (2, 2 * N_ROWS)
    assert seen[0] == 0
    assert seen[-1] == 2 * N_ROWS
    assert_array_equal(piecewise.classes_, [-1, 1])


@pytest.mark.parametrize("kind", KINDS[:3])
def test_rows_streamed_as_float32(folder, kind):
    stream = opened(folder, kind, dtype="float32").scaled("unit", opened(folder, kind))
    in_double = opened(folder, kind).scaled("unit", opened(folder, kind))
    for rng in (None, np.random.default_rng(0)):
        blocks = [X for X, _ in stream.batches(50, rng)]
        assert {X.dtype for X in blocks} == {np.dtype(np.float32)}
        if rng is None:
            expected = vstack([csr_matrix(X) for X, _ in in_double]).astype(np.float32)
            assert abs(vstack([csr_matrix(X) for X in blocks]) - expected).max() == 0


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_file_of_the_type_of_the_stream_is_visited_in_place(folder, tmp_path, dtype):
    np.save(tmp_path / "X.npy", DENSE.astype(dtype))
    stream = open_stream(tmp_path / "X.npy", labels=folder / "y.npy", dtype=dtype).X
    [(X, y, order)] = stream.visits(50, np.random.default_rng(0))
    assert_array_equal(X, DENSE)
    assert not X.flags.owndata
    assert not stream._spare_buffers
    assert_array_equal(y[order], Y[order])


@pytest.mark.parametrize("n_of_seven", [1, 3, 5])  # of 7 rows
def test_rows_visited_in_place_come_in_the_order_of_a_buffer(folder, n_of_seven):
    sizes = {"block_bytes": 800, "buffer_bytes": 6000}
    orders = []
    for kind in ("npy", "arrays"):  # arrays are copied
        stream = opened(folder, kind, **sizes).part(lambda rows: rows % 7 < n_of_seven)
        pieces = list(stream.batches(30, np.random.default_rng(3)))
        assert {y.dtype for _, y in pieces} == {np.dtype(np.float64)}
        orders.append([(X.copy(), y) for X, y in pieces])
    for (X, y), (copied, labels) in zip(*orders, strict=True):
        assert_array_equal(X, copied)
        assert_array_equal(y, labels)


def test_a_value_beyond_float32_is_reported(tmp_path):
    np.save(tmp_path / "X.npy", np.array([[1.0], [1e39]]))
    np.save(tmp_path / "y.npy", [0, 1])
    stream = open_stream(
        tmp_path / "X.npy", labels=tmp_path / "y.npy", dtype="float32"
    ).X
    with raises(InputError, "X.npy 3.4e+38"):
        list(stream)


@pytest.mark.parametrize("block_bytes", [1, 64, 2**20])
def test_an_invalid_line_in_the_middle(tmp_path, block_bytes):
    lines = svmlight(SPARSE, Y).split("\n")
    lines[400] = "1 1:2 3:x"
    path = tmp_path / "bad.svm"
    path.write_text("\n".join(lines))
    with raises(InputError, "bad.svm:401"):
        open_stream(path, block_bytes=block_bytes)


def test_a_changed_file_is_detected(tmp_path):
    path = tmp_path / "rows.svm"
    path.write_text(svmlight(SPARSE, Y))
    np.save(tmp_path / "X.npy", DENSE)
    np.save(tmp_path / "y.npy", Y)
    text = open_stream(path).X
    npy = open_stream(tmp_path / "X.npy", labels=tmp_path / "y.npy", block_bytes=4000).X
    half_read = iter(npy)
    next(half_read)
    path.write_text(svmlight(SPARSE[:-1], Y[:-1]))
    np.save(tmp_path / "X.npy", DENSE[:100])
    for pieces in (text, npy, half_read, npy.batches(1, np.random.default_rng(0))):
        with raises(InputError, "changed"):
            list(pieces)
    same_size = open_stream(path).X
    os.utime(path, ns=(0, 0))
    with raises(InputError, str(path)):
        list(same_size)
    path.unlink()
    with raises(InputError, str(path)):
        list(same_size)


def test_the_content_determines_the_hash(folder, tmp_path):
    sizes = {"block_bytes": 100}
    first = open_stream(folder / "dense.svm").sha256
    assert first == open_stream(folder / "dense.svm", **sizes).sha256
    assert first != open_stream(folder / "dense.svm", positive=-1).sha256
    (tmp_path / "other.svm").write_text(svmlight(DENSE[::-1], Y[::-1]))
    assert first != open_stream(tmp_path / "other.svm").sha256


VALID_TEXT = "1 1:1\n-1 9:1\n"


@pytest.mark.parametrize(
    ("options", "places"),
    [
        pytest.param({"block_bytes": 0}, "block_bytes 1", id="empty block"),
        pytest.param({"buffer_bytes": 0}, "buffer_bytes 1", id="empty buffer"),
        pytest.param({"n_features": 5}, "a.svm:2:4 5", id="a feature beyond the count"),
        pytest.param({"labels": "y.npy"}, "a.svm", id="labels beside svmlight"),
    ],
)
def test_a_wrong_option_for_svmlight_is_refused(tmp_path, options, places):
    path = tmp_path / "a.svm"
    path.write_text(VALID_TEXT)
    with raises(InputError, places):
        open_stream(path, **options)


@pytest.mark.parametrize(
    ("labels", "positive", "places"),
    [
        pytest.param(["-1", "-1"], None, "a.svm", id="one label, -1"),
        pytest.param(["-1", "0"], None, "a.svm", id="no positive label"),
        pytest.param(["3", "4"], None, "a.svm", id="labels neither 0 nor 1"),
        pytest.param(["3", "4"], 5, "5", id="no such positive"),
        pytest.param(
            ["-1", "1"], 10**400, "a.svm", id="positive too large for a double"
        ),
    ],
)
def test_labels_that_are_not_of_two_classes_are_refused(
    tmp_path, labels, positive, places
):
    path = tmp_path / "a.svm"
    path.write_text(f"{labels[0]} 1:1\n{labels[1]} 1:2\n")
    with raises(InputError, places):
        open_stream(path, positive=positive)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        pytest.param(
            "A.SVM", b"-1 1:1\n-1 1:2\n", id="one label in a file of upper case"
        ),
        pytest.param("a.svm", b"\n# nothing\n", id="comments alone"),
        pytest.param("a.svm", b"1\n-1\n", id="no features"),
        pytest.param("a.svm", b"\x1f\x8b\x08abc", id="gzip"),
        pytest.param("a.svm.gz", b"\x1f\x8b\x08abc", id="gzip by its suffix"),
        pytest.param("a.svm", b"\xef\xbb\xbf1 1:1\n", id="byte order mark"),
        pytest.param("a.csv", b"a,b\n", id="csv"),
        pytest.param("a.npz", b"", id="npz"),
    ],
)
def test_what_is_no_stream_of_labelled_rows_is_refused_by_name(tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(content)
    with raises(InputError, name):
        open_stream(path)


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(None, id="no file"),
        pytest.param(b"nothing", id="text in npy"),
        pytest.param(b"\x93NUMPY\1\0\x06\0{'a':\n", id="damaged header"),
    ],
)
def test_what_is_no_npy_file_is_refused_by_name(tmp_path, content):
    path = tmp_path / "a.npy"
    if content is not None:
        path.write_bytes(content)
    np.save(tmp_path / "y.npy", [1, 0])
    with raises(InputError, "a.npy"):
        open_stream(path, labels=tmp_path / "y.npy")


TRANSPOSED = np.arange(6.0).reshape(3, 2).T


@pytest.mark.parametrize(
    ("X", "labels", "places"),
    [
        pytest.param(np.eye(3), [1, 0], "2 3", id="fewer labels"),
        pytest.param(np.empty((2, 0)), [1, 0], "a.npy", id="no columns"),
        pytest.param(np.arange(2), [1, 0], "2", id="one-dimensional"),
        pytest.param(np.array([["a"]]), [1, 0], "a.npy", id="text"),
        pytest.param(np.asfortranarray(np.eye(2)), [1, 0], "a.npy", id="columns first"),
        pytest.param(TRANSPOSED, [1, 0], "a.npy", id="columns first, transposed"),
        pytest.param(np.array([[1, 2.0], [np.nan, 0]]), [1, 0], "2 1", id="NaN"),
        pytest.param(np.eye(2), [np.inf, 1], "1", id="infinite label"),
        pytest.param(np.ones((2000, 1)), range(2000), "1,000", id="many labels"),
    ],
)
def test_arrays_that_cannot_be_streamed_are_refused(tmp_path, X, labels, places):
    np.save(tmp_path / "a.npy", X)
    np.save(tmp_path / "y.npy", labels)
    with raises(InputError, places):
        open_stream(tmp_path / "a.npy", labels=tmp_path / "y.npy")


def test_an_npy_file_without_labels_is_refused(tmp_path):
    np.save(tmp_path / "a.npy", np.eye(3))
    with raises(InputError, "a.npy"):
        open_stream(tmp_path / "a.npy")


def test_a_count_of_features_is_refused_beside_an_npy_file(tmp_path):
    np.save(tmp_path / "a.npy", np.eye(2))
    np.save(tmp_path / "y.npy", [1, 0])
    with raises(InputError, "a.npy"):
        open_stream(tmp_path / "a.npy", labels=tmp_path / "y.npy", n_features=2)


PROGRAM = """
import os
import sys
import numpy as np
from precbench.tables.streamed_files import open_stream
from precbench.solvers import SGDAtK

def visit(path, labels, block, buffer):
    sizes = {"block_bytes": block, "buffer_bytes": buffer}
    stream = open_stream(path, labels=labels or None, **sizes).X
    rng = np.random.default_rng(0)
    SGDAtK(epochs=1).fit_pieces(stream.shape[1], lambda: stream.visits(500, rng))
    for X, y in stream.batches(500, rng):
        pass
    return stream.shape[0] / 2 + 64 * len(stream.source.starts)

def share_of_bound(few, labels_of_few, path, labels, block=2**17, buffer=2**19):
    visit(few, labels_of_few, 2**12, 2**14)  # what the code itself takes
    before = begin()
    bound = 5 * buffer + 32 * block + visit(path, labels, block, buffer)
    assert os.path.getsize(path) > 3 * bound
    return (peak() - before) * 1024 / bound

for start in range(1, len(sys.argv), 4):
    if os.fork() == 0:  # each begins with the memory of this process
        print(share_of_bound(*sys.argv[start : start + 4]), flush=True)
        os._exit(0)
    assert os.wait()[1] == 0
"""
STREAMED = ["npy", "svmlight, dense", "svmlight, sparse"]


def written(folder, kind, n_rows):
    y = np.where(np.arange(n_rows) % 10, -1, 1)
    if kind == "npy":
        path, labels = folder / f"X-{n_rows}.npy", folder / f"y-{n_rows}.npy"
        np.save(path, np.random.default_rng(0).standard_normal((n_rows, 50)))
        np.save(labels, y)
        return path, labels
    path = folder / f"{kind}-{n_rows}.svm"
    places = range(1, 41) if "dense" in kind else range(1, 400, 10)
    entries = " ".join(f"{i}:0.{i % 10}{i % 7}1" for i in places)
    path.write_text("".join(f"{label} {entries}\n" for label in y))
    return path, ""


@pytest.fixture(scope="module")
def shares_of_bound(tmp_path_factory):
    """The memory of a pass, by kind, as a fraction of a bound of about 7 MB."""
    folder = tmp_path_factory.mktemp("streamed")
    files = [
        f for kind in STREAMED for n in (600, 70_000) for f in written(folder, kind, n)
    ]
    return dict(zip(STREAMED, printed_numbers(PROGRAM, *files), strict=True))


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("kind", STREAMED)
def test_memory_stays_under_the_bound(shares_of_bound, kind):
    """With a file more than three times as large as the bound."""
    assert 0.1 < shares_of_bound[kind] <= 1

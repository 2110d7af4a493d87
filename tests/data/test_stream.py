"""Rows read block by block: each once per pass, in seeded order, within the memory limit."""

import json
import os
import sys
from dataclasses import replace
from functools import partial
from typing import get_args

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy.sparse import csr_matrix, issparse, vstack

from precbench.data import Dataset, open_stream, stream_dataset
from precbench.data.preprocess import Scaler, Scaling
from precbench.errors import InputError
from precbench.experiment import load_config, samples
from precbench.experiment.division import check_division, in_share
from precbench.experiment.samples import Rows, read_data
from precbench.solvers import OnePMB, SGDAtK
from precbench.store import Store
from tests.helpers import numbers, printed_numbers, records, run, succeed
from tests.sentences import done_already, raises

RNG = np.random.default_rng(0)
N_ROWS, N_FEATURES = 700, 5
DENSE = RNG.integers(-3, 4, (N_ROWS, N_FEATURES)).astype(float)
DENSE[:, 0] = np.arange(1, N_ROWS + 1)  # names the row, and fixes the width
SPARSE = np.where((RNG.random(DENSE.shape) < 0.2) | (np.arange(N_FEATURES) == 0), DENSE, 0.0)
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
    assert stream.shape == DENSE.shape and stream.n_pos == np.sum(Y > 0)
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
    firsts = [next(stream.batches(1, np.random.default_rng(s)))[0][0, 0] for s in range(100)]
    assert len(set(firsts)) > 80  # of 700 rows


def test_blocks_are_split_only_at_the_buffer(folder):
    stream = opened(folder, "npy", block_bytes=40 * 10, buffer_bytes=1)
    names = collected(stream.batches(1, np.random.default_rng(0)))[0][:, 0].reshape(70, 10)
    assert (np.ptp(names, axis=1) == 9).all()  # ten neighbours, in some order
    assert (np.diff(names[:, 0]) < 0).any() and (np.diff(names, axis=1) < 0).any()


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
        np.testing.assert_allclose(found, expected.toarray() if sparse else expected, atol=1e-12)
        assert_array_equal(y, Y[rows])
        assert_array_equal(part.labels(), Y[rows])
        assert part.shape == (rows.sum(), N_FEATURES) and part.n_pos == np.sum(Y[rows] > 0)


def test_the_part_of_a_row_does_not_depend_on_other_rows():
    whole = in_share(np.arange(1000), ["x"], 0.25, 0.5)
    pieces = [in_share(np.arange(i, i + 10), ["x"], 0.25, 0.5) for i in range(0, 1000, 10)]
    assert_array_equal(whole, np.concatenate(pieces))
    assert abs(in_share(np.arange(100_000), ["x"], 0.25, 0.5).mean() - 0.25) < 0.01
    assert (whole != in_share(np.arange(1000), ["y"], 0.25, 0.5)).any()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("solver", [SGDAtK(batch_size=50), OnePMB(batch_size=64, radius=1.0)])
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
    assert seen[0] == 0 and seen[-1] == 2 * N_ROWS
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
    assert not X.flags.owndata and not stream._spare_buffers
    assert_array_equal(y[order], Y[order])


@pytest.mark.parametrize("kept", [1, 3, 5])  # of 7 rows
def test_rows_visited_in_place_come_in_the_order_of_a_buffer(folder, kept):
    sizes = {"block_bytes": 800, "buffer_bytes": 6000}
    found = []
    for kind in ("npy", "arrays"):  # arrays are copied
        stream = opened(folder, kind, **sizes).part(lambda rows: rows % 7 < kept)
        pieces = list(stream.batches(30, np.random.default_rng(3)))
        assert {y.dtype for _, y in pieces} == {np.dtype(np.float64)}
        found.append([(X.copy(), y) for X, y in pieces])
    for (X, y), (copied, labels) in zip(*found, strict=True):
        assert_array_equal(X, copied)
        assert_array_equal(y, labels)


def test_a_value_beyond_float32_is_reported(tmp_path):
    np.save(tmp_path / "X.npy", np.array([[1.0], [1e39]]))
    np.save(tmp_path / "y.npy", [0, 1])
    stream = open_stream(tmp_path / "X.npy", labels=tmp_path / "y.npy", dtype="float32").X
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


@pytest.mark.parametrize(("name", "content", "options", "complaint"), [
    ("a.svm", "1 1:1\n-1 9:1\n", {"block_bytes": 0}, "block_bytes 1"),
    ("a.svm", "1 1:1\n-1 9:1\n", {"buffer_bytes": 0}, "buffer_bytes 1"),
    ("a.svm", "-1 1:1\n-1 1:2\n", {}, ""), ("A.SVM", "-1 1:1\n-1 1:2\n", {}, ""),
    ("a.svm", "-1 1:1\n0 1:2\n", {}, ""), ("a.svm", "3 1:1\n4 1:2\n", {}, ""),
    ("a.svm", "3 1:1\n4 1:2\n", {"positive": 5}, "5"), ("a.svm", "\n# nothing\n", {}, ""),
    ("a.svm", "1\n-1\n", {}, ""), ("a.svm", "1 1:1\n-1 9:1\n", {"n_features": 5}, "a.svm:2:4 5"),
    ("a.svm", "1 1:1\n-1 9:1\n", {"labels": "y.npy"}, ""), ("a.svm", b"\x1f\x8b\x08abc", {}, ""),
    ("a.svm.gz", b"\x1f\x8b\x08abc", {}, ""),
    ("a.svm", "-1 1:1\n1 1:2\n", {"positive": 10**400}, ""),
    ("a.svm", b"\xef\xbb\xbf1 1:1\n", {}, ""), ("a.csv", "a,b\n", {}, ""), ("a.npz", "", {}, ""),
    ("nothing.npy", None, {}, ""), ("a.npy", "nothing", {}, ""),
    ("a.npy", b"\x93NUMPY\1\0\x06\0{'a':\n", {}, ""), ("a.npy", np.eye(3), {"labels": None}, ""),
    ("a.npy", np.eye(3), {}, "2 3"), ("a.npy", np.empty((2, 0)), {}, ""),
    ("a.npy", np.eye(2), {"n_features": 2}, ""), ("a.npy", np.arange(2), {}, "2"),
    ("a.npy", np.array([["a"]]), {}, ""), ("a.npy", np.asfortranarray(np.eye(2)), {}, ""),
    ("a.npy", np.arange(6.0).reshape(3, 2).T, {}, ""),
    ("a.npy", np.array([[1, 2.0], [np.nan, 0]]), {}, "2 1"),
    ("a.npy", np.eye(2), {"labels": [np.inf, 1]}, "1"),
    ("a.npy", np.ones((2000, 1)), {"labels": np.arange(2000)}, "1,000"),
])  # fmt: skip
def test_invalid_input_is_reported(tmp_path, name, content, options, complaint):
    path = tmp_path / name
    if isinstance(content, np.ndarray):
        np.save(path, content)
    elif content is not None:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    labels = options.get("labels", [1, 0])
    if path.suffix == ".npy" and labels is not None:
        np.save(tmp_path / "y.npy", labels)
        options = options | {"labels": tmp_path / "y.npy"}
    with raises(InputError, complaint or name):
        open_stream(path, **options)


PROGRAM = """
import os
import sys
import numpy as np
from precbench.data import open_stream
from precbench.solvers import SGDAtK

def visit(path, labels, block, buffer):
    stream = open_stream(path, labels=labels or None, block_bytes=block, buffer_bytes=buffer).X
    rng = np.random.default_rng(0)
    SGDAtK(epochs=1).fit_pieces(stream.shape[1], lambda: stream.visits(500, rng))
    for X, y in stream.batches(500, rng):
        pass
    return stream.shape[0] / 2 + 64 * len(stream.source.starts)

def share_of_bound(few, labels_of_few, path, labels, block=2**17, buffer=2**19):
    visit(few, labels_of_few, 2**12, 2**14)  # what the code itself takes
    before = peak()
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
    files = [f for kind in STREAMED for n in (600, 70_000) for f in written(folder, kind, n)]
    return dict(zip(STREAMED, printed_numbers(PROGRAM, *files), strict=True))


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("kind", STREAMED)
def test_memory_stays_under_the_bound(shares_of_bound, kind):
    """With a file more than three times as large as the bound."""
    assert 0.1 < shares_of_bound[kind] <= 1


# --- experiments on streamed rows: like any other, but the rows are never in memory as a whole ---


SOLVERS = "{perceptron-avg: , sgd-avg: {eta0: {tune: [0.1, 1.0]}}}"


@pytest.fixture
def streamed(small, tmp_path):
    table = pd.read_csv(tmp_path / "mine.csv")
    X, y = table.drop(columns="label").to_numpy(), table["label"].to_numpy()
    np.save(tmp_path / "X.npy", np.ascontiguousarray(X))
    np.save(tmp_path / "y.npy", y)
    lines = (
        f"{label} " + " ".join(f"{j + 1}:{v}" for j, v in enumerate(row))
        for row, label in zip(X, y, strict=True)
    )
    (tmp_path / "mine.svm").write_text("\n".join(lines))

    def write(**changes):
        sizes = "block_bytes: 1000, buffer_bytes: 4000"
        defaults = {
            "datasets": f"[{{file: mine.svm, stream: true, {sizes}}}, "
            f"{{file: X.npy, labels: y.npy, name: npy, stream: true, {sizes}}}]",
            "solvers": SOLVERS,
        }
        return small(**defaults | changes)

    return write


def test_from_the_config_to_the_plot(streamed, tmp_path):
    succeed("run", streamed(plots="[accuracy-time]"), "--out", tmp_path / "out")
    folder = tmp_path / "out" / "small"
    final = pd.read_csv(folder / "results.csv").query("final")
    assert len(final) == 2 * 2 * 2 * 2 and set(final["status"]) == {"ok"}
    assert (final[final["metric"] == "auc"]["value"] > 0.8).all()
    assert list((folder / "figures").glob("*.png"))
    for record in Store(folder).records():
        assert 380 < record.n_train < 460 and record.fitted["n_iter_"] == 3
        assert record.fitted["n_rows_seen_"] == 3 * record.n_train
        assert str(tmp_path) not in json.dumps(record.to_dict())
    before = records(folder)
    assert done_already(run(streamed(), tmp_path / "out").output) == 8 and records(folder) == before
    assert run(streamed(), tmp_path / "two", "--jobs", "2").exit_code == 0
    pd.testing.assert_frame_equal(
        numbers(tmp_path / "two" / "small"), numbers(folder), check_exact=True
    )
    larger = "[{file: mine.svm, stream: true, block_bytes: 1000, buffer_bytes: 8000}]"
    again = run(streamed(datasets=larger), tmp_path / "out")
    assert done_already(again.output) == 0  # another buffer is another trial


@pytest.mark.parametrize(
    "protocol", ["{n_splits: 2}", "{split: kfold, n_splits: 3}", "{split: none}"]
)
@pytest.mark.parametrize("scaling", ["none", "standardise"])
def test_the_parts_of_a_stream(streamed, protocol, scaling, tmp_path):
    experiment = load_config(streamed(protocol=protocol, scaling=scaling))
    X = np.load(tmp_path / "X.npy")
    tested = []
    for trial in experiment.trials():
        if trial.dataset.name != "npy" or trial.label != "sgd-avg":
            continue
        data = read_data(trial.dataset)
        parts = Rows(trial, data)
        whole, test = Rows(trial, data).training, Rows(trial, data).test
        [(fitting, validation)] = parts.divisions
        sizes = [parts.training.part(rows).n_rows for rows in (fitting, validation)]
        assert sum(sizes) == whole.n_rows and min(sizes) > 0
        assert len(whole.y) == whole.n_rows and len(test.y) == test.n_rows
        rows = np.concatenate([block for block, _ in whole.X])
        if scaling == "standardise":
            np.testing.assert_allclose(rows.mean(axis=0), 0, atol=1e-9)
            np.testing.assert_allclose(rows.std(axis=0), 1, atol=1e-9)
        if trial.split.kind == "none":
            assert whole.n_rows == test.n_rows == len(X)
        else:
            assert whole.n_rows + test.n_rows == len(X)
        tested += [block for block, _ in test.X]
    if "kfold" in protocol and scaling == "none":
        found = np.concatenate(tested)
        assert_array_equal(found[np.lexsort(found.T)], X[np.lexsort(X.T)])


def test_scores_come_in_as_many_passes_as_memory_asks_for(streamed, monkeypatch):
    trial = load_config(streamed()).trials()[0]
    test = Rows(trial, read_data(trial.dataset)).test
    weights = np.random.default_rng(0).standard_normal((7, 4))
    together = list(test.scores(weights))
    monkeypatch.setattr(samples, "_SCORES_AT_ONCE", 2 * test.n_rows)
    assert_array_equal(list(test.scores(weights)), together)
    assert_array_equal(list(test.scores(weights, [1.0] * 7)), np.array(together) + 1)
    X = np.concatenate([block for block, _ in test.X])
    np.testing.assert_allclose(together, weights @ X.T, rtol=1e-12)


def test_a_card_is_streamed_from_the_cache(small, in_this_process, tmp_path):
    config = small(
        datasets="[{name: letter, on_missing: stand-in}, "
         "{name: letter, stream: true, on_missing: stand-in, buffer_bytes: 100000}]",
        protocol="{n_splits: 1}", solvers="{perceptron-avg: }", metrics="[auc]",
        parts="[test, training]",
    )  # fmt: skip
    succeed("run", config, "--out", tmp_path / "out", "--smoke")
    table = pd.read_csv(tmp_path / "out" / "small-smoke" / "results.csv").query("final")
    assert set(table["dataset"]) == {"letter", "letter-streamed"}
    assert table["title"].str.contains("streamed").sum() == 2 and set(table["status"]) == {"ok"}


def test_a_provided_split_and_groups(streamed):
    trial = load_config(streamed(protocol="{split: provided}")).trials()[0]
    data = read_data(trial.dataset)
    with raises(InputError, "mine 'random' 'kfold'"):
        check_division(trial.split, data)
    data = replace(data, n_train=400)
    check_division(trial.split, data)
    assert Rows(trial, data).training.n_rows == 400 and Rows(trial, data).test.n_rows == 200
    with raises(InputError, "mine groups"):
        check_division(trial.split, replace(data, groups=np.zeros(600)))


@pytest.mark.parametrize(("changes", "complaint"), [
    ({"solvers": "{psg: , sgd-avg: }"}, "solvers.psg: psg needs all rows at once, and mine"),
    ({"solvers": "{sgd-avg: {fourier: {n_components: 9}}}"},
     "solvers.sgd-avg.fourier: has no meaning for mine, which is streamed"),
    ({"tuning": "{rows: 9}"}, "tuning.rows: has no meaning for mine, which is streamed"),
    ({"tuning": "{folds: 9}"}, "tuning.folds: has no meaning for mine, which is streamed"),
    ({"protocol": "{stratified: true}"}, "protocol.stratified: has no meaning for mine"),
    ({"protocol": "{train_size: 10}"}, "protocol.train_size: has no meaning for mine"),
    ({"datasets": "[{file: mine.svm, stream: false}]"}, "datasets[0].stream"),
    ({"datasets": "[{file: mine.svm, stream: true, drop: [a]}]"}, "datasets[0].drop: unknown"),
    ({"datasets": "[{file: mine.svm, stream: true, bufer_bytes: 1}]"}, "buffer_bytes"),
    ({"datasets": "[{file: mine.svm, stream: true, buffer_bytes: 0}]"}, "buffer_bytes: "),
    ({"datasets": "[{file: X.npy, stream: true, labels: z.npy}]"}, "labels: no such file"),
    ({"datasets": "[{name: lettr, stream: true}]"}, "datasets[0].name: unknown data set"),
    ({"datasets": "[{name: letter, stream: true, file: a}]"}, "no such file"),
    ({"datasets": "[{file: X.npy, stream: true}]"}, "say where the labels are"),
    ({"datasets": "[{file: mine.csv, stream: true}]"}, "can be streamed"),
])  # fmt: skip
def test_mistakes_are_reported_before_anything_runs(streamed, changes, complaint, tmp_path):
    result = run(streamed(**changes), tmp_path / "out")
    assert result.exit_code == 2 and complaint in result.output.replace("\n", " ")
    assert "Traceback" not in result.output and not (tmp_path / "out").exists()


def test_a_set_without_positives_is_reported(streamed, in_this_process, tmp_path):
    y = np.zeros(600, dtype=int)
    y[0] = 1
    np.save(tmp_path / "y.npy", y)
    result = run(streamed(protocol="{n_splits: 8}", solvers="{perceptron-avg: }"), tmp_path / "out")
    assert result.exit_code == 1
    table = pd.read_csv(tmp_path / "out" / "small" / "results.csv").query("dataset == 'npy'")
    reasons = set(table["reason"].dropna())
    assert any("the training set of npy has" in r and "0 of them positive" in r for r in reasons)
    assert any(r.startswith("not measured") for r in reasons)
    np.save(tmp_path / "y.npy", np.zeros(600))
    with raises(InputError, "class"):
        open_stream(tmp_path / "X.npy", labels=tmp_path / "y.npy")

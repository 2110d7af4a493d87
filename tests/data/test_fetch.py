"""Files reach the cache verified or not at all, and are read as their cards say."""

import bz2
import errno
import hashlib
import os
import shutil

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.sparse import issparse

from precbench.core.errors import DataUnavailableError, InputError, PrecbenchError
from precbench.data import DATASETS, load_dataset
from precbench.data.cards import load
from precbench.data.cards.fetch import add_files, fetch, info
from precbench.data.cards.generated import generate
from precbench.data.cards.parsers import parse
from tests.helpers import TOY_SVM as TEXT
from tests.helpers import make_card
from tests.sentences import names, raises

PAGE = b"\n<!DOCTYPE html><html><body>Please log in</body></html>"


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "mirror" / "toys"
    folder.mkdir(parents=True)
    return folder


def left_behind(cache):
    return {path.name for path in cache.rglob("*") if path.is_file()}


DONE = {"toy.svm"}


@pytest.mark.promise("R16")
def test_from_a_folder_then_from_the_cache(cache, folder):
    (folder / "toy.svm").write_bytes(TEXT)
    (file,) = fetch(make_card(), folder.parent)
    assert file.path == cache / "files" / "toys" / "toy.svm"
    assert file.path.read_bytes() == TEXT
    assert file.sha256 == hashlib.sha256(TEXT).hexdigest()
    shutil.rmtree(folder)
    assert fetch(make_card()) == (file,)
    assert left_behind(cache) == DONE


def test_compressed_with_bz2(cache, folder, monkeypatch):
    half = len(TEXT) // 2
    (folder / "toy.svm.bz2").write_bytes(
        bz2.compress(TEXT[:half]) + bz2.compress(TEXT[half:])
    )
    monkeypatch.setenv("PRECBENCH_MIRROR", str(folder.parent))
    (file,) = fetch(make_card())
    assert file.path.read_bytes() == TEXT
    assert left_behind(cache) == DONE


@pytest.mark.promise("R16")
@pytest.mark.parametrize(
    "address",
    [
        "http://example.org/data",
        "ftp://example.org",
        "file:///x",
        "http://[",
        "http://localhost@x.org",
    ],
)
def test_other_mirrors_are_rejected(address):
    with raises(InputError, f"'{address}'"):
        fetch(make_card(), address)


@pytest.mark.promise("R16")
@pytest.mark.parametrize(
    ("answer", "places"),
    [
        pytest.param((404, {}, b""), "404", id="not found"),
        pytest.param((502, {}, b""), "502", id="bad gateway"),
        pytest.param(
            (200, {"Content-Length": str(len(TEXT))}, TEXT[:100]), "", id="cut short"
        ),
        pytest.param(TEXT[:100], "", id="cut short, of unknown length"),
        pytest.param(PAGE, "", id="a page instead"),
        pytest.param(TEXT + b"x", f"{len(TEXT):,}", id="longer than the card says"),
        pytest.param(
            (302, {"Location": "http://example.org/toy.svm"}, b""),
            "",
            id="redirect to http",
        ),
        pytest.param(
            (302, {"Location": "ftp://example.org/toy.svm"}, b""),
            "",
            id="redirect to ftp",
        ),
        pytest.param(
            (302, {"Location": "http://["}, b""), "", id="redirect to no address"
        ),
        pytest.param(
            (200, {"Content-Length": "²"}, TEXT[:100]),
            "",
            id="length in another script",
        ),
        pytest.param(bz2.compress(TEXT)[:-10], "", id="bzip2 cut short"),
    ],
)
def test_server_errors(cache, server, answer, places):
    server.serve("/toys/toy.svm", answer)
    server.serve("/toys/toy.svm.bz2", answer)
    with raises(DataUnavailableError, f"{server.address}/toys/toy.svm {places}"):
        fetch(make_card(), server.address)
    assert left_behind(cache) == set()


def test_a_local_redirect_is_followed(cache, server):
    server.serve(
        "/m/toys/toy.svm", (302, {"Location": f"{server.address}/elsewhere"}, b"")
    )
    server.serve("/elsewhere", TEXT)
    assert fetch(make_card(), server.address + "/m/")[0].path.read_bytes() == TEXT
    assert left_behind(cache) == DONE
    assert server.encoding == "identity"


@pytest.mark.promise("R16")
def test_an_unreachable_server():
    card = make_card(file={"urls": ["https://localhost:9/toy.svm"]})
    with raises(DataUnavailableError, "localhost:9/toy.svm"):
        fetch(card, "http://127.0.0.1:9")


@pytest.mark.promise("R16")
def test_a_wrong_checksum_is_reported(cache, folder):
    (folder / "toy.svm").write_bytes(TEXT[::-1])
    (folder / "toy.svm.bz2").write_bytes(bz2.compress(TEXT))
    (file,) = fetch(make_card(), folder.parent)  # the next source has it
    assert file.path.read_bytes() == TEXT

    shutil.rmtree(cache)
    (folder / "toy.svm.bz2").unlink()
    with pytest.raises(DataUnavailableError) as caught:
        fetch(make_card(), folder.parent)
    for content in (TEXT, TEXT[::-1]):
        assert hashlib.sha256(content).hexdigest() in str(caught.value)
    names(str(caught.value), f"{folder}/toy.svm .gz, .bz2, .xz")


@pytest.mark.promise("R16")
def test_a_damaged_file_in_the_cache_is_replaced(folder):
    (folder / "toy.svm").write_bytes(TEXT)
    (file,) = fetch(make_card(), folder.parent)
    file.path.write_bytes(TEXT[:-1])
    assert fetch(make_card(), folder.parent)[0].path.read_bytes() == TEXT
    file.path.write_bytes(TEXT[:-1])
    with raises(DataUnavailableError, f"{file.path} {len(TEXT) - 1:,}"):
        fetch(make_card())


def test_md5_when_only_that_is_known(folder):
    (folder / "toy.svm").write_bytes(TEXT)
    md5 = hashlib.md5(TEXT, usedforsecurity=False).hexdigest()
    assert fetch(make_card(file={"sha256": None, "md5": md5}), folder.parent)
    with raises(DataUnavailableError, f"{md5} {'0' * 32}"):
        fetch(make_card(file={"sha256": None, "md5": "0" * 32}), folder.parent)


@pytest.mark.promise("R4")
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS])
def test_a_disk_that_cannot_be_written(folder, monkeypatch, code):
    (folder / "toy.svm").write_bytes(TEXT)

    def fail(*_, **__):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(
        "shutil.copyfile" if code == errno.ENOSPC else "pathlib.Path.mkdir", fail
    )
    with raises(PrecbenchError, "PRECBENCH_CACHE") as caught:
        fetch(make_card(), folder.parent)
    assert caught.value.exit_code == 1


def test_add_and_verify(tmp_path, add_card):
    add_card(make_card())
    brought = tmp_path / "toy.svm"
    brought.write_bytes(TEXT)
    assert [report.status for report in info("toy")] == ["missing"]
    (report,) = add_files("toy", [brought])
    assert (report.status, report.bytes) == ("verified", len(TEXT))
    assert report.sha256 == report.expected
    report.path.write_bytes(TEXT[::-1])
    (report,) = info("toy")
    assert report.status == "damaged"
    assert report.sha256 != report.expected


# --- files that the user must provide, without a published checksum ---

ROWS, FEATURES, POSITIVES = 40, 5, 3


def pair_card():
    return make_card(
        name="pair",
        format="kdd08",
        files=[
            {"name": "Features.txt", "max_bytes": 10_000},
            {"name": "Info.txt", "max_bytes": 10_000},
        ],
        rows=ROWS,
        features=FEATURES,
        positives=POSITIVES,
    )


def write_pair(folder, rows=ROWS, positives=POSITIVES):
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(0)
    info = np.zeros((rows, 11))
    info[:, 0] = np.where(np.arange(rows) < positives, 1, -1)
    info[:, 4] = 100 + np.arange(rows) // 4
    np.savetxt(
        folder / "Features.txt", rng.standard_normal((rows, FEATURES)), fmt=" %.6e"
    )
    np.savetxt(folder / "Info.txt", info, fmt="%g")
    return [folder / "Features.txt", folder / "Info.txt"]


def test_add_a_pair_without_checksums(tmp_path, add_card):
    card = add_card(pair_card())
    features, labels = write_pair(tmp_path / "brought")
    assert [r.status for r in add_files("pair", [features])] == ["as added", "missing"]
    assert [r.status for r in add_files("pair", [labels])] == ["as added", "as added"]
    arrays = parse(card, [file.path for file in fetch(card)])
    assert arrays.X.shape == (ROWS, FEATURES)
    assert np.array_equal(arrays.X, np.loadtxt(features))
    assert np.count_nonzero(arrays.y == 1) == POSITIVES
    assert np.array_equal(arrays.groups, np.arange(ROWS) // 4)

    write_pair(tmp_path / "other", positives=2)
    with raises(InputError, "Info.txt"):
        add_files("pair", [tmp_path / "other" / "Info.txt"])


@pytest.mark.promise("R16")
def test_of_files_added_together_all_or_none_are_kept(tmp_path, cache, add_card):
    add_card(pair_card())
    add_card(make_card(), "another file")
    right, other = write_pair(tmp_path / "right"), tmp_path / "other.txt"
    wrong = tmp_path / "toy.svm"
    other.write_bytes(PAGE)
    wrong.write_bytes(TEXT[:-1] + b" ")
    with raises(InputError, f"{other} Features.txt"):
        add_files("pair", [right[0], other])
    with raises(InputError, str(wrong)):
        add_files("toy", [wrong])
    assert wrong.exists()
    assert left_behind(cache) == set()


@pytest.mark.promise("R16")
def test_contents_that_disagree_with_the_card_are_refused(tmp_path, cache, add_card):
    add_card(pair_card())
    with raises(InputError, "39 5 2 40"):
        add_files("pair", write_pair(tmp_path / "brought", rows=39, positives=2))
    assert left_behind(cache) == set()
    assert [r.status for r in add_files("pair", write_pair(tmp_path / "right"))] == [
        "as added"
    ] * 2


# --- what `load_dataset` gives: the card's numbers, memory maps, stand-ins ---


AT_HAND = {
    "letter": np.ndarray,
    "letter-q": np.ndarray,
    "ijcnn1": np.ndarray,
    "cod-rna-2": np.ndarray,
    "adult": "csr",
    "a9a": "csr",
    "w8a": "csr",
}


def arrays_of(dataset):
    X = dataset.X
    parts = [X.data, X.indices, X.indptr] if issparse(X) else [X]
    optional = [a for a in (dataset.groups, dataset.optimum) if a is not None]
    return [*parts, dataset.y, *optional]


def is_mapped(array):
    while array is not None and not isinstance(array, np.memmap):
        array = getattr(array, "base", None)
    return array is not None


def check_law(dataset):
    card = DATASETS[dataset.name]
    assert dataset.X.shape == (card.rows, card.features)
    assert dataset.y.shape == (card.rows,)
    assert set(np.unique(dataset.y)) == {-1.0, 1.0}
    assert dataset.n_pos == card.positives
    assert dataset.n_train == card.train_rows
    assert len(dataset.sha256) == 64
    assert dataset.X.dtype == dataset.y.dtype == np.float64
    if issparse(dataset.X):
        assert dataset.X.format == "csr"
        assert dataset.X.indices.dtype == dataset.X.indptr.dtype == np.int32
        dataset.X.check_format(full_check=True)
    else:
        assert dataset.X.flags.c_contiguous
    assert not any(array.flags.writeable for array in arrays_of(dataset))


@pytest.mark.parametrize("name", AT_HAND)
def test_real_data(mirror, name):
    first = load_dataset(name, mirror=mirror)
    check_law(first)
    assert not first.stand_in
    assert first.title == DATASETS[name].title
    assert issparse(first.X) == (AT_HAND[name] == "csr")
    again = load_dataset(name)  # from the cache alone
    assert again.sha256 == first.sha256
    for one, other in zip(arrays_of(first), arrays_of(again), strict=True):
        assert is_mapped(other)
        assert np.array_equal(one, other)


def test_the_letter_datasets_differ(mirror):
    n, q = (
        load_dataset("letter", mirror=mirror),
        load_dataset("letter-q", mirror=mirror),
    )
    assert n.sha256 != q.sha256
    assert np.array_equal(n.X, q.X)
    assert not np.any((n.y > 0) & (q.y > 0))
    first = (
        (mirror / "letter/letter-recognition.data")
        .read_text()
        .splitlines()[0]
        .split(",")
    )
    assert first[0] == "T"
    assert n.X[0].tolist() == [float(value) for value in first[1:]]


def test_the_counterexample():
    dataset = load_dataset("counterexample")
    check_law(dataset)
    assert dataset.X.ravel().tolist() == [-1, -1, -2, -3, -3, -3]
    assert dataset.y.tolist() == [1, 1, 1, -1, -1, -1]


@pytest.mark.parametrize(("gamma", "features"), [(0.01, 1), (0.5, 2), (1.9, 30)])
def test_the_margin_is_that_of_the_card(gamma, features):
    changes = {"gamma": gamma, "features": features, "rows": 500, "positives": 20}
    arrays = generate(DATASETS["margin"].model_copy(update=changes))
    scores = arrays.X @ arrays.optimum
    assert np.linalg.norm(arrays.optimum) == pytest.approx(1, abs=1e-12)
    assert np.linalg.norm(arrays.X, axis=1).max() <= 1 + 1e-12
    margin = scores[arrays.y > 0].min() - scores[arrays.y < 0].max()
    assert margin == pytest.approx(gamma, abs=1e-12)
    assert np.count_nonzero(arrays.y > 0) == 20


@pytest.mark.parametrize(
    ("non_linear", "correlation"), [(0.0, 0.71), (0.5, 0.5), (1.0, 0.0)]
)
def test_a_linear_function_sees_its_share_of_the_signal(non_linear, correlation):
    """With half the rows positive it correlates with the label at most as a threshold
    lets it.
    """
    changes = {
        "non_linear": non_linear,
        "rows": 20_000,
        "positives": 10_000,
        "features": 5,
    }
    card = DATASETS["synthetic-half-3-in-1000"].model_copy(update=changes)
    X, y = generate(card)[:2]
    best = X @ np.linalg.lstsq(X, y, rcond=None)[0]
    assert np.count_nonzero(y > 0) == 10_000
    assert np.corrcoef(best, y)[0, 1] == pytest.approx(correlation, abs=0.05)
    assert np.array_equal(generate(card).X, X)


def test_missing_data_are_an_error_unless_a_stand_in_is_allowed(monkeypatch):
    monkeypatch.setattr("precbench.data.cards.download.CONNECT_SECONDS", 0.5)
    with raises(DataUnavailableError, "Features.txt Info.txt"):
        load_dataset("kdd08")
    with raises(InputError, "on_missing"):
        load_dataset("kdd08", on_missing="ignore")
    stand_in = load_dataset("kdd08", on_missing="stand-in")
    assert stand_in.stand_in
    assert stand_in.title == "KDD Cup 2008 (stand-in, synthetic)"
    check_law(stand_in)


def test_invalid_contents_never_give_a_stand_in(monkeypatch, tmp_path):
    (tmp_path / "toys").mkdir()
    (tmp_path / "toys" / "toy.svm.bz2").write_bytes(bz2.compress(b"1 1:1\n-1 1:2\n"))
    card = make_card(file={"sha256": None, "bytes": None, "max_bytes": 100})
    monkeypatch.setattr(load, "find_card", lambda _: card)
    for _ in range(2):
        with raises(InputError, "2 1"):
            load_dataset("toy", mirror=tmp_path, on_missing="stand-in")


def test_an_unwritable_cache_is_no_error(cache):
    cache.write_text("a file where the folder should be")
    dataset = load_dataset("margin")
    check_law(dataset)
    assert not is_mapped(dataset.X)


@pytest.mark.parametrize("name", ["counterexample", "margin"])
def test_rows_kept_as_float32(cache, name):
    whole, single = load_dataset(name), load_dataset(name, dtype="float32")
    assert_array_equal(single.X, np.asarray(whole.X).astype(np.float32))
    assert single.X.dtype == np.float32
    assert single.y.dtype == np.float64
    assert all(map(is_mapped, (single.X, load_dataset(name, dtype="float32").X)))
    assert single.sha256 == whole.sha256 == load_dataset(name).sha256
    assert load_dataset(name).X.dtype == np.float64


def test_a_damaged_array_cache_is_rebuilt(cache):
    content = np.array(load_dataset("margin").X)
    (damaged,) = (cache / "prepared").glob("margin-*/X.npy")
    whole = damaged.read_bytes()
    for content_then in (b"", whole[:1000], whole.replace(b"{'descr", b"{'desc\0", 1)):
        damaged.unlink()
        damaged.write_bytes(content_then)
        again = load_dataset("margin")
        assert np.array_equal(again.X, content)
        assert is_mapped(again.X)
    assert not list((cache / "prepared").glob(".*"))


# --- formats whose real files are not available ---


def test_ppi(tmp_path):
    rng = np.random.default_rng(0)
    tables = []
    for name, label, rows in (("a", 1, 3), ("b", 0, 5)):
        table = np.column_stack(
            [rng.standard_normal((rows, 162)), np.full(rows, label)]
        )
        np.savetxt(tmp_path / name, table, delimiter=",", fmt="%.17g")
        tables.append(table)
    card = DATASETS["ppi"].model_copy(update={"rows": 8, "positives": 3})
    arrays = parse(card, [tmp_path / "a", tmp_path / "b"])
    whole = np.concatenate(tables)
    assert np.array_equal(
        arrays.X, np.concatenate([whole[:, :20], whole[:, 97:162]], axis=1)
    )
    assert arrays.y.tolist() == [1] * 3 + [-1] * 5

    np.savetxt(tmp_path / "a", tables[0][:, 1:], delimiter=",")
    with raises(InputError, "162"):
        parse(card, [tmp_path / "a", tmp_path / "b"])


def test_kdd08(tmp_path):
    """The patient is the fifth of the columns beside the label, which are all different
    here.
    """
    X = np.random.default_rng(0).standard_normal((6, 117))
    patients = [40, 7, 40, 12, 7, 7]
    labels = [-1, 1, -1, -1, 1, -1]
    info = np.column_stack(
        [labels, *np.arange(18).reshape(3, 6), patients, np.zeros((6, 2))]
    )
    np.savetxt(tmp_path / "Features.txt", X, fmt="%.17g")
    np.savetxt(tmp_path / "Info.txt", info, fmt="%d")
    card = DATASETS["kdd08"].model_copy(update={"rows": 6, "positives": 2})
    arrays = parse(card, [tmp_path / "Features.txt", tmp_path / "Info.txt"])
    assert np.array_equal(arrays.X, X)
    assert arrays.y.tolist() == labels
    assert arrays.groups.tolist() == [2, 0, 2, 1, 0, 0]

    for part, places in ((info[:-1], "6 5"), (info[:, :4], "patient")):
        np.savetxt(tmp_path / "Info.txt", part, fmt="%d")
        with raises(InputError, places):
            parse(card, [tmp_path / "Features.txt", tmp_path / "Info.txt"])


@pytest.mark.parametrize(
    ("text", "places"),
    [
        pytest.param("N,1,2\nM,1,x\n", "'x' 1 3", id="a word among numbers"),
        pytest.param("N,1,2\nM,1\n", "", id="a short row"),
        pytest.param("N,1,2\nM,1,nan\n", "2", id="NaN"),
        pytest.param("N,1,2\nN,1,3\n", "2", id="a class of all rows"),
        pytest.param("N,1,2,3\nM,1,3,4\n", "2 3 1", id="columns beyond the card"),
    ],
)
def test_invalid_tables(tmp_path, text, places):
    path = tmp_path / "table"
    path.write_text(text)
    card = DATASETS["letter"].model_copy(
        update={"rows": 2, "features": 2, "positives": 1}
    )
    with raises(InputError, places):
        parse(card, [path])

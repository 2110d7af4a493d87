"""Files reach the cache verified or not at all, and are read as their cards say."""

import bz2
import errno
import hashlib
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

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
from precbench.data.dataset import parts
from tests.helpers import TOY_SVM as TEXT
from tests.helpers import make_card
from tests.sentences import names, raises

SHA256 = hashlib.sha256(TEXT).hexdigest()
PAGE = b"\n<!DOCTYPE html><html><body>Please log in</body></html>"


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "mirror" / "toys"
    folder.mkdir(parents=True)
    return folder


def names_in(cache):
    """Return the names of all files in the cache."""
    return {path.name for path in cache.rglob("*") if path.is_file()}


@pytest.mark.promise("R16")
def test_a_file_comes_from_a_folder_then_from_the_cache(cache, folder):
    (folder / "toy.svm").write_bytes(TEXT)
    [file] = fetch(make_card(), folder.parent)
    assert file.path == cache / "files" / "toys" / "toy.svm"
    assert file.path.read_bytes() == TEXT
    assert file.sha256 == SHA256
    shutil.rmtree(folder)
    assert fetch(make_card()) == (file,)
    assert names_in(cache) == {"toy.svm"}


def test_a_file_is_compressed_in_two_streams(cache, folder, monkeypatch):
    half = len(TEXT) // 2
    streams = bz2.compress(TEXT[:half]) + bz2.compress(TEXT[half:])
    (folder / "toy.svm.bz2").write_bytes(streams)
    monkeypatch.setenv("PRECBENCH_MIRROR", str(folder.parent))
    [file] = fetch(make_card())
    assert file.path.read_bytes() == TEXT
    assert names_in(cache) == {"toy.svm"}


@pytest.mark.promise("R16")
@pytest.mark.parametrize(
    "address",
    [
        pytest.param("http://example.org/data", id="http"),
        pytest.param("ftp://example.org", id="ftp"),
        pytest.param("file:///x", id="file"),
        pytest.param("http://[", id="no address"),
        pytest.param("http://localhost@x.org", id="localhost as a user"),
    ],
)
def test_a_mirror_is_a_folder_or_has_https(address):
    with raises(InputError, f"'{address}'"):
        fetch(make_card(), address)


@dataclass(frozen=True)
class Refused:
    """An answer that gives no file, and the words that the error has."""

    body: bytes = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    words: str = ""


def redirect(location):
    return Refused(status=302, headers={"Location": location})


REFUSED_ANSWERS = {
    "not found": Refused(status=404, words="404"),
    "bad gateway": Refused(status=502, words="502"),
    "cut short": Refused(body=TEXT[:100], headers={"Content-Length": str(len(TEXT))}),
    "cut short, of unknown length": Refused(body=TEXT[:100]),
    "a page instead": Refused(body=PAGE),
    "longer than the card says": Refused(body=TEXT + b"x", words=f"{len(TEXT):,}"),
    "redirect to http": redirect("http://example.org/toy.svm"),
    "redirect to ftp": redirect("ftp://example.org/toy.svm"),
    "redirect to no address": redirect("http://["),
    "length in another script": Refused(
        body=TEXT[:100], headers={"Content-Length": "²"}
    ),
    "bzip2 cut short": Refused(body=bz2.compress(TEXT)[:-10]),
}


@pytest.mark.promise("R16")
@pytest.mark.parametrize("case", REFUSED_ANSWERS.values(), ids=REFUSED_ANSWERS)
def test_server_errors(cache, server, case):
    for path in ("/toys/toy.svm", "/toys/toy.svm.bz2"):
        server.serve(path, case.body, status=case.status, headers=case.headers)
    with raises(DataUnavailableError, f"{server.address}/toys/toy.svm {case.words}"):
        fetch(make_card(), server.address)
    assert names_in(cache) == set()


def test_a_local_redirect_is_followed(cache, server):
    elsewhere = {"Location": f"{server.address}/elsewhere"}
    server.serve("/m/toys/toy.svm", status=302, headers=elsewhere)
    server.serve("/elsewhere", TEXT)
    [file] = fetch(make_card(), f"{server.address}/m/")
    assert file.path.read_bytes() == TEXT
    assert names_in(cache) == {"toy.svm"}
    assert server.encoding == "identity"


@pytest.mark.promise("R16")
def test_an_unreachable_server():
    card = make_card(file={"urls": ["https://localhost:9/toy.svm"]})
    with raises(DataUnavailableError, "localhost:9/toy.svm"):
        fetch(card, "http://127.0.0.1:9")


@pytest.mark.promise("R16")
def test_the_next_source_is_used_where_a_checksum_is_wrong(folder):
    (folder / "toy.svm").write_bytes(TEXT[::-1])
    (folder / "toy.svm.bz2").write_bytes(bz2.compress(TEXT))
    [file] = fetch(make_card(), folder.parent)
    assert file.path.read_bytes() == TEXT


@pytest.mark.promise("R16")
def test_a_wrong_checksum_is_reported(folder):
    (folder / "toy.svm").write_bytes(TEXT[::-1])
    with pytest.raises(DataUnavailableError) as caught:
        fetch(make_card(), folder.parent)
    sentence = str(caught.value)
    assert SHA256 in sentence
    assert hashlib.sha256(TEXT[::-1]).hexdigest() in sentence
    names(sentence, f"{folder}/toy.svm .gz, .bz2, .xz")


@pytest.mark.promise("R16")
def test_a_damaged_file_in_the_cache_is_replaced(folder):
    (folder / "toy.svm").write_bytes(TEXT)
    [file] = fetch(make_card(), folder.parent)
    file.path.write_bytes(TEXT[:-1])
    fetch(make_card(), folder.parent)
    assert file.path.read_bytes() == TEXT


@pytest.mark.promise("R16")
def test_a_damaged_file_is_named_where_no_source_has_it(folder):
    (folder / "toy.svm").write_bytes(TEXT)
    [file] = fetch(make_card(), folder.parent)
    file.path.write_bytes(TEXT[:-1])
    with raises(DataUnavailableError, f"{file.path} {len(TEXT) - 1:,}"):
        fetch(make_card())


def test_md5_counts_when_only_that_is_known(folder):
    (folder / "toy.svm").write_bytes(TEXT)
    md5 = hashlib.md5(TEXT, usedforsecurity=False).hexdigest()
    [file] = fetch(make_card(file={"sha256": None, "md5": md5}), folder.parent)
    assert file.status == "verified"
    with raises(DataUnavailableError, f"{md5} {'0' * 32}"):
        fetch(make_card(file={"sha256": None, "md5": "0" * 32}), folder.parent)


@pytest.mark.promise("R4")
@pytest.mark.parametrize(
    ("function", "code"),
    [
        pytest.param("shutil.copyfile", errno.ENOSPC, id="full"),
        pytest.param("pathlib.Path.mkdir", errno.EROFS, id="read-only"),
    ],
)
def test_a_disk_that_cannot_be_written(folder, monkeypatch, function, code):
    (folder / "toy.svm").write_bytes(TEXT)

    def fail(*_, **__):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(function, fail)
    with raises(PrecbenchError, "PRECBENCH_CACHE") as caught:
        fetch(make_card(), folder.parent)
    assert caught.value.exit_code == 1


def statuses(reports):
    return [report.status for report in reports]


def test_an_added_file_is_verified_until_it_is_damaged(tmp_path, add_card):
    add_card(make_card())
    (tmp_path / "toy.svm").write_bytes(TEXT)
    assert statuses(info("toy")) == ["missing"]

    [added] = add_files("toy", [tmp_path / "toy.svm"])
    assert added.status == "verified"
    assert added.bytes == len(TEXT)
    assert added.sha256 == SHA256
    assert added.expected == SHA256

    added.path.write_bytes(TEXT[::-1])
    [damaged] = info("toy")
    assert damaged.status == "damaged"
    assert damaged.sha256 == hashlib.sha256(TEXT[::-1]).hexdigest()
    assert damaged.expected == SHA256


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


class Pair(NamedTuple):
    """The paths of the two files."""

    features: Path
    labels: Path


def write_pair(folder, rows=ROWS, positives=POSITIVES):
    folder.mkdir(parents=True, exist_ok=True)
    pair = Pair(folder / "Features.txt", folder / "Info.txt")
    features = np.random.default_rng(0).standard_normal((rows, FEATURES))
    np.savetxt(pair.features, features, fmt=" %.6e")
    info = np.zeros((rows, 11))
    info[:, 0] = np.where(np.arange(rows) < positives, 1, -1)
    info[:, 4] = 100 + np.arange(rows) // 4  # the patient
    np.savetxt(pair.labels, info, fmt="%g")
    return pair


def test_add_a_pair_without_checksums(tmp_path, add_card):
    card = add_card(pair_card())
    pair = write_pair(tmp_path / "brought")
    assert statuses(add_files("pair", [pair.features])) == ["as added", "missing"]
    assert statuses(add_files("pair", [pair.labels])) == ["as added", "as added"]

    arrays = parse(card, [file.path for file in fetch(card)])
    assert arrays.X.shape == (ROWS, FEATURES)
    assert np.array_equal(arrays.X, np.loadtxt(pair.features))
    assert np.count_nonzero(arrays.y == 1) == POSITIVES
    assert np.array_equal(arrays.groups, np.arange(ROWS) // 4)

    pair_with_two_positives = write_pair(tmp_path / "other", positives=2)
    with raises(InputError, "Info.txt"):
        add_files("pair", [pair_with_two_positives.labels])


@pytest.mark.promise("R16")
def test_of_files_added_together_all_or_none_are_kept(tmp_path, cache, add_card):
    add_card(pair_card())
    pair = write_pair(tmp_path / "right")
    page = tmp_path / "other.txt"
    page.write_bytes(PAGE)
    with raises(InputError, f"{page} Features.txt"):
        add_files("pair", [pair.features, page])
    assert names_in(cache) == set()


@pytest.mark.promise("R16")
def test_a_file_with_another_checksum_is_not_added(tmp_path, cache, add_card):
    add_card(make_card())
    other = tmp_path / "toy.svm"
    other.write_bytes(TEXT[:-1] + b" ")
    with raises(InputError, str(other)):
        add_files("toy", [other])
    assert other.exists()
    assert names_in(cache) == set()


@pytest.mark.promise("R16")
def test_contents_that_disagree_with_the_card_are_refused(tmp_path, cache, add_card):
    add_card(pair_card())
    with raises(InputError, "39 5 2 40"):
        add_files("pair", write_pair(tmp_path / "brought", rows=39, positives=2))
    assert names_in(cache) == set()
    added = add_files("pair", write_pair(tmp_path / "right"))
    assert statuses(added) == ["as added", "as added"]


# --- what `load_dataset` gives: the card's numbers, memory maps, stand-ins ---


DENSE_AT_HAND = ["letter", "letter-q", "ijcnn1", "cod-rna-2"]
SPARSE_AT_HAND = ["adult", "a9a", "w8a"]


def arrays_of(dataset):
    """Return all arrays of a data set."""
    optional = [dataset.groups, dataset.optimum]
    given = [array for array in optional if array is not None]
    return [*parts(dataset.X), dataset.y, *given]


def is_mapped(array):
    """Return whether an array lies in the memory map of a file."""
    while array is not None and not isinstance(array, np.memmap):
        array = getattr(array, "base", None)
    return array is not None


def check_law(dataset):
    """See that a data set is as its card says, and cannot be written."""
    card = DATASETS[dataset.name]
    assert dataset.X.shape == (card.rows, card.features)
    assert dataset.y.shape == (card.rows,)
    assert set(np.unique(dataset.y)) == {-1.0, 1.0}
    assert dataset.n_pos == card.positives
    assert dataset.n_train == card.train_rows
    assert len(dataset.sha256) == 64
    assert dataset.X.dtype == np.float64
    assert dataset.y.dtype == np.float64
    if issparse(dataset.X):
        assert dataset.X.format == "csr"
        assert dataset.X.indices.dtype == np.int32
        assert dataset.X.indptr.dtype == np.int32
        dataset.X.check_format(full_check=True)
    else:
        assert dataset.X.flags.c_contiguous
    assert not any(array.flags.writeable for array in arrays_of(dataset))


@pytest.mark.parametrize("name", [*DENSE_AT_HAND, *SPARSE_AT_HAND])
def test_real_data_are_loaded_from_the_mirror_then_from_the_cache(mirror, name):
    fetched = load_dataset(name, mirror=mirror)
    check_law(fetched)
    assert not fetched.stand_in
    assert fetched.title == DATASETS[name].title
    assert issparse(fetched.X) == (name in SPARSE_AT_HAND)
    cached = load_dataset(name)
    assert cached.sha256 == fetched.sha256
    for one, other in zip(arrays_of(fetched), arrays_of(cached), strict=True):
        assert is_mapped(other)
        assert np.array_equal(one, other)


def test_the_letter_datasets_differ_in_their_labels(mirror):
    n = load_dataset("letter", mirror=mirror)
    q = load_dataset("letter-q", mirror=mirror)
    assert n.sha256 != q.sha256
    assert np.array_equal(n.X, q.X)
    assert not np.any((n.y > 0) & (q.y > 0))


def test_the_first_row_of_letter_is_that_of_its_file(mirror):
    dataset = load_dataset("letter", mirror=mirror)
    first_line = (mirror / "letter/letter-recognition.data").read_text().split()[0]
    letter, *values = first_line.split(",")
    assert letter == "T"
    assert dataset.X[0].tolist() == [float(value) for value in values]


def test_the_counterexample():
    dataset = load_dataset("counterexample")
    check_law(dataset)
    assert dataset.X.ravel().tolist() == [-1, -1, -2, -3, -3, -3]
    assert dataset.y.tolist() == [1, 1, 1, -1, -1, -1]


@pytest.mark.parametrize(("gamma", "features"), [(0.01, 1), (0.5, 2), (1.9, 30)])
def test_the_margin_is_that_of_the_card(gamma, features):
    changes = {"gamma": gamma, "features": features, "rows": 500, "positives": 20}
    arrays = generate(DATASETS["margin"].model_copy(update=changes))
    is_positive = arrays.y > 0
    scores = arrays.X @ arrays.optimum
    margin = scores[is_positive].min() - scores[~is_positive].max()
    longest_row = np.linalg.norm(arrays.X, axis=1).max()
    assert margin == pytest.approx(gamma, abs=1e-12)
    assert np.linalg.norm(arrays.optimum) == pytest.approx(1, abs=1e-12)
    assert longest_row <= 1 + 1e-12
    assert np.count_nonzero(is_positive) == 20


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
    arrays = generate(card)
    X = arrays.X
    y = arrays.y
    best_scores = X @ np.linalg.lstsq(X, y, rcond=None)[0]
    assert np.count_nonzero(y > 0) == 10_000
    assert np.corrcoef(best_scores, y)[0, 1] == pytest.approx(correlation, abs=0.05)
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


def test_a_cache_that_cannot_be_written_is_no_error(cache):
    cache.write_text("a file where the folder should be")
    dataset = load_dataset("margin")
    check_law(dataset)
    assert not is_mapped(dataset.X)


@pytest.mark.parametrize("name", ["counterexample", "margin"])
def test_rows_are_stored_as_float32_beside_those_of_float64(name):
    double = load_dataset(name)
    single = load_dataset(name, dtype="float32")
    assert_array_equal(single.X, np.asarray(double.X).astype(np.float32))
    assert single.X.dtype == np.float32
    assert single.y.dtype == np.float64
    assert single.sha256 == double.sha256
    assert is_mapped(single.X)

    assert is_mapped(load_dataset(name, dtype="float32").X)
    assert load_dataset(name).sha256 == double.sha256
    assert load_dataset(name).X.dtype == np.float64


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda content: b"", id="empty"),
        pytest.param(lambda content: content[:1000], id="cut short"),
        pytest.param(
            lambda content: content.replace(b"{'descr", b"{'desc\0", 1),
            id="a NUL in the header",
        ),
    ],
)
def test_a_damaged_array_in_the_cache_is_made_again(cache, damage):
    X = np.array(load_dataset("margin").X)
    [path] = (cache / "prepared").glob("margin-*/X.npy")
    damaged_content = damage(path.read_bytes())
    path.unlink()
    path.write_bytes(damaged_content)
    again = load_dataset("margin")
    assert np.array_equal(again.X, X)
    assert is_mapped(again.X)
    assert not list((cache / "prepared").glob(".*"))


# --- formats whose real files are not available ---


PPI_CARD = DATASETS["ppi"].model_copy(update={"rows": 8, "positives": 3})


def ppi_table(rows, label):
    """Return rows with 162 features and the label."""
    features = np.random.default_rng([rows, label]).standard_normal((rows, 162))
    return np.column_stack([features, np.full(rows, label)])


def write_commas(path, table):
    np.savetxt(path, table, delimiter=",", fmt="%.17g")
    return path


def test_ppi(tmp_path):
    positives = ppi_table(rows=3, label=1)
    negatives = ppi_table(rows=5, label=0)
    paths = [
        write_commas(tmp_path / "positives", positives),
        write_commas(tmp_path / "negatives", negatives),
    ]
    arrays = parse(PPI_CARD, paths)
    joined = np.concatenate([positives, negatives])
    without_ontology = np.concatenate([joined[:, :20], joined[:, 97:162]], axis=1)
    assert np.array_equal(arrays.X, without_ontology)
    assert arrays.y.tolist() == [1] * 3 + [-1] * 5


def test_ppi_with_a_column_too_few(tmp_path):
    narrow = ppi_table(rows=3, label=1)[:, 1:]
    paths = [
        write_commas(tmp_path / "positives", narrow),
        write_commas(tmp_path / "negatives", ppi_table(rows=5, label=0)),
    ]
    with raises(InputError, "162"):
        parse(PPI_CARD, paths)


KDD08_CARD = DATASETS["kdd08"].model_copy(update={"rows": 6, "positives": 2})
KDD08_FEATURES = np.random.default_rng(0).standard_normal((6, 117))
KDD08_LABELS = [-1, 1, -1, -1, 1, -1]
KDD08_PATIENTS = [40, 7, 40, 12, 7, 7]
# The patient is in the fifth column; all columns differ.
KDD08_INFO = np.column_stack(
    [KDD08_LABELS, *np.arange(18).reshape(3, 6), KDD08_PATIENTS, np.zeros((6, 2))]
)


def parse_kdd08(folder, info):
    np.savetxt(folder / "Features.txt", KDD08_FEATURES, fmt="%.17g")
    np.savetxt(folder / "Info.txt", info, fmt="%d")
    return parse(KDD08_CARD, [folder / "Features.txt", folder / "Info.txt"])


def test_kdd08(tmp_path):
    arrays = parse_kdd08(tmp_path, KDD08_INFO)
    assert np.array_equal(arrays.X, KDD08_FEATURES)
    assert arrays.y.tolist() == KDD08_LABELS
    assert arrays.groups.tolist() == [2, 0, 2, 1, 0, 0]


@pytest.mark.parametrize(
    ("info", "words"),
    [
        pytest.param(KDD08_INFO[:-1], "6 5", id="a row too few"),
        pytest.param(KDD08_INFO[:, :4], "patient", id="no column of patients"),
    ],
)
def test_kdd08_with_another_file_of_labels(tmp_path, info, words):
    with raises(InputError, words):
        parse_kdd08(tmp_path, info)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param("N,1,2\nM,1,x\n", "'x' 1 3", id="a word among numbers"),
        pytest.param("N,1,2\nM,1\n", "", id="a short row"),
        pytest.param("N,1,2\nM,1,nan\n", "2", id="NaN"),
        pytest.param("N,1,2\nN,1,3\n", "2", id="a class of all rows"),
        pytest.param("N,1,2,3\nM,1,3,4\n", "2 3 1", id="columns beyond the card"),
    ],
)
def test_invalid_tables(tmp_path, text, words):
    path = tmp_path / "table"
    path.write_text(text)
    sizes = {"rows": 2, "features": 2, "positives": 1}
    card = DATASETS["letter"].model_copy(update=sizes)
    with raises(InputError, words):
        parse(card, [path])

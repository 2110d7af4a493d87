"""Data with terms are downloaded by one command, and only by it.

A local server has files that are made here, in the documented shape of KDD Cup 2008 and
PPI, with fewer rows.
"""

import hashlib
import io
import json
import zipfile
from typing import NamedTuple

import numpy as np
import pytest

from precbench.core.errors import DataUnavailableError
from precbench.data import DATASETS, load_dataset
from tests.helpers import invoke, succeed
from tests.sentences import names, raises, tells

ROWS, POSITIVES = 60, 6
ADDRESS = "/cupfiles/KDDCupData/2008/training_data.zip"
ACCEPT = "--accept-terms"


class Texts(NamedTuple):
    """The texts of Features.txt and Info.txt."""

    features: bytes
    info: bytes


def text_of(table, **options):
    file = io.BytesIO()
    np.savetxt(file, table, **options)
    return file.getvalue()


def breast_cancer(positives=POSITIVES):
    """Return texts with the columns of the organisers' read-me."""
    rng = np.random.default_rng(0)
    info = np.column_stack(
        [
            np.where(np.arange(ROWS) < positives, 1, -1),
            *rng.integers(0, 100, (3, ROWS)),  # ids of finding, study and image
            1000 + np.arange(ROWS) // 6,  # the patient
            *rng.integers(0, 2, (2, ROWS)),  # left breast, MLO
            *rng.integers(0, 4000, (4, ROWS)),  # places of the candidate and the nipple
        ]
    )
    features = rng.standard_normal((ROWS, 117))
    return Texts(text_of(features, fmt=" %.6e"), text_of(info, fmt="%d"))


def training_data(positives=POSITIVES):
    """Return the organisers' archive, in which the files are in a folder.

    Always the same bytes.
    """
    texts = breast_cancer(positives)
    contents = {"": b"", "Features.txt": texts.features, "Info.txt": texts.info}
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in contents.items():
            # Without a date, that of the moment would be stored.
            member = zipfile.ZipInfo(
                f"training_data/{name}", date_time=(2008, 1, 1, 0, 0, 0)
            )
            archive.writestr(member, content)
    return file.getvalue()


def cancer_card(server, add_card, archive):
    """Let the card of KDD Cup 2008 name an archive on this machine, and fewer rows."""
    server.serve(ADDRESS, archive)
    card = DATASETS["kdd08"]
    md5 = hashlib.md5(archive, usedforsecurity=False).hexdigest()
    place = {"url": server.address + ADDRESS, "md5": md5}
    files = []
    for file in card.files:
        [published] = file.archives
        assert published.url.endswith(ADDRESS)
        archives = (published.model_copy(update=place),)
        files.append(file.model_copy(update={"archives": archives}))
    changes = {"files": tuple(files), "rows": ROWS, "positives": POSITIVES}
    return add_card(card.model_copy(update=changes))


@pytest.fixture
def served(server, add_card):
    """The card of KDD Cup 2008 with an archive on this machine; returns the server."""
    cancer_card(server, add_card, training_data())
    return server


def names_in(cache):
    """Return the names of the downloaded files."""
    return {path.name for path in (cache / "files").rglob("*") if path.is_file()}


def test_the_cards_name_the_published_archive():
    """The address is that of the KDD Cup, the MD5 the published one."""
    for file in DATASETS["kdd08"].files:
        [archive] = file.archives
        assert archive.url == "https://www.kdd.org" + ADDRESS
        assert archive.md5 == "65aae7afe3eecad95768cc07a693c90f"
        assert archive.member == f"training_data/{file.name}"
    assert DATASETS["kdd08"].terms
    assert DATASETS["ppi"].terms


@pytest.mark.promise("R16")
@pytest.mark.parametrize(
    "command",
    [
        pytest.param(("data", "fetch", "kdd08"), id="data fetch"),
        pytest.param(("run", "kdd08", "--no-stand-in"), id="run"),
        pytest.param(("reproduce", "kdd08"), id="reproduce"),
    ],
)
def test_nothing_is_fetched_before_the_terms_are_accepted(
    cache, served, work_folder, command
):
    result = invoke(*command)
    assert result.exit_code == 3
    assert served.asked == []
    assert names_in(cache) == set()
    [line] = result.stderr.splitlines()
    names(line, f"precbench data fetch kdd08 {ACCEPT} Features.txt Info.txt")


@pytest.mark.promise("R16")
def test_one_command_prints_the_terms_and_takes_two_members(cache, served):
    result = succeed("data", "fetch", "kdd08", ACCEPT)
    tells(result.stderr, "terms Siemens redistributed")
    tells(result.stdout, f"kdd08 {ROWS} 117 {POSITIVES}")
    assert served.asked == [ADDRESS]  # once for both files
    assert names_in(cache) == {"Features.txt", "Info.txt"}
    texts = breast_cancer()
    folder = cache / "files" / "kdd08"
    assert (folder / "Features.txt").read_bytes() == texts.features
    assert (folder / "Info.txt").read_bytes() == texts.info


def test_downloaded_rows_have_their_sizes_and_patients(cache, served):
    succeed("data", "fetch", "kdd08", ACCEPT)
    dataset = load_dataset("kdd08")
    assert dataset.X.shape == (ROWS, 117)
    assert dataset.n_pos == POSITIVES
    assert dataset.groups.tolist() == (np.arange(ROWS) // 6).tolist()


def test_the_terms_are_not_printed_again_once_the_files_are_there(cache, served):
    succeed("data", "fetch", "kdd08", ACCEPT)
    again = succeed("data", "fetch", "kdd08", ACCEPT)
    assert served.asked == [ADDRESS]
    assert again.stderr == ""


def test_json_stays_json(cache, served):
    result = succeed("data", "fetch", "kdd08", ACCEPT, "--json")
    assert json.loads(result.stdout)[0]["rows"] == ROWS


def test_the_option_changes_nothing_for_data_without_terms(cache):
    result = succeed("data", "fetch", "counterexample", ACCEPT)
    assert result.stderr == ""


def test_a_mirror_of_ones_own_needs_no_terms(cache, served, tmp_path):
    (tmp_path / "kdd08").mkdir()
    (tmp_path / "kdd08" / "training_data.zip").write_bytes(training_data())
    succeed("data", "fetch", "kdd08", "--mirror", tmp_path)
    assert served.asked == []
    assert names_in(cache) == {"Features.txt", "Info.txt"}


def test_the_archive_is_added_by_hand(cache, served, tmp_path):
    path = tmp_path / "training_data.zip"
    path.write_bytes(training_data())
    succeed("data", "add", "kdd08", path)
    assert served.asked == []
    assert names_in(cache) == {"Features.txt", "Info.txt"}


@pytest.mark.promise("R16")
def test_an_archive_of_other_rows_leaves_nothing(cache, server, add_card):
    cancer_card(server, add_card, training_data(positives=5))
    result = invoke("data", "fetch", "kdd08", ACCEPT)
    assert result.exit_code == 2
    assert names_in(cache) == set()
    names(result.stderr, "kdd08 60 117 5 6")


def test_an_archive_with_another_checksum_is_refused(cache, served):
    served.serve(ADDRESS, training_data(positives=5))
    result = invoke("data", "fetch", "kdd08", ACCEPT)
    assert result.exit_code == 3
    assert names_in(cache) == set()
    names(result.stderr, f"{served.address}{ADDRESS} checksum md5")


def test_a_stand_in_says_how_to_get_the_real_data(cache, served, tmp_path):
    options = ["--smoke", "--solver", "sgd-avg", "--out", tmp_path]
    result = succeed("run", "kdd08", *options)
    tells(result.output, f"SYNTHETIC precbench data fetch kdd08 {ACCEPT}")
    assert served.asked == []


def test_a_dry_run_announces_no_download(cache, served, tmp_path):
    result = succeed("run", "kdd08", "--smoke", "--dry-run", "--out", tmp_path)
    assert "to fetch" not in result.output
    assert served.asked == []


def interactions_card(server, add_card):
    """Let the card of PPI name files on this machine, with fewer rows."""
    rng = np.random.default_rng(0)
    card = DATASETS["ppi"]
    positives, negatives = card.files
    files = []
    for file, label, rows in [
        (positives, 1, POSITIVES),
        (negatives, 0, ROWS - POSITIVES),
    ]:
        features = rng.standard_normal((rows, 162))
        table = np.column_stack([features, np.full(rows, label)])
        server.serve(f"/{file.name}", text_of(table, delimiter=",", fmt="%.6g"))
        urls = (f"{server.address}/{file.name}",)
        files.append(file.model_copy(update={"urls": urls}))
    changes = {"files": tuple(files), "rows": ROWS, "positives": POSITIVES}
    return add_card(card.model_copy(update=changes))


def test_protein_interactions_are_loaded_once_the_terms_are_accepted(
    cache, server, add_card
):
    interactions_card(server, add_card)
    with raises(DataUnavailableError, f"precbench data fetch ppi {ACCEPT}"):
        load_dataset("ppi")
    assert server.asked == []
    result = succeed("data", "fetch", "ppi", ACCEPT)
    tells(result.stderr, "terms licence")
    assert server.asked == ["/dipsPosPair.feature", "/dipsRandpairSub23w.feature"]
    assert load_dataset("ppi").X.shape == (ROWS, 85)

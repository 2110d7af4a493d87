"""Data with terms are downloaded by one command, and only by it.

The files have the documented shape of KDD Cup 2008 and PPI, with fewer rows, and are
made here; a local server has them.
"""

import hashlib
import io
import json
import zipfile

import numpy as np
import pytest

from precbench.core.errors import DataUnavailableError
from precbench.data import DATASETS, load_dataset
from tests.helpers import invoke, succeed
from tests.sentences import names, raises, tells

ROWS, POSITIVES = 60, 6
ADDRESS = "/cupfiles/KDDCupData/2008/training_data.zip"
ACCEPT = "--accept-terms"


def text_of(table, **options):
    file = io.BytesIO()
    np.savetxt(file, table, **options)
    return file.getvalue()


def breast_cancer(positives=POSITIVES):
    """Return the texts of Features.txt and Info.txt, in the columns of the organisers'
    read-me.
    """
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
    return text_of(features, fmt=" %.6e"), text_of(info, fmt="%d")


def training_data(features, info):
    """Return the organisers' archive, in which the files are in a folder.

    Always the same bytes.
    """
    contents = {"": b"", "Features.txt": features, "Info.txt": info}
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
    changes = {"url": server.address + ADDRESS, "md5": md5}
    files = []
    for file in card.files:
        (published,) = file.archives
        assert published.url.endswith(ADDRESS)
        archives = (published.model_copy(update=changes),)
        files.append(file.model_copy(update={"archives": archives}))
    changes = {"files": tuple(files), "rows": ROWS, "positives": POSITIVES}
    return add_card(card.model_copy(update=changes))


@pytest.fixture
def served(server, add_card):
    """The card of KDD Cup 2008 with an archive on this machine; returns the server."""
    cancer_card(server, add_card, training_data(*breast_cancer()))
    return server


def in_cache(cache):
    return {path.name for path in (cache / "files").rglob("*") if path.is_file()}


def test_the_cards_name_the_published_archive():
    """The address is that of the KDD Cup, the MD5 the published one."""
    for file in DATASETS["kdd08"].files:
        (archive,) = file.archives
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
    done = invoke(*command)
    assert done.exit_code == 3
    assert served.asked == []
    assert in_cache(cache) == set()
    (line,) = done.stderr.splitlines()
    names(line, f"precbench data fetch kdd08 {ACCEPT} Features.txt Info.txt")


@pytest.mark.promise("R16")
def test_one_command_prints_the_terms_and_takes_two_members(cache, served):
    done = succeed("data", "fetch", "kdd08", ACCEPT)
    tells(done.stderr, "terms Siemens redistributed")
    tells(done.stdout, f"kdd08 {ROWS} 117 {POSITIVES}")
    assert served.asked == [ADDRESS]  # once for both files
    assert in_cache(cache) == {"Features.txt", "Info.txt"}
    features, info = breast_cancer()
    assert (cache / "files" / "kdd08" / "Features.txt").read_bytes() == features
    assert (cache / "files" / "kdd08" / "Info.txt").read_bytes() == info
    dataset = load_dataset("kdd08")
    assert dataset.X.shape == (ROWS, 117)
    assert dataset.n_pos == POSITIVES
    assert dataset.groups.tolist() == (np.arange(ROWS) // 6).tolist()

    again = succeed("data", "fetch", "kdd08", ACCEPT)
    assert served.asked == [ADDRESS]
    assert again.stderr == ""


def test_json_stays_json(cache, served):
    done = succeed("data", "fetch", "kdd08", ACCEPT, "--json")
    assert json.loads(done.stdout)[0]["rows"] == ROWS


def test_the_option_changes_nothing_for_data_without_terms(cache):
    done = succeed("data", "fetch", "counterexample", ACCEPT)
    assert done.stderr == ""


def test_a_mirror_of_ones_own_needs_no_terms(cache, served, tmp_path):
    (tmp_path / "kdd08").mkdir()
    features, info = breast_cancer()
    (tmp_path / "kdd08" / "training_data.zip").write_bytes(
        training_data(features, info)
    )
    succeed("data", "fetch", "kdd08", "--mirror", tmp_path)
    assert served.asked == []
    assert in_cache(cache) == {"Features.txt", "Info.txt"}


def test_the_archive_is_added_by_hand(cache, served, tmp_path):
    path = tmp_path / "training_data.zip"
    path.write_bytes(training_data(*breast_cancer()))
    succeed("data", "add", "kdd08", path)
    assert served.asked == []
    assert in_cache(cache) == {"Features.txt", "Info.txt"}


@pytest.mark.promise("R16")
def test_an_archive_of_other_rows_leaves_nothing(cache, server, add_card):
    cancer_card(server, add_card, training_data(*breast_cancer(positives=5)))
    done = invoke("data", "fetch", "kdd08", ACCEPT)
    assert done.exit_code == 2
    assert in_cache(cache) == set()
    names(done.stderr, "kdd08 60 117 5 6")


def test_an_archive_with_another_checksum(cache, served):
    served.serve(ADDRESS, training_data(*breast_cancer(positives=5)))
    done = invoke("data", "fetch", "kdd08", ACCEPT)
    assert done.exit_code == 3
    assert in_cache(cache) == set()
    names(done.stderr, f"{served.address}{ADDRESS} checksum md5")


def test_a_stand_in_says_how_to_get_the_real_data(cache, served, tmp_path):
    done = succeed("run", "kdd08", "--smoke", "--solver", "sgd-avg", "--out", tmp_path)
    tells(done.output, f"SYNTHETIC precbench data fetch kdd08 {ACCEPT}")
    assert served.asked == []


def test_a_dry_run_announces_no_download(cache, served, tmp_path):
    done = succeed("run", "kdd08", "--smoke", "--dry-run", "--out", tmp_path)
    assert "to fetch" not in done.output
    assert served.asked == []


def test_protein_interactions(cache, server, add_card):
    rng = np.random.default_rng(0)
    card, files = DATASETS["ppi"], []
    for file, label, rows in zip(
        card.files, (1, 0), (POSITIVES, ROWS - POSITIVES), strict=True
    ):
        table = np.column_stack(
            [rng.standard_normal((rows, 162)), np.full(rows, label)]
        )
        server.serve(f"/{file.name}", text_of(table, delimiter=",", fmt="%.6g"))
        urls = (f"{server.address}/{file.name}",)
        files.append(file.model_copy(update={"urls": urls}))
    changes = {"files": tuple(files), "rows": ROWS, "positives": POSITIVES}
    add_card(card.model_copy(update=changes))
    with raises(DataUnavailableError, f"precbench data fetch ppi {ACCEPT}"):
        load_dataset("ppi")
    assert server.asked == []
    done = succeed("data", "fetch", "ppi", ACCEPT)
    tells(done.stderr, "terms licence")
    assert server.asked == ["/dipsPosPair.feature", "/dipsRandpairSub23w.feature"]
    assert load_dataset("ppi").X.shape == (ROWS, 85)

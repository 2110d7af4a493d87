"""The pages.

What is made stays made, links lead somewhere, commands and programs run.
"""

import json
import re
import shutil
import tomllib
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import yaml

from precbench import __version__
from precbench.advice import contest
from precbench.claims import load_claims
from precbench.claims.verdicts import Verdict
from precbench.core.registry import find_entry_points
from precbench.core.studies import STUDIES
from precbench.experiment import list_configs
from scripts import open_claims, pages, printed
from scripts.pages import Block, blocks, commands
from tests.claims.helpers import check_command, quick_studies
from tests.helpers import ROOT, entry_point, invoke, succeed, write_metadata

PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")]
PAGES += sorted((ROOT / "docs").rglob("*.md"))
NAMES = [path.relative_to(ROOT).as_posix() for path in PAGES]
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


@cache
def anchors(page):
    """Return what a link may point to in a page."""
    titles = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


def test_scripts_import_no_tests():
    imported = re.compile(r"^\s*(from|import) tests\b", re.MULTILINE)
    scripts = sorted((ROOT / "scripts").rglob("*.py"))
    assert scripts and not [
        path for path in scripts if imported.search(path.read_text())
    ]


def test_pages_show_their_sources():
    stale = [path for path, text in pages.pages().items() if path.read_text() != text]
    assert not stale, "run `make docs`"


def test_each_open_claim_has_what_would_decide_it():
    listed = open_claims.open_claims()
    for claim, row in printed.ledger():
        assert (f"`{row.id}`" in listed) == (row.verdict in open_claims.OPEN), row.id
        if row.verdict in open_claims.OPEN:
            with pytest.raises(ValueError, match=row.id):
                open_claims.group_of(
                    claim.model_copy(update={"secondhand": False}),
                    replace(
                        row,
                        verdict=Verdict.INCONCLUSIVE,
                        reason="a tuning limit stopped it",
                    ),
                )


def test_only_claims_that_hold_are_said_to():
    holding, failing = (
        "section-6/*/sgd-avg-above-max",
        "section-6/*/perceptron-avg-above-max",
    )
    told = open_claims.is_it_true("kar2015", holding)
    assert f"`{holding}`" in told and "| does not hold |" in told
    for pattern in (failing, "section-6/nowhere/*"):
        with pytest.raises(ValueError, match="does not hold"):
            open_claims.is_it_true("kar2015", pattern)


def test_pictures_go_with_the_reference():
    """Of a run: precbench run ijcnn1 --timing, then make docs RESULTS=results."""
    for picture, numbers in pages.pictures().items():
        assert pages.noted(picture) == numbers, f"{picture}: run `make docs`"


def test_printed_numbers_and_ours_are_in_one_unit():
    """A power of ten that was dropped in print, percent, and words that are read as a
    number.
    """
    assert "| 6.8153 / 6.7254 |" in printed.cells("rudin2009", "table-3")
    assert "| 1.7294 / 2.1911 † |" in printed.cells("rudin2009", "table-4")
    assert all(0.9 < dot.value < 1.1 for dot in printed.ratios("gultekin"))
    # "Several orders of magnitude" is read as a ratio of 100.
    rows = [row for _claim, row in printed.claims("kar2014") if row.kind == "ratio"]
    largest = max(float(row.measured) for row in rows if row.measured)
    assert max(dot.value for dot in printed.ratios("kar2014")) == pytest.approx(
        largest / 100
    )


@pytest.mark.parametrize("name", NAMES)
def test_links_lead_somewhere(name):
    page = ROOT / name
    text = re.sub(
        r"^```.*?^```$|`[^`]+`", "", page.read_text(), flags=re.DOTALL | re.MULTILINE
    )
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if not link.startswith("https://"):
            path, _, anchor = link.partition("#")
            target = (page.parent / path).resolve() if path else page
            assert target.exists(), link
            assert not anchor or anchor in anchors(target), link


@pytest.mark.parametrize("name", NAMES)
def test_files_and_configs_that_a_page_names_exist(name):
    text = (ROOT / name).read_text()
    shown = {block.file for block in blocks(ROOT / name)} | {
        *re.findall(r"--config (\S+)", text)
    }
    for path in re.findall(
        r"[` ]((?:precbench|tests|scripts|configs|datasets)/[\w./-]+[\w/])", text
    ):
        assert path in shown or (ROOT / path).exists(), path
    modules = {path.name for path in (ROOT / "precbench").rglob("*.py*")}
    modules |= {Path(file or "").name for file in shown}
    assert modules.issuperset(re.findall(r"`(\w+\.pyx?)`", text))
    for config in re.findall(r"precbench run ([a-z][\w/.-]+)", text):
        assert config in shown or config in list_configs(), config


@pytest.fixture
def desk(work_folder, monkeypatch, in_this_process):
    """A folder to work in, with the tables of customers that the README names."""
    rng = np.random.default_rng(0)
    n = 1500
    table = pd.DataFrame(rng.standard_normal((n, 2)), columns=["calls", "bill"])
    table.insert(0, "customer", np.arange(n))
    table["household"] = table["customer"] // 2
    chance = table["calls"] - table["bill"] + rng.standard_normal(n)
    table.drop(columns="household").to_csv("new.csv", index=False)
    table["churned"] = np.where(chance > 0.5, "yes", "no")
    table.to_csv("customers.csv", index=False)
    few = {"logistic-regression": {}, "hist-gradient-boosting": {"max_iter": 5}}
    template = contest.load(ROOT / "configs" / "compare.yaml").data
    template |= {"protocol": template["protocol"] | {"n_splits": 2}, "solvers": few}
    monkeypatch.setattr(contest, "load", lambda _: SimpleNamespace(data=template))
    # no importance of columns
    monkeypatch.setattr("precbench.advice.quality._MOST_VALUES", 0)
    return work_folder


# Pages with a test of their own, which makes their files part of the package or of
# another one.
EXTENDING = {"docs/add-a-study.md", "docs/add-a-solver.md", "docs/cluster.md"}
# A page that writes and reads workbooks and Parquet files.
FILES = pytest.param(
    "docs/own-data.md",
    marks=pytest.mark.extras("openpyxl", "pyarrow", "python_calamine"),
)
RUN = [
    FILES if name == "docs/own-data.md" else name
    for name in NAMES
    if blocks(ROOT / name) and name not in EXTENDING
]


@pytest.fixture(scope="module")
def computed():
    """The tables of the quick studies."""
    return quick_studies()


@pytest.mark.parametrize("name", RUN)
def test_page_does_what_it_shows(name, desk, computed, monkeypatch):
    """Run a page from top to bottom.

    Of shipped experiments the first at smoke size, others dry.
    """
    monkeypatch.setattr(check_command, "_quick_studies", lambda _: computed)
    program, ran = {}, False
    for language, code in blocks(ROOT / name):
        file = Block(language, code).file
        if file:
            (desk / file).parent.mkdir(parents=True, exist_ok=True)
            (desk / file).write_text(code)
        elif language == "python":
            exec(code, program)
        elif language == "sh":
            for words in commands(code):
                if words[0] == "make":
                    assert words[1] in TARGETS
                    continue
                assert words[0] == "precbench", (
                    f"neither run nor marked as not run: {words}"
                )
                if words[1] == "run" and not Path(words[2]).is_file():
                    words = [*words, "--dry-run" if ran else "--smoke"]
                    ran = True
                done = invoke(*words[1:])
                assert done.exit_code == 0, (words, done.output)


def test_study_of_the_page_runs_to_its_verdict(desk, computed, monkeypatch):
    """Follow docs/add-a-study.md in a copy of the folders that the package reads."""
    for folder in ("configs", "results/reference"):
        shutil.copytree(ROOT / folder, desk / folder)
    (desk / "datasets").symlink_to(ROOT / "datasets")
    monkeypatch.setattr("precbench.core.locations._PACKAGE", desk / "precbench")
    shown = blocks(ROOT / "docs" / "add-a-study.md")
    for block in shown:
        if block.file:
            (desk / block.file).parent.mkdir(parents=True, exist_ok=True)
            (desk / block.file).write_text(block.code)
    write_metadata(desk, **entry_point(desk / "pyproject.toml"))
    monkeypatch.syspath_prepend(desk)
    entries = {entry.name: entry for entry in find_entry_points("precbench.studies")}
    monkeypatch.setitem(STUDIES.__dict__, "_added", entries)
    # it is none of them
    monkeypatch.setattr(check_command, "_quick_studies", lambda _: computed)
    lines = [
        words
        for block in shown
        if block.language == "sh"
        for words in commands(block.code)
    ]
    for words in lines:
        done = succeed(*words[1:])
    ledger = pd.read_csv("results/ledger.csv").set_index("id")
    assert ledger.loc["kar2015/section-3.4/order", "verdict"] == "reproduced"
    assert "kar2015/section-3.4/order" in done.output
    assert list(Path("results/kar2015-tightness/figures").glob("*.png"))


def test_the_paper_cites_what_its_references_hold():
    folder = ROOT / "docs/paper"
    paper, references = (
        (folder / name).read_text() for name in ("paper.md", "paper.bib")
    )
    keys = re.findall(r"^@\w+\{(\w+),", references, re.MULTILINE)
    assert sorted({*re.findall(r"@(\w+)[\];]", paper)}) == sorted(keys)
    assert 1000 <= len(paper.split()) <= 1750  # of JOSS, with the tables


@pytest.mark.promise("R22")
def test_workflows_use_targets_and_versions_that_exist():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    supported = re.findall(r":: (3\.\d+)", " ".join(project["classifiers"]))
    for path in (ROOT / ".github" / "workflows").glob("*.yml"):
        text = path.read_text()
        assert TARGETS.issuperset(re.findall(r"run: make ([a-z][\w-]*)", text))
        for action in re.findall(r"uses: ([^.\s]\S+)", text):
            assert re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", action), f"{action} may change"
        for job in yaml.safe_load(text)["jobs"].values():
            assert (
                job.get("strategy", {}).get("matrix", {}).get("python", supported)
                == supported
            )


def test_changelog_and_recipe_have_this_version():
    assert f"\n## [{__version__}] - " in (ROOT / "CHANGELOG.md").read_text()
    recipe = yaml.safe_load((ROOT / "packaging/conda/recipe.yaml").read_text())
    assert recipe["context"]["version"] == __version__
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    run = [
        name.replace(" ", "").replace("-base", "")
        for name in recipe["requirements"]["run"]
    ]
    assert sorted(run) == sorted(["python", *project["dependencies"]])


def test_citation_has_this_version_and_every_paper():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["version"] == __version__
    papers = {claim.paper for claim in load_claims()}
    assert {path.stem for path in (ROOT / "docs" / "papers").glob("*.md")} <= {
        *papers,
        "outside",
    }
    cited = {
        entry["authors"][0]["family-names"].lower() for entry in citation["references"]
    }
    assert {paper.rstrip("0123456789") for paper in papers} == cited
    assert len(citation["references"]) == len(papers)


@pytest.mark.filterwarnings("ignore:.*filled in")
def test_the_notebook_shows_what_it_computes(work_folder, in_this_process):
    """Its outputs are those of its cells in order; to store them, run all cells again.

    Hits differ a little between versions of scikit-learn, the recommendation does not.
    """
    cells = json.loads((ROOT / "docs" / "own-list.ipynb").read_text())["cells"]
    codes = [cell for cell in cells if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in codes] == [*range(1, len(codes) + 1)]
    program = {}
    for cell in codes:
        lines = [line for line in cell["source"] if not line.startswith("%")]
        exec("".join(lines), program)
    [shown] = codes[1]["outputs"]
    text = "".join(shown["data"]["text/plain"])
    assert f"use {program['choice'].recommended}: about" in text
    assert (work_folder / "fraud.npz").exists()

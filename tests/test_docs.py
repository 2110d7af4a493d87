"""The pages: what is made stays made, links lead somewhere, what is shown runs."""

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
from scripts.pages import blocks, commands
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
    import_of_tests = re.compile(r"^\s*(from|import) tests\b", re.MULTILINE)
    scripts = sorted((ROOT / "scripts").rglob("*.py"))
    assert scripts
    for path in scripts:
        assert not import_of_tests.search(path.read_text()), path


def test_pages_show_their_sources():
    stale = [path for path, text in pages.pages().items() if path.read_text() != text]
    assert not stale, "run `make docs`"


def test_each_open_claim_has_what_would_decide_it():
    listed = open_claims.open_claims()
    for _claim, row in printed.ledger():
        is_open = row.verdict in open_claims.OPEN
        assert (f"`{row.id}`" in listed) == is_open, row.id


def test_an_open_claim_without_a_group_is_reported():
    for claim, row in printed.ledger():
        if row.verdict not in open_claims.OPEN:
            continue
        firsthand = claim.model_copy(update={"secondhand": False})
        of_no_group = replace(
            row, verdict=Verdict.INCONCLUSIVE, reason="a tuning limit stopped it"
        )
        with pytest.raises(ValueError, match=row.id):
            open_claims.group_of(firsthand, of_no_group)


def test_the_table_of_a_claim_that_holds_has_the_data_sets_where_it_does_not():
    pattern = "section-6/*/sgd-avg-above-max"
    table = open_claims.is_it_true("kar2015", pattern)
    assert f"`{pattern}`" in table
    assert "| does not hold |" in table


@pytest.mark.parametrize(
    "pattern", ["section-6/*/perceptron-avg-above-max", "section-6/nowhere/*"]
)
def test_a_claim_that_does_not_hold_has_no_table(pattern):
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
    prose = re.sub(
        r"^```.*?^```$|`[^`]+`", "", page.read_text(), flags=re.DOTALL | re.MULTILINE
    )
    for link in re.findall(r"\]\(([^)\s]+)\)", prose):
        if link.startswith("https://"):
            continue
        path, _hash, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        if anchor:
            assert anchor in anchors(target), link


@pytest.mark.parametrize("name", NAMES)
def test_files_and_configs_that_a_page_names_exist(name):
    text = (ROOT / name).read_text()
    made = {block.file for block in blocks(ROOT / name) if block.file}
    made.update(re.findall(r"--config (\S+)", text))
    for path in re.findall(
        r"[` ]((?:precbench|tests|scripts|configs|datasets)/[\w./-]+[\w/])", text
    ):
        assert path in made or (ROOT / path).exists(), path
    modules = {path.name for path in (ROOT / "precbench").rglob("*.py*")}
    modules.update(Path(file).name for file in made)
    for module in re.findall(r"`(\w+\.pyx?)`", text):
        assert module in modules
    for config in re.findall(r"precbench run ([a-z][\w/.-]+)", text):
        assert config in made or config in list_configs(), config


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
    """Run a page from top to bottom."""
    monkeypatch.setattr(check_command, "_quick_studies", lambda _: computed)
    variables = {}  # of all Python on the page
    shell = Shell()
    for block in blocks(ROOT / name):
        if block.file:
            write_block(block, desk)
        elif block.language == "python":
            exec(block.code, variables)
        elif block.language == "sh":
            for words in commands(block.code):
                shell.execute(words)


class Shell:
    """Executes the commands of a page.

    Of shipped experiments the first runs at smoke size, others dry.
    """

    def __init__(self):
        self.has_run_experiment = False

    def execute(self, words):
        if words[0] == "make":
            assert words[1] in TARGETS
            return
        assert words[0] == "precbench", f"neither run nor marked as not run: {words}"
        arguments = words[1:]
        if arguments[0] == "run" and not Path(arguments[1]).is_file():
            arguments.append("--dry-run" if self.has_run_experiment else "--smoke")
            self.has_run_experiment = True
        result = invoke(*arguments)
        assert result.exit_code == 0, (arguments, result.output)


def write_block(block, folder):
    path = folder / block.file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(block.code)


def test_study_of_the_page_runs_to_its_verdict(desk, computed, monkeypatch):
    """Follow docs/add-a-study.md in a copy of the folders that the package reads."""
    for folder in ("configs", "results/reference"):
        shutil.copytree(ROOT / folder, desk / folder)
    (desk / "datasets").symlink_to(ROOT / "datasets")
    monkeypatch.setattr("precbench.core.locations._PACKAGE", desk / "precbench")
    page_blocks = blocks(ROOT / "docs" / "add-a-study.md")
    for block in page_blocks:
        if block.file:
            write_block(block, desk)
    write_metadata(desk, **entry_point(desk / "pyproject.toml"))
    monkeypatch.syspath_prepend(desk)
    entries = {entry.name: entry for entry in find_entry_points("precbench.studies")}
    monkeypatch.setitem(STUDIES.__dict__, "_added", entries)
    # The study of the page is none of the quick ones.
    monkeypatch.setattr(check_command, "_quick_studies", lambda _: computed)
    outputs = []
    for block in page_blocks:
        if block.language == "sh":
            for words in commands(block.code):
                outputs.append(succeed(*words[1:]).output)
    ledger = pd.read_csv("results/ledger.csv").set_index("id")
    assert ledger.loc["kar2015/section-3.4/order", "verdict"] == "reproduced"
    assert "kar2015/section-3.4/order" in outputs[-1]
    assert list(Path("results/kar2015-tightness/figures").glob("*.png"))


def test_the_paper_cites_what_its_references_hold():
    paper = (ROOT / "docs/paper/paper.md").read_text()
    references = (ROOT / "docs/paper/paper.bib").read_text()
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
            matrix = job.get("strategy", {}).get("matrix", {})
            if "python" in matrix:
                assert matrix["python"] == supported


def test_changelog_has_this_version():
    assert f"\n## [{__version__}] - " in (ROOT / "CHANGELOG.md").read_text()


def test_recipe_of_conda_has_this_version_and_its_dependencies():
    recipe = yaml.safe_load((ROOT / "packaging/conda/recipe.yaml").read_text())
    assert recipe["context"]["version"] == __version__
    requirements = [
        text.replace(" ", "").replace("-base", "")
        for text in recipe["requirements"]["run"]
    ]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert sorted(requirements) == sorted(["python", *project["dependencies"]])


def test_citation_has_this_version_and_every_paper():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["version"] == __version__
    papers = {claim.paper for claim in load_claims()}
    pages_of_papers = {path.stem for path in (ROOT / "docs" / "papers").glob("*.md")}
    assert pages_of_papers <= {*papers, "outside"}
    references = citation["references"]
    first_authors = {
        entry["authors"][0]["family-names"].lower() for entry in references
    }
    assert {paper.rstrip("0123456789") for paper in papers} == first_authors
    assert len(references) == len(papers)


@pytest.mark.filterwarnings("ignore:.*filled in")
def test_the_notebook_shows_what_it_computes(work_folder, in_this_process):
    """Its outputs are those of its cells in order; to store them, run all cells again.

    Hits differ a little between versions of scikit-learn, the recommendation does not.
    """
    cells = json.loads((ROOT / "docs" / "own-list.ipynb").read_text())["cells"]
    codes = [cell for cell in cells if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in codes] == [*range(1, len(codes) + 1)]
    variables = {}
    for cell in codes:
        lines = [line for line in cell["source"] if not line.startswith("%")]
        exec("".join(lines), variables)
    [output] = codes[1]["outputs"]
    text = "".join(output["data"]["text/plain"])
    assert f"Use {variables['choice'].recommended}: about" in text
    assert (work_folder / "fraud.npz").exists()

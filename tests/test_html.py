"""The page of a results folder: what it shows, what it loads, and how it works in a browser."""

import base64
import hashlib
import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path

import pandas as pd
import pytest

from precbench.claims import load_claims
from precbench.report.folder import write_report
from precbench.report.html import ledger_about
from precbench.store import Store
from tests.helpers import ROOT, invoke, run

PAST = ROOT / "tests" / "past"
ODD = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'&{{ 7 * 7 }}\x1b[2J\u202e"
SHOWN = ODD.replace("\x1b", "\\x1b").replace("\u202e", "\\u202e")


class Page(HTMLParser):
    """The elements of a page with their attributes, and their texts."""

    def __init__(self, path):
        super().__init__()
        self.elements, self.texts, self.open = [], [], []
        self.feed(path.read_text())
        assert self.open == []

    def handle_starttag(self, name, attributes):
        self.elements.append((name, dict(attributes)))
        if name not in {"meta", "img", "input", "br"}:
            self.open.append(name)

    def handle_endtag(self, name):
        assert self.open.pop() == name

    def handle_data(self, data):
        self.texts.append((self.open[-1] if self.open else "", data))

    def of(self, name):
        return [attributes for element, attributes in self.elements if element == name]

    def text(self, *names):
        return [text.strip() for name, text in self.texts if name in names and text.strip()]

    @property
    def loads(self):
        """Return what leads out of the page."""
        names = ("src", "href", "action", "srcset", "data", "poster", "background")
        found = [of[name] for _, of in self.elements for name in names if of.get(name)]
        return [address for address in found if not address.startswith(("#", "data:image/svg"))]


@pytest.fixture
def past(tmp_path):
    """Results of three solvers and two splits, one of which has failed, with records."""
    return Path(shutil.copytree(PAST / "schema-1" / "small", tmp_path / "small"))


def with_odd_names(folder):
    """Give titles, solvers and data sets of results a name that would do harm."""
    about = json.loads((folder / "experiment.json").read_text())
    label = about["solvers"][0]
    about |= {"title": ODD, "source": ODD, "protocol": ODD}
    about["solvers"] = [ODD if solver == label else solver for solver in about["solvers"]]
    about["measures"][about["metrics"][0]]["written"] = ODD
    (folder / "experiment.json").write_text(json.dumps(about))
    for name in ("results.csv", "roc.csv"):
        table = pd.read_csv(folder / name, dtype=str, keep_default_na=False)
        table["title"] = ODD
        table["solver"] = table["solver"].replace(label, ODD)
        if "reason" in table:
            table.loc[table["solver"] == ODD, ["status", "reason"]] = ["failed", ODD]
        table.to_csv(folder / name, index=False)


@pytest.mark.promise("R27")
def test_names_of_strangers_are_texts_of_the_page(past, monkeypatch):
    monkeypatch.setattr("precbench.report.figures.save_figure", lambda *_: None)
    for path in (past / "environments").glob("*.json"):
        path.write_text(json.dumps(json.loads(path.read_text()) | {"cpu": ODD}))
    with_odd_names(past)
    write_report(past)
    page = Page(past / "report.html")
    assert len(page.of("script")) == 2 and page.of("img") == [] and page.loads == []
    assert not any(name.startswith("on") for _, of in page.elements for name in of)
    for name in ("title", "h1", "th", "caption", "option", "summary"):
        assert any(SHOWN in text for text in page.text(name)), name
    assert any(f"failed: {SHOWN}" == text for text in page.text("td"))
    assert "49" not in "".join(page.text("h1"))
    html = (past / "report.html").read_text()
    assert "\x1b" not in html and "\u202e" not in html


@pytest.mark.promise("R27")
def test_the_policy_of_the_page_allows_its_own_script_and_style_only(past, drawn):
    write_report(past)
    html = (past / "report.html").read_text()
    page = Page(past / "report.html")
    [policy] = [of["content"] for of in page.of("meta") if "http-equiv" in of]
    assert policy.startswith("default-src 'none'; img-src data:; ")
    for name in ("style", "script"):
        [text] = re.findall(rf"<{name}>(.*?)</{name}>", html, re.S)
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{name}-src 'sha256-{digest}'" in policy
    assert not any("style" in of for _, of in page.elements)
    assert page.loads == [] and "http://" not in html and "https://" not in html
    drawings = [of["src"].partition("base64,")[2] for of in page.of("img")]
    assert all(base64.b64decode(drawing).rstrip().endswith(b"</svg>") for drawing in drawings)


def test_behind_every_number_are_its_trials(past):
    report = write_report(past)
    page = Page(past / "report.html")
    links = {of["href"][1:] for of in page.of("a") if of["href"].startswith("#d")}
    assert links and links <= {of.get("id") for _, of in page.elements}
    assert set(Store(past).keys()) <= set(page.text("td"))
    table, results = report.tables[0], pd.read_csv(past / "results.csv")
    label, split = results["solver"][0], results["split"][0]
    command = f"precbench run small.yaml --solver {label} --dataset {results['dataset'][0]}"
    assert f"{command} --seeds {split} --force" in page.text("code")
    [[of_table, *_]] = [json.loads(text) for text in page.text("script") if text.startswith("[")]
    values = of_table[0][0]
    finals = results[results["final"] & (results["solver"] == table.rows[0][0].text)]
    wanted = finals[finals["metric"] == table.columns[0][0]]["value"]
    assert values == pytest.approx(wanted.to_list(), rel=1e-5)
    assert all(cell.text in page.text("td", "a") for row in table.rows for cell in row[1:])


@pytest.mark.parametrize("name", ["first", "sweep"])
def test_the_page_of_former_versions(tmp_path, monkeypatch, name):
    monkeypatch.setattr("precbench.report.figures.save_figure", lambda *_: None)
    folder = shutil.copytree(PAST / name, tmp_path / name)
    tables = write_report(folder).tables
    page = Page(folder / "report.html")
    captions = page.text("caption")
    assert all(table.title in captions for table in tables)
    assert set(page.text("td", "a")) >= {c.text for t in tables for row in t.rows for c in row[1:]}


def test_pages_of_several_folders_have_an_index(past, tmp_path):
    assert run("rudin2009/fig-3", tmp_path, "--smoke").exit_code == 0
    result = invoke("report", tmp_path)
    assert result.exit_code == 0, result.output
    study = tmp_path / "rudin2009-fig-3-smoke"
    pages = [tmp_path / "index.html", study / "report.html", past / "report.html"]
    assert set(result.stdout.split()) == set(map(str, pages))
    index = Page(pages[0])
    assert sorted(index.loads) == ["rudin2009-fig-3-smoke/report.html", "small/report.html"]
    page = Page(pages[1])
    assert page.loads == [] and len(page.of("img")) == 1
    assert "precbench run rudin2009/fig-3 --smoke" in page.text("code")
    before = [path.read_bytes() for path in pages]
    assert json.loads(invoke("report", tmp_path, "--json").stdout) == list(map(str, pages[:1])) + [
        str(path) for path in sorted(pages[1:])
    ]
    assert [path.read_bytes() for path in pages] == before


def test_verdicts_stand_on_the_page_they_are_about(past):
    claim = next(claim for claim in load_claims() if claim.experiment == "letter")
    about = past / "experiment.json"
    about.write_text(json.dumps(json.loads(about.read_text()) | {"name": "letter"}))
    write_report(past)
    page = Page(past / "report.html")
    assert any(claim.where in text for text in page.text("th"))
    assert "no data" in page.text("span")
    assert any(text.startswith("precbench run letter ") for text in page.text("code"))
    about.write_text(json.dumps(json.loads(about.read_text()) | {"smoke": True}))
    write_report(past)
    assert "no data" not in Page(past / "report.html").text("span")


def test_results_that_nobody_has_printed_have_no_ledger(past, monkeypatch):
    from precbench.claims import read_evidence

    monkeypatch.setattr("precbench.report.html.page.load_claims", None)
    assert ledger_about(read_evidence([past])) == {}

"""The page of a results folder: what it shows and loads, and its life in a browser."""

import base64
import hashlib
import json
import re
import shutil
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

import pandas as pd
import pytest

from precbench.advice.advised_report import write_report
from precbench.claims import load_claims
from precbench.report import sheet
from precbench.results.store import Store
from tests.helpers import run, succeed

ODD = (
    "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'&{{ 7 * 7"
    " }}\x1b[2J\u202e"
)
SHOWN = ODD.replace("\x1b", "\\x1b").replace("\u202e", "\\u202e")


class Page(HTMLParser):
    """The elements of a page with their attributes, and their texts."""

    def __init__(self, path):
        super().__init__()
        self.elements = []
        self.texts = []
        self.open_elements = []  # names, from the outermost to the innermost
        self.feed(path.read_text())
        assert self.open_elements == []

    def handle_starttag(self, name, attributes):
        self.elements.append(Element(name, dict(attributes)))
        if name not in {"meta", "img", "input", "br"}:
            self.open_elements.append(name)

    def handle_endtag(self, name):
        assert self.open_elements.pop() == name

    def handle_data(self, data):
        innermost = self.open_elements[-1] if self.open_elements else ""
        self.texts.append(PageText(innermost, data.strip()))

    def attributes_of(self, name):
        """Return the attributes of each element of a name."""
        return [element.attributes for element in self.elements if element.name == name]

    def text_in(self, *names):
        """Return the texts directly in elements of these names."""
        return [
            text.content
            for text in self.texts
            if text.element in names and text.content
        ]

    @property
    def loads(self):
        """Return the addresses that lead out of the page."""
        addresses = []
        for element in self.elements:
            for name in LOADING:
                address = element.attributes.get(name)
                if address and not address.startswith(("#", "data:image/svg")):
                    addresses.append(address)
        return addresses


LOADING = ("src", "href", "action", "srcset", "data", "poster", "background")


class Element(NamedTuple):
    name: str
    attributes: dict[str, str]


class PageText(NamedTuple):
    element: str  # the name of the element that holds the text
    content: str


@pytest.fixture
def past(finished):
    """Results of two solvers on two splits, with records."""
    return finished / "small"


def with_odd_names(folder):
    """Give titles, solvers and data sets of results a name that would do harm."""
    experiment = json.loads((folder / "experiment.json").read_text())
    label, *other_labels = experiment["solvers"]
    main_metric = experiment["metrics"][0]
    experiment["title"] = ODD
    experiment["source"] = ODD
    experiment["protocol"] = ODD
    experiment["solvers"] = [ODD, *other_labels]
    experiment["measures"][main_metric]["written"] = ODD
    (folder / "experiment.json").write_text(json.dumps(experiment))
    for name in ("results.csv", "roc.csv"):
        table = pd.read_csv(folder / name, dtype=str, keep_default_na=False)
        table = table.assign(title=ODD, solver=table["solver"].replace(label, ODD))
        if "reason" in table:
            table.loc[table["solver"] == ODD, ["status", "reason"]] = ["failed", ODD]
        table.to_csv(folder / name, index=False)


@pytest.mark.promise("R13")
def test_untrusted_names_are_texts_of_the_page(past):
    [path] = (past / "environments").glob("*.json")
    machine = json.loads(path.read_text())
    path.write_text(json.dumps(machine | {"cpu": ODD}))
    with_odd_names(past)
    write_report(past)
    page = Page(past / "report.html")
    assert page.attributes_of("script") == [{}]
    assert page.loads == []
    for image in page.attributes_of("img"):
        assert image["src"].startswith("data:image/svg+xml;base64,")
    for element in page.elements:
        for attribute in element.attributes:
            assert not attribute.startswith("on")
    for name in ("title", "h1", "th", "caption", "summary"):
        assert any(SHOWN in text for text in page.text_in(name)), name
    assert f"failed: {SHOWN}" in page.text_in("td")
    html = (past / "report.html").read_text()
    assert "\x1b" not in html
    assert "\u202e" not in html


@pytest.mark.promise("R13")
def test_the_policy_of_the_page_allows_its_own_style_and_script(past):
    write_report(past)
    html = (past / "report.html").read_text()
    page = Page(past / "report.html")
    [policy] = [
        meta["content"] for meta in page.attributes_of("meta") if "http-equiv" in meta
    ]
    assert policy.startswith("default-src 'none'; img-src data:; ")
    for name, file in (("style", "style.css"), ("script", "script.js")):
        [content] = re.findall(rf"<{name}>(.*?)</{name}>", html, re.S)
        assert content == files("precbench.report.html").joinpath(file).read_text()
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{name}-src 'sha256-{digest}';" in policy
    for element in page.elements:
        assert "style" not in element.attributes


def test_the_page_loads_nothing_and_holds_its_drawings(past):
    write_report(past)
    html = (past / "report.html").read_text()
    assert "http://" not in html
    assert "https://" not in html
    page = Page(past / "report.html")
    assert page.loads == []
    for image in page.attributes_of("img"):
        _type, _comma, drawing = image["src"].partition("base64,")
        assert base64.b64decode(drawing).rstrip().endswith(b"</svg>")


def test_behind_every_number_are_its_trials(past):
    report = write_report(past)
    page = Page(past / "report.html")
    addresses = [link["href"] for link in page.attributes_of("a")]
    ids_of_groups = {
        address.removeprefix("#") for address in addresses if address.startswith("#d")
    }
    ids = {element.attributes.get("id") for element in page.elements}
    assert ids_of_groups
    assert ids_of_groups <= ids
    cells = {*page.text_in("td")}
    assert set(Store(past).keys()) <= cells
    results = pd.read_csv(past / "results.csv")
    finals = results[results["final"]]["value"]
    assert {f"{value:.6g}" for value in finals} <= cells
    for row in report.tables[0].rows:
        for cell in row[1:]:
            assert cell.text in page.text_in("td", "strong")


def test_the_page_has_the_command_that_repeats_a_trial(past):
    write_report(past)
    trial = pd.read_csv(past / "results.csv").iloc[0]
    command = (
        f"precbench run small.yaml --solver {trial['solver']} --dataset"
        f" {trial['dataset']} --splits {trial['split']} --force"
    )
    assert command in Page(past / "report.html").text_in("code")


def test_pages_of_several_folders_have_an_index(finished):
    assert run("rudin2009/fig-3", finished, "--smoke").exit_code == 0
    names = ["rudin2009-fig-3-smoke/report.html", "small/report.html"]
    paths = [str(finished / name) for name in ("index.html", *names)]
    result = succeed("report", finished)
    assert sorted(result.stdout.split()) == paths
    assert sorted(Page(finished / "index.html").loads) == names
    page_of_study = Page(finished / "rudin2009-fig-3-smoke" / "report.html")
    assert page_of_study.loads == []
    assert len(page_of_study.attributes_of("img")) == 1
    assert "precbench run rudin2009/fig-3 --smoke" in page_of_study.text_in("code")
    contents = [Path(path).read_bytes() for path in paths]
    again = succeed("report", finished, "--json")
    assert json.loads(again.stdout) == paths
    assert [Path(path).read_bytes() for path in paths] == contents


@pytest.mark.parametrize("smoke", [False, True])
def test_verdicts_stand_on_the_page_they_are_about_but_not_at_smoke_size(past, smoke):
    claim = next(claim for claim in load_claims() if claim.experiment == "letter")
    path = past / "experiment.json"
    experiment = json.loads(path.read_text())
    experiment |= {"name": "letter", "config": "letter", "smoke": smoke}
    path.write_text(json.dumps(experiment))
    write_report(past)
    page = Page(past / "report.html")
    assert ("no data" in page.text_in("td")) == (not smoke)
    assert (claim.id in page.text_in("th")) == (not smoke)


# --- in a browser ---


CHROMIUM = shutil.which("chromium")
DRIVER = shutil.which("chromedriver")
FLAGS = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
SORTED = """
const all = (selector) => [...document.querySelectorAll(selector)];
const labels = () =>
  all("#results tbody tr:not([hidden]) th").map((head) => head.textContent);
const head = document.querySelector("#results thead th:nth-child(2)");
const values = () =>
  all("#results tbody td:nth-child(2)").map((cell) => parseFloat(cell.textContent));
const result = {orders: [], columns: []};
for (const _ of [1, 2]) {
  head.querySelector("button").click();
  result.orders.push(head.getAttribute("aria-sort"));
  result.columns.push(values());
}
const filter = document.querySelector("#filter");
const type = (text) => {
  filter.value = text;
  filter.dispatchEvent(new Event("input"));
};
type("SGD");
result.filtered = labels();
type("");
result.all = labels();
return result;
"""
TRIALS = """
const opened = document.querySelectorAll("#trials details[open]");
const texts = (selector) =>
  [...opened[0].querySelectorAll(selector)].map((part) => part.textContent);
return {
  opened: opened.length, trials: texts("tbody tr").length, command: texts("code")[0],
  wide: document.documentElement.scrollWidth > innerWidth,
};
"""


@pytest.fixture
def drawn_on_the_page(drawn, monkeypatch):
    """Figures of the page as a user gets them; other files of theirs are empty."""
    render = sheet._rendered

    def render_svg(figure, path):
        return render(figure, path) if path.suffix == ".svg" else b""

    monkeypatch.setattr(sheet, "_rendered", render_svg)


@pytest.fixture
def browser(tmp_path):
    """A browser that notes what the page prints, and which addresses it asks for."""
    webdriver = pytest.importorskip("selenium.webdriver")
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in (*FLAGS, f"--user-data-dir={tmp_path / 'profile'}"):
        options.add_argument(flag)
    options.set_capability(
        "goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"}
    )
    driver = webdriver.Chrome(options, webdriver.ChromeService(DRIVER))
    yield driver
    driver.quit()


def requested_by(page, browser):
    """Return the addresses that a page has asked for."""
    addresses = set()
    for entry in browser.get_log("performance"):
        message = json.loads(entry["message"])["message"]
        if message["method"] == "Network.requestWillBeSent":
            request = message["params"]
            if request["documentURL"] == page:
                addresses.add(request["request"]["url"])
    return addresses


class Audit:
    """The check of a page by axe, which finds what some users cannot use."""

    def __init__(self, browser):
        axe_core_python = pytest.importorskip("axe_core_python")
        folder = Path(axe_core_python.__file__).parent
        browser.execute_script((folder / "axe.min.js").read_text())
        self.browser = browser

    def violations(self):
        result = self.browser.execute_async_script("axe.run().then(arguments[0])")
        return result["violations"]


@pytest.mark.promise("R13")
@pytest.mark.skipif(
    not (CHROMIUM and DRIVER), reason="no chromium with its chromedriver"
)
def test_the_page_in_a_browser(past, drawn_on_the_page, browser):
    write_report(past)
    address = (past / "report.html").as_uri()
    browser.get(address)
    audit = Audit(browser)
    assert audit.violations() == []

    sorting = browser.execute_script(SORTED)
    descending, ascending = sorting["columns"]
    assert sorting["orders"] == ["descending", "ascending"]
    assert ascending == sorted(ascending)
    assert descending == ascending[::-1]
    assert sorting["filtered"] == ["sgd-avg"]
    assert len(sorting["all"]) == 2

    browser.find_element("css selector", "#results tbody a").click()
    trials = browser.execute_script(TRIALS)
    assert trials["opened"] == 1
    assert trials["trials"] == 2
    assert not trials["wide"]
    assert trials["command"].startswith("precbench run small.yaml --solver ")
    assert trials["command"].endswith(" --splits 0 --force")
    assert audit.violations() == []

    assert browser.get_log("browser") == []
    requests = requested_by(address, browser)
    others = {url for url in requests if not url.startswith("data:image/svg")}
    assert others == {address}

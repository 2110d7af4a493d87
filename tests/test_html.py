"""The page of a results folder.

What it shows, what it loads, and how it works in a browser.
"""

import base64
import hashlib
import json
import re
import shutil
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path

import pandas as pd
import pytest

from precbench.advice.advised_report import write_report
from precbench.claims import load_claims
from precbench.report import sheet
from precbench.results.store import Store
from tests.helpers import invoke, run, succeed

ODD = (
    "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'&{{ 7 * 7"
    " }}\x1b[2J\u202e"
)
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
        return [
            text.strip() for name, text in self.texts if name in names and text.strip()
        ]

    @property
    def loads(self):
        """Return what leads out of the page."""
        names = ("src", "href", "action", "srcset", "data", "poster", "background")
        found = [of[name] for _, of in self.elements for name in names if of.get(name)]
        return [
            address
            for address in found
            if not address.startswith(("#", "data:image/svg"))
        ]


@pytest.fixture
def past(finished):
    """Results of two solvers on two splits, with records."""
    return finished / "small"


def with_odd_names(folder):
    """Give titles, solvers and data sets of results a name that would do harm."""
    about = json.loads((folder / "experiment.json").read_text())
    label, *others = about["solvers"]
    about |= {"title": ODD, "source": ODD, "protocol": ODD, "solvers": [ODD, *others]}
    about["measures"][about["metrics"][0]]["written"] = ODD
    (folder / "experiment.json").write_text(json.dumps(about))
    for name in ("results.csv", "roc.csv"):
        table = pd.read_csv(folder / name, dtype=str, keep_default_na=False)
        table = table.assign(title=ODD, solver=table["solver"].replace(label, ODD))
        if "reason" in table:
            table.loc[table["solver"] == ODD, ["status", "reason"]] = ["failed", ODD]
        table.to_csv(folder / name, index=False)


@pytest.mark.promise("R13")
def test_untrusted_names_are_texts_of_the_page(past):
    [path] = (past / "environments").glob("*.json")
    path.write_text(json.dumps(json.loads(path.read_text()) | {"cpu": ODD}))
    with_odd_names(past)
    write_report(past)
    page = Page(past / "report.html")
    assert page.of("script") == [{}] and page.loads == []
    assert all(
        of["src"].startswith("data:image/svg+xml;base64,") for of in page.of("img")
    )
    assert not any(name.startswith("on") for _, of in page.elements for name in of)
    for name in ("title", "h1", "th", "caption", "summary"):
        assert any(SHOWN in text for text in page.text(name)), name
    assert f"failed: {SHOWN}" in page.text("td")
    assert not {"\x1b", "\u202e"} & {*(past / "report.html").read_text()}


@pytest.mark.promise("R13")
def test_the_policy_of_the_page_allows_its_own_style_and_script(past):
    write_report(past)
    html = (past / "report.html").read_text()
    page = Page(past / "report.html")
    [policy] = [of["content"] for of in page.of("meta") if "http-equiv" in of]
    assert policy.startswith("default-src 'none'; img-src data:; ")
    for name in ("style", "script"):
        [content] = re.findall(rf"<{name}>(.*?)</{name}>", html, re.S)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{name}-src 'sha256-{digest}';" in policy
    assert content == files("precbench.report.html").joinpath("script.js").read_text()
    assert not any("style" in of for _, of in page.elements)
    assert page.loads == [] and "http://" not in html and "https://" not in html
    drawings = [of["src"].partition("base64,")[2] for of in page.of("img")]
    assert all(
        base64.b64decode(drawing).rstrip().endswith(b"</svg>") for drawing in drawings
    )


def test_behind_every_number_are_its_trials(past):
    report = write_report(past)
    page = Page(past / "report.html")
    links = {of["href"][1:] for of in page.of("a") if of["href"].startswith("#d")}
    assert links and links <= {of.get("id") for _, of in page.elements}
    assert set(Store(past).keys()) <= set(page.text("td"))
    table, results = report.tables[0], pd.read_csv(past / "results.csv")
    label, split = results["solver"][0], results["split"][0]
    command = (
        f"precbench run small.yaml --solver {label} --dataset {results['dataset'][0]}"
    )
    assert f"{command} --splits {split} --force" in page.text("code")
    finals = results[results["final"]]["value"]
    assert {f"{value:.6g}" for value in finals} <= {*page.text("td")}
    assert all(
        cell.text in page.text("td", "strong") for row in table.rows for cell in row[1:]
    )


def test_pages_of_several_folders_have_an_index(finished):
    assert run("rudin2009/fig-3", finished, "--smoke").exit_code == 0
    result = succeed("report", finished)
    names = ["index.html", "rudin2009-fig-3-smoke/report.html", "small/report.html"]
    pages = [finished / name for name in names]
    assert set(result.stdout.split()) == set(map(str, pages))
    assert sorted(Page(pages[0]).loads) == names[1:]
    page = Page(pages[1])
    assert page.loads == [] and len(page.of("img")) == 1
    assert "precbench run rudin2009/fig-3 --smoke" in page.text("code")
    before = [path.read_bytes() for path in pages]
    assert json.loads(invoke("report", finished, "--json").stdout) == list(
        map(str, pages)
    )
    assert [path.read_bytes() for path in pages] == before


def test_verdicts_stand_on_the_page_they_are_about(past):
    claim = next(claim for claim in load_claims() if claim.experiment == "letter")
    about = past / "experiment.json"
    described = json.loads(about.read_text()) | {"name": "letter", "config": "letter"}
    for smoke in (False, True):
        about.write_text(json.dumps(described | {"smoke": smoke}))
        write_report(past)
        page = Page(past / "report.html")
        assert ("no data" in page.text("td")) != smoke and (
            claim.id in page.text("th")
        ) != smoke


# In a browser


CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
FLAGS = [
    *(
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
    ),
    *(
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
    ),
]
SORTED = """
const all = (selector) => [...document.querySelectorAll(selector)];
const labels = () =>
  all("#results tbody tr:not([hidden]) th").map((head) => head.textContent);
const head = document.querySelector("#results thead th:nth-child(2)");
const values = () =>
  all("#results tbody td:nth-child(2)").map((cell) => parseFloat(cell.textContent));
const seen = {orders: [], columns: []};
for (const _ of [1, 2]) {
  head.querySelector("button").click();
  seen.orders.push(head.getAttribute("aria-sort"));
  seen.columns.push(values());
}
const filter = document.querySelector("#filter");
const type = (text) => {
  filter.value = text;
  filter.dispatchEvent(new Event("input"));
};
type("SGD");
seen.filtered = labels();
type("");
seen.all = labels();
return seen;
"""
TRIALS = """
const shown = document.querySelectorAll("#trials details[open]");
const texts = (selector) =>
  [...shown[0].querySelectorAll(selector)].map((part) => part.textContent);
return {
  opened: shown.length, trials: texts("tbody tr").length, command: texts("code")[0],
  wide: document.documentElement.scrollWidth > innerWidth,
};
"""


@pytest.fixture
def drawn_on_the_page(drawn, monkeypatch):
    """Figures of the page as a user gets them; other files of theirs are empty."""
    render = sheet._rendered
    monkeypatch.setattr(
        sheet,
        "_rendered",
        lambda f, path: render(f, path) if path.suffix == ".svg" else b"",
    )


@pytest.mark.promise("R13")
@pytest.mark.skipif(
    not (CHROMIUM and DRIVER), reason="no chromium with its chromedriver"
)
def test_the_page_in_a_browser(past, tmp_path, drawn_on_the_page):
    axe_core_python = pytest.importorskip("axe_core_python")
    webdriver = pytest.importorskip("selenium.webdriver")
    write_report(past)
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in (*FLAGS, f"--user-data-dir={tmp_path / 'profile'}"):
        options.add_argument(flag)
    options.set_capability(
        "goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"}
    )
    browser = webdriver.Chrome(options, webdriver.ChromeService(DRIVER))
    try:
        address = (past / "report.html").as_uri()
        browser.get(address)
        browser.execute_script(
            Path(axe_core_python.__file__).with_name("axe.min.js").read_text()
        )
        check = "axe.run().then(arguments[0])"
        violations = browser.execute_async_script(check)["violations"]
        sorting = browser.execute_script(SORTED)
        browser.find_element("css selector", "#results tbody a").click()
        seen = browser.execute_script(TRIALS)
        violations += browser.execute_async_script(check)["violations"]
        console = browser.get_log("browser")
        messages = [
            json.loads(of["message"])["message"]
            for of in browser.get_log("performance")
        ]
    finally:
        browser.quit()
    assert violations == [] and console == []
    sent = [
        of["params"] for of in messages if of["method"] == "Network.requestWillBeSent"
    ]
    asked = {of["request"]["url"] for of in sent if of["documentURL"] == address}
    assert {url for url in asked if not url.startswith("data:image/svg")} == {address}
    descending, ascending = sorting["columns"]
    assert sorting["orders"] == ["descending", "ascending"]
    assert sorted(ascending) == ascending == descending[::-1]
    assert sorting["filtered"] == ["sgd-avg"] and len(sorting["all"]) == 2
    assert seen["opened"] == 1 and seen["trials"] == 2 and not seen["wide"]
    assert seen["command"].startswith("precbench run small.yaml --solver ")
    assert seen["command"].endswith(" --splits 0 --force")

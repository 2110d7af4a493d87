"""Files of claims: fields that claims share, and mistakes."""

import re
import shutil
from collections import Counter
from itertools import product

import pytest

from precbench.claims import load_claims, published
from precbench.claims.verdicts import Verdict
from tests.helpers import ROOT
from tests.sentences import mistakes, names, naming


@pytest.fixture(scope="module")
def folder_of_claims(tmp_path_factory):
    folder = tmp_path_factory.mktemp("claims") / "configs"
    shutil.copytree(ROOT / "configs", folder)
    return folder


@pytest.fixture
def with_mistake(folder_of_claims, monkeypatch):
    monkeypatch.setattr(published, "shipped", lambda _: folder_of_claims)

    def refusal(old, new, file="rudin2009/table-3-magic"):
        """Return the line of the mistake, and the message."""
        path = folder_of_claims / f"{file}.published.yaml"
        text = path.read_text()
        assert old in text
        try:
            path.write_text(text.replace(old, new, 1))
            lines = mistakes(load_claims)
        finally:
            path.write_text(text)
        line = text[: text.index(old)].count("\n") + 1
        return line, "\n".join(lines)

    return refusal


@pytest.mark.parametrize(
    ("old", "new", "offset", "places"),
    [
        pytest.param(
            "metric: auc\n    better",
            "metrc: auc\n    better",
            0,
            "claims[5].metrc 'metric'",
            id="misspelt field",
        ),
        pytest.param(
            '"0.8284"]', '"0.8284", "1"]', 0, "printed 8 7", id="more numbers than rows"
        ),
        pytest.param(
            "deviations: [eleven-columns]",
            "deviations: [eleven-column]",
            -7,
            "'eleven-column' 'eleven-columns'",
            id="misspelt deviation",
        ),
        pytest.param(
            "section-8/magic-positives",
            "section-8/magic-rows",
            0,
            "claims[1]",
            id="an id twice",
        ),
        pytest.param(
            "best: small p", "best: small", -8, "'small'", id="misspelt group of rows"
        ),
        pytest.param(
            "small p: [p=1, p=2]",
            "small p: [p=1, p=3]",
            0,
            "'p=3'",
            id="unknown row in a group",
        ),
        pytest.param(
            "best: small p\n",
            "exceptions: {p=3: {truncated: true}}\n",
            0,
            "'p=3'",
            id="unknown row in an exception",
        ),
        pytest.param(
            "kind: mean", "kind: men", 0, "tables[0].kind 'mean'", id="misspelt kind"
        ),
        pytest.param(
            "  - id: section-8/magic-rows\n    where",
            "  - where",
            0,
            "claims[0].id",
            id="no id",
        ),
        pytest.param(
            "id: section-8/magic-rows",
            'id: "section 8"',
            0,
            "claims[0] 'rudin2009/section 8'",
            id="a blank in an id",
        ),
        pytest.param(
            '["0.8370"',
            '["0.83.70"',
            -2,
            "p=1/auc '0.83.70'",
            id="two points in a number",
        ),
    ],
)
def test_mistakes_are_reported_with_their_line(with_mistake, old, new, offset, places):
    line, message = with_mistake(old, new)
    names(message, f"table-3-magic.published.yaml:{line + offset}")
    lines = naming(message, places)
    assert any(f":{line + offset}:" in text for text in lines), message


@pytest.mark.parametrize(
    ("old", "new", "offset", "places"),
    [
        pytest.param(
            '"section-6/{dataset}/{solver}-ag',
            '"section-6/{datset}/{solver}-ag',
            0,
            "claims[0].claims[0].id 'datset' 'dataset'",
            id="misspelt name in braces",
        ),
        pytest.param(
            "metric: wall_seconds",
            'metric: "{colour}"',
            0,
            "metric 'colour'",
            id="unknown name in braces",
        ),
        pytest.param(
            'id: "section-6/{dataset}/{solver}-against',
            'id: "section-6/{dataset}/against',
            -1,
            "claims[0].claims[0]",
            id="an id twice",
        ),
        pytest.param(
            "sgd-max, 1pmb]",
            "sgd-avg]",
            0,
            "claims[0].for.solver[3]",
            id="a solver twice",
        ),
        pytest.param(
            "for: {method: [perceptron, sgd]}",
            "for: {method: []}",
            0,
            "for.method 1",
            id="an empty list",
        ),
        pytest.param(
            "for: {method: [perceptron, sgd]}",
            "for: {method: sgd}",
            0,
            "for.method",
            id="a word for a list",
        ),
        pytest.param(
            'ppi: {where: "Section 6, Figure 2, PPI"}',
            "ppi: Figure 2",
            0,
            "for.dataset.ppi",
            id="a word for fields",
        ),
        pytest.param(
            "adult: {where",
            "adult: {wher",
            0,
            "for.dataset.adult.wher",
            id="misspelt field of one",
        ),
        pytest.param(
            "worse: [cutting-plane]",
            "worse: [cutting-plane]\n        worst: []",
            1,
            "claims[0].worst 'worse'",
            id="misspelt field of all",
        ),
    ],
)
def test_mistakes_in_repeated_claims(with_mistake, old, new, offset, places):
    """A mistake is reported once, not for each of the claims that repeat it."""
    line, message = with_mistake(old, new, "kar2015/section-6")
    lines = naming(message, places)
    assert f"section-6.published.yaml:{line + offset}:" in lines[0]
    assert len(lines) == 1 or "/against" in new, message


def test_repeated_claims(tmp_path, monkeypatch):
    (tmp_path / "deviations.published.yaml").write_text("deviations: {}")
    (tmp_path / "toy.published.yaml").write_text("""
paper: toy
experiment: toy
common: {where: "Table {n}, {name}", kind: exact}
tables:
  - id: table-2
    where: Table 2
    kind: exact
    common: {cell: {list: "{row}"}}
    columns: {f1: {cell: {column: "{column}"}}, f2: {}}
    rows: {a: {printed: ["1", "2"]}}
claims:
  - for: {n: [1, 2], name: {a: {printed: "3"}, b: {printed: "4", cell: {list: f1}}}}
    cell: {scale: "{n}", share: "1/{n}"}
    claims:
      - id: "table-{n}/{name}/{way}"
        for: {way: [up, 0.5]}
        cell: {list: "{name}{{n}}"}
      - {id: "table-{n}/{name}", printed: "5"}
""")
    monkeypatch.setattr(published, "shipped", lambda _: tmp_path)
    claims = {c.id: c for c in load_claims()}
    repeated = [
        f"toy/table-{n}/{name}{way}"
        for n, name, way in product((1, 2), "ab", ("/up", "/0.5", ""))
    ]
    assert list(claims) == ["toy/table-2/f1/a", "toy/table-2/f2/a", *repeated]
    assert claims["toy/table-2/f1/a"].cell == {"list": "a", "column": "f1"}
    assert claims["toy/table-2/f2/a"].cell == {"list": "a"}
    inner = claims["toy/table-2/b/up"]
    assert inner.where == "Table 2, b"
    assert inner.printed == "4"
    # a number stays a number
    assert inner.cell == {"scale": 2, "share": "1/2", "list": "b{2}"}
    plain = claims["toy/table-2/b"]
    assert plain.printed == "5"
    assert plain.cell == {"scale": 2, "share": "1/2", "list": "f1"}


def test_example_of_the_page(tmp_path, monkeypatch):
    shutil.copy(ROOT / "configs" / "deviations.published.yaml", tmp_path)
    page = (ROOT / "docs" / "claims.md").read_text()
    [example] = re.findall(r"^```yaml\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    (tmp_path / "example.published.yaml").write_text(example)
    monkeypatch.setattr(published, "shipped", lambda _: tmp_path)
    claims = {c.id: c for c in load_claims()}
    assert Counter(c.kind for c in claims.values()) == {
        "mean": 4,
        "fact": 1,
        "order": 4,
        "statement": 2,
    }
    deviating = claims["kar2015/section-7/cod-rna-2/sgd-avg-above-max"]
    assert deviating.better == ("sgd-avg",)
    assert deviating.deviations == ("cod-rna-two-files",)
    assert claims["kar2015/table-7/max/auc"].printed == "94.8"


def test_page_names_every_kind_and_verdict(claims):
    page = (ROOT / "docs" / "claims.md").read_text()
    assert {c.kind for c in claims} == set(
        re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)
    )
    assert [v for v in Verdict if f"\n| {v} | " in page] == list(Verdict)


def test_a_misspelt_field_of_a_deviation(with_mistake):
    line, message = with_mistake("    evidence:", "    evidnce:", "deviations")
    names(message, f"deviations.published.yaml:{line}:5 deviations.half-scores.evidnce")


def test_an_unknown_deviation_of_a_reading(with_mistake):
    _, message = with_mistake(
        "deviation: half-scores", "deviation: x", "rudin2009/tables-1-2"
    )
    names(message, "tables[0].rows.swap-none 'x'")


def test_a_misspelt_field_is_not_reported_as_missing_too(with_mistake):
    _, message = with_mistake(
        "  - id: figure-8/most-cases\n    where",
        "  - id: figure-8/most-cases\n    whre",
        "rudin2009/fig-8",
    )
    names(message, "claims[0].whre figure-8/most-cases 'where'")
    assert "is missing" not in message


def test_a_statement_that_is_untested_has_no_reason(with_mistake):
    reason = '    reason: \'"relatively"'
    untested = "    untested: x\n" + reason
    _, message = with_mistake(reason, untested, "kar2015/fig3-batch")
    names(message, "kdd08/stable")

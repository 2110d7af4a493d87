"""Files of claims: fields that claims share, and mistakes."""

import re
import shutil
from collections import Counter
from itertools import product

import pytest

from precbench.claims import load_claims, published
from precbench.claims.verdicts import Verdict
from precbench.errors import InputError
from tests.helpers import ROOT


@pytest.fixture(scope="module")
def folder_of_claims(tmp_path_factory):
    folder = tmp_path_factory.mktemp("claims") / "configs"
    shutil.copytree(ROOT / "configs", folder)
    return folder


@pytest.fixture
def with_mistake(folder_of_claims, monkeypatch):
    """Put a mistake into a file; returns the refusal."""
    monkeypatch.setattr(published, "shipped", lambda _: folder_of_claims)

    def refusal(old, new, file="rudin2009/table-3-magic"):
        path = folder_of_claims / f"{file}.published.yaml"
        text = path.read_text()
        assert old in text
        try:
            path.write_text(text.replace(old, new, 1))
            with pytest.raises(InputError) as error:
                load_claims()
        finally:
            path.write_text(text)
        line = text[: text.index(old)].count("\n") + 1
        return line, str(error.value)

    return refusal


@pytest.mark.parametrize(
    ("old", "new", "offset", "what"),
    [
        ("metric: auc\n    better", "metrc: auc\n    better", 0,
         r"claims\[5\]\.metrc: .*magic/sacrifice: unknown key \(did you mean 'metric'\?\)"),
        ("metric: auc\n    better", "better", -8, r"claims\[5\]\.metric: .*fice: is missing"),
        ('"0.8284"]', '"0.8284", "1"]', 0, "printed: has 8 cells, the table has 7 columns"),
        ('"0.8288", "0.8284"]', "]", 0, "printed: has 5 cells, the table has 7 columns"),
        ("deviations: [eleven-columns]", "deviations: [eleven-column]", -7,
         r"unknown deviation 'eleven-column' \(did you mean 'eleven-columns'\?\)"),
        ("section-8/magic-positives", "section-8/magic-rows", 0,
         r"claims\[1\]: a second claim with the id rudin2009/section-8/magic-rows"),
        ("best: small p", "best: small", -8, "unknown group .*'small'"),
        ("small p: [p=1, p=2]", "small p: [p=1, p=3]", 0, "unknown column of this table 'p=3'"),
        ("p=2: {solver: p=2,", "p=2: {", 6, "column p=2 has no solver"),
        ("best: small p\n", "exceptions: {p=3: {truncated: true}}\n", 0,
         "unknown column of this table 'p=3'"),
        ("kind: mean", "kind: men", 0, r"tables\[0\]\.kind: .*did you mean 'mean'"),
        ("  - id: section-8/magic-rows\n    where", "  - where", 0, r"claims\[0\]\.id: .*missing"),
        ("id: section-8/magic-rows", 'id: "section 8"', 0, r"claims\[0\].*'rudin2009/section 8'"),
        ("- id: section-8/magic-rows", "- x\n  - id: section-8/magic-rows", 0,
         r"claims\[0\]: should be a mapping"),
        ('["0.8370"', '["0.83.70"', -2, r"p=1/auc: '0\.83\.70' is not a printed number"),
        ('["6.5515"', '["0.0000"', -2, r"p=1/r-2-1: should be above 0"),
        ("paper: rudin2009\n", "", 0, "paper: is missing"),
    ],
)  # fmt: skip
def test_mistakes_are_reported_with_their_line(with_mistake, old, new, offset, what):
    line, message = with_mistake(old, new)
    first = next(text for text in message.splitlines() if re.search(what, text))
    found_line = int(re.search(r"table-3-magic\.published\.yaml:(\d+):\d+: ", first)[1])
    assert found_line == line + offset, message


@pytest.mark.parametrize(
    ("old", "new", "offset", "what"),
    [
        ('"section-6/{dataset}/{solver}-ag', '"section-6/{datset}/{solver}-ag', 0,
         r"claims\[0\]\.claims\[0\]\.id: .*placeholder 'datset' \(did you mean 'dataset'"),
        ("metric: wall_seconds", 'metric: "{colour}"', 0, "metric: .*unknown placeholder 'colour'"),
        ('id: "section-6/{dataset}/{solver}-against', 'id: "section-6/{dataset}/against', -1,
         r"claims\[0\]\.claims\[0\]: a second claim with the id kar2015/section-6/ppi/against"),
        ("sgd-max, 1pmb]", "sgd-avg]", 0, r"claims\[0\]\.for\.solver\[3\]: is repeated"),
        ("sgd-max, 1pmb]", "[1pmb]]", 0, r"for\.solver\[3\]: should be text or a number"),
        ("for: {method: [perceptron, sgd]}", "for: {method: []}", 0, "for.method: .*at least 1"),
        ("for: {method: [perceptron, sgd]}", "for: {method: sgd}", 0,
         "for.method: should be a mapping"),
        ("for: {method: [perceptron, sgd]}", "for: [perceptron, sgd]", 0,
         "for: should be a mapping"),
        ('ppi: {where: "Section 6, Figure 2, PPI"}', "ppi: Figure 2", 0,
         "for.dataset.ppi: should be a mapping"),
        ("adult: {where", "adult: {wher", 0,
         r"for\.dataset\.adult\.wher: .*adult/perceptron-avg.*: unknown key \(did you"),
        ("kind: order", "kind: ordr", 0,
         r"claims\[0\]\.kind: .*unknown kind of claim 'ordr' \(did you mean 'order'\?\)"),
        ('dataset: "{dataset}"', "dataset: 3", 0,
         r"claims\[0\]\.dataset: .*should be a valid string"),
        ("worse: [cutting-plane]", "worse: [cutting-plane]\n        worst: []", 1,
         r"claims\[0\]\.worst: .*ppi/perceptron-avg.*: unknown key \(did you mean 'worse'"),
    ],
)  # fmt: skip
def test_mistakes_in_repeated_claims(with_mistake, old, new, offset, what):
    """A mistake is reported once, not for each of the claims that repeat it."""
    line, message = with_mistake(old, new, "kar2015/section-6")
    found = [text for text in message.splitlines() if re.search(what, text)]
    assert int(re.search(r"section-6\.published\.yaml:(\d+):\d+: ", found[0])[1]) == line + offset
    assert len(found) == 1 or "a second claim" in what, message


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
    found = {c.id: c for c in load_claims()}
    names = ["/up", "/0.5", ""]
    repeated = [f"toy/table-{n}/{x}{way}" for n, x, way in product((1, 2), "ab", names)]
    assert list(found) == ["toy/table-2/f1/a", "toy/table-2/f2/a", *repeated]
    assert found["toy/table-2/f1/a"].cell == {"list": "a", "column": "f1"}
    assert found["toy/table-2/f2/a"].cell == {"list": "a"}
    up, plain = found["toy/table-2/b/up"], found["toy/table-2/b"]
    assert (up.where, up.printed) == ("Table 2, b", "4")
    assert up.cell == {"scale": 2, "share": "1/2", "list": "b{2}"}  # a number stays one
    assert plain.printed == "5" and plain.cell == {"scale": 2, "share": "1/2", "list": "f1"}


def test_example_of_the_page(tmp_path, monkeypatch):
    shutil.copy(ROOT / "configs" / "deviations.published.yaml", tmp_path)
    page = (ROOT / "docs" / "claims.md").read_text()
    [example] = re.findall(r"^```yaml\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    (tmp_path / "example.published.yaml").write_text(example)
    monkeypatch.setattr(published, "shipped", lambda _: tmp_path)
    found = {c.id: c for c in load_claims()}
    assert Counter(c.kind for c in found.values()) == {
        "mean": 4, "fact": 1, "order": 4, "statement": 2,
    }  # fmt: skip
    deviating = found["kar2015/section-7/cod-rna-2/sgd-avg-above-max"]
    assert deviating.better == ("sgd-avg",) and deviating.deviations == ("cod-rna-two-files",)
    assert found["kar2015/table-7/max/auc"].printed == "94.8"


def test_page_names_every_kind_and_verdict(claims):
    page = (ROOT / "docs" / "claims.md").read_text()
    assert {c.kind for c in claims} == set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE))
    assert [v for v in Verdict if f"\n| {v} | " in page] == list(Verdict)


def test_mistakes_in_other_files(with_mistake):
    line, message = with_mistake("    evidence:", "    evidnce:", "deviations")
    assert f"deviations.published.yaml:{line}:5: deviations.half-scores.evidnce: unknown" in message
    _, message = with_mistake("deviation: half-scores", "deviation: x", "rudin2009/tables-1-2")
    assert "tables[0].rows.swap-none: unknown deviation 'x'" in message
    both = "  - id: figure-8/most-cases\n    where"
    _, message = with_mistake(both, "  - id: figure-8/most-cases\n    whre", "rudin2009/fig-8")
    assert "claims[0].whre: figure-8/most-cases: unknown key (did you mean 'where'?)" in message
    assert "is missing" not in message
    reason = '    reason: \'"relatively"'
    _, message = with_mistake(reason, "    untested: x\n" + reason, "kar2015/fig3-batch")
    assert "kdd08/stable: needs either a reason" in message

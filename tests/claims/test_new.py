"""``precbench claims new``."""

import json

import pytest

from precbench.claims.published import read_claims
from tests.helpers import invoke
from tests.sentences import refused

ONE = ["dataset=letter", "solver=sgd-avg", "metric=precision_at_k(k=0.25)", "runs=5"]
NUMBER = ["table-1/x", "--printed", "1", *ONE]
TABLE = """,sgd-avg,sgd-max
precision_at_k(k=0.25),68.60,54.4
auc,95.1,94.80
"""


@pytest.fixture(autouse=True)
def desk(work_folder):
    (work_folder / "table.csv").write_text(TABLE)
    return work_folder


def new(*arguments):
    result = invoke("claims", "new", "kar2015", *arguments, "--config", "letter")
    assert result.exit_code == 0, result.stderr
    return result.stdout


def test_a_number_keeps_its_digits(desk):
    (desk / "letter.published.yaml").write_text(
        new("section-6/avg", *ONE, "--printed", "0.550")
    )
    [claim] = read_claims(desk / "letter.published.yaml")
    assert claim.id == "kar2015/section-6/avg"
    assert claim.where == "Section 6"
    assert claim.printed == "0.550"
    assert claim.runs == 5
    assert claim.experiment == claim.config == "letter"


def test_a_new_claim_as_json():
    text = new("section-6/avg", *ONE, "--printed", "0.550", "--json")
    content = json.loads(text)
    assert content["ids"] == ["kar2015/section-6/avg"]
    assert content["file"] is None
    assert content["entry"]["printed"] == "0.550"


def test_a_file_of_another_name_names_the_config(desk):
    file = desk / "second.published.yaml"
    assert new("section-6/avg", *ONE, "--printed", "0.550", "--to", file.name)
    [claim] = read_claims(file)
    assert claim.config == "letter"


def test_a_table_and_more_claims_come_into_one_file(desk):
    file = desk / "x.published.yaml"
    file.write_text(
        "# A comment.\npaper: kar2015\nexperiment: letter\nclaims:\n  # Another.\n"
        "  - {id: section-1/a, where: x, kind: statement, printed: y, reason: z}\n"
    )
    new(
        "table-9",
        "dataset=letter",
        "power_of_ten=-2",
        "--csv",
        "table.csv",
        "--to",
        "x.published.yaml",
    )
    output = new(
        "section-6/rows",
        "kind=fact",
        "dataset=letter",
        "of=rows",
        "--printed",
        "20,000",
        "--to",
        "x.published.yaml",
    )
    assert output == "x.published.yaml: 1 claim added\n"
    text = file.read_text()
    assert text.startswith("# A comment.\n")
    assert "  # Another.\n" in text
    claims = {claim.id: claim for claim in read_claims(file)}
    assert len(claims) == 6
    assert "kar2015/section-1/a" in claims
    assert claims["kar2015/section-6/rows"].printed == "20,000"
    cell = claims["kar2015/table-9/sgd-max/auc"]
    assert cell.printed == "94.80"
    assert cell.solver == "sgd-max"
    assert cell.metric == "auc"
    assert cell.power_of_ten == -2
    assert cell.first_printed == "95.1"


@pytest.mark.parametrize(
    ("arguments", "places"),
    [
        pytest.param(
            [*NUMBER, "solver=sgd-av"], "'sgd-av' 'sgd-avg'", id="misspelt solver"
        ),
        pytest.param(
            [*NUMBER, "dataset=leter"], "'leter' 'letter'", id="misspelt data set"
        ),
        pytest.param([*NUMBER, "beta=1"], "claims[0].beta", id="unknown field"),
        pytest.param(["table-1/x", *ONE], "printed", id="nothing printed"),
        pytest.param(
            ["table-1/x", "--printed", "0,55", *ONE], "'0,55'", id="a comma in a number"
        ),
        pytest.param(
            ["table-1", "--csv", "rows.csv", "dataset=letter"],
            "rows.csv 'auc'",
            id="a row twice",
        ),
        pytest.param(
            ["table-1", "--csv", "columns.csv", "dataset=letter"],
            "columns.csv 'sgd-avg'",
            id="a column twice",
        ),
        pytest.param(
            ["table-1", "--csv", "latin.csv", "dataset=letter"],
            "latin.csv UTF-8",
            id="table not in UTF-8",
        ),
        pytest.param(
            [*NUMBER, "--to", "latin.published.yaml"],
            "latin.published.yaml UTF-8",
            id="claims not in UTF-8",
        ),
        pytest.param(
            ["table-1", "--csv", "short.csv", "dataset=letter"],
            "short.csv",
            id="no columns",
        ),
        pytest.param(
            ["table-1", "--csv", "ragged.csv", "dataset=letter"],
            "auc 1 2",
            id="a cell missing",
        ),
        pytest.param(
            [*NUMBER, "--to", "x.yaml"], "x.yaml", id="a file of another name"
        ),
        pytest.param(
            [*NUMBER, "--to", "other.published.yaml"],
            "other.published.yaml rudin2009 kar2015",
            id="claims of another paper",
        ),
    ],
)
def test_mistakes(desk, arguments, places):
    (desk / "short.csv").write_text("auc\n")
    (desk / "ragged.csv").write_text(",sgd-avg,sgd-max\nauc,1\n")
    (desk / "rows.csv").write_text(",sgd-avg\nauc,1\nauc,2\n")
    (desk / "columns.csv").write_text(",sgd-avg,sgd-avg\nauc,1,2\n")
    for name in ("latin.csv", "latin.published.yaml"):
        (desk / name).write_bytes(b"# \xe9")
    (desk / "other.published.yaml").write_text("paper: rudin2009\nexperiment: letter\n")
    refused(["claims", "new", "kar2015", *arguments, "--config", "letter"], places)
    assert (desk / "other.published.yaml").read_text().count("\n") == 2


def test_an_entry_that_is_there_is_not_written_again(desk):
    arguments = [
        "section-6/avg",
        *ONE,
        "--printed",
        "0.550",
        "--to",
        "x.published.yaml",
    ]
    new(*arguments)
    text = (desk / "x.published.yaml").read_text()
    refused(
        ["claims", "new", "kar2015", *arguments, "--config", "letter"],
        "kar2015/section-6/avg",
    )
    assert (desk / "x.published.yaml").read_text() == text

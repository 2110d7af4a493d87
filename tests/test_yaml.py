"""What YAML is read, what is refused and where; the schema for editors."""

import copy
import json
import time

import pytest

from precbench.core.errors import InputError, did_you_mean
from precbench.core.locations import shipped
from precbench.core.yaml.document import MAX_MISTAKES, load, parse
from precbench.experiment import list_configs
from precbench.experiment.schema import config_schema
from tests.helpers import invoke
from tests.sentences import mistakes, names, raises, tells


def complaint(text):
    """Return the lines for which a text is refused."""
    return "\n".join(mistakes(parse, text, "a.yaml"))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        pytest.param("1e-3", 1e-3, id="a float without a point"),
        pytest.param(".5", 0.5, id="a float without a first digit"),
        pytest.param("-12", -12, id="a negative integer"),
        pytest.param("true", True, id="true"),
        pytest.param("null", None, id="null"),
        pytest.param("~", None, id="a tilde"),
        pytest.param("''", "", id="empty quotes"),
        pytest.param("yes", "yes", id="yes is text"),
        pytest.param("True", "True", id="True is text"),
        pytest.param("2024-01-01", "2024-01-01", id="a date is text"),
        pytest.param("1_000", "1_000", id="an underscore makes text"),
        pytest.param("'010'", "010", id="a number in quotes is text"),
        pytest.param("1: 2", {"1": 2}, id="a key is text"),
        pytest.param(
            "a: {b: [1, {c: 2.0}], d: }\ne: |\n  1\n",
            {"a": {"b": [1, {"c": 2.0}], "d": None}, "e": "1\n"},
            id="nested",
        ),
    ],
)
def test_values(text, value):
    data = parse(text).data
    assert data == value
    assert type(data) is type(value)


def test_every_key_and_item_has_a_place():
    where = parse("a: 1\nb:\n  - x\n  - {c: [1, 2]}\nd:\n").where
    assert where == {
        (): (1, 1),
        ("a",): (1, 1),
        ("b",): (2, 1),
        ("b", 0): (3, 5),
        ("b", 1): (4, 5),
        ("b", 1, "c"): (4, 6),
        ("b", 1, "c", 0): (4, 10),
        ("b", 1, "c", 1): (4, 13),
        ("d",): (5, 1),
    }


@pytest.mark.promise("R13")
@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param(
            "a: 1\nb: {a: 1, a: 2}", "a.yaml:2:11 b.a 'a' 2", id="duplicate key"
        ),
        pytest.param("a: &x 1", "a.yaml:1:4 a", id="anchor"),
        pytest.param(
            "a: !!python/object/apply:os.system [ls]", "a.yaml:1:4 a", id="tag"
        ),
        pytest.param("a: 010", "a.yaml:1:4 a 010", id="leading zero"),
        pytest.param("a: 0x1F", "", id="hexadecimal"),
        pytest.param("a: .inf", "numbers", id="infinity"),
        pytest.param("a: 1e999", "", id="float too large"),
        pytest.param("a: 12345678901234567890", "18", id="integer too long"),
        pytest.param("? [1]\n: 2", "", id="key is a list"),
        pytest.param("a: 1\n---\nb: 2", "a.yaml:2:1", id="second document"),
        pytest.param("a: 1\n\tb: 2", "a.yaml:2:1", id="tab as indent"),
        pytest.param("a: \x07", "a.yaml:1:4", id="control character"),
        pytest.param("a:\n- b\n c: d", "a.yaml:3:3", id="bad indent"),
    ],
)
def test_refused(text, words):
    tells(complaint(text), words)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param('"a\\nb": 1', "a.yaml:1:1 control", id="newline"),
        pytest.param('"a\\tb": 1', "a.yaml:1:1 control", id="tab"),
        pytest.param("*x : 1", "a.yaml:1:1 alias", id="alias"),
        pytest.param("&x a: 1", "a.yaml:1:1 anchor", id="anchor"),
    ],
)
def test_refused_keys(text, words):
    tells(complaint(text), words)


def test_all_mistakes_are_reported_at_once():
    lines = mistakes(parse, "a: 010\nb: 1\nb: &x 2\nc: .nan\n", "a.yaml")
    places = [line.split(" ")[0] for line in lines]
    assert places == ["a.yaml:1:4:", "a.yaml:3:1:", "a.yaml:3:4:", "a.yaml:4:4:"]


@pytest.mark.promise("R13")
@pytest.mark.parametrize(
    "text",
    [
        pytest.param(
            "a: &a [x]\n" + "\n".join(f"k{i}: [*a, *a, *a]" for i in range(30)),
            id="aliases",
        ),
        pytest.param("[" * 2000 + "]" * 2000, id="brackets"),
        pytest.param("- 010\n" * 100_000, id="mistakes"),
        pytest.param("? " * 2000, id="keys"),
    ],
)
def test_bombs_end_in_a_short_message_within_a_second(text):
    start = time.perf_counter()
    message = complaint(text)
    seconds = time.perf_counter() - start
    assert seconds < 1
    assert message.count("\n") < 20
    assert len(message) < 3000


@pytest.mark.promise("R13")
def test_depth_up_to_the_limit():
    data = parse("[" * 20 + "]" * 20).data
    for _ in range(19):
        [data] = data
    assert data == []


@pytest.mark.promise("R13")
def test_depth_beyond_the_limit():
    names(complaint("[" * 21 + "]" * 21), "20")


def test_a_file_with_a_mark_and_lines_of_windows(tmp_path):
    path = tmp_path / "a.yaml"
    path.write_bytes(b"\xef\xbb\xbfa: \xc3\xa9\r\nb: 2\r\n")
    assert load(path).data == {"a": "é", "b": 2}


def test_a_file_that_is_missing(tmp_path):
    path = tmp_path / "a.yaml"
    with raises(InputError, str(path)):
        load(path)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        pytest.param(b"a: 1\nb: \xff", "a.yaml:2:4", id="not UTF-8"),
        pytest.param(b"# " + b"x" * 10_000_000, "1,000,000", id="too large"),
    ],
)
def test_files_that_are_refused(tmp_path, content, words):
    path = tmp_path / "a.yaml"
    path.write_bytes(content)
    with raises(InputError, words):
        load(path)


def test_refusal_sorts_and_falls_back_to_the_parent():
    document = parse("a: {b: 1}\nc: [1, 2]", "a.yaml")
    error = document.refusal(
        [(("c", 1), "two"), (("a", "x", "y"), "one"), (("c", 1), "two")]
    )
    assert str(error) == "a.yaml:1:1: a.x.y: one\na.yaml:2:8: c[1]: two"


def test_a_few_of_many_problems_are_shown():
    document = parse("a: 1\n")
    error = document.refusal((("a",), f"problem {i}") for i in range(30_000))
    lines = str(error).splitlines()
    assert len(lines) == MAX_MISTAKES + 1
    assert lines[-1].endswith("and 29,980 more")


def test_equal_problems_are_shown_once():
    error = parse("a: 1\n").refusal([(("a",), "one")] * 9)
    assert len(str(error).splitlines()) == 1


@pytest.mark.parametrize(
    ("name", "valid", "hint"),
    [
        pytest.param(
            "epoch", ["epochs", "eta0"], " (did you mean 'epochs'?)", id="near"
        ),
        pytest.param("c", ["C", "tol"], " (did you mean 'C'?)", id="other case"),
        pytest.param("zzz", ["C", "tol"], "", id="far from all"),
    ],
)
def test_did_you_mean(name, valid, hint):
    assert did_you_mean(name, valid) == hint


# --- the schema for editors accepts shipped configs, and sees mistakes of one key ---


@pytest.fixture(scope="module")
def validator():
    import jsonschema

    schema = config_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def config(name):
    return load(shipped("configs") / f"{name}.yaml").data


@pytest.mark.extras("jsonschema")
@pytest.mark.parametrize("name", list_configs())
def test_shipped_configs_are_accepted(name, validator):
    messages = [error.message for error in validator.iter_errors(config(name))]
    assert messages == []


def test_the_command_prints_the_schema():
    assert json.loads(invoke("schema").stdout) == config_schema()


@pytest.mark.extras("jsonschema")
@pytest.mark.parametrize(
    ("place", "value"),
    [
        pytest.param(["protocl"], {}, id="misspelt section"),
        pytest.param(["datasets", 0], "leter", id="misspelt data set"),
        pytest.param(
            ["datasets", 0],
            {"name": "letter", "on_mising": "skip"},
            id="misspelt option of a data set",
        ),
        pytest.param(
            ["metrics", 0],
            {"precision_at_k": {"kk": 3}},
            id="misspelt parameter of a metric",
        ),
        pytest.param(
            ["solvers", "sgd-avg"], {"eta": 1}, id="misspelt parameter of a solver"
        ),
        pytest.param(["solvers", "sgd-agv"], None, id="misspelt solver"),
        pytest.param(
            ["solvers", "mine"],
            {"solver": "bbr", "eta0": 1},
            id="parameter of another solver",
        ),
        pytest.param(["solvers"], {}, id="no solver"),
        pytest.param(["protocol", "n_splits"], 0, id="no split"),
    ],
)
def test_mistakes_are_seen(place, value, validator):
    document = copy.deepcopy(config("letter"))
    *path, last = place
    parent = document
    for key in path:
        parent = parent[key]
    parent[last] = value
    assert not validator.is_valid(document)

"""The YAML loader: what it reads, what it refuses, and where.

The schema for editors.
"""

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
from tests.sentences import mistakes, names, naming, raises


def complaint(text):
    return "\n".join(mistakes(parse, text, "a.yaml"))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-3", 1e-3),
        (".5", 0.5),
        ("-12", -12),
        ("true", True),
        ("null", None),
        ("~", None),
        ("''", ""),
        ("yes", "yes"),
        ("True", "True"),
        ("2024-01-01", "2024-01-01"),
        ("1_000", "1_000"),
        ("'010'", "010"),
        ("1: 2", {"1": 2}),
        (
            "a: {b: [1, {c: 2.0}], d: }\ne: |\n  1\n",
            {"a": {"b": [1, {"c": 2.0}], "d": None}, "e": "1\n"},
        ),
    ],
)
def test_values(text, value):
    data = parse(text).data
    assert data == value and type(data) is type(value)


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
    ("text", "expected"),
    [
        ("a: 1\nb: {a: 1, a: 2}", "a.yaml:2:11 b.a 'a' 2"),
        ("a: &x 1", "a.yaml:1:4 a"),
        ("a: !!python/object/apply:os.system [ls]", "a.yaml:1:4 a"),
        ("a: 010", "a.yaml:1:4 a 010"),
        ("a: 0x1F", ""),
        ("a: .inf", "numbers"),
        ("a: 1e999", ""),
        ("a: 12345678901234567890", "18"),
        ("? [1]\n: 2", ""),
        ("a: 1\n---\nb: 2", "a.yaml:2:1"),
        ("a: 1\n\tb: 2", "a.yaml:2:1"),
        ("a: \x07", "a.yaml:1:4"),
        ("a:\n- b\n c: d", "a.yaml:3:3"),
    ],
)
def test_refused(text, expected):
    naming(complaint(text), expected)


def test_all_mistakes_are_reported_at_once():
    text = complaint("a: 010\nb: 1\nb: &x 2\nc: .nan\n")
    assert [line.split(" ")[0] for line in text.splitlines()] == [
        "a.yaml:1:4:",
        "a.yaml:3:1:",
        "a.yaml:3:4:",
        "a.yaml:4:4:",
    ]


@pytest.mark.promise("R13")
@pytest.mark.parametrize(
    "text",
    [
        "a: &a [x]\n" + "\n".join(f"k{i}: [*a, *a, *a]" for i in range(30)),
        "[" * 2000 + "]" * 2000,
        "- 010\n" * 100_000,
        "? " * 2000,
    ],
    ids=["aliases", "brackets", "mistakes", "keys"],
)
def test_bombs_end_in_a_short_message_within_a_second(text):
    start = time.perf_counter()
    message = complaint(text)
    assert (
        time.perf_counter() - start < 1
        and message.count("\n") < 20
        and len(message) < 3000
    )


@pytest.mark.promise("R13")
def test_depth_up_to_the_limit():
    data = parse("[" * 20 + "]" * 20).data
    for _ in range(19):
        [data] = data
    assert data == []
    names(complaint("[" * 21 + "]" * 21), "20")


def test_files(tmp_path):
    path = tmp_path / "a.yaml"
    with raises(InputError, str(path)):
        load(path)
    path.write_bytes(b"\xef\xbb\xbfa: \xc3\xa9\r\nb: 2\r\n")
    assert load(path).data == {"a": "é", "b": 2}
    path.write_bytes(b"a: 1\nb: \xff")
    with raises(InputError, "a.yaml:2:4"):
        load(path)
    path.write_bytes(b"# " + b"x" * 10_000_000)
    with raises(InputError, "1,000,000"):
        load(path)


def test_refusal_sorts_and_falls_back_to_the_parent():
    document = parse("a: {b: 1}\nc: [1, 2]", "a.yaml")
    error = document.refusal(
        [(("c", 1), "two"), (("a", "x", "y"), "one"), (("c", 1), "two")]
    )
    assert str(error) == "a.yaml:1:1: a.x.y: one\na.yaml:2:8: c[1]: two"


def test_a_few_of_many_problems_are_shown():
    document = parse("a: 1\n")
    lines = str(
        document.refusal((("a",), f"problem {i}") for i in range(30_000))
    ).splitlines()
    assert len(lines) == MAX_MISTAKES + 1 and lines[-1].endswith("and 29,980 more")
    assert len(str(document.refusal([(("a",), "one")] * 9)).splitlines()) == 1


def test_did_you_mean():
    assert did_you_mean("epoch", ["epochs", "eta0"]) == " (did you mean 'epochs'?)"
    assert did_you_mean("c", ["C", "tol"]) == " (did you mean 'C'?)"
    assert did_you_mean("zzz", ["C", "tol"]) == ""


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
def test_shipped_configs_are_accepted(validator):
    for name in list_configs():
        assert [error.message for error in validator.iter_errors(config(name))] == [], (
            name
        )


def test_the_command_prints_it():
    assert json.loads(invoke("schema").stdout) == config_schema()


@pytest.mark.extras("jsonschema")
@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("protocl",), {}),
        (("datasets", 0), "leter"),
        (("datasets", 0), {"name": "letter", "on_mising": "skip"}),
        (("metrics", 0), {"precision_at_k": {"kk": 3}}),
        (("solvers", "sgd-avg"), {"eta": 1}),
        (("solvers", "sgd-agv"), None),
        (("solvers", "mine"), {"solver": "bbr", "eta0": 1}),
        (("solvers",), {}),
        (("protocol", "n_splits"), 0),
    ],
)
def test_mistakes_are_seen(place, value, validator):
    document = copy.deepcopy(config("letter"))
    *path, last = place
    parent = document
    for key in path:
        parent = parent.setdefault(key, {}) if isinstance(parent, dict) else parent[key]
    parent[last] = value
    assert not validator.is_valid(document)

"""The list of what users are told: it is whole, and a test can fail by it."""

import re

import pytest

from tests.helpers import ROOT
from tests.sentences import names, naming, read_sentences, refused, shortened
from tests.test_cli import COMMANDS

CODES = {1, 2, 3, 130}


@pytest.mark.parametrize(
    "arguments", [["data", "verify", "leter"], ["doctor", "letter"], ["schema", "confg"]]
)
def test_commands_that_other_tests_do_not_misuse(arguments):
    refused(arguments, arguments[-1])


def test_every_exit_code_and_command_is_in_the_list():
    told = [text for texts in read_sentences().values() for text in texts]
    refusals = [re.match(r"(.*) \((\d+)\): ", text) for text in told]
    refusals = [(found[1], int(found[2])) for found in refusals if found]
    assert {code for _, code in refusals} == CODES
    for command in COMMANDS:
        assert any(line.startswith(f"{command} ") for line, _ in refusals), command


def test_the_list_names_no_test_that_is_gone():
    for place in read_sentences():
        file, _, test = place.partition("::")
        name = test.partition("[")[0]
        assert f"def {name}(" in (ROOT / "tests" / file).read_text(), place


def test_a_place_is_a_whole_word():
    names("own.csv:7: column 'x' has 12 values", "own.csv:7 'x' 12")
    for places in ("own.csv:70", "x' 1", "2", "rows"):
        with pytest.raises(AssertionError):
            names("own.csv:7: column 'x' has 12 values", places)
    assert naming("a: 1\nb: 1\nb: 2", "b 1") == ["b: 1"]


def test_what_differs_between_runs_is_shortened():
    path = "/here/pytest-7/popen-gw1/models0/m.npz"
    assert shortened(f"/x/a.csv is no file,\nnor {path}", "/x") == "a.csv is no file, nor m.npz"
    assert (
        shortened(f"at 127.0.0.1:4711: sha256 {'a1' * 32}", "/x")
        == "at 127.0.0.1:PORT: sha256 HASH"
    )
    many = ", ".join(f"name-{i}" for i in range(10))
    assert shortened(f"choose from {many}", "/x") == "choose from name-0, name-1, name-2, [...]"

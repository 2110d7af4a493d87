"""A test can fail by what a user is told."""

import pytest

from tests.sentences import names, naming, refused


@pytest.mark.parametrize(
    "arguments", [["data", "verify", "leter"], ["doctor", "letter"], ["schema", "confg"]]
)
def test_commands_that_other_tests_do_not_misuse(arguments):
    refused(arguments, arguments[-1])


def test_a_place_is_a_whole_word():
    names("own.csv:7: column 'x' has 12 values", "own.csv:7 'x' 12")
    for places in ("own.csv:70", "x' 1", "2", "rows"):
        with pytest.raises(AssertionError):
            names("own.csv:7: column 'x' has 12 values", places)
    assert naming("a: 1\nb: 1\nb: 2", "b 1") == ["b: 1"]

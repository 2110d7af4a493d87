"""A test can fail by what a user is told."""

import pytest

from tests.sentences import refused


@pytest.mark.parametrize(
    "arguments", [["data", "verify", "leter"], ["doctor", "letter"], ["schema", "confg"]]
)
def test_commands_that_other_tests_do_not_misuse(arguments):
    refused(arguments, arguments[-1])

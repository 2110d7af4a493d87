"""Errors and warnings: their classes, exit codes and the places that they name.

Places are words such as of files, columns, options and values, in a text with blanks
between them.
"""

import re
from contextlib import contextmanager

import pytest

from precbench.core.errors import InputError, PrecbenchError
from precbench.tables.own_file import read_own_file
from tests.helpers import invoke


def _missing(sentence, places):
    """Return the places that a sentence does not name, each as a whole word."""
    return [
        place
        for place in places.split()
        if not re.search(rf"(?<!\w){re.escape(place)}(?!\w)", sentence)
    ]


def names(sentence, places):
    """Expect that a sentence names places."""
    assert not _missing(sentence, places), f"{places} in {sentence!r}"


def naming(text, places):
    """Return the lines of a text that name places; expect at least one."""
    lines = [line.strip() for line in text.splitlines() if not _missing(line, places)]
    assert lines, f"{places} in {text!r}"
    return lines


def tells(text, places):
    """Expect a line that names places."""
    naming(text, places)


def done_already(text):
    """Return how many trials a run has found done."""
    return int(re.search(r"(\d+) of them done already", text)[1])


@contextmanager
def raises(kind, places=""):
    """Expect an error of one line that names places."""
    with pytest.raises(kind) as caught:
        yield caught
    message = str(caught.value)
    names(message, places)
    if issubclass(kind, PrecbenchError):
        assert "\n" not in message


def unreadable(source, places="", /, **options):
    """Expect that users' own rows are refused in a line that names places."""
    with raises(InputError, places):
        read_own_file(source, **options)


def mistakes(call, *arguments):
    """Return the mistakes for which a file is refused, one a line."""
    with pytest.raises(InputError) as caught:
        call(*arguments)
    assert caught.value.exit_code == 2
    return str(caught.value).splitlines()


@contextmanager
def warns(kind, places=""):
    """Expect warnings of one kind, the first of which names places."""
    with pytest.warns(kind) as caught:
        yield caught
    messages = [
        str(warning.message) for warning in caught if issubclass(warning.category, kind)
    ]
    names(messages[0], places)


def refused(arguments, places="", code=2):
    """Expect that a command is refused in a line that names places.

    Of a table, a line for each problem may follow. Return what was printed.
    """
    result = invoke(*arguments)
    assert result.exit_code == code, result.output
    assert not isinstance(result.exception, Exception)
    assert "Traceback" not in result.output
    if not result.stderr.startswith("Usage"):
        _first, *others = result.stderr.strip().splitlines()
        assert all(line.startswith("  ") for line in others)
    names(result.stderr, places)
    return result.stderr

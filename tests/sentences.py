"""Errors and warnings.

Tests assert their classes, exit codes and the places that they name.
"""

import re
from contextlib import contextmanager

import pytest

from precbench.core.errors import InputError, PrecbenchError
from precbench.tables.own_file import read_own_file
from tests.helpers import invoke


def _missing(sentence, places):
    words = {word: rf"(?<!\w){re.escape(word)}(?!\w)" for word in places.split()}
    return [word for word, pattern in words.items() if not re.search(pattern, sentence)]


def names(sentence, places):
    """See that a sentence names places.

    Words such as of files, columns, options and values.
    """
    assert not _missing(sentence, places), f"{places} in {sentence!r}"


def naming(text, places):
    """Return the lines of a text that name places; there is one."""
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
    sentence = str(caught.value)
    names(sentence, places)
    assert "\n" not in sentence or not issubclass(kind, PrecbenchError)


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
    told = [str(one.message) for one in caught if issubclass(one.category, kind)]
    names(told[0], places)


def refused(arguments, places="", code=2):
    """Expect that a command is refused in a line that names places.

    Return what was told.
    """
    result = invoke(*arguments)
    assert result.exit_code == code, result.output
    assert (
        not isinstance(result.exception, Exception) and "Traceback" not in result.output
    )
    _, *more = result.stderr.strip().splitlines()  # of a table a line for each problem
    assert all(line.startswith("  ") for line in more) or result.stderr.startswith(
        "Usage"
    )
    names(result.stderr, places)
    return result.stderr

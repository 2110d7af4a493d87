"""Errors and warnings: tests assert classes, exit codes and places; sentences.txt has the words."""

import re
import shlex
from contextlib import contextmanager
from itertools import groupby

import pytest

from precbench.errors import InputError, PrecbenchError
from tests.helpers import ROOT, invoke

FILE = ROOT / "tests" / "sentences.txt"
HEAD = """\
# What users are told in errors and warnings, below the test that provokes it: a command line with
# its exit code, or a class. Tests assert these and the places that a sentence names; the words are
# compared here alone, and [...] is what differs between machines or versions of other packages.
# After a change of words: pytest -n0 --sentences tests/test_x.py
"""
TOLD = []
"""What the running test was told."""


def read_sentences():
    """Return what each test is told; tests one below the other are told the same."""
    blocks = re.findall(r"((?:^[^ #\n].*\n)+)((?:^    .*\n)+)", FILE.read_text(), re.MULTILINE)
    return {
        test: [line[4:] for line in told.splitlines()]
        for tests, told in blocks
        for test in tests.splitlines()
    }


def write_sentences(listed):
    """Write what each test was told."""
    text = HEAD
    for told, tests in groupby(sorted(listed.items()), lambda entry: entry[1]):
        text += "".join(f"{test}\n" for test, _ in tests)
        text += "".join(f"    {sentence}\n" for sentence in told)
    FILE.write_text(text)


LISTED = read_sentences()


def shortened(sentence, here):
    """Return a sentence without folders, ports, hashes, and the end of long lists and numbers."""
    sentence = " ".join(sentence.replace(f"{here}/", "").replace(here, "HERE").split())
    sentence = sentence.replace(f"{ROOT}/", "")
    sentence = re.sub(r"/\S*/pytest-\d+/(popen-\w+/)?[^/\s]+/", "", sentence)
    sentence = re.sub(r"(?<=127\.0\.0\.1:)\d{3,}", "PORT", sentence)
    sentence = re.sub(r"\b[0-9a-f]{12}(?=\.json)|\b[0-9a-f]{32,64}\b", "HASH", sentence)
    return re.sub(r"((?:[\w/.-]+, ){3})(?:[\w/.-]+, ){6,}[\w/.-]+|0{99,}", r"\1[...]", sentence)


def _missing(sentence, places):
    words = {word: rf"(?<!\w){re.escape(word)}(?!\w)" for word in places.split()}
    return [word for word, pattern in words.items() if not re.search(pattern, sentence)]


def names(sentence, places):
    """See that a sentence names places: words such as of files, columns, options and values."""
    assert not _missing(sentence, places), f"{places} in {sentence!r}"


def naming(text, places):
    """Return the lines of a text that name places; there is one."""
    lines = [line.strip() for line in text.splitlines() if not _missing(line, places)]
    assert lines, f"{places} in {text!r}"
    return lines


def tells(text, places):
    """Expect a line that names places, and with its words in the list."""
    TOLD.append(naming(text, places)[0])


def done_already(text):
    """Return how many trials a run has found done."""
    return int(re.search(r"(\d+) of them done already", text)[1])


@contextmanager
def raises(kind, places="", *, words=True):
    """Expect an error of one line that names places, and with its words in the list."""
    with pytest.raises(kind) as caught:
        yield caught
    sentence = str(caught.value)
    names(sentence, places)
    if words and issubclass(kind, PrecbenchError):
        assert "\n" not in sentence
        TOLD.append(f"{caught.type.__name__}: {sentence}")


def mistakes(call, *arguments):
    """Return the mistakes for which a file is refused, one a line."""
    with pytest.raises(InputError) as caught:
        call(*arguments)
    assert caught.value.exit_code == 2
    TOLD.extend(str(caught.value).splitlines())
    return str(caught.value).splitlines()


@contextmanager
def warns(kind, places=""):
    """Expect warnings of one kind, the first of which names places."""
    with pytest.warns(kind) as caught:
        yield caught
    told = [str(one.message) for one in caught if issubclass(one.category, kind)]
    names(told[0], places)
    TOLD.extend(f"{kind.__name__}: {sentence}" for sentence in told)


def refused(arguments, places="", code=2):
    """Expect that a command is refused in a line that names places; return what was told."""
    result = invoke(*arguments)
    assert result.exit_code == code, result.output
    assert not isinstance(result.exception, Exception)
    assert "Traceback" not in result.output
    _, *more = result.stderr.strip().splitlines()  # of a table a line for each problem
    assert all(line.startswith("  ") for line in more) or result.stderr.startswith("Usage")
    names(result.stderr, places)
    TOLD.append(f"{shlex.join(map(str, arguments))} ({code}): {result.stderr.strip()}")
    return result.stderr

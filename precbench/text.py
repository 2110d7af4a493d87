"""Untrusted text: made harmless where it leaves the program, and laid out.

`visible` is applied to what is printed (`precbench.cli`) and to text files (`precbench.files`).
Inside the program a text is as it was read.
"""

import re

_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters except tab and newline
    "\u2028-\u202e\u2066-\u2069"  # separators of lines; what reverses the direction of text
    "\ud800-\udfff]"  # bytes of a file name that are not UTF-8
)
_SEPARATOR = re.compile("([,;|\t\r\n])")  # of columns, in some language of the spreadsheet
_FORMULA = re.compile(r"[\s\"']*(?=[-=+@\uff0d\uff1d\uff0b\uff20])")  # also full-width


def visible(text: str) -> str:
    r"""Replace what would control a terminal, or cannot be written, by its escape sequence.

    Parameters
    ----------
    text : str

    Returns
    -------
    str
        Tabs and newlines stay.

    Examples
    --------
    >>> print(visible("\x1b[31mred"))
    \x1b[31mred
    """
    return text if text.isprintable() else _UNSEEN.sub(lambda found: ascii(found[0])[1:-1], text)


def one_line(text: str) -> str:
    """Return text with single spaces in place of spaces, tabs and newlines."""
    return " ".join(text.split())


def without_formula(text: str) -> str:
    """Put an apostrophe before what a spreadsheet would run as a formula.

    Parameters
    ----------
    text : str
        Of a cell; a spreadsheet may divide it at another separator than the comma.

    Returns
    -------
    str
        Numbers stay.

    Examples
    --------
    >>> without_formula("=1+1"), without_formula("x;@A1"), without_formula("-5")
    ("'=1+1", "x;'@A1", '-5')
    """
    return "".join(map(_without_formula, _SEPARATOR.split(text)))


def _without_formula(text: str) -> str:
    found = _FORMULA.match(text)
    if found is None:
        return text
    try:
        float(text)
    except ValueError:
        return f"{found[0]}'{text[found.end() :]}"
    return text


def duration(seconds: float) -> str:
    """Return a time in words, about: ``40 s``, ``12 min``, ``3.5 h``."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def count(n: int, what: str) -> str:
    """Return a number of things, as ``1 worker`` or ``2 workers``."""
    return f"{n:,} {what}" if n == 1 else f"{n:,} {what}s"

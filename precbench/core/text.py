"""Text of untrusted origin, made harmless where it leaves the program; layout of text.

`visible` is applied to what is printed (`precbench.cli`) and to text files
(`precbench.core.files`).
"""

import inspect
import re

_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters except tab and newline
    # separators of lines; what reverses the direction of text
    "\u2028-\u202e\u2066-\u2069"
    "\ud800-\udfff]"  # bytes of a file name that are not UTF-8
)


def visible(text: str) -> str:
    """Return text with escapes for what controls a terminal, or cannot be written."""
    if text.isprintable():
        return text
    return _UNSEEN.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    quoted = ascii(match[0])
    return quoted[1:-1]


def one_line(text: str) -> str:
    """Return text with single spaces in place of runs of spaces, tabs and newlines."""
    return " ".join(text.split())


def first_line(member: object) -> str:
    """Return the first line of a docstring, "" without a docstring."""
    return (inspect.getdoc(member) or "").partition("\n")[0]


def duration(seconds: float) -> str:
    """Return a rounded time in words: ``40 s``, ``12 min``, ``3.5 h``."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


def count(n: int, what: str) -> str:
    """Return a number of things: ``1 worker``, ``2 workers``."""
    ending = "" if n == 1 else "s"
    return f"{n:,} {what}{ending}"

"""SVG files as pictures of a page, which can neither run nor load anything."""

import base64
import re

__all__ = ["as_address"]

_PATH = re.compile(rb' d="([^"]*)"')
_DIGITS = re.compile(rb"(\d\.\d)\d+")


def as_address(svg: bytes) -> str:
    """Return a drawing as an address that contains it.

    Parameters
    ----------
    svg : bytes
        Its lines are kept to a tenth of a point: a quarter of the size, not visibly different.

    Returns
    -------
    str
    """
    return "data:image/svg+xml;base64," + base64.b64encode(_PATH.sub(_coarser, svg)).decode()


def _coarser(path: re.Match[bytes]) -> bytes:
    """Drop digits, and the points between two others on a horizontal or vertical line."""
    kept: list[list[bytes]] = []
    for step in _DIGITS.sub(rb"\1", path[1]).split(b"\n"):
        new = step.split()
        if kept and new == kept[-1]:
            continue
        if len(kept) > 1 and len(new) == 3 == len(kept[-1]) == len(kept[-2]):
            is_line = new[0] == kept[-1][0] == b"L"
            if is_line and (new[1] == kept[-1][1] == kept[-2][1] or
                            new[2] == kept[-1][2] == kept[-2][2]):  # fmt: skip
                kept[-1] = new
                continue
        kept.append(new)
    return b' d="' + b"\n".join(map(b" ".join, kept)) + b'"'

"""The templates of pages, with style and script; values put into a page are escaped."""

import base64
import hashlib
import re
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from precbench.report.table import Table

_HERE = Path(__file__).parent


def render(template: str, **values: Any) -> str:
    """Return a page from a template; `values` may hold untrusted text."""
    style = (_HERE / "style.css").read_text("utf-8")
    script = (_HERE / "script.js").read_text("utf-8")
    page = _templates().get_template(template)
    return page.render(
        style=Markup(style),
        script=Markup(script),
        # The security policy of the page allows only what has these hashes.
        style_hash=_hash(style),
        script_hash=_hash(script),
        **values,
    )


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return base64.b64encode(digest).decode()


@cache
def _templates() -> Environment:
    templates = Environment(
        loader=FileSystemLoader(_HERE, encoding="utf-8"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters["columns_of_words"] = _columns_of_words
    return templates


# A number in a table, such as "1,234 ± 5 (3 to 7) ≈", or "–" or nothing
_NUMBER = re.compile(
    r"[-−+]?[\d.,]+(e[-+]?\d+)?( [±%] ?[\d.e+-]*)?( \([-\d.,]+ to [-\d.,]+\))?["
    r" ≈‡†]*|[–]?"
)


def _columns_of_words(table: Table) -> set[int]:
    """Return the places of the columns that have more than numbers."""
    places = set()
    for row in table.rows:
        for place, cell in enumerate(row):
            if not _NUMBER.fullmatch(cell.text):
                places.add(place)
    return places

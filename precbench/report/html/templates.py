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
    """Return a page from a template.

    `values` may hold untrusted text, which is escaped.
    """
    for name, file in {"style": "style.css", "script": "script.js"}.items():
        content = (_HERE / file).read_text("utf-8")
        # for the page's security policy
        digest = hashlib.sha256(content.encode()).digest()
        values |= {
            name: Markup(content),
            f"{name}_hash": base64.b64encode(digest).decode(),
        }
    return _templates().get_template(template).render(**values)


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


# a number in a table, such as "1,234 ± 5 (3 to 7) ≈", or "–" or nothing
_NUMBER = re.compile(
    r"[-−+]?[\d.,]+(e[-+]?\d+)?( [±%] ?[\d.e+-]*)?( \([-\d.,]+ to [-\d.,]+\))?["
    r" ≈‡†]*|[–]?"
)


def _columns_of_words(table: Table) -> set[int]:
    # positions of columns not of numbers alone
    columns = enumerate(zip(*table.rows, strict=True))
    return {
        i for i, cells in columns if not all(_NUMBER.fullmatch(c.text) for c in cells)
    }

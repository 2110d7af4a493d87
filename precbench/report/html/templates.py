"""The templates of pages, whose texts are escaped, with their style and script."""

import base64
import hashlib
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from precbench.report.table import Table

if TYPE_CHECKING:
    from jinja2 import Environment


def render(template: str, **values: Any) -> str:
    """Fill in a template; `values` may hold untrusted text, which is escaped."""
    from markupsafe import Markup

    here = Path(__file__).parent
    parts = {name: (here / f"{name}.{end}").read_text("utf-8") for name, end in _PARTS.items()}
    hashes = {
        f"{name}_hash": base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        for name, text in parts.items()
    }
    inlined = {name: Markup(text) for name, text in parts.items()}
    return _templates().get_template(template).render(**inlined, **hashes, **values)


_PARTS = {"style": "css", "script": "js"}


@cache
def _templates() -> "Environment":
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    templates = Environment(
        loader=FileSystemLoader(Path(__file__).parent, encoding="utf-8"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters["columns_of_words"] = _columns_of_words
    templates.policies["json.dumps_kwargs"] = {"separators": (",", ":")}
    return templates


_NUMBER = re.compile(
    r"[-−+]?[\d.,]+(e[-+]?\d+)?( [±%] ?[\d.e+-]*)?( \([-\d.,]+ to [-\d.,]+\))?[ ≈‡†]*|[–]?"
)


def _columns_of_words(table: Table) -> set[int]:
    columns = enumerate(zip(*table.rows, strict=True))
    return {i for i, cells in columns if not all(_NUMBER.fullmatch(c.text) for c in cells)}

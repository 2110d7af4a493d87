"""Tables of the commands and of the public names, for pages outside the site."""

from typer.main import get_command

import precbench
from precbench.cli import app
from precbench.cli.group import LazyGroup
from precbench.core.text import first_line
from scripts.survey.tables import laid_out


def commands_table() -> str:
    """Lay out the commands, each with its summary."""
    main = get_command(app)
    rows = _summaries("precbench", main)
    for group in ("data", "claims"):
        rows += _summaries(f"precbench {group}", main.commands[group])
    return laid_out(["command", "what it does"], rows)


def _summaries(start: str, group: LazyGroup) -> list[list[str]]:
    """Return each command of a group, behind the words that it starts with."""
    return [
        [f"`{start} {name}`", summary]
        for name, (_place, summary) in group.listed.items()
    ]


def names_table() -> str:
    """Lay out the public names, each with the first line of its docstring."""
    rows = [
        [f"`precbench.{name}`", first_line(getattr(precbench, name))]
        for name in sorted(precbench.__all__, key=str.lower)
        if name != "__version__"
    ]
    return laid_out(["name", "what it is"], rows)

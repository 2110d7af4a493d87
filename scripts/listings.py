"""Tables of the commands and of the public names, for pages outside the site."""

from typer.main import get_command

import precbench
from precbench.cli import app
from precbench.core.text import first_line
from scripts.survey.tables import laid_out


def commands_table() -> str:
    """Lay out the commands, each with its summary."""
    main = get_command(app)
    rows = [
        [f"`precbench {name}`", line] for name, (_place, line) in main.listed.items()
    ]
    for group in ("data", "claims"):
        listed = main.commands[group].listed
        rows += [
            [f"`precbench {group} {name}`", line]
            for name, (_place, line) in listed.items()
        ]
    return laid_out(["command", "what it does"], rows)


def names_table() -> str:
    """Lay out the public names, each with the first line of its docstring."""
    rows = [
        [f"`precbench.{name}`", first_line(getattr(precbench, name))]
        for name in sorted(precbench.__all__, key=str.lower)
        if name != "__version__"
    ]
    return laid_out(["name", "what it is"], rows)

"""Standard output for people."""

from rich.console import Console

_WIDTH_IN_A_PIPE = 140


def screen(quiet: bool = False, width_in_a_pipe: int = _WIDTH_IN_A_PIPE) -> Console:
    """Return a console that is as wide as the terminal, and wide enough where there is none."""
    console = Console(quiet=quiet, highlight=False, soft_wrap=True)
    if not console.is_terminal:
        console.width = width_in_a_pipe
    return console

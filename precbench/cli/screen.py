"""Standard output as text."""

from rich.console import Console

_WIDTH_IN_A_PIPE = 140


def screen(quiet: bool = False, width_in_a_pipe: int = _WIDTH_IN_A_PIPE) -> Console:
    """Return a console as wide as the terminal, or of the given width in a pipe."""
    console = Console(quiet=quiet, highlight=False, soft_wrap=True)
    if not console.is_terminal:
        console.width = width_in_a_pipe
    return console

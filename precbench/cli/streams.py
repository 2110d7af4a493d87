"""Standard output and error on which the text of others cannot control the terminal."""

import contextlib
import sys
from collections.abc import Iterator
from typing import Any

from precbench.text import visible


class _Harmless:
    """A stream that writes `visible` text."""

    def __init__(self, stream: Any):
        self.rich_proxied_file = stream  # rich writes there what `Screen` has made visible

    def write(self, text: str) -> int:
        return self.rich_proxied_file.write(visible(text))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.rich_proxied_file, name)


@contextlib.contextmanager
def harmless_streams() -> Iterator[None]:
    """Make visible all that is printed, be it a path, a title, a cell or a library's message."""
    with (
        contextlib.redirect_stdout(_Harmless(sys.stdout)),
        contextlib.redirect_stderr(_Harmless(sys.stderr)),
    ):
        yield

"""Groups of commands, each imported when it is used."""

import errno
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from functools import wraps
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, ClassVar, NamedTuple, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup

from precbench.core.errors import PrecbenchError
from precbench.core.files import disk_full, is_full
from precbench.core.text import one_line, visible

INTERRUPTED = 130  # exit code, as of shells: 128 + the number of SIGINT


class _VisibleStream:
    """A stream that writes `visible` text, with control characters escaped."""

    def __init__(self, stream: Any):
        # A console of rich looks for an attribute of this name, and writes there.
        self.rich_proxied_file = stream

    def write(self, text: str) -> int:
        return self.rich_proxied_file.write(visible(text))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.rich_proxied_file, name)


@contextmanager
def harmless_streams() -> Iterator[None]:
    """Escape control characters in all text that the block prints.

    Characters that the encoding of a stream lacks are escaped; a closed stream gets
    nothing.
    """
    _open_standard_descriptors()
    with Path(os.devnull).open("w") as null:
        # Under pythonw the streams are None.
        out = sys.stdout or null
        err = sys.stderr or null
        for stream in (out, err):
            # The stream of a notebook has no such method.
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(errors="backslashreplace")
        with (
            redirect_stdout(_VisibleStream(out)),
            redirect_stderr(_VisibleStream(err)),
            one_line_warnings(),
        ):
            yield


def _open_standard_descriptors() -> None:
    """Open standard input, output and error on devnull where they are closed.

    Otherwise the next file that is opened would get the number, and what is printed.
    """
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            opened = os.open(os.devnull, os.O_RDWR)  # gets the least free number
            os.set_inheritable(opened, True)  # for worker processes


@contextmanager
def one_line_warnings() -> Iterator[None]:
    """Print each warning of the block in one line, and only once."""
    printed = set()

    def show(message: Warning | str, *_args: Any, **_kwargs: Any) -> None:
        text = one_line(str(message))
        if text not in printed:
            print(f"precbench: warning: {text}", file=sys.stderr)
            printed.add(text)

    with warnings.catch_warnings():
        # A later filter goes before an earlier one.
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", UserWarning)
        warnings.simplefilter("always", RuntimeWarning)
        # Of joblib, which then starts another worker.
        warnings.filterwarnings("ignore", "A worker stopped")
        warnings.showwarning = show
        yield


class InGroups(TyperCommand):
    """A command whose help shows the options of each panel under the panel's title."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments, then the options of each panel, under headings."""
        groups: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            option_and_help = param.get_help_record(ctx)
            if option_and_help is None:  # hidden
                continue
            if param.param_type_name == "argument":
                panel = "Arguments"
            else:
                panel = getattr(param, "rich_help_panel", None) or "Options"
            groups.setdefault(panel, []).append(option_and_help)
        for title, rows in groups.items():
            with formatter.section(title):
                formatter.write_dl(rows)


# Parameters of text that may be paths
_NAMES_OF_FILES = ("configs", "what", "targets", "mirror")


def _at_home(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a command whose paths may begin with ~, as in --out=~/results."""

    @wraps(function)
    def command(**values: Any) -> Any:
        expanded = {name: _expanded(name, value) for name, value in values.items()}
        return function(**expanded)

    return command


def _expanded(name: str, value: Any) -> Any:
    """Return a value with the home folder in place of ~, in a path or a list."""
    if isinstance(value, list):
        return [_expanded(name, item) for item in value]
    if isinstance(value, Path):
        # The method of Path raises an error where the home of a user is not known.
        return Path(os.path.expanduser(value))  # noqa: PTH111
    if name in _NAMES_OF_FILES and isinstance(value, str):
        return os.path.expanduser(value)  # noqa: PTH111
    return value


class Listed(NamedTuple):
    """A command: its function, as ``module:function``, and its line of help."""

    place: str
    summary: str


class LazyGroup(TyperGroup):
    """Commands by name; the module of a command is imported when it is used."""

    listed: ClassVar[Mapping[str, Listed]]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        placeholders = {
            name: TyperCommand(name, short_help=command.summary)
            for name, command in self.listed.items()
        }
        self.commands = {**placeholders, **self.commands}

    def resolve_command(self, ctx: Any, args: Any) -> Any:
        """Return name, command and further arguments, with the command imported."""
        name, command, rest = super().resolve_command(ctx, args)
        if name in self.listed:  # so far `command` is a placeholder
            command = self._load(name)
        return name, command, rest

    def _load(self, name: Any) -> Any:
        """Import the function of a command and return it as a click command."""
        listed = self.listed[name]
        single = typer.Typer(add_completion=False, rich_markup_mode=None)
        function = _at_home(resolve_name(f"precbench.cli.{listed.place}"))
        single.command(name, cls=InGroups, short_help=listed.summary)(function)
        return typer.main.get_command(single)


class MainGroup(LazyGroup):
    """Reports an error in one line, and exits with the documented code."""

    def main(self, *args: Any, **kwargs: Any) -> Any:
        with harmless_streams():
            try:
                return super().main(*args, **kwargs)
            except OSError as error:  # the help cannot be printed, as on a full device
                return _exit_with(error)

    def invoke(self, ctx: Any) -> Any:
        try:
            code = super().invoke(ctx)
        except _REPORTED as error:
            return _exit_with(error)
        raise typer.Exit(code or 0)  # a command returns its exit code, or None for 0


_EXHAUSTED = (
    "no memory, process or thread is left: raise the limits that ulimit -a shows ({!r})"
)
_REPORTED = (
    PrecbenchError,
    KeyboardInterrupt,
    OSError,
    MemoryError,
    ImportError,
    RuntimeError,
)


def _exit_with(error: BaseException) -> NoReturn:
    """Print an error in one line and exit; raise the error itself if it is a bug."""
    text, code = _message_and_code(error)
    print(f"precbench: {text}", file=sys.stderr)
    raise SystemExit(code) from None


def _message_and_code(error: BaseException) -> tuple[str, int]:
    """Return message and exit code of an error; raise the error if it is a bug."""
    match error:
        case PrecbenchError():
            return str(error), error.exit_code
        case KeyboardInterrupt():
            return "interrupted", INTERRUPTED
        case (
            MemoryError()
            # EAGAIN: no process can be started
            | OSError(errno=errno.ENOMEM | errno.EAGAIN)
            | RuntimeError(args=("can't start new thread",))
        ):
            return _EXHAUSTED.format(error), 1
        case ImportError() if "map segment" in str(error):
            # There is no memory to load a shared library.
            return _EXHAUSTED.format(error), 1
        case OSError() if is_full(error):
            return disk_full(error.filename or "a file"), 1
        case OSError() if error.filename is not None:
            return f"{error.filename}: {error.strerror}", 2
    raise error

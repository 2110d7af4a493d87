"""Files as a third party might have edited or mistyped them, and what is made of them."""

import json
import random
from pathlib import Path

from precbench.errors import InputError, PrecbenchError
from precbench.experiment import list_configs
from precbench.experiment.config import from_document
from precbench.locations import shipped
from precbench.yaml.document import Document, load, parse
from tests.helpers import invoke

VALUES = (None, True, -1, 10**400, 1e308, 0.5, "", "x", "\x1b[2J", [], [[]], {}, {"x": [None]})
TOKENS = ("NaN", "-Infinity", "1e999", '"\\ud800"', "[" * 5000, "9" * 5000, "{,}")
CELLS = (
    "",
    "x",
    "nan",
    "inf",
    "1e400",
    "-1",
    "1e308",
    "0.5",
    "\x1b[2J",
    '"a\nb"',
    '"',
    "\0",
    "é" * 300,
)
BYTES = (b"", b"\xff", b"\0", b"\xef\xbb\xbf{}", b"[]", b"{", b"a,b\n1,2,3\n", b'"')
ALLOWED = {0, 1, 2, 4}


def places(data, path=()):
    """Yield the path of every key and every item."""
    items = data.items() if isinstance(data, dict) else enumerate(data)
    for name, value in items:
        yield (*path, name)
        if isinstance(value, (dict, list)):
            yield from places(value, (*path, name))


def changed(data, path, *value):
    """Return a copy with another value at a path; without a value, the place is gone."""
    copy = data.copy()
    if len(path) > 1:
        copy[path[0]] = changed(data[path[0]], path[1:], *value)
    elif value:
        copy[path[0]] = value[0]
    else:
        del copy[path[0]]
    return copy


def json_edits(content):
    """Yield a name and the new content for each edit of a JSON file."""
    data = json.loads(content)
    for path in places(data):
        yield f"{path} removed", json.dumps(changed(data, path)).encode()
        for value in VALUES:
            yield f"{path} = {value!r:.20}", json.dumps(changed(data, path, value)).encode()
        for token in TOKENS:
            text = json.dumps(changed(data, path, "@here@")).replace('"@here@"', token)
            yield f"{path} = {token:.10}", text.encode()


def csv_edits(content):
    """Yield a name and the new content for each edit of a CSV file."""
    header, *rows = content.decode().splitlines()
    names, cells = header.split(","), [row.split(",") for row in rows]
    for j, name in enumerate(names):

        def without(row, j=j):
            return ",".join(row[:j] + row[j + 1 :])

        yield f"{name} removed", "\n".join([without(names), *map(without, cells)]).encode()
        yield f"{name} without name", content.replace(name.encode(), b"", 1)
        for value in CELLS:
            for where in (slice(1), slice(None)):
                new = [[*row] for row in cells]
                for row in new[where]:
                    row[j : j + 1] = [value]
                text = "\n".join([header, *map(",".join, new)])
                yield f"{name} = {value!r:.10} {where}", text.encode()
    yield "rows twice", "\n".join([header, *rows, *rows]).encode()
    yield "long row", (content.decode() + ",".join(["x"] * 99) + "\n").encode()


def edits(file):
    """Yield a name and the new content for each edit of a file."""
    content = file.read_bytes()
    kinds = {".json": json_edits, ".csv": csv_edits}
    yield from kinds[file.suffix](content)
    for other in BYTES:
        yield f"{other!r:.20} alone", other
        yield (
            f"{other!r:.20} inside",
            content[: len(content) // 2] + other + content[len(content) // 2 :],
        )
    yield "cut", content[: len(content) // 2]


def command(*arguments):
    """Give a command; return what is wrong with the way in which it ended, or ""."""
    result = invoke(*arguments)
    if isinstance(result.exception, Exception):
        return repr(result.exception)
    if result.exit_code not in ALLOWED or "Traceback" in result.output:
        return f"exit code {result.exit_code}: {result.output[-300:]}"
    if "\x1b" in result.output or "\0" in result.output:
        return f"control characters: {result.output[-300:]!r}"
    if result.exit_code == 2 and len(result.stderr.strip().splitlines()) != 1:
        return f"not one line: {result.stderr[-300:]}"
    return ""


def call(function, *arguments):
    """Call a function; return what is wrong with the error that it raised, or ""."""
    try:
        function(*arguments)
    except PrecbenchError as error:
        return "" if len(str(error).splitlines()) == 1 else f"not one line: {error}"
    except Exception as error:
        return repr(error)
    return ""


def tried(files, attempts, size=None, seed=0):
    """Edit files one at a time, make the attempts, and restore the files.

    Parameters
    ----------
    files : sequence of pathlib.Path
    attempts : mapping of str to callable
        Each returns what went wrong, or "": see `command` and `call`.
    size : int, optional
        Number of edits to draw; default all.
    seed : int

    Returns
    -------
    n : int
        Number of edits tried.
    wrong : list of str
        What went wrong after which of them.
    """
    every = [(file, *edit) for file in files for edit in edits(file)]
    if size is not None and size < len(every):
        every = random.Random(seed).sample(every, size)
    wrong = []
    for file, name, content in every:
        kept = file.read_bytes()
        file.write_bytes(content)
        try:
            for what, attempt in attempts.items():
                if found := attempt():
                    wrong.append(f"{file.name}: {name}: {what}: {found}")
        finally:
            file.write_bytes(kept)
    return len(every), wrong


# Configs


def slips(name):
    """Yield a name with a letter twice, another letter, one too few, and two swapped."""
    yield name[0] + name
    yield name[:-1] + "q"
    if len(name) > 1:
        yield name[:-1]
        yield name[1] + name[0] + name[2:]


def free_names(data):
    """Return the paths of the keys that a config may choose: labels of solvers, names of lists."""
    solvers, parameters = data.get("solvers", {}), data.get("parameters", {})
    labels = {("solvers", label) for label, entry in solvers.items() if "solver" in (entry or ())}
    named = [(key, parameters.get(key)) for key in ("lists", "curves")]
    return labels | {
        ("parameters", key, name)
        for key, value in named
        if isinstance(value, dict)
        for name in value
    }


def config_edits(name):
    """Yield what was done to a shipped config, its new content, the line and what is to be said."""
    document = load(shipped("configs") / f"{name}.yaml")
    lines = Path(document.file).read_text(encoding="utf-8").splitlines()
    free = free_names(document.data)
    for path in document.where:
        if not path or isinstance(path[-1], int):
            continue
        key, (row, column) = path[-1], document.where[path]
        before, after = lines[row - 1][: column - 1], lines[row - 1][column - 1 :]
        quoted = after[0] in "'\""
        for slip in slips(key) if path not in free and not quoted else ():
            if slip == key:
                continue
            new = [*lines[: row - 1], before + slip + after[len(key) :], *lines[row:]]
            yield f"{path} as {slip}", parse_lines(new), row, "did you mean"
        if before.strip() == "-":
            new, at = [f"{before}'{key}': 0", " " * (column - 1) + after], row + 1
        elif before.strip():
            new, at = [before + f"'{key}': 0, " + after], row
        else:
            new, at = [f"{before}'{key}': 0", before + after], row + 1
        new = [*lines[: row - 1], *new, *lines[row:]]
        yield f"{path} twice", parse_lines(new), at, "duplicate key"
        for wrong in ({"wrong": "type"}, -0.5):
            yield f"{path} = {wrong}", edited(document, path, wrong), row, ""
        parent = document.where[path[:-1]][0]
        yield f"{path} missing", edited(document, path), parent, None


def parse_lines(lines):
    """Return a function that reads a config from its lines."""
    return lambda: parse("\n".join(lines) + "\n", "c.yaml")


def edited(document, path, *value):
    """Return a function that gives a config with another value at a path, or without it."""
    data = changed(document.data, path, *value)
    where = {place: at for place, at in document.where.items() if holds(data, place)}
    return lambda: Document("c.yaml", data, where)


def holds(data, path):
    """Whether there is such a place."""
    try:
        return not path or holds(data[path[0]], path[1:])
    except (KeyError, IndexError, TypeError):
        return False


def mistyped(size=None, seed=0):
    """Make one mistake at a time in the shipped configs, and read them.

    Parameters
    ----------
    size : int, optional
        Number of mistakes to draw; default all.
    seed : int

    Returns
    -------
    n : int
        Number of mistakes tried.
    wrong : list of str
        Those not refused, refused without the right line, or, for a misspelt key, without a hint.
        A key may be missing if it has a default.
    """
    every = [(name, *edit) for name in list_configs() for edit in config_edits(name)]
    if size is not None and size < len(every):
        every = random.Random(seed).sample(every, size)
    wrong = []
    for name, what, read, line, words in every:
        try:
            from_document(read(), (shipped("configs") / name).parent)
        except InputError as error:
            lines = str(error).splitlines()
            elsewhere = words is None and "is missing" not in str(error)  # what needs the key
            place = "c.yaml:" if elsewhere else f"c.yaml:{line}:"
            if not any(place in text and (words or "") in text for text in lines):
                wrong.append(f"{name}: {what}: {error}")
        except Exception as error:
            wrong.append(f"{name}: {what}: {error!r}")
        else:
            if words is not None:
                wrong.append(f"{name}: {what}: not refused")
    return len(every), wrong

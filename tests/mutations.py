"""Configs as they might be mistyped, and what is made of them."""

import random
from pathlib import Path

from precbench.errors import InputError
from precbench.experiment import list_configs
from precbench.experiment.config import from_document
from precbench.locations import shipped
from precbench.yaml.document import Document, load, parse


def changed(data, path, value):
    """Return a copy with another value at a path."""
    copy = data.copy()
    copy[path[0]] = changed(data[path[0]], path[1:], value) if len(path) > 1 else value
    return copy


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
        for wrong in ({"wrong": "type"}, -0.5):
            yield f"{path} = {wrong}", edited(document, path, wrong), row, ""


def parse_lines(lines):
    """Return a function that reads a config from its lines."""
    return lambda: parse("\n".join(lines) + "\n", "c.yaml")


def edited(document, path, value):
    """Return a function that gives a config with another value at a path."""
    data = changed(document.data, path, value)
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
            if not any(f"c.yaml:{line}:" in text and words in text for text in lines):
                wrong.append(f"{name}: {what}: {error}")
        except Exception as error:
            wrong.append(f"{name}: {what}: {error!r}")
        else:
            wrong.append(f"{name}: {what}: not refused")
    return len(every), wrong

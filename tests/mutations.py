"""Configs as they might be mistyped, and what is made of them."""

import copy
import random
from functools import partial, reduce
from operator import getitem

from precbench.core.errors import InputError
from precbench.core.locations import shipped
from precbench.core.yaml.document import Document, load
from precbench.experiment import list_configs
from precbench.experiment.config import from_document


def slips(name):
    """Return misspellings: a letter twice, another, one too few, two swapped."""
    found = [name[0] + name, name[:-1] + "q", name[:-1], name[1:2] + name[0] + name[2:]]
    return [slip for slip in found if slip not in ("", name)]


def is_free(data, path):
    """Whether a config may choose this key.

    The label of a solver, or the name of a list.
    """
    if len(path) == 2 and path[0] == "solvers":
        return "solver" in (data["solvers"][path[1]] or ())
    return len(path) == 3 and path[:2] in {
        ("parameters", "lists"),
        ("parameters", "curves"),
    }


def edited(document, path, key, value):
    """Return a document in which a key has another name and another value."""
    data, n = copy.deepcopy(document.data), len(path)
    inner = reduce(getitem, path[:-1], data)
    renamed = key != path[-1]
    items = [
        (key, value) if name == path[-1] else (name, old) for name, old in inner.items()
    ]
    inner.clear()
    inner.update(items)
    where = {}
    for place, at in document.where.items():
        if place[:n] != path:
            where[place] = at
        elif renamed or place == path:  # another value has no place within
            where[(*path[:-1], key, *place[n:])] = at
    return Document("c.yaml", data, where)


def config_edits(name):
    """Yield what is done to a shipped config, how, the line and what is to be said."""
    document = load(shipped("configs") / f"{name}.yaml")
    for path, (line, _) in document.where.items():
        if not path or isinstance(path[-1], int):
            continue
        key, inner = path[-1], reduce(getitem, path[:-1], document.data)
        for slip in slips(key) if not is_free(document.data, path) else ():
            if slip not in inner:
                new = partial(edited, document, path, slip, inner[key])
                yield f"{path} as {slip}", new, line, "did you mean"
        for wrong in ({"wrong": "type"}, -0.5):
            yield (
                f"{path} = {wrong}",
                partial(edited, document, path, key, wrong),
                line,
                "",
            )


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
        Those not refused, refused without the right line, or, for a misspelt key,
        without a hint.
    """
    every = [(name, *edit) for name in list_configs() for edit in config_edits(name)]
    if size is not None and size < len(every):
        every = random.Random(seed).sample(every, size)
    wrong = []
    for name, what, edit, line, words in every:
        try:
            from_document(edit(), (shipped("configs") / name).parent)
        except InputError as error:
            lines = str(error).splitlines()
            if not any(f"c.yaml:{line}:" in text and words in text for text in lines):
                wrong.append(f"{name}: {what}: {error}")
        except Exception as error:
            wrong.append(f"{name}: {what}: {error!r}")
        else:
            wrong.append(f"{name}: {what}: not refused")
    return len(every), wrong

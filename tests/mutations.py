"""Configs as they might be mistyped, and what is made of them."""

import copy
import random
from collections.abc import Callable
from functools import partial, reduce
from operator import getitem
from typing import NamedTuple

from precbench.core.errors import InputError
from precbench.core.locations import shipped
from precbench.core.yaml.document import Document, load
from precbench.experiment import list_configs
from precbench.experiment.config import from_document
from precbench.experiment.sections import Origin


class Mistake(NamedTuple):
    """A mistake in a shipped config.

    Attributes
    ----------
    config : str
    title : str
    document : callable
        Returns the config with the mistake.
    line : int
        Where it is.
    hint : str
        What the error says there.
    """

    config: str
    title: str
    document: Callable[[], Document]
    line: int
    hint: str = ""


class Outcome(NamedTuple):
    """How many mistakes were tried, and a sentence for each that was taken wrongly.

    It was not refused, refused without the right line, or, of a misspelt key, without a
    hint.
    """

    n_tried: int
    wrong: list


def misspelt(name):
    """Return misspellings: a letter twice, another, one too few, two swapped."""
    first, second = name[0], name[1:2]
    words = [first + name, name[:-1] + "q", name[:-1], second + first + name[2:]]
    return [word for word in words if word not in ("", name)]


def is_free(data, path):
    """Return whether a config may choose this key.

    It is the label of a solver, or the name of a list.
    """
    if len(path) == 2 and path[0] == "solvers":
        return "solver" in (data["solvers"][path[1]] or ())
    lists = {("parameters", "lists"), ("parameters", "curves")}
    return len(path) == 3 and path[:2] in lists


def edited(document, path, key, value):
    """Return a document in which a key has another name and another value."""
    data = copy.deepcopy(document.data)
    section = inside(data, path[:-1])
    entries = list(section.items())
    section.clear()
    for name, old_value in entries:
        if name == path[-1]:
            section[key] = value
        else:
            section[name] = old_value
    renamed = key != path[-1]
    where = {}
    for place, position in document.where.items():
        if place[: len(path)] != path:
            where[place] = position
        elif renamed or place == path:  # another value has no place within
            where[(*path[:-1], key, *place[len(path) :])] = position
    return Document("c.yaml", data, where)


def inside(data, path):
    return reduce(getitem, path, data)


def mistakes_in(config):
    """Yield a shipped config with each key misspelt, and with each value wrong."""
    document = load(shipped("configs") / f"{config}.yaml")
    for path, (line, _column) in document.where.items():
        if not path or isinstance(path[-1], int):
            continue
        key = path[-1]
        section = inside(document.data, path[:-1])
        if not is_free(document.data, path):
            for word in misspelt(key):
                if word not in section:
                    make = partial(edited, document, path, word, section[key])
                    title = f"{path} as {word}"
                    yield Mistake(config, title, make, line, hint="did you mean")
        for wrong in ({"wrong": "type"}, -0.5):
            make = partial(edited, document, path, key, wrong)
            yield Mistake(config, f"{path} = {wrong}", make, line)


def mistyped(size=None, seed=0):
    """Make one mistake at a time in the shipped configs, and read them.

    Parameters
    ----------
    size : int, optional
        Number of mistakes to draw; default all.
    seed : int

    Returns
    -------
    Outcome
    """
    mistakes = [mistake for config in list_configs() for mistake in mistakes_in(config)]
    if size is not None and size < len(mistakes):
        mistakes = random.Random(seed).sample(mistakes, size)
    wrong = []
    for mistake in mistakes:
        error = what_is_wrong(mistake)
        if error:
            wrong.append(f"{mistake.config}: {mistake.title}: {error}")
    return Outcome(len(mistakes), wrong)


def what_is_wrong(mistake):
    """Return the error of a config that is not refused as it should, or nothing."""
    try:
        folder = (shipped("configs") / mistake.config).parent
        from_document(mistake.document(), Origin(folder))
    except InputError as error:
        place = f"c.yaml:{mistake.line}:"
        lines = [line for line in str(error).splitlines() if place in line]
        if any(mistake.hint in line for line in lines):
            return ""
        return str(error)
    except Exception as error:
        return repr(error)
    return "not refused"

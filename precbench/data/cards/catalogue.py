"""The registry of data sets; a card is read on first use.

Installed packages add cards: entry points of the group ``precbench.cards`` name
packages with YAML.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib.metadata import EntryPoint
from importlib.util import find_spec
from pathlib import Path

from precbench.core.errors import InputError, nearest_or_all
from precbench.core.locations import shipped
from precbench.core.registry import find_entry_points, refusal
from precbench.data.cards.card import Card, read_card


@cache
def _paths() -> dict[str, Path]:
    """Return the card files by the name of the data set, the shipped ones first."""
    own_paths = sorted(shipped("datasets").glob("*.yaml"), key=lambda path: path.stem)
    paths = {path.stem: path for path in own_paths}
    for entry in find_entry_points("precbench.cards"):
        added = {path.stem: path for path in _cards_of(entry)}
        names_in_use = sorted(paths.keys() & added.keys())
        if names_in_use:
            raise refusal(
                entry, f"adds a data set {names_in_use[0]!r}, and that name is in use"
            )
        paths |= added
    return paths


def _cards_of(entry: EntryPoint) -> list[Path]:
    """Return the cards in the package that an entry point names; do not import it."""
    try:
        spec = find_spec(entry.value)
    except Exception as error:
        raise refusal(
            entry, f"cannot be used: {type(error).__name__}: {error}"
        ) from error
    folders: Iterable[str] = ()
    if spec is not None and spec.submodule_search_locations is not None:
        folders = spec.submodule_search_locations  # of a package
    paths = sorted(path for folder in folders for path in Path(folder).glob("*.yaml"))
    if not paths:
        raise refusal(
            entry, f"names {entry.value}, which is not a package with cards (*.yaml)"
        )
    return paths


_card = cache(read_card)  # each file is read once


class _Cards(Mapping[str, "Card"]):
    """Cards by name: those of precbench in alphabetical order, then of packages."""

    def __getitem__(self, name: str) -> Card:
        return _card(_paths()[name])

    def __iter__(self) -> Iterator[str]:
        return iter(_paths())

    def __len__(self) -> int:
        return len(_paths())


DATASETS: Mapping[str, Card] = _Cards()


def find_card(name: str) -> Card:
    """Return the card of a data set.

    Parameters
    ----------
    name : str

    Returns
    -------
    precbench.data.cards.card.Card

    Raises
    ------
    InputError
        An unknown name.

    Examples
    --------
    >>> from precbench.data import find_card
    >>> find_card("letter").name
    'letter'
    """
    if name in DATASETS:
        return DATASETS[name]
    raise InputError(
        f"unknown data set {name!r}{nearest_or_all(name, DATASETS, 'datasets')}"
    )

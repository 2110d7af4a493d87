"""The data sets by name; a card is read when it is first asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from precbench.errors import InputError, did_you_mean
from precbench.locations import shipped

if TYPE_CHECKING:
    from precbench.data.cards.card import Card


@cache
def _paths() -> dict[str, Path]:
    paths = {path.stem: path for path in shipped("datasets").glob("*.yaml")}
    return dict(sorted(paths.items()))


@cache
def _card(path: Path) -> Card:
    from precbench.data.cards.card import read_card

    return read_card(path)


class _Cards(Mapping[str, "Card"]):
    """Name -> card, in alphabetical order."""

    def __getitem__(self, name: str) -> Card:
        return _card(_paths()[name])

    def __contains__(self, name: object) -> bool:
        return name in _paths()

    def __iter__(self) -> Iterator[str]:
        return iter(_paths())

    def __len__(self) -> int:
        return len(_paths())

    def __repr__(self) -> str:
        return f"DATASETS({', '.join(self)})"


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
    """
    if name in DATASETS:
        return DATASETS[name]
    raise InputError(
        f"unknown data set {name!r}{did_you_mean(name, DATASETS)}: choose one of "
        f"{', '.join(DATASETS)}"
    )

"""A shard of the trials of an experiment, for independent batch jobs."""

import re
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from precbench.errors import InputError
from precbench.store import SHARD, SHARDS

if TYPE_CHECKING:
    from precbench.experiment.plan import Plan


@dataclass(frozen=True, order=True)
class Shard:
    """One of N parts of the trials of an experiment.

    Attributes
    ----------
    number : int
        From 1 to `of`.
    of : int
    """

    number: int
    of: int

    @classmethod
    def parse(cls, text: str) -> "Shard":
        """Return the shard written as ``3/10``.

        Raises
        ------
        InputError
            If the text is not a shard.
        """
        match = re.fullmatch(SHARD, text)
        shard = cls(*map(int, match.groups())) if match else cls(0, 0)
        if not 1 <= shard.number <= shard.of:
            raise InputError(
                f"--shard {text!r}: expected the number of a shard and how many there are, from "
                "1/10 to 10/10"
            )
        return shard

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"

    def folder(self, results: Path) -> Path:
        """Return the folder of its own in a folder of results, such as ``shards/03-of-10``."""
        return results / SHARDS / f"{self.number:0{len(str(self.of))}}-of-{self.of}"

    def keys(self, plan: "Plan", wanted: Collection[str], *, by_split: bool = False) -> set[str]:
        """Return the keys of its trials.

        Parameters
        ----------
        plan : Plan
        wanted : collection of str
            The keys that all shards share.
        by_split : bool, default=False
            Keep the trials on one split together, so that their times are of one machine.

        Returns
        -------
        set of str
            Trials are sorted by data set, solver and key, and dealt out one by one as cards are:
            shares differ by at most one, and so do those of each solver, which hashes alone would
            not promise. Groups of a split are dealt out likewise, the largest first, so that shares
            differ by at most one group. Neither depends on the order of the config, nor on what is
            done.
        """
        places: dict[str, tuple[str, str]] = {}
        for trial, key in plan.trials:
            if key in wanted:  # labels with the same numbers share a key
                kept_together = f"{trial.split.index:06}" if by_split else trial.label
                place = trial.dataset.name, kept_together
                places[key] = min(places.get(key, place), place)
        groups: dict[tuple[str, ...], list[str]] = {}
        for key, place in places.items():
            groups.setdefault(place if by_split else (*place, key), []).append(key)
        order = sorted(groups, key=lambda group: (-len(groups[group]), group))
        return {key for group in order[self.number - 1 :: self.of] for key in groups[group]}

"""Shards of the trials of an experiment, for independent batch jobs."""

import re
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from precbench.core.errors import InputError
from precbench.results.records import SHARD, SHARDS

if TYPE_CHECKING:
    from precbench.experiment.plan import Plan


@dataclass(frozen=True, order=True)
class Shard:
    """One of N parts of the trials of an experiment, numbered from 1."""

    number: int
    total: int

    @classmethod
    def parse(cls, text: str) -> "Shard":
        """Read text such as "3/10": shard 3 of 10."""
        match = re.fullmatch(SHARD, text)
        shard = None
        if match:
            shard = cls(number=int(match[1]), total=int(match[2]))
        if shard is None or shard.number > shard.total:
            raise InputError(
                f"the shard {text!r} (--shard) is not NUMBER/TOTAL with NUMBER from 1"
                " to TOTAL; for ten shards give 1/10, 2/10 ... 10/10"
            )
        return shard

    def __str__(self) -> str:
        return f"{self.number}/{self.total}"

    def folder(self, results: Path) -> Path:
        """Return the shard's folder in a folder of results: ``shards/03-of-10``."""
        width = len(str(self.total))
        return results / SHARDS / f"{self.number:0{width}}-of-{self.total}"

    def keys(
        self, plan: "Plan", wanted: Collection[str], *, by_split: bool = False
    ) -> set[str]:
        """Return the keys of the trials in this shard, of the keys `wanted` in all.

        Trials are sorted by data set, solver and key, and dealt one by one: shards
        differ by at most one trial, in all and of each solver, which a choice by hash
        would not ensure. With `by_split`, all trials on a split are dealt together, the
        largest groups first, so that their times are of one machine. Neither the order
        of the config nor what has run matters.
        """
        places: dict[str, tuple[str, str]] = {}  # data set, and split or label, by key
        for trial, key in plan.trials:
            if key in wanted:
                # with zeros in front, to sort it as text
                split = f"{trial.split.index:06}"
                place = trial.dataset.name, split if by_split else trial.label
                # Labels with equal solver and parameters share a key: the first by
                # alphabet counts.
                places[key] = min(places.get(key, place), place)
        # keys that are dealt together: all of a split, or a single key
        groups: dict[tuple[str, ...], list[str]] = {}
        for key, place in places.items():
            groups.setdefault(place if by_split else (*place, key), []).append(key)
        # Largest first, then by data set and split; groups of one key by data set,
        # label and key.
        order = sorted(groups, key=lambda group: (-len(groups[group]), group))
        keys: set[str] = set()
        for group in order[self.number - 1 :: self.total]:
            keys.update(groups[group])
        return keys

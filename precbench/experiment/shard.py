"""Shards of the trials of an experiment, for independent batch jobs."""

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from precbench.core.errors import InputError
from precbench.results.records import SHARD, SHARDS

if TYPE_CHECKING:
    from precbench.experiment.plan import Plan
    from precbench.experiment.trial import Trial


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
        trials = [(trial, key) for trial, key in plan.trials if key in wanted]
        groups = _keys_by_split(trials) if by_split else _keys_one_by_one(trials)
        keys: set[str] = set()
        for group in groups[self.number - 1 :: self.total]:
            keys.update(group)
        return keys


def _keys_by_split(trials: Iterable[tuple["Trial", str]]) -> list[set[str]]:
    """Return the keys of each split, most keys first, then by data set and number."""
    groups: dict[tuple[str, int], set[str]] = {}
    for trial, key in trials:
        place = trial.dataset.name, trial.split.index
        groups.setdefault(place, set()).add(key)
    by_place = [group for _place, group in sorted(groups.items())]
    return sorted(by_place, key=len, reverse=True)


def _keys_one_by_one(trials: Iterable[tuple["Trial", str]]) -> list[set[str]]:
    """Return each key in a set of its own, sorted by data set, label and key."""
    places: dict[str, tuple[str, str]] = {}
    for trial, key in trials:
        place = trial.dataset.name, trial.label
        # Labels with equal solver and parameters share a key: the first counts.
        places[key] = min(places.get(key, place), place)
    in_order = sorted(places, key=lambda key: (places[key], key))
    return [{key} for key in in_order]

"""Records of several results folders, of shards or of machines, put together."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from precbench.files import refuse_links
from precbench.npz import pack
from precbench.store import HAVE_NUMBERS, Record, Store, is_key, key_of

__all__ = ["Conflict", "Merger"]

_TIMES = ("cpu_seconds", "wall_seconds")
_NUMBERS = ("status", "chosen", "stopped", "n_train", "stand_in")


class Conflict(NamedTuple):
    """A trial whose records have other numbers; ``places`` says which folders, and machines."""

    trial: str
    places: tuple[str, ...]


class _Candidate(NamedTuple):
    store: Store
    record: Record
    rank: int
    numbers: str


@dataclass(frozen=True)
class Merger:
    """Puts the records of folders of one experiment together.

    A result counts more than a trial that was skipped, and that more than one that failed; of equal
    records the first is kept, beginning with the target's. It looks for conflicts before anything
    is written; an interrupted merge can simply be repeated.

    Attributes
    ----------
    target : Store
        Its lock is held by the caller.
    sources : sequence of Store
        Untrusted.
    kept : sequence of Store
        Those among all these whose records stand where numbers differ.
    """

    target: Store
    sources: Sequence[Store]
    kept: Sequence[Store] = ()

    def compared(self) -> tuple[dict[str, Store], list[Conflict]]:
        """Return from where to take each record that the target should have, and the conflicts.

        Raises
        ------
        InputError
            If a record is damaged, or of a newer precbench, or something is a symbolic link.
        """
        holders: dict[str, list[Store]] = {}
        for store in (self.target, *self.sources):
            refuse_links(store.folder)
            store.machines()  # which checks them
            for record in store.records():
                holders.setdefault(record.key, []).append(store)
        taken: dict[str, Store] = {}
        conflicts = []
        for key, stores in holders.items():
            rivals = [] if stores == [self.target] else list(_candidates(key, stores))
            best = [one for one in rivals if one.rank == max(other.rank for other in rivals)]
            if len({one.numbers for one in best}) > 1:
                chosen = [one for one in best if one.store in self.kept]
                if not chosen:
                    conflicts.append(_conflict(best))
                    continue
                best = chosen
            if best and best[0].store is not self.target:
                taken[key] = best[0].store
        return taken, conflicts

    def take(self, taken: dict[str, Store]) -> None:
        """Write records of the sources to the target, each after the machine that it names."""
        machines = {store: store.environments() for store in dict.fromkeys(taken.values())}
        for key, store in taken.items():
            record = store.read(key)
            if record is None:  # removed meanwhile
                continue
            content, machine = record.to_dict(), machines[store].get(record.environment)
            if machine is not None:
                content["environment"] = self.target.add_environment(machine)
            self.target.write(content, store.arrays(key))


def _candidates(key: str, stores: Sequence[Store]) -> Iterator[_Candidate]:
    for store in stores:
        record = store.read(key)
        if record is None:
            continue
        if not is_key(key):
            raise store.damaged(key, "its name is not a hash")
        rank = 2 if record.status in HAVE_NUMBERS else int(record.status == "skipped")
        yield _Candidate(store, record, rank, _hash_of_numbers(store, record) if rank else "")


def _hash_of_numbers(store: Store, record: Record) -> str:
    arrays = store.arrays(record.key)
    content = pack({name: arrays[name] for name in sorted(arrays) if name not in _TIMES})
    fields = record.model_dump(include=set(_NUMBERS))
    return key_of({**fields, "arrays": hashlib.sha256(content).hexdigest()})


def _conflict(found: Sequence[_Candidate]) -> Conflict:
    record = found[0].record
    places = []
    for store, its_record, *_ in found:
        machine = store.machines().get(its_record.environment)
        on = machine.kind if machine else "an unknown machine"
        places.append(f"{store.folder} on {on}")
    trial = f"{record.dataset}/{record.label}/{record.split}"
    return Conflict(f"{trial} ({record.key[:12]})", tuple(places))

"""Merging of the records of several results folders, of shards or of machines."""

import hashlib
from collections.abc import Sequence
from typing import NamedTuple

from precbench.core.keys import key_of
from precbench.core.npz import pack
from precbench.results.records import HAVE_NUMBERS, Record
from precbench.results.store import Store

_TIMES = ("cpu_seconds", "wall_seconds")  # arrays that differ from machine to machine
# fields of records that machines should agree on
_COMPARED = {"status", "chosen", "stopped", "n_train", "stand_in"}


class _Copy(NamedTuple):
    """A record that several stores may hold, and the store that holds this copy."""

    store: Store
    record: Record


def compare_records(
    target: Store, sources: Sequence[Store], preferred: Sequence[Store] = ()
) -> tuple[dict[str, Store], list[str]]:
    """Return by key the stores to copy records from, and lines about conflicts.

    Nothing is written. Of the records of a key with the best `_rank`, the first is
    chosen; the target comes before `sources`. If their numbers differ, the first of
    them in a store of `preferred` is chosen; if there is none, the trial is a conflict.
    """
    copies_by_key: dict[str, list[_Copy]] = {}
    for store in (target, *sources):
        store.machines()  # raises if the description of a machine is damaged
        for record in store.records():
            copies_by_key.setdefault(record.key, []).append(_Copy(store, record))
    choice: dict[str, Store] = {}
    conflicts = []
    for key, copies in copies_by_key.items():
        if all(copy.store is target for copy in copies):
            continue  # the target keeps its own record
        best = _best(copies)
        if _differ(best):
            in_conflict = best
            best = [copy for copy in best if copy.store in preferred]
            if not best:
                conflicts.append(_conflict(in_conflict))
                continue
        chosen = best[0].store
        if chosen is not target:
            choice[key] = chosen
    return choice, conflicts


def _best(copies: Sequence[_Copy]) -> list[_Copy]:
    """Return the copies with the best rank."""
    rank = max(_rank(copy.record) for copy in copies)
    return [copy for copy in copies if _rank(copy.record) == rank]


def _differ(copies: Sequence[_Copy]) -> bool:
    """Return whether copies of equal rank have different numbers.

    Failed trials have none.
    """
    if _rank(copies[0].record) == 0:  # all have failed
        return False
    return len({_hash_of_numbers(copy) for copy in copies}) > 1


def take_records(target: Store, choice: dict[str, Store]) -> None:
    """Copy records into the target from the stores chosen for their keys.

    Their arrays and the descriptions of their machines are copied, too.
    """
    # read once for each store: machines[store][id in the store]
    machines = {store: store.machines() for store in dict.fromkeys(choice.values())}
    for key, store in choice.items():
        record = store.read(key)
        if record is None:  # removed since the choice was made
            continue
        content = record.to_dict()
        machine = machines[store].get(record.environment)
        if machine is not None:
            # the id that the machine has in the target
            content["environment"] = target.add_environment(machine.model_dump())
        target.write(content, store.arrays(key))


def _rank(record: Record) -> int:
    """Return 2 for a result, 1 for a skipped trial, 0 for a failed trial."""
    if record.status in HAVE_NUMBERS:
        return 2
    return 1 if record.status == "skipped" else 0


def _hash_of_numbers(copy: _Copy) -> str:
    """Return a hash of what machines should agree on: some fields, and the arrays."""
    arrays = copy.store.arrays(copy.record.key)
    compared_arrays = {
        name: arrays[name] for name in sorted(arrays) if name not in _TIMES
    }
    content = pack(compared_arrays)
    fields = copy.record.model_dump(include=_COMPARED)
    return key_of(fields | {"arrays": hashlib.sha256(content).hexdigest()})


def _conflict(copies: Sequence[_Copy]) -> str:
    """Return a line with a trial, and folder and machine of each copy of its record."""
    places = []
    for store, record in copies:
        machine = store.machines().get(record.environment)
        kind = machine.kind if machine else "an unknown machine"
        places.append(f"{store.folder} on {kind}")
    any_record = copies[0].record  # the trial is equal in all
    trial = f"{any_record.dataset}/{any_record.label}/{any_record.split}"
    return f"{trial} ({any_record.key[:12]}): {', '.join(places)}"

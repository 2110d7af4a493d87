"""Merging of the records of several results folders, of shards or of machines."""

import hashlib
from collections.abc import Sequence

from precbench.npz import pack
from precbench.store import HAVE_NUMBERS, Record, Store, key_of

_TIMES = ("cpu_seconds", "wall_seconds")
_NUMBERS = {"status", "chosen", "stopped", "n_train", "stand_in"}


def compare_records(
    target: Store, sources: Sequence[Store], preferred: Sequence[Store] = ()
) -> tuple[dict[str, Store], list[str]]:
    """Return the store to take each record from, and conflicts in words; nothing is written.

    A result counts more than a skipped trial, which counts more than a failed one; of equal records
    the first is taken, beginning with the target's. Where numbers differ, the records of the stores
    in `preferred` are.
    """
    holders: dict[str, list[tuple[Store, Record]]] = {}
    for store in (target, *sources):
        store.machines()  # which checks them
        for record in store.records():
            holders.setdefault(record.key, []).append((store, record))
    choice: dict[str, Store] = {}
    conflicts = []
    for key, copies in holders.items():
        rank = max(_rank(record) for _, record in copies)
        best = [(store, record) for store, record in copies if _rank(record) == rank]
        if rank and copies[-1][0] is not target:  # not failed, and not the target's alone
            numbers = {_hash_of_numbers(store, record) for store, record in best}
            if len(numbers) > 1:
                chosen = [(store, record) for store, record in best if store in preferred]
                if not chosen:
                    conflicts.append(_conflict(best))
                    continue
                best = chosen
        if best[0][0] is not target:
            choice[key] = best[0][0]
    return choice, conflicts


def take_records(target: Store, choice: dict[str, Store]) -> None:
    """Write records of the sources to the target; an interrupted merge can be repeated."""
    machines = {store: store.machines() for store in dict.fromkeys(choice.values())}
    for key, store in choice.items():
        record = store.read(key)
        if record is None:  # removed meanwhile
            continue
        content, machine = record.to_dict(), machines[store].get(record.environment)
        if machine is not None:
            content["environment"] = target.add_environment(machine.model_dump())
        target.write(content, store.arrays(key))


def _rank(record: Record) -> int:
    """Return 2 for a result, 1 for a skipped trial, 0 for a failed one."""
    return 2 if record.status in HAVE_NUMBERS else int(record.status == "skipped")


def _hash_of_numbers(store: Store, record: Record) -> str:
    """Hash what two machines should agree on: all but times."""
    arrays = store.arrays(record.key)
    content = pack({name: arrays[name] for name in sorted(arrays) if name not in _TIMES})
    return key_of(
        {**record.model_dump(include=_NUMBERS), "arrays": hashlib.sha256(content).hexdigest()}
    )


def _conflict(copies: Sequence[tuple[Store, Record]]) -> str:
    """Return a line with the trial and where its copies come from."""
    record, places = copies[0][1], []
    for store, its_record in copies:
        machine = store.machines().get(its_record.environment)
        places.append(f"{store.folder} on {machine.kind if machine else 'an unknown machine'}")
    trial = f"{record.dataset}/{record.label}/{record.split}"
    return f"{trial} ({record.key[:12]}): {', '.join(places)}"

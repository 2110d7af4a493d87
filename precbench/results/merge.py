"""Merging of the records of several results folders, of shards or of machines."""

import hashlib
from collections.abc import Sequence

from precbench.core.keys import key_of
from precbench.core.npz import pack
from precbench.results.records import HAVE_NUMBERS, Record
from precbench.results.store import Store

_TIMES = ("cpu_seconds", "wall_seconds")  # arrays that differ from machine to machine
# fields that should be equal
_COMPARED = {"status", "chosen", "stopped", "n_train", "stand_in"}


def compare_records(
    target: Store, sources: Sequence[Store], preferred: Sequence[Store] = ()
) -> tuple[dict[str, Store], list[str]]:
    """Choose the records to copy into the target.

    Return their stores by key, and the conflicts.

    Nothing is written. Of the records of a key with the best `_rank`, the first is
    chosen; the target comes before `sources`. If numbers differ, the first record of a
    store in `preferred` is chosen; if there is none, no record is chosen, and a line
    about the trial is a conflict.
    """
    holders: dict[str, list[tuple[Store, Record]]] = {}
    for store in (target, *sources):
        store.machines()  # raises if the description of a machine is damaged
        for record in store.records():
            holders.setdefault(record.key, []).append((store, record))
    choice: dict[str, Store] = {}  # by the key of a record: the store to copy it from
    conflicts = []
    for key, copies in holders.items():  # copies: (store, record), the target's first
        rank = max(_rank(record) for _, record in copies)
        best = [(store, record) for store, record in copies if _rank(record) == rank]
        is_in_source = any(store is not target for store, _ in copies)
        # A failed trial (rank 0) has no numbers. Numbers differ if they have more than
        # one hash.
        if (
            rank
            and is_in_source
            and len({_hash_of_numbers(*copy) for copy in best}) > 1
        ):
            best_preferred = [
                (store, record) for store, record in best if store in preferred
            ]
            if not best_preferred:
                conflicts.append(_conflict(best))
                continue
            best = best_preferred
        first_store, _ = best[0]
        if first_store is not target:  # the target keeps its own record
            choice[key] = first_store
    return choice, conflicts


def take_records(target: Store, choice: dict[str, Store]) -> None:
    """Copy the records of `choice` (key.

    Store) into the target, with their arrays and machines.
    """
    # machines[store][id] is the machine on which records were made; read once for each
    # store.
    machines = {store: store.machines() for store in dict.fromkeys(choice.values())}
    for key, store in choice.items():
        record = store.read(key)
        if record is None:  # removed since the choice was made
            continue
        content, machine = record.to_dict(), machines[store].get(record.environment)
        if machine is not None:
            # a new id
            content["environment"] = target.add_environment(machine.model_dump())
        target.write(content, store.arrays(key))


def _rank(record: Record) -> int:
    """Return 2 for a result, 1 for a skipped trial, 0 for a failed trial."""
    return 2 if record.status in HAVE_NUMBERS else int(record.status == "skipped")


def _hash_of_numbers(store: Store, record: Record) -> str:
    """Return a hash of what machines should agree on.

    Fields `_COMPARED`, all arrays but times.
    """
    arrays = store.arrays(record.key)
    content = pack(
        {name: arrays[name] for name in sorted(arrays) if name not in _TIMES}
    )
    return key_of(
        {
            **record.model_dump(include=_COMPARED),
            "arrays": hashlib.sha256(content).hexdigest(),
        }
    )


def _conflict(copies: Sequence[tuple[Store, Record]]) -> str:
    """Return a line with the trial, and the folder and machine of each copy of its record."""
    places = []
    for store, record in copies:
        machine = store.machines().get(record.environment)
        places.append(
            f"{store.folder} on {machine.kind if machine else 'an unknown machine'}"
        )
    # equal in all copies: of the last
    trial = f"{record.dataset}/{record.label}/{record.split}"
    return f"{trial} ({record.key[:12]}): {', '.join(places)}"

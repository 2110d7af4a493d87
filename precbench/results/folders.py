"""Results folders below a folder."""

from pathlib import Path

from precbench.core.errors import InputError
from precbench.results.records import SHARDS
from precbench.results.store import Store

PAGE = "report.html"  # of a results folder


def find_stores(results: Path) -> list[Store]:
    """Return a store for each experiment with trials in a folder, shards included."""
    entries = ("trials", "asked.json")  # a shard without trials has asked.json
    folders = find_result_folders(results, *entries)
    for shard in sorted(results.glob(f"{SHARDS}/*/")):
        folders += find_result_folders(shard, *entries)
    if not folders:
        raise InputError(
            f"{results} has no results of trials; make some with precbench run CONFIG"
        )
    return [Store(folder) for folder in folders]


def find_result_folders(results: Path, *entries: str) -> list[Path]:
    """Return `results` if it has one of `entries`, else its subfolders with one."""
    if not results.is_dir():
        raise InputError(
            f"there is no folder {results}; give a folder that precbench run wrote"
        )
    if any((results / entry).exists() for entry in entries):
        return [results]
    folders: set[Path] = set()
    for entry in entries:
        folders.update(path.parent for path in results.glob(f"*/{entry}"))
    return sorted(folders)

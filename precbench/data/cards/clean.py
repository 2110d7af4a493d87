"""Cleaning of the cache."""

import shutil
from collections.abc import Iterable

from precbench.data.cards.registry import find_card
from precbench.locations import cache_folder


def clean(names: Iterable[str] = (), *, dry_run: bool = False) -> dict[str, int]:
    """Remove prepared arrays, unfinished files and the files of named data sets from the cache.

    Return the removed paths, relative to the cache, with their sizes in bytes.
    """
    root = cache_folder()
    targets = {*(root / "prepared").glob("*"), *(root / "files").rglob(".*.tmp")}
    for card in map(find_card, names):
        paths = [root / "files" / card.folder / file.name for file in card.files]
        targets |= {path for path in paths if path.is_file()}
    removed = {}
    for path in sorted(targets):
        parts = [path] if path.is_file() else [p for p in path.rglob("*") if p.is_file()]
        removed[path.relative_to(root).as_posix()] = sum(part.stat().st_size for part in parts)
        if not dry_run and path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        elif not dry_run:
            path.unlink()
    return removed

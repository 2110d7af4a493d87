"""Removing from the cache what can be made again."""

import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

from precbench.data.cards.registry import find_card
from precbench.locations import cache_folder

__all__ = ["clean"]


def clean(names: Iterable[str] = (), *, dry_run: bool = False) -> dict[str, int]:
    """Remove prepared arrays and unfinished files from the cache.

    Parameters
    ----------
    names : iterable of str
        Data sets whose files go, too, with those that the user has added.
    dry_run : bool, default=False

    Returns
    -------
    dict of str to int
        What is removed, relative to the cache, with its size in bytes.
    """
    root = cache_folder()
    removed = {}
    for path in sorted({*_made_again(root), *_files_of(names, root)}):
        parts = [path] if path.is_file() else [p for p in path.rglob("*") if p.is_file()]
        removed[path.relative_to(root).as_posix()] = sum(part.stat().st_size for part in parts)
        if not dry_run and path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        elif not dry_run:
            path.unlink()
    return removed


def _made_again(root: Path) -> Iterator[Path]:
    yield from (root / "prepared").glob("*")
    yield from (root / "files").rglob(".*.tmp")


def _files_of(names: Iterable[str], root: Path) -> Iterator[Path]:
    for card in map(find_card, names):
        for file in card.files:
            path = root / "files" / card.folder / file.name
            if path.is_file():
                yield path

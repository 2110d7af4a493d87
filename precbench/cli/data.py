"""``precbench data``."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path

from precbench.data import DATASETS, find_card, load_dataset
from precbench.data.fetch import FileReport, add_files, info, verify


def fetch_data(names: Sequence[str], mirror: str | None) -> None:
    """Get data sets and check what comes out of their files."""
    for name in names:
        find_card(name)
    for name in names:
        dataset = load_dataset(name, mirror=mirror)
        n, d = dataset.X.shape
        print(f"{name}: {n:,} rows, {d:,} features, {dataset.n_pos:,} positives, as the card says")


def add_data(name: str, files: Sequence[Path]) -> None:
    """Take files into the cache."""
    _print_files(name, add_files(name, files))


def verify_data(names: Sequence[str] | None, as_json: bool) -> int:
    """Check cached files; return the exit code: 3 if a named data set lacks files, 2 if damaged."""
    reports = {name: verify(name) for name in names or DATASETS}
    if as_json:
        print(json.dumps({name: list(map(asdict, files)) for name, files in reports.items()}))
    else:
        for name, files in reports.items():
            _print_files(name, files)
    statuses = {file.status for files in reports.values() for file in files}
    if "damaged" in statuses:
        return 2
    return 3 if names and "missing" in statuses else 0


def describe_data(name: str, as_json: bool) -> None:
    """Print a card and the state of its files."""
    card, files = find_card(name), info(name)
    if as_json:
        print(json.dumps({**card.model_dump(mode="json"), "cached": list(map(asdict, files))}))
        return
    share = card.positives / card.rows
    print(f"{card.title} ({name})")
    size = f"{card.rows:,} rows, {card.features:,} features, {card.positives:,} positive"
    print(f"  {size} ({share:.2%})")
    for field in ("positive", "scaling", "note", "used_by", "licence", "citation"):
        value = getattr(card, field, None)
        if value:
            text = ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
            print(f"  {field}: {' '.join(text.split())}")
    _print_files(name, files)


def _print_files(name: str, files: Iterable[FileReport]) -> None:
    for file in files:
        size = "" if file.bytes is None else f", {file.bytes:,} bytes"
        print(f"{name}/{file.name}: {file.status}{size}")

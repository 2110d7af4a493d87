"""``precbench data``."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from textwrap import fill

from precbench.data import DATASETS, find_card, load_dataset
from precbench.data.cards.clean import clean
from precbench.data.cards.fetch import FileReport, add_files, info

_WIDTH = 80


def fetch_data(names: Sequence[str], mirror: str | None, as_json: bool) -> None:
    """Download data sets and check their rows against the cards."""
    for name in names:
        find_card(name)
    found = []
    for name in names:
        dataset = load_dataset(name, mirror=mirror)
        n, d = dataset.X.shape
        found.append({"name": name, "rows": n, "features": d, "positives": dataset.n_pos})
        if not as_json:
            print(
                f"{name}: {n:,} rows, {d:,} features, {dataset.n_pos:,} positives, as the card says"
            )
    if as_json:
        print(json.dumps(found))


def add_data(name: str, files: Sequence[Path], as_json: bool) -> None:
    """Copy files into the cache."""
    _print_reports({name: add_files(name, files)}, as_json)


def verify_data(names: Sequence[str] | None, as_json: bool) -> int:
    """Check cached files; return exit code 2 if one is damaged, 3 if a named data set lacks one."""
    reports = {name: info(name, anew=True) for name in names or DATASETS}
    _print_reports(reports, as_json)
    statuses = {file.status for files in reports.values() for file in files}
    if "damaged" in statuses:
        return 2
    return 3 if names and "missing" in statuses else 0


def clean_cache(names: Sequence[str], dry_run: bool, as_json: bool) -> None:
    """Remove what can be made again from the cache, and all files of these data sets."""
    for name in names:
        find_card(name)
    removed = clean(names, dry_run=dry_run)
    total = sum(removed.values())
    if as_json:
        print(json.dumps({"removed": removed, "bytes": total, "dry_run": dry_run}))
        return
    for path, size in removed.items():
        print(f"{path}: {size:,} bytes")
    print(f"{len(removed):,} {'to remove' if dry_run else 'removed'}, {total:,} bytes")


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
    uses = "; ".join(f"{use.paper} {use.how}" for use in card.used_by)
    for field, text in [
        ("positive", card.positive),
        ("scaling", card.scaling),
        ("note", card.note),
        ("used by", uses),
        ("licence", card.licence),
        ("citation", card.citation),
    ]:
        if text is not None and text != "":
            print(fill(f"{field}: {text}", _WIDTH, initial_indent="  ", subsequent_indent="    "))
    _print_reports({name: files}, as_json=False)


def _print_reports(reports: Mapping[str, Sequence[FileReport]], as_json: bool) -> None:
    if as_json:
        print(json.dumps({name: list(map(asdict, files)) for name, files in reports.items()}))
        return
    for name, files in reports.items():
        if not files:
            print(f"{name}: generated, no files")
        for file in files:
            size = "" if file.bytes is None else f", {file.bytes:,} bytes"
            print(f"{name}/{file.name}: {file.status}{size}")
            if file.status == "damaged":
                print(f"  expected {file.expected}, found sha256 {file.sha256}: {file.path}")

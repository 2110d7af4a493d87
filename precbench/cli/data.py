"""``precbench data``."""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from precbench.cli import completion
from precbench.cli.options import Json, Mirror, print_facts
from precbench.data import DATASETS, find_card, load_dataset
from precbench.data.cards.card import Card
from precbench.data.cards.fetch import FileReport, add_files, clean, fetch, info

_NAME = typer.Argument(
    help="Name of a data set, as precbench list datasets shows it.",
    autocompletion=completion.datasets,
)


def fetch_data(
    names: Annotated[list[str], _NAME],
    mirror: Mirror = None,
    accept_terms: Annotated[
        bool,
        typer.Option(
            "--accept-terms",
            help=(
                "Accept the terms of the data (kdd08, ppi), which are printed, and"
                " download them."
            ),
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Download data sets from the mirror or the official addresses into the cache.

    Checksums are verified, and rows compared with the card. The cache is
    $PRECBENCH_CACHE, else a folder in the user's cache folder. Exit code 3: no source
    has the files.

    \b
    Examples:
      precbench data fetch letter adult
      precbench data fetch letter --mirror ~/mirror
      precbench data fetch kdd08 --accept-terms
    """
    # Before any download, so that an unknown name is refused first.
    cards = [find_card(name) for name in names]
    if accept_terms:
        _print_terms(cards)
    sizes = []
    for name, card in zip(names, cards, strict=True):
        fetch(card, mirror, accept_terms=accept_terms)
        size = _size(name, mirror)
        sizes.append(size)
        if not as_json:
            print(
                f"{name}: {size['rows']:,} rows, {size['features']:,} features,"
                f" {size['positives']:,} positives, as the card says"
            )
    if as_json:
        print(json.dumps(sizes))


def _size(name: str, mirror: str | None) -> dict[str, Any]:
    """Return the size of a data set; raise if it is not as the card says."""
    dataset = load_dataset(name, mirror=mirror)  # compares the rows with the card
    n_rows, n_features = dataset.X.shape
    return {
        "name": name,
        "rows": n_rows,
        "features": n_features,
        "positives": dataset.n_pos,
    }


def _print_terms(cards: Sequence[Card]) -> None:
    """Print the terms that come with the files that are not in the cache."""
    for card in cards:
        statuses = {file.status for file in info(card.name)}
        is_complete = statuses.isdisjoint(("missing", "damaged"))
        if card.terms is not None and not is_complete:
            print(f"{card.title}, terms accepted: {card.terms}", file=sys.stderr)


def add_data(
    name: Annotated[str, _NAME],
    files: Annotated[
        list[Path],
        typer.Argument(help="Files to copy; precbench data info lists what is needed."),
    ],
    as_json: Json = False,
) -> None:
    """Copy files that you have into the cache, as they are or packed.

    A file with a wrong checksum is refused and overwrites nothing.

    \b
    Examples:
      precbench data add kdd08 Features.txt Info.txt
      precbench data add kdd08 training_data.zip
    """
    _print_reports({name: add_files(name, files)}, as_json)


def verify_data(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            help="Data sets [default: all].", autocompletion=completion.datasets
        ),
    ] = None,
    as_json: Json = False,
) -> int:
    """Check the cached files of data sets against their checksums.

    Exit code 2: a file is damaged. Exit code 3: a named data set lacks a file.

    \b
    Examples:
      precbench data verify
      precbench data verify letter --json
    """
    reports = {name: info(name) for name in names or DATASETS}
    _print_reports(reports, as_json)
    statuses = {file.status for files in reports.values() for file in files}
    if "damaged" in statuses:
        return 2
    if "missing" in statuses and names:  # what was not asked for may be missing
        return 3
    return 0


def clean_cache(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            help="Data sets that lose downloaded and added files too [default: none]."
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="List what would be removed.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Remove prepared arrays and unfinished downloads from the cache.

    Everything removed can be rebuilt or downloaded again, except files you added
    yourself. Downloaded and added files are removed only for data sets you name.

    \b
    Examples:
      precbench data clean --dry-run
      precbench data clean covtype
    """
    removed = clean(names or (), dry_run=dry_run)  # size in bytes by path
    total = sum(removed.values())
    if as_json:
        print(json.dumps({"removed": removed, "bytes": total, "dry_run": dry_run}))
        return
    for path, size in removed.items():
        print(f"{path}: {size:,} bytes")
    outcome = "to remove" if dry_run else "removed"
    print(f"{len(removed):,} {outcome}, {total:,} bytes")


def describe_data(name: Annotated[str, _NAME], as_json: Json = False) -> None:
    """Describe a data set: its card, and which of its files are in the cache.

    Files of a mirror are "missing" until they are fetched into the cache.

    \b
    Example:
      precbench data info kdd08
    """
    card = find_card(name).model_dump(mode="json", exclude_none=not as_json)
    print_facts({**card, "cached": list(map(asdict, info(name)))}, as_json=as_json)


def _print_reports(reports: Mapping[str, Sequence[FileReport]], as_json: bool) -> None:
    """Print the status of each file, and for a damaged one two checksums."""
    if as_json:
        described = {name: list(map(asdict, files)) for name, files in reports.items()}
        print(json.dumps(described, default=str))
        return
    for name, files in reports.items():
        if not files:
            print(f"{name}: generated, no files")
        for file in files:
            size = "" if file.bytes is None else f", {file.bytes:,} bytes"
            print(f"{name}/{file.name}: {file.status}{size}")
            if file.status == "damaged":
                print(
                    f"  expected {file.expected}, found sha256 {file.sha256}:"
                    f" {file.path}"
                )

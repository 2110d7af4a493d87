"""Forecast of a run: time, and data to fetch."""

from collections.abc import Collection

from rich.console import Console

from precbench.core.text import count, duration
from precbench.data import find_card
from precbench.data.cards.fetch import download_limit, info
from precbench.experiment import Experiment, Trial
from precbench.experiment.plan import Plan
from precbench.experiment.sections import NamedData, StreamedCard
from precbench.results.store import Store
from precbench.runner.cost import expected_seconds


def to_fetch(part: Experiment) -> dict[str, int]:
    """Return the largest download of each data set that lacks files, in bytes."""
    sizes = {}
    for entry in part.datasets:
        if not isinstance(entry, NamedData | StreamedCard):
            continue  # only these have a card, with files
        card = find_card(entry.card if isinstance(entry, StreamedCard) else entry.name)
        if card.terms is not None:
            continue  # a run downloads nothing whose terms a user has to accept
        missing = {file.name for file in info(card.name) if file.status == "missing"}
        size = download_limit([file for file in card.files if file.name in missing])
        if size > 0:  # files without an address cannot be downloaded
            sizes[entry.name] = size
    return sizes


def show_fetching(part: Experiment, sizes: dict[str, int], console: Console) -> int:
    """Print what to fetch, the bytes of `sizes`; return the number of all trials.

    Which of them are done is not known without the data.
    """
    for name, size in sizes.items():
        console.print(f"to fetch: {name}, at most {size / 1e6:,.1f} MB")
    n_trials = len(part.trials())
    console.print(
        f"{count(n_trials, 'trial')} to run, when the data have been downloaded"
    )
    return n_trials


def show_outlook(
    plan: Plan, store: Store, trials: Collection[Trial], at_once: int, console: Console
) -> float:
    """Print the trials of a run; return its seconds, with `at_once` at a time."""
    for trial in trials:
        console.print(f"  {trial.title}")
    seconds = sum(expected_seconds(plan, store, trials)) / at_once
    if trials:
        console.print(
            f"{count(len(trials), 'trial')}: about {duration(seconds)}, estimated from"
            " the size of the data or from earlier trials"
        )
    return round(seconds, 1)

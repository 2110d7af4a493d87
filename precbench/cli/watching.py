"""What the command line prints of a session."""

import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from precbench.cli.outlook import show_fetching, show_outlook, to_fetch
from precbench.cli.screen import Screen, progress
from precbench.cli.screen_tables import print_table
from precbench.core.text import count, duration, one_line
from precbench.data import find_card
from precbench.experiment import Experiment, Study, Trial
from precbench.results.folders import PAGE
from precbench.results.measure import final_means
from precbench.results.records import Record
from precbench.runner import keys_of_other_code
from precbench.runner.cost import expected_seconds
from precbench.runner.options import Options
from precbench.runner.session import Observer, Results, Work, plan_work, selected

if TYPE_CHECKING:
    from precbench.data import Dataset
    from precbench.experiment.plan import Plan
    from precbench.runner.cluster import Cluster


class Progress(Observer):
    """Shows how many trials are done, on standard error."""

    def __init__(self, *, quiet: bool = False, verbose: bool = False):
        self.quiet = quiet
        self.verbose = verbose

    def training(
        self, n_trials: int
    ) -> AbstractContextManager[Callable[[str, Record], None]]:
        return progress(n_trials, quiet=self.quiet, verbose=self.verbose)

    def on_interrupt(self, n_done: int, n_trials: int, folder: Path) -> None:
        print(
            f"stopped: {n_done} of {n_trials} trials are finished and kept in {folder};"
            " the same command resumes from there",
            file=sys.stderr,
        )


class StageProgress(Progress):
    """Prints what the stages of a comparison cost, before each begins."""

    def __init__(self, console: Screen, effort: str):
        super().__init__()
        self.console = console
        self.effort = effort
        self.is_first = True

    def on_trials(self, work: Work, trials: Mapping[str, Trial]) -> None:
        methods = count(len(work.part.solvers), "method")
        splits = count(len(work.part.protocol.indices), "split")
        n_trials = count(len(trials), "trial")
        seconds = sum(expected_seconds(work.plan, work.store, trials.values()))
        self.console.print(
            f"{methods} on {splits}: {n_trials}, roughly {duration(seconds)} of CPU"
        )
        if self.is_first and self.effort != "quick":
            self._print_later(work, trials)
        self.is_first = False

    def _print_later(self, work: Work, first_trials: Mapping[str, Trial]) -> None:
        """Print what later stages cost at most, if a trial is left for them."""
        done = {*work.store.keys(), *first_trials}
        later_trials = [trial for trial, key in work.plan.trials if key not in done]
        if not later_trials:
            return
        seconds = sum(expected_seconds(work.plan, work.store, later_trials))
        self.console.print(
            f"later answers, --effort {self.effort}: at most"
            f" {count(len(later_trials), 'more trial')}, roughly {duration(seconds)} of"
            " CPU"
        )


class Printer(Progress):
    """Prints how a session goes on, and its results."""

    def __init__(
        self,
        options: Options,
        console: Screen,
        *,
        quiet: bool = False,
        verbose: bool = False,
    ):
        super().__init__(quiet=quiet, verbose=verbose)
        self.options = options
        self.console = console

    def on_plan(self, work: Work) -> None:
        announce(work.plan, self.console)
        if self.options.shard is not None:
            self.console.print(
                f"shard {self.options.shard}: {len(work.keys):,} of"
                f" {work.n_in_all_shards:,} trials"
            )

    def on_reuse(self, name: str, n_trials: int) -> None:
        if n_trials > 0:
            self.console.print(
                f"{count(n_trials, 'finished trial')} of {name}, which this config"
                " extends, are its own as well"
            )

    def on_trials(self, work: Work, trials: Mapping[str, Trial]) -> None:
        n_asked = len(work.keys)
        done = work.keys - trials.keys()
        if self.options.rerun or self.options.changed_code:
            self.console.print(f"{n_asked} trials, {len(trials)} of them to run again")
        else:
            self.console.print(f"{n_asked} trials, {len(done)} of them done already")
        n_other = len(keys_of_other_code(work.plan, work.store, done))
        if n_other > 0:
            self.console.print(
                f"{count(n_other, 'finished trial')} kept, although other code of the"
                " same versions trained them; --rerun changed-code trains them again"
            )

    def measuring(self) -> AbstractContextManager[Any]:
        return self.console.status("measuring the stored results")

    def show_results(self, results: Results) -> None:
        """Print the tables, and where the files are."""
        if self.options.shard is not None:
            self.console.print(
                f"records: {results.folder}; precbench merge makes the tables of all"
                " shards"
            )
            return
        for table in results.tables:
            print_table(table, self.console)
        self.console.print(f"tables and records: {results.folder}")
        for path in results.files:
            if path.suffix == ".png":
                self.console.print(f"figure: {path}")
        if self.options.figures and results.report:
            self.console.print(f"report: {results.folder / PAGE}")


def announce(plan: "Plan", console: Screen) -> None:
    """Print a run's title, its data sets, and which are synthetic or left out."""
    console.print(f"{plan.experiment.title} ({plan.protocol}; {plan.scaling})")
    entries = {entry.name: entry for entry in plan.experiment.datasets}
    for dataset in plan.datasets.values():
        n_rows, n_features = dataset.X.shape
        size = (
            f"{one_line(dataset.title)}: {n_rows:,} x {n_features}, {dataset.n_pos:,}"
            f" positive ({dataset.n_pos / n_rows:.2%})"
        )
        if not dataset.stand_in:
            console.print(size)
            continue
        console.print(size, style="bold")
        # A streamed data set names its card; any other has the name of its card.
        card = find_card(getattr(entries[dataset.name], "card", dataset.name))
        console.print(
            f"{dataset.name} is not available: SYNTHETIC data stand in for it, and"
            " the results below say nothing about the real data, which"
            f" {card.fetch_command} gets",
            style="bold red",
        )
    for name, reason in plan.absent.items():
        console.print(f"left out: {name}. {one_line(reason)}", style="bold")


def show_study(study: Study, console: Screen, *, in_one_piece: bool) -> None:
    """Print the title of a study, and for --dry-run its kind."""
    console.print(f"{study.title} (a study)")
    if in_one_piece:
        console.print(f"  {study.kind}: computed in one piece")


def show_work(
    config: Experiment | Study,
    options: Options,
    console: Screen,
    *,
    datasets: "Mapping[str, Dataset] | None" = None,
    cluster: "Cluster | None" = None,
) -> dict[str, Any]:
    """Print what would run, for how long, and the data to fetch; return a summary."""
    if isinstance(config, Study):
        return summary_of(
            Results(config.name, options.folder(config.name)), config, options
        )
    part = selected(config, options)
    folder = options.folder(config.name)
    # Nothing is downloaded: without its data, a run cannot be planned in detail.
    sizes = to_fetch(part) if datasets is None else {}
    if sizes:
        n_trials = show_fetching(part, sizes, console)
        results = Results(config.name, folder, trials=n_trials, trained=n_trials)
        return summary_of(results, config, options) | {"to_fetch": sizes}
    work = plan_work(config, options, datasets)
    printer = Printer(options, console)
    printer.on_plan(work)
    reusable = work.reusable(options)  # which a run copies first
    printer.on_reuse(config.extends, len(reusable))
    trials = {
        key: trial for key, trial in work.to_run(options).items() if key not in reusable
    }
    printer.on_trials(work, trials)
    n_workers = options.jobs
    if options.timing:
        n_workers = 1  # times are compared, so trials run alone
    elif cluster is not None:
        n_workers = cluster.n_workers
    seconds = show_outlook(work.plan, work.store, trials.values(), n_workers, console)
    results = Results(
        config.name,
        folder,
        trials=len(work.keys),
        trained=len(trials),
        stand_ins=[data.name for data in work.plan.datasets.values() if data.stand_in],
        absent=[*work.plan.absent],
    )
    return summary_of(results, config, options) | {"expected_seconds": seconds}


def summary_of(
    results: Results, config: Experiment | Study, options: Options
) -> dict[str, Any]:
    """Return a run as --json prints it."""
    summary: dict[str, Any] = {
        "experiment": results.name,
        "folder": str(results.folder),
        "trials": results.trials,
        "cached": results.trials - results.trained,
        "stand_ins": results.stand_ins,
        "absent": results.absent,
        "not_ok": results.not_ok,
    }
    if isinstance(config, Study):
        summary["illustration"] = config.kind
    if options.shard is not None and results.rows is None:
        summary["shard"] = str(options.shard)
    if results.rows is not None:
        summary["values"] = final_means(results.rows)
    return summary

"""``precbench run``."""

import itertools
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from precbench.cli import completion
from precbench.cli.options import JSON, MIRROR, Configs, refuse_unknown, takes
from precbench.cli.screen import Screen, progress, screen
from precbench.core import processes
from precbench.core.errors import InputError
from precbench.core.text import count, one_line
from precbench.experiment import Experiment, Study, Trial, load_config
from precbench.experiment.sections import MOST_SPLITS
from precbench.experiment.shard import Shard
from precbench.results.records import RETRIED
from precbench.results.store import Store

if TYPE_CHECKING:
    from precbench.data import Dataset
    from precbench.experiment.plan import Plan
    from precbench.report.folder import Report
    from precbench.runner.cluster import Cluster

_CHANGED_CODE = "changed-code"
_RERUN = {  # the statuses that each word of --rerun stands for
    **{name: (name,) for name in (*RETRIED, "diverged", "skipped")},
    "failed": RETRIED,
    _CHANGED_CODE: (_CHANGED_CODE,),
}
# Options under these titles of the help
_choice_option = partial(typer.Option, rich_help_panel="What to run")
_workers_option = partial(typer.Option, rich_help_panel="How to run")
_files_option = partial(typer.Option, rich_help_panel="Data and results")
_screen_option = partial(typer.Option, rich_help_panel="What to show")


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """Which trials of a config run, and how; None means all."""

    solvers: Annotated[
        list[str] | None,
        _choice_option(
            "--solver",
            help="Label of a solver to run, or a pattern such as sgd-*; repeatable [default: all].",
            autocompletion=completion.solvers,
        ),
    ] = None
    skip: Annotated[
        list[str] | None,
        _choice_option(
            help="Label of a solver to leave out, or a pattern such as sgd-*; repeatable.",
            autocompletion=completion.solvers,
        ),
    ] = None
    datasets: Annotated[
        list[str] | None,
        _choice_option(
            "--dataset",
            help="Name of a data set to use, or a pattern such as a*; repeatable [default: all].",
            autocompletion=completion.datasets,
        ),
    ] = None
    splits: Annotated[
        str | None,
        _choice_option(
            "--splits",
            "--seeds",
            help="Numbers of the splits to run, for example 0,2 or 0-4 [default: all].",
        ),
    ] = None
    shard: Annotated[
        str | None,
        _choice_option(
            metavar="I/N",
            help="Run part I of N equal parts, in OUT/shards/I-of-N; precbench merge joins them.",
        ),
    ] = None
    smoke: Annotated[
        bool, _choice_option("--smoke", help="Try the config out at smoke size, in seconds.")
    ] = False
    rerun: Annotated[
        list[str] | None,
        _choice_option(
            metavar="STATUS",
            help="Run again only the trials with this status: timeout, crashed, interrupted, "
            "failed (these three and errors), diverged or skipped; changed-code means trials "
            "that other source code trained; repeatable.",
        ),
    ] = None
    force: Annotated[bool, _choice_option("--force", help="Run finished trials again.")] = False
    jobs: Annotated[
        int, _workers_option("--jobs", "-j", min=1, help="Number of trials to run at a time.")
    ] = 1
    cluster: Annotated[
        str | None,
        _workers_option(
            help="Run the trials on a Dask cluster: address or file of its scheduler, or local:N."
        ),
    ] = None
    cluster_wait: Annotated[
        float,
        _workers_option(
            min=0, help="Seconds to wait for the scheduler and the workers of --cluster."
        ),
    ] = 30.0
    timing: Annotated[
        bool,
        _workers_option(
            "--timing",
            help="To compare times, run one trial at a time; repeat trials that ran in parallel.",
        ),
    ] = False
    dry_run: Annotated[
        bool,
        _workers_option(
            "--dry-run",
            help="Run nothing: list what would run, for how long, and the data to fetch.",
        ),
    ] = False
    out: Annotated[Path, _files_option(help="Folder for the results.")] = Path("results")
    mirror: Annotated[str | None, _files_option(help=MIRROR)] = None
    no_stand_in: Annotated[
        bool,
        _files_option(
            "--no-stand-in",
            help="Fail if data are missing; never leave data out, nor use synthetic data instead.",
        ),
    ] = False
    no_plots: Annotated[bool, _files_option("--no-plots", help="Draw no figures.")] = False
    quiet: Annotated[
        bool, _screen_option("--quiet", "-q", help="Print only trials that are not ok.")
    ] = False
    verbose: Annotated[
        bool, _screen_option("--verbose", "-v", help="Print a line for each trial.")
    ] = False
    as_json: Annotated[bool, _screen_option("--json", help=JSON)] = False

    @property
    def is_quiet(self) -> bool:
        return self.as_json or self.quiet

    @property
    def chosen_shard(self) -> Shard | None:
        return None if self.shard is None else Shard.parse(self.shard)

    @property
    def rerun_statuses(self) -> frozenset[str]:  # that the words of --rerun stand for
        return frozenset(status for word in self.rerun or () for status in _RERUN[word])

    def folder(self, name: str) -> Path:
        """Return the folder of the results of a config; a shard has a folder of its own."""
        shard = self.chosen_shard
        out = self.out if shard is None else shard.folder(self.out)
        return out / (f"{name}-smoke" if self.smoke else name)

    def __post_init__(self) -> None:
        if self.rerun and self.force:
            raise InputError("give either --rerun or --force, which exclude each other")
        for word in self.rerun or ():
            refuse_unknown("status", word, _RERUN)


def _connect(options: RunOptions) -> "AbstractContextManager[Cluster | None]":  # None: run here
    if options.cluster is None:
        return nullcontext()
    from precbench.runner.cluster import connect

    return connect(options.cluster, options.cluster_wait)


def has_failed(summary: dict[str, Any]) -> bool:
    """Return whether a trial of a run has failed; a skipped trial counts as not failed."""
    return bool(summary["not_ok"].keys() - {"skipped"})


def prepared(
    config: Experiment | Study,
    options: RunOptions,
    name: str = "",
    datasets: "Mapping[str, Dataset] | None" = None,
) -> Callable[..., dict[str, Any]]:
    """Check the options against a config; return a function that runs it.

    The function takes a cluster to run on, if there is one, and returns a summary of the run.
    `name` is the name of the config, "" without a file; `datasets` are loaded already.
    """
    if isinstance(config, Experiment):
        selected = config.select(*_chosen(config, options), split_numbers(options.splits))
        return partial(_run, config, selected, options, name, datasets=datasets)
    # --rerun changed-code is allowed, without effect: every run computes a study.
    statuses = options.rerun_statuses - {_CHANGED_CODE}
    selections = (options.solvers, options.datasets, options.skip, statuses, options.shard)
    if any(selections) or options.splits is not None:
        raise InputError(
            f"{config.name} is a study; leave out --solver, --skip, --dataset, --splits, --rerun "
            "and --shard, which select trials of an experiment"
        )
    return partial(_run_study, config, options)


def _chosen(
    config: Experiment, options: RunOptions
) -> tuple[Sequence[str] | None, Sequence[str] | None]:
    """Return the solvers and the data sets that the options select; None means all."""
    labels, names = list(config.solvers), [entry.name for entry in config.datasets]
    solvers = options.solvers and _matching(options.solvers, labels)  # None: --solver is not given
    if skipped := _matching(options.skip or (), labels):
        config.select(solvers=skipped)  # raises if a label is unknown
        solvers = [label for label in solvers or labels if label not in skipped]
        if not solvers:
            raise InputError(f"{config.name}: --skip leaves no solver to run; skip fewer")
    return solvers, options.datasets and _matching(options.datasets, names)


def _matching(patterns: Sequence[str], known: Sequence[str]) -> list[str]:
    # Return the known names that match any pattern, such as sgd-*. A pattern without a match is
    # returned itself, so that `Experiment.select` refuses it.
    names: list[str] = []
    for pattern in patterns:
        matches = [name for name in known if fnmatchcase(name, pattern)]
        # A label that holds *, ? or [ itself stands for itself.
        names += [pattern] if pattern in known or not matches else matches
    return list(dict.fromkeys(names))


def _run(
    experiment: Experiment,
    part: Experiment,
    options: RunOptions,
    name: str,
    cluster: "Cluster | None" = None,
    datasets: "Mapping[str, Dataset] | None" = None,
) -> dict[str, Any]:
    """Run `part` of an experiment, or with --dry-run show what would run; return a summary."""
    from precbench.cli.outlook import show_fetching, show_outlook, to_fetch
    from precbench.experiment.plan import make_plan

    console = screen(quiet=options.is_quiet)
    store = Store(options.folder(experiment.name))
    part = part.smoke_size() if options.smoke else part
    if options.dry_run and datasets is None and (sizes := to_fetch(part)):  # downloads nothing
        n_trials = show_fetching(part, sizes, console)
        return _summary(experiment, store, n_trials, n_trials) | {"to_fetch": sizes}
    plan = make_plan(
        experiment,
        only=[entry.name for entry in part.datasets],
        mirror=options.mirror,
        stand_ins=not options.no_stand_in,
        smoke=options.smoke,
        datasets=datasets,
    )
    keys = plan.keys_of(part)  # of the trials asked for, done or not
    _announce(plan, console)
    if (shard := options.chosen_shard) is not None:
        n_all = len(keys)
        keys = shard.keys(plan, keys, by_split=options.timing)  # whole splits, to compare times
        console.print(f"shard {shard}: {len(keys):,} of {n_all:,} trials")
    if options.dry_run:
        trials = _select_trials(plan, store, keys, options, console)
        n_workers = options.jobs if cluster is None else cluster.n_workers
        n_workers = 1 if options.timing else n_workers  # to compare times: one at a time
        seconds = show_outlook(plan, store, trials.values(), n_workers, console)
        summary = _summary(experiment, store, len(keys), len(trials), plan)
        return summary | {"expected_seconds": seconds}
    with store.lock():
        trials = _select_trials(plan, store, keys, options, console)
        summary = _summary(experiment, store, len(keys), len(trials), plan)
        store.write_request(keys, [] if shard is None else [str(shard)])
        _train(plan, store, trials, options, cluster)
        if shard is not None:  # the tables are made once, of all shards together
            return summary | _finish_shard(store, keys, shard, console)
        report, outcomes = _measure(plan, store, part, options, console, name)
    _present(store, console, report)
    return summary | outcomes


def _measure(
    plan: "Plan", store: Store, part: Experiment, options: RunOptions, console: Screen, name: str
) -> tuple["Report", dict[str, Any]]:
    # Write results and report of the stored trials; return the report, and entries of the summary.
    from precbench.results.measure import final_means, not_ok, write_results

    store.require_lock()
    with console.status("measuring the stored results"):
        results = write_results(plan, store, config=name)
    from precbench.advice.advised_report import write_report
    from precbench.report.folder import Report

    figures: Literal["none", "changed"] = "none" if options.no_plots else "changed"
    report = Report(tables=[], files=[]) if results.empty else write_report(store.folder, figures)
    return report, {"not_ok": not_ok(results, part), "values": final_means(results)}


def _finish_shard(store: Store, keys: set[str], shard: Shard, console: Screen) -> dict[str, Any]:
    # Print where the records of a shard are, and how to go on; return its part of the summary.
    statuses = (record.status for record in store.records() if record.key in keys)
    console.print(f"records: {store.folder}; precbench merge makes the tables of all shards")
    not_ok = dict(Counter(status for status in statuses if status != "ok"))
    return {"not_ok": not_ok, "shard": str(shard)}


def _run_study(study: Study, options: RunOptions, _: "Cluster | None" = None) -> dict[str, Any]:
    """Compute a study (never on a cluster), or with --dry-run show the name; return a summary."""
    from precbench.advice.advised_report import write_report
    from precbench.runner.study import run_study

    console = screen(quiet=options.is_quiet)
    store = Store(options.folder(study.name))
    console.print(f"{study.title} (a study)")
    summary = _summary(study, store) | {"illustration": study.kind}
    if options.dry_run:
        console.print(f"  {study.kind}: computed in one piece")
        return summary
    with store.lock():
        run_study(study, store, smoke=options.smoke, mirror=options.mirror)
        report = write_report(store.folder, "none" if options.no_plots else "changed")
    _present(store, console, report)
    return summary


def _select_trials(
    plan: "Plan", store: Store, keys: set[str], options: RunOptions, console: Screen
) -> dict[str, Trial]:
    """Return the trials to run, by key, and print how many are done already."""
    from precbench.runner import keys_of_other_code, to_do

    list(store.records())  # raises before anything runs if a record is damaged
    trials = to_do(
        plan,
        store,
        wanted=keys,
        timing=options.timing,
        force=options.force,
        rerun=options.rerun_statuses - {_CHANGED_CODE},
        changed_code=_CHANGED_CODE in options.rerun_statuses,
    )
    done = keys - trials.keys()  # records that are kept
    if options.rerun:
        console.print(f"{len(keys)} trials, {len(trials)} of them to run again")
    else:
        console.print(f"{len(keys)} trials, {len(done)} of them done already")
    if n_other := len(keys_of_other_code(plan, store, done)):
        console.print(
            f"{count(n_other, 'finished trial')} kept, although other code of the same versions "
            f"trained them; --rerun {_CHANGED_CODE} trains them again"
        )
    return trials


def _summary(
    config: Experiment | Study,
    store: Store,
    n_trials: int = 0,
    n_to_run: int = 0,
    plan: "Plan | None" = None,  # None: no data are read
) -> dict[str, Any]:
    """Return what the summaries of all runs have in common."""
    return {
        "experiment": config.name,
        "folder": str(store.folder),
        "trials": n_trials,
        "cached": n_trials - n_to_run,
        "stand_ins": [d.name for d in plan.datasets.values() if d.stand_in] if plan else [],
        "absent": list(plan.absent) if plan else [],
        "not_ok": {},
    }


def _train(
    plan: "Plan",
    store: Store,
    trials: dict[str, Trial],
    options: RunOptions,
    cluster: "Cluster | None",
) -> None:
    """Train trials here or on a cluster, with a line or a bar that shows how many are done."""
    from precbench.runner import run_plan

    # On a cluster at least 2, so that records say "parallel", and no times are compared.
    n_workers = options.jobs if cluster is None else max(2, cluster.n_workers)
    n_workers = 1 if options.timing else n_workers  # one trial at a time
    outcomes = run_plan(
        plan, store, trials, n_workers=n_workers, elsewhere=None if cluster is None else cluster.run
    )
    n_done, bar = 0, progress(len(trials), quiet=options.quiet, verbose=options.verbose)
    with bar as show, closing(outcomes) as finished:
        try:
            for job, _ in finished:  # as trials end; _: the status, which is also in the record
                store.require_lock()
                record = store.read(job.key)
                assert record is not None
                show(job.trial.title, record)
                n_done += 1
        except KeyboardInterrupt:
            finished.close()  # marks the running trials as interrupted
            print(
                f"stopped: {n_done} of {len(trials)} trials are finished and kept in "
                f"{store.folder}; the same command resumes from there",
                file=sys.stderr,
            )
            raise


def split_numbers(text: str | None) -> list[int] | None:
    """Return the numbers in a text such as ``0,2,5-8``; None means all splits."""
    if text is None:
        return None
    ranges: list[range] = []
    try:
        for part in text.split(","):
            first, _, final = part.partition("-")  # final is "" where a number stands alone
            ranges.append(range(int(first), int(final or first) + 1))
        if not all(ranges):  # 4-2 makes an empty range
            raise ValueError
    except ValueError:
        raise InputError(f"--splits {text!r}: expected numbers such as 0,2 or 0-4") from None
    if max(splits[-1] for splits in ranges) >= MOST_SPLITS:
        raise InputError(f"--splits {text!r}: expected split numbers below {MOST_SPLITS:,}")
    return sorted({*itertools.chain(*ranges)})


def _announce(plan: "Plan", console: Screen) -> None:
    """Print the title of a run, its data sets, and which data are synthetic or left out."""
    from precbench.data import find_card

    console.print(f"{plan.experiment.title} ({plan.protocol}; {plan.scaling})")
    entries = {entry.name: entry for entry in plan.experiment.datasets}
    for dataset in plan.datasets.values():
        n, d = dataset.X.shape
        share = dataset.n_pos / n
        text = f"{one_line(dataset.title)}: {n:,} x {d}, {dataset.n_pos:,} positive ({share:.2%})"
        console.print(text, style="bold" if dataset.stand_in else None)
        if dataset.stand_in:
            card = find_card(getattr(entries[dataset.name], "card", dataset.name))
            console.print(
                f"{dataset.name} is not available: SYNTHETIC data stand in for it, and the results "
                f"below say nothing about the real data, which {card.fetch_command} gets",
                style="bold red",
            )
    for name, why in plan.absent.items():
        console.print(f"left out: {name}. {one_line(why)}", style="bold")


def _present(store: Store, console: Screen, report: "Report") -> None:
    """Print the tables of a report, and where its files are."""
    from precbench.cli.screen_tables import print_table
    from precbench.report.folder import PAGE

    for table in report.tables:
        print_table(table, console)
    console.print(f"tables and records: {store.folder}")
    for path in report.files:
        if path.suffix == ".png":
            console.print(f"figure: {path}")
    if report.page:
        console.print(f"report: {store.folder / PAGE}")


def run_all(configs: Iterable[str], options: RunOptions) -> list[dict[str, Any]]:
    """Run configs and return their summaries; mistakes in any config are reported before a run."""
    loaded = [(load_config(name), name) for name in configs]
    if options.cluster is None and not options.dry_run:
        first_config, _ = loaded[0]
        _start_workers(first_config, options)  # processes, which start while data are read
    runs = [prepared(config, options, name) for config, name in loaded]  # functions to call
    with _connect(options) as cluster:
        if cluster is not None:
            screen(quiet=options.is_quiet).print(
                f"a cluster of {count(cluster.n_workers, 'worker')}; "
                f"dashboard: {cluster.client.dashboard_link}"
            )
        return [run(cluster) for run in runs]


def _start_workers(config: Experiment | Study, options: RunOptions) -> None:
    # Start the worker processes early, while data are read, if trials are likely to run: processes
    # warm up (imports, a first small fit of perceptron-avg), which takes more than a second.
    has_results = (options.folder(config.name) / "results.csv").exists()
    if isinstance(config, Experiment) and (options.force or options.rerun or not has_results):
        n_workers = 1 if options.timing else options.jobs
        processes.begin(n_workers, "precbench.runner.worker:warm_up", "perceptron-avg")


@takes(RunOptions)
def run(configs: Configs, options: RunOptions) -> int:
    """Run experiments: train the missing trials, then write tables and figures.

    A run that was stopped resumes; after a change to a config only the affected trials run again.
    Figures are drawn again only if the results have changed; plot draws them in any case.

    With --json the final values are printed, means over the splits.

    \b
    Examples:
      precbench run configs/letter.yaml --jobs 2
      precbench run letter --solver 'sgd-*' --splits 0-1
      precbench run kdd08 --timing --mirror ~/mirror
      precbench run letter --rerun timeout --rerun crashed
    """
    summaries = run_all(configs, options)
    if options.as_json:
        print(json.dumps(summaries, indent=1))
    return int(any(map(has_failed, summaries)))

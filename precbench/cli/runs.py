"""Options of the commands that run configs, and what these commands do and print."""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from precbench.cli import completion
from precbench.cli.options import JSON, MIRROR, refuse_unknown
from precbench.cli.screen import screen
from precbench.core import processes
from precbench.core.errors import InputError
from precbench.core.text import count
from precbench.experiment import Experiment, Study, load_config
from precbench.experiment.sections import MOST_SPLITS
from precbench.experiment.shard import Shard
from precbench.results.records import RETRIED

if TYPE_CHECKING:
    from precbench.data import Dataset
    from precbench.runner.cluster import Cluster
    from precbench.runner.options import Options

_CHANGED_CODE = "changed-code"
# The statuses that each word of --rerun stands for; the last word, which is no status,
# stands for itself
_RERUN = {
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
            help=(
                "Label of a solver to run, or a pattern such as sgd-*; repeatable"
                " [default: all]."
            ),
            autocompletion=completion.solvers,
        ),
    ] = None
    skip: Annotated[
        list[str] | None,
        _choice_option(
            help=(
                "Label of a solver to leave out, or a pattern such as sgd-*;"
                " repeatable."
            ),
            autocompletion=completion.solvers,
        ),
    ] = None
    datasets: Annotated[
        list[str] | None,
        _choice_option(
            "--dataset",
            help=(
                "Name of a data set to use, or a pattern such as a*; repeatable"
                " [default: all]."
            ),
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
            help=(
                "Run part I of N equal parts, in OUT/shards/I-of-N; precbench merge"
                " joins them."
            ),
        ),
    ] = None
    smoke: Annotated[
        bool,
        _choice_option("--smoke", help="Try the config out at smoke size, in seconds."),
    ] = False
    rerun: Annotated[
        list[str] | None,
        _choice_option(
            metavar="STATUS",
            help=(
                "Run again only the trials with this status: timeout, crashed,"
                " interrupted, failed (these three and errors), diverged or skipped;"
                " changed-code means trials that other source code trained; repeatable."
            ),
        ),
    ] = None
    force: Annotated[
        bool, _choice_option("--force", help="Run finished trials again.")
    ] = False
    jobs: Annotated[
        int,
        _workers_option(
            "--jobs", "-j", min=1, help="Number of trials to run at a time."
        ),
    ] = 1
    cluster: Annotated[
        str | None,
        _workers_option(
            help=(
                "Run the trials on a Dask cluster: address or file of its scheduler, or"
                " local:N."
            )
        ),
    ] = None
    cluster_wait: Annotated[
        float,
        _workers_option(
            min=0,
            help="Seconds to wait for the scheduler and the workers of --cluster.",
        ),
    ] = 30.0
    timing: Annotated[
        bool,
        _workers_option(
            "--timing",
            help=(
                "To compare times, run one trial at a time; repeat trials that ran in"
                " parallel."
            ),
        ),
    ] = False
    dry_run: Annotated[
        bool,
        _workers_option(
            "--dry-run",
            help=(
                "Run nothing: list what would run, for how long, and the data to fetch."
            ),
        ),
    ] = False
    out: Annotated[Path, _files_option(help="Folder for the results.")] = Path(
        "results"
    )
    mirror: Annotated[str | None, _files_option(help=MIRROR)] = None
    no_stand_in: Annotated[
        bool,
        _files_option(
            "--no-stand-in",
            help=(
                "Fail if data are missing; never leave data out, nor use synthetic data"
                " instead."
            ),
        ),
    ] = False
    no_plots: Annotated[bool, _files_option("--no-plots", help="Draw no figures.")] = (
        False
    )
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
    def rerun_statuses(self) -> frozenset[str]:
        """The statuses that the words of --rerun stand for, and "changed-code"."""
        return frozenset(status for word in self.rerun or () for status in _RERUN[word])

    def of_session(self, config: "Experiment | Study") -> "Options":
        """Return the options of a session for the config, patterns resolved."""
        from precbench.runner.options import Options

        chosen = _Chosen()
        if isinstance(config, Experiment):
            chosen = _chosen(config, self)
        else:
            _refuse_selection(config, self)
        return Options(
            solvers=chosen.solvers,
            datasets=chosen.datasets,
            splits=split_numbers(self.splits),
            shard=self.chosen_shard,
            smoke=self.smoke,
            rerun=self.rerun_statuses - {_CHANGED_CODE},
            changed_code=_CHANGED_CODE in self.rerun_statuses,
            force=self.force,
            jobs=self.jobs,
            timing=self.timing,
            out=self.out,
            mirror=self.mirror,
            stand_ins=not self.no_stand_in,
            figures=not self.no_plots,
        )

    def __post_init__(self) -> None:
        if self.rerun and self.force:
            raise InputError("give either --rerun or --force, which exclude each other")
        for word in self.rerun or ():
            refuse_unknown("status", word, _RERUN)


def _refuse_selection(study: Study, options: RunOptions) -> None:
    """Refuse options that select trials, of which a study has none."""
    # --rerun changed-code is allowed, without effect: every run computes a study.
    statuses = options.rerun_statuses - {_CHANGED_CODE}
    if (
        options.solvers
        or options.skip
        or options.datasets
        or options.splits is not None
        or options.shard
        or statuses
    ):
        raise InputError(
            f"{study.name} is a study; leave out --solver, --skip, --dataset, --splits,"
            " --rerun and --shard, which select trials of an experiment"
        )


class _Chosen(NamedTuple):
    """Labels of solvers and names of data sets that a run uses; None means all."""

    solvers: Sequence[str] | None = None
    datasets: Sequence[str] | None = None


def _chosen(config: Experiment, options: RunOptions) -> _Chosen:
    """Return the solvers and the data sets that the options select."""
    labels = list(config.solvers)
    solvers = None
    if options.solvers:
        solvers = _matching(options.solvers, labels)
    skipped = _matching(options.skip or (), labels)
    if skipped:
        config.select(solvers=skipped)  # raises if a label is unknown
        solvers = [label for label in solvers or labels if label not in skipped]
        if not solvers:
            raise InputError(
                f"{config.name}: --skip leaves no solver to run; skip fewer"
            )
    datasets = None
    if options.datasets:
        names = [entry.name for entry in config.datasets]
        datasets = _matching(options.datasets, names)
    return _Chosen(solvers, datasets)


def _matching(patterns: Sequence[str], known: Sequence[str]) -> list[str]:
    """Return the known names that match any pattern, such as sgd-*.

    A pattern without a match is returned itself, so that `Experiment.select` refuses
    it.
    """
    names: list[str] = []
    for pattern in patterns:
        matches = [name for name in known if fnmatchcase(name, pattern)]
        if pattern in known or not matches:
            # A label that holds *, ? or [ stands for itself alone.
            matches = [pattern]
        names += matches
    return list(dict.fromkeys(names))


def split_numbers(text: str | None) -> list[int] | None:
    """Return the numbers in a text such as ``0,2,5-8``; None means all splits."""
    if text is None:
        return None
    try:
        ranges = [_range(part) for part in text.split(",")]
    except ValueError:
        raise InputError(
            f"--splits {text!r}: expected numbers such as 0,2 or 0-4"
        ) from None
    # Before the numbers are listed, of which there may be very many.
    if max(numbers[-1] for numbers in ranges) >= MOST_SPLITS:
        raise InputError(
            f"--splits {text!r}: expected split numbers below {MOST_SPLITS:,}"
        )
    return sorted({*itertools.chain(*ranges)})


def _range(text: str) -> range:
    """Return the numbers of ``4`` or ``5-8``; raise `ValueError` if there are none."""
    first, dash, last = text.partition("-")
    if not dash:  # a number that stands alone
        last = first
    numbers = range(int(first), int(last) + 1)
    if not numbers:  # as in 4-2
        raise ValueError
    return numbers


Summary = dict[str, Any]  # of a run, as --json prints it


def has_failed(summary: Summary) -> bool:
    """Return whether a trial of a run has failed; a skipped trial has not."""
    return bool(summary["not_ok"].keys() - {"skipped"})


def run_all(configs: Iterable[str], options: RunOptions) -> list[Summary]:
    """Run configs, once all are checked for mistakes; return their summaries."""
    names = list(configs)
    loaded = [load_config(name, runs_own_classes=True) for name in names]
    if options.cluster is None and not options.dry_run:
        _start_workers(loaded[0], options)  # the first config is the first to run
    from precbench.runner.session import connected, selected

    for config in loaded:
        of_session = options.of_session(config)
        if isinstance(config, Experiment):
            selected(config, of_session)  # for its errors
    with connected(options.cluster, options.cluster_wait) as cluster:
        if cluster is not None:
            screen(quiet=options.is_quiet).print(
                f"a cluster of {count(cluster.n_workers, 'worker')}; "
                f"dashboard: {cluster.client.dashboard_link}"
            )
        return [
            run_one(config, options, name, cluster=cluster)
            for config, name in zip(loaded, names, strict=True)
        ]


def run_one(
    config: Experiment | Study,
    options: RunOptions,
    name: str,
    *,
    datasets: "Mapping[str, Dataset] | None" = None,
    cluster: "Cluster | None" = None,
) -> Summary:
    """Run a config, or with --dry-run show what would run; return a summary."""
    from precbench.cli.watching import Printer, show_study, show_work, summary_of
    from precbench.runner.session import run_config

    console = screen(quiet=options.is_quiet)
    of_session = options.of_session(config)
    if isinstance(config, Study):
        show_study(config, console, in_one_piece=options.dry_run)
    if options.dry_run:
        return show_work(
            config, of_session, console, datasets=datasets, cluster=cluster
        )
    printer = Printer(of_session, console, quiet=options.quiet, verbose=options.verbose)
    results = run_config(
        config,
        of_session,
        name=name,
        datasets=datasets,
        cluster=cluster,
        observer=printer,
    )
    printer.show_results(results)
    return summary_of(results, config, of_session)


def _start_workers(config: Experiment | Study, options: RunOptions) -> None:
    """Start the worker processes early, while data are read, if trials are to run.

    A process warms up (imports, a first small fit of perceptron-avg) for more than a
    second. Trials are likely to run if the config has no results yet.
    """
    if isinstance(config, Study):
        return
    folder = options.of_session(config).folder(config.name)
    has_results = (folder / "results.csv").exists()
    if options.force or options.rerun or not has_results:
        n_workers = 1 if options.timing else options.jobs
        processes.begin(n_workers, "precbench.runner.worker:warm_up", "perceptron-avg")

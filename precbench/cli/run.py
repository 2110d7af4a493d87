"""``precbench run``."""

import itertools
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from pydantic import TypeAdapter
from rich.console import Console

from precbench import workers
from precbench.cli import completion
from precbench.cli.options import JSON, MIRROR, takes
from precbench.cli.screen import Progress, Screen, expected_seconds, measuring, screen
from precbench.data.cards.load import data_hash
from precbench.errors import InputError, PrecbenchError, did_you_mean
from precbench.experiment import Experiment, Study, Trial, load_config
from precbench.experiment.config import read_config
from precbench.experiment.sections import MOST_SPLITS, NamedData, StreamedCard, place_of
from precbench.files import writing
from precbench.locations import shipped
from precbench.sources import digest, plugged_in, state
from precbench.store import RETRIED, Store, package_versions
from precbench.strict_json import Fields, checked, load
from precbench.text import count, one_line
from precbench.yaml.document import extended

if TYPE_CHECKING:
    from precbench.experiment.plan import Plan
    from precbench.experiment.shard import Shard
    from precbench.report.folder import Figures, Report
    from precbench.runner.cluster import Cluster

_CHANGED_CODE = "changed-code"
_RERUN = {
    **{name: (name,) for name in (*RETRIED, "diverged", "skipped")},
    "failed": RETRIED,
    _CHANGED_CODE: (_CHANGED_CODE,),
}
_SHOWN = "shown.json"
_ELSEWHERE = ("trials", "running", ".lock", "asked.json", _SHOWN)
_ONCE = ("force", "rerun", "timing", "dry_run", "shard")
_NO_MATTER = ("jobs", "cluster", "cluster_wait", "out", "as_json", "quiet", "verbose", "events")
_CODE = (Path(__file__).parents[1], *map(shipped, ("configs", "datasets", "results/reference")))
_TOLD = ("key", "dataset", "label", "split", "status", "reason", "seconds", "tuning_seconds")


_CHOICE, _WORKERS = "What to run", "How to run"
_FILES, _SCREEN = "Data and results", "What to show"


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """What runs of a config, and how; None means all."""

    solvers: Annotated[
        list[str] | None,
        typer.Option(
            "--solver",
            help="Run only the solvers with this label, or a pattern such as sgd-*; repeatable.",
            autocompletion=completion.labels,
            rich_help_panel=_CHOICE,
        ),
    ] = None
    skip: Annotated[
        list[str] | None,
        typer.Option(
            help="Leave these solvers out, likewise; repeatable.",
            autocompletion=completion.labels,
            rich_help_panel=_CHOICE,
        ),
    ] = None
    datasets: Annotated[
        list[str] | None,
        typer.Option(
            "--dataset",
            help="Run only these data sets, likewise; repeatable.",
            autocompletion=completion.datasets,
            rich_help_panel=_CHOICE,
        ),
    ] = None
    splits: Annotated[
        str | None,
        typer.Option(
            "--splits",
            "--seeds",
            help="Run only these splits, for example 0,2 or 0-4.",
            rich_help_panel=_CHOICE,
        ),
    ] = None
    shard: Annotated[
        str | None,
        typer.Option(
            metavar="I/N",
            help="Run the I-th of N even shards, in OUT/shards/I-of-N; merge combines them.",
            rich_help_panel=_CHOICE,
        ),
    ] = None
    smoke: Annotated[
        bool,
        typer.Option(
            "--smoke", help="Run at the smoke size of the config.", rich_help_panel=_CHOICE
        ),
    ] = False
    rerun: Annotated[
        list[str] | None,
        typer.Option(
            metavar="STATUS",
            help="Run again only the trials with this status: timeout, crashed, interrupted, "
            "failed (which includes these three), diverged or skipped; with "
            "changed-code also what other code of the same versions has trained; repeatable.",
            rich_help_panel=_CHOICE,
        ),
    ] = None
    force: Annotated[
        bool, typer.Option("--force", help="Repeat finished trials.", rich_help_panel=_CHOICE)
    ] = False
    jobs: Annotated[
        int,
        typer.Option(
            "--jobs", "-j", help="Number of trials to run at a time.", rich_help_panel=_WORKERS
        ),
    ] = 1
    cluster: Annotated[
        str | None,
        typer.Option(
            help="Run the trials on a Dask cluster: address or file of its scheduler, or local:N.",
            rich_help_panel=_WORKERS,
        ),
    ] = None
    cluster_wait: Annotated[
        float,
        typer.Option(
            min=0,
            help="Seconds to wait for the scheduler and for workers.",
            rich_help_panel=_WORKERS,
        ),
    ] = 30.0
    timing: Annotated[
        bool,
        typer.Option(
            "--timing",
            help="Run one trial at a time; repeat trials that ran in parallel, or on another "
            "machine than others of their split.",
            rich_help_panel=_WORKERS,
        ),
    ] = False
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="List what would run, how long, and what data to fetch.",
            rich_help_panel=_WORKERS,
        ),
    ] = False
    out: Annotated[Path, typer.Option(help="Folder for the results.", rich_help_panel=_FILES)] = (
        Path("results")
    )
    mirror: Annotated[str | None, typer.Option(help=MIRROR, rich_help_panel=_FILES)] = None
    no_stand_in: Annotated[
        bool,
        typer.Option(
            "--no-stand-in",
            help="Fail if data are missing; never leave them out or use synthetic data instead.",
            rich_help_panel=_FILES,
        ),
    ] = False
    no_plots: Annotated[
        bool, typer.Option("--no-plots", help="Draw no figures.", rich_help_panel=_FILES)
    ] = False
    quiet: Annotated[
        bool,
        typer.Option(
            "--quiet",
            "-q",
            help="Print trials that are not ok, and nothing else.",
            rich_help_panel=_SCREEN,
        ),
    ] = False
    verbose: Annotated[
        bool,
        typer.Option(
            "--verbose", "-v", help="Print a line for each trial.", rich_help_panel=_SCREEN
        ),
    ] = False
    events: Annotated[
        Path | None,
        typer.Option(
            help="File to which a line of JSON is added at each step of the run.",
            rich_help_panel=_SCREEN,
        ),
    ] = None
    as_json: Annotated[bool, typer.Option("--json", help=JSON, rich_help_panel=_SCREEN)] = False

    @property
    def figures(self) -> "Figures":
        """Which figures to draw."""
        return "none" if self.no_plots else "changed"

    @property
    def stand_ins(self) -> bool:
        """Whether synthetic data may stand in for those that are not available."""
        return not self.no_stand_in

    @property
    def split_indices(self) -> list[int] | None:
        """Which splits to run."""
        return split_numbers(self.splits)

    @property
    def chosen_shard(self) -> "Shard | None":
        """Which shard to run."""
        if self.shard is None:
            return None
        from precbench.experiment.shard import Shard

        return Shard.parse(self.shard)

    @property
    def ended_so(self) -> frozenset[str]:
        """The statuses of finished trials that are to run again."""
        return frozenset(status for word in self.rerun or () for status in _RERUN[word])

    def folder(self, name: str) -> Path:
        """Return the folder of the results of a config, for a shard one of its own."""
        shard = self.chosen_shard
        out = self.out if shard is None else shard.folder(self.out)
        return out / (f"{name}-smoke" if self.smoke else name)

    def __post_init__(self) -> None:
        if self.jobs < 1:
            raise InputError(f"--jobs is {self.jobs}: at least one trial must run at a time")
        if self.rerun and self.force:
            raise InputError("--rerun runs some of the trials again, --force all: give one of them")
        for word in self.rerun or ():
            if word not in _RERUN:
                raise InputError(
                    f"unknown status {word!r}{did_you_mean(word, _RERUN)}; "
                    f"choose from {', '.join(_RERUN)}"
                )


@contextmanager
def _cluster(options: RunOptions) -> "Iterator[Cluster | None]":
    """Join the cluster, if trials are to run on one."""
    if options.cluster is None:
        yield None
        return
    from precbench.runner.cluster import Cluster

    with Cluster(options.cluster, options.cluster_wait) as cluster:
        quiet = options.as_json or options.quiet
        workers = count(cluster.n_workers, "worker")
        screen(quiet=quiet).print(f"a cluster of {workers}; dashboard: {cluster.dashboard}")
        yield cluster


def has_failed(summary: dict[str, Any]) -> bool:
    """Return whether some trial of a run has failed; what is skipped has a reason."""
    return bool(summary["not_ok"].keys() - {"skipped"})


class _Shown(Fields):
    """What a run has shown; of its data sets the cards, and whether a stand-in will do."""

    digest: str
    cards: dict[str, bool]
    content: dict[str, Any]


@dataclass(frozen=True)
class Kept:
    """What a run has shown, beside one digest of that and of all that it has read and left.

    A run that would find the same shows it again without scikit-learn, pandas and matplotlib.
    Files count by name, size and times, as for make.
    """

    store: Store
    options: RunOptions
    has_trials: bool
    begun: str
    """A digest of what the run reads as it begins, data and records apart."""

    @classmethod
    def find(cls, config: str, options: RunOptions) -> "Kept | None":
        """Return where a run of a config keeps what it shows, None if it keeps nothing."""
        document, home = read_config(config)
        about = extended(document, home).data
        if not isinstance(about, dict) or not isinstance(about.get("name"), str):
            return None
        asked = {k: v for k, v in asdict(options).items() if k not in (*_NO_MATTER, *_ONCE)}
        listed = about["datasets"] if isinstance(about.get("datasets"), list) else []
        values = [value for entry in listed if isinstance(entry, dict) for value in entry.values()]
        named = (place_of(home, value) for value in values if isinstance(value, str))
        own = filter(os.path.isfile, named)  # false also for a name that is too long
        versions = [sys.version, package_versions(), *plugged_in()]
        begun = digest([about, asked, versions, *(state(place) for place in (*_CODE, *own))])
        return cls(Store(options.folder(about["name"])), options, bool(listed), begun)

    def shown(self) -> dict[str, Any] | None:
        """Return what this run would show, None if it has to find out."""
        if any(getattr(self.options, name) for name in _ONCE):
            return None
        try:
            kept = checked(load((self.store.folder / _SHOWN).read_bytes()), _Shown)
            same = kept.digest == self._digest(kept.cards, self.records(), kept.content)
        except (OSError, ValueError, PrecbenchError):  # none, edited, or without its data
            return None
        return kept.content if same else None

    def records(self) -> str:
        """Return a digest of the records."""
        return digest(state(self.store.folder / "trials"))

    def keep(self, content: dict[str, Any], plan: "Plan", records: str) -> None:
        """Keep what was shown of these records."""
        cards = {
            getattr(entry, "card", entry.name): self.options.stand_ins
            and getattr(entry, "on_missing", "error") == "stand-in"
            for entry in plan.experiment.datasets
            if entry.name in plan.datasets and isinstance(entry, NamedData | StreamedCard)
        }
        same = self._digest(cards, records, content)
        shown = {"digest": same, "cards": cards, "content": content}
        self.store.write_text(_SHOWN, json.dumps(shown, default=vars, indent=1) + "\n")

    def _digest(self, cards: dict[str, bool], records: str, content: dict[str, Any]) -> str:
        hashes = [
            data_hash(card, self.options.mirror, "stand-in" if stand_in else "error")
            for card, stand_in in cards.items()
        ]
        left = state(self.store.folder, _ELSEWHERE)
        return digest([self.begun, cards, hashes, records, left, content])


def _planned(name: str, options: RunOptions) -> Callable[..., dict[str, Any]]:
    """Return a function that runs a config, or shows again what the last run has shown."""
    kept = Kept.find(name, options)
    if kept is not None:
        if (shown := kept.shown()) is not None:
            return partial(_show_again, kept.store, options, **shown)
        if kept.has_trials and options.cluster is None and not options.dry_run:
            workers.begin(1 if options.timing else options.jobs, _import)
    return prepared(load_config(name), options, kept, name)


def prepared(
    config: Experiment | Study, options: RunOptions, kept: Kept | None = None, name: str = ""
) -> Callable[..., dict[str, Any]]:
    """Check the options against a config and return a function that runs it, maybe on a cluster.

    `name` is what the config was loaded by, empty for one that is in no file.
    """
    if isinstance(config, Experiment):
        part = config.select(*_chosen(config, options), options.split_indices)
        return partial(_run, config, part, options, kept, name)
    ended_so = options.ended_so - {_CHANGED_CODE}  # a study is computed anew each time
    some = (options.solvers, options.datasets, options.skip, ended_so, options.shard)
    if any(some) or options.splits is not None:
        raise InputError(
            f"{config.name} is a study: --solver, --skip, --dataset, --splits, --rerun and --shard "
            "do not apply to it"
        )
    return partial(_run_study, config, options)


def _chosen(
    config: Experiment, options: RunOptions
) -> tuple[Sequence[str] | None, Sequence[str] | None]:
    """Return the labels and the data sets that the options name, None for all."""
    labels, names = list(config.solvers), [entry.name for entry in config.datasets]
    solvers = options.solvers and _matching(options.solvers, labels)
    skipped = _matching(options.skip or (), labels)
    if missing := [label for label in skipped if label not in labels]:
        config.select(solvers=missing)  # refuses them
    if skipped:
        solvers = [label for label in solvers or labels if label not in skipped]
        if not solvers:
            raise InputError(f"{config.name}: --skip leaves no solver to run")
    return solvers, options.datasets and _matching(options.datasets, names)


def _matching(patterns: Sequence[str], known: Sequence[str]) -> list[str]:
    """Return the known names that match; a pattern that matches none stays, to be refused."""
    found: list[str] = []
    for pattern in patterns:
        exact = [pattern] if pattern in known else []
        found += exact or [name for name in known if fnmatchcase(name, pattern)] or [pattern]
    return list(dict.fromkeys(found))


def _show_again(
    store: Store,
    options: RunOptions,
    _: "Cluster | None" = None,
    *,
    announced: list[tuple[str, str]],
    summary: dict[str, Any],
    **shown: Any,
) -> dict[str, Any]:
    console = screen(quiet=options.as_json or options.quiet)
    n = summary["trials"]
    summary = {**summary, "folder": str(store.folder), "cached": n}
    about = {name: summary[name] for name in ("experiment", "folder")}
    _announce(announced, console)
    console.print(f"{n} trials, {n} of them done already, and nothing else has changed")
    _tell(options, "run", **about, trials=n, cached=n)
    _present(store, console, **shown)
    _tell(options, "end", **about, **{name: summary[name] for name in ("not_ok", "values")})
    return summary


def _run(
    experiment: Experiment,
    part: Experiment,
    options: RunOptions,
    kept: Kept | None,
    name: str,
    cluster: "Cluster | None" = None,
) -> dict[str, Any]:
    from precbench.cli.outlook import show_fetching, show_outlook, to_fetch
    from precbench.experiment.plan import make_plan
    from precbench.runner import to_do

    console = screen(quiet=options.as_json or options.quiet)
    store = Store(options.folder(experiment.name))
    part = part.smoke_size() if options.smoke else part
    if options.dry_run and (lacking := to_fetch(part)):
        return show_fetching(part, lacking, store, console)
    plan = make_plan(
        experiment,
        only=[entry.name for entry in part.datasets],
        mirror=options.mirror,
        stand_ins=options.stand_ins,
        smoke=options.smoke,
    )
    wanted = plan.keys_of(part)
    announced = [*_announcement(plan)]
    _announce(announced, console)
    if (shard := options.chosen_shard) is not None:
        whole = len(wanted)
        wanted = shard.keys(plan, wanted, by_split=options.timing)
        console.print(f"shard {shard}: {len(wanted):,} of {whole:,} trials")
    if options.dry_run:
        trials = _to_do(plan, store, wanted, options, console)
        at_once = options.jobs if cluster is None else cluster.n_workers
        at_once = 1 if options.timing else at_once
        seconds = show_outlook(plan, store, trials.values(), at_once, cluster, console)
        return _summary(plan, store, wanted, trials) | {"expected_seconds": seconds}
    with store.lock():
        trials = _to_do(plan, store, wanted, options, console)
        store.note_asked(wanted, [] if shard is None else [str(shard)])
        about = {"experiment": experiment.name, "folder": str(store.folder)}
        _tell(options, "run", **about, trials=len(wanted), cached=len(wanted) - len(trials))
        _train(plan, store, trials, options, cluster)
        if shard is not None:  # the tables are made once, of all shards together
            return _shard_end(plan, store, wanted, trials, options, console)
        _tell(options, "measuring", **about)
        records = kept.records() if kept else ""
        report, found = _measure(plan, store, part, options, console, name)
        summary = _summary(plan, store, wanted, trials) | found
        tables, files = report.tables, [*_files(report)]
        if kept and not plan.absent and not to_do(plan, store, wanted=wanted):
            results = {name: value for name, value in summary.items() if name != "folder"}
            content = {"announced": announced, "tables": tables, "files": files, "summary": results}
            kept.keep(content, plan, records)
    _present(store, console, tables, files)
    _tell(options, "end", **about, **found)
    return summary


def _measure(
    plan: "Plan",
    store: Store,
    part: Experiment,
    options: RunOptions,
    console: Console,
    name: str,
) -> tuple["Report", dict[str, Any]]:
    """Measure the stored results, write the report, and return it and the final values."""
    from precbench.score import final_values, not_ok, write_results

    store.require_lock()
    stored = {*store.keys()}
    with measuring(sum(key in stored for _, key in plan.trials), console) as advance:
        results = write_results(plan, store, advance, config=name)
    from precbench.advice.report import write_report
    from precbench.report.folder import Report

    report = Report([], [])
    if len(results):
        report = write_report(store.folder, options.figures)
    return report, {"not_ok": not_ok(results, part), "values": final_values(results)}


def _shard_end(
    plan: "Plan",
    store: Store,
    wanted: set[str],
    trials: dict[str, Trial],
    options: RunOptions,
    console: Console,
) -> dict[str, Any]:
    statuses = (record.status for record in store.records() if record.key in wanted)
    found = {"not_ok": dict(Counter(status for status in statuses if status != "ok"))}
    _tell(options, "end", experiment=plan.experiment.name, folder=str(store.folder), **found)
    console.print(f"records: {store.folder}; precbench merge makes the tables of all shards")
    return _summary(plan, store, wanted, trials) | found | {"shard": str(options.chosen_shard)}


def _run_study(study: Study, options: RunOptions, _: "Cluster | None" = None) -> dict[str, Any]:
    from precbench.advice.report import write_report
    from precbench.runner.study import run_study

    console = screen(quiet=options.as_json or options.quiet)
    store = Store(options.folder(study.name))
    console.print(f"{study.title} (a study)")
    summary = {
        "experiment": study.name,
        "folder": str(store.folder),
        "illustration": study.kind,
        "trials": 0,
        "cached": 0,
        "stand_ins": [],
        "absent": [],
        "not_ok": {},
    }
    if options.dry_run:
        console.print(f"  {study.kind}: computed in one piece")
        return summary
    with store.lock():
        run_study(study, store, smoke=options.smoke, mirror=options.mirror)
        report = write_report(store.folder, options.figures)
    _present(store, console, report.tables, _files(report))
    return summary


def _to_do(
    plan: "Plan", store: Store, wanted: set[str], options: RunOptions, console: Console
) -> dict[str, Trial]:
    from precbench.runner import of_other_code, take_over, to_do

    store.refuse_newer()
    if not options.dry_run:
        take_over(store)
    trials = to_do(
        plan,
        store,
        wanted=wanted,
        timing=options.timing,
        force=options.force,
        rerun=options.ended_so - {_CHANGED_CODE},
        changed_code=_CHANGED_CODE in options.ended_so,
    )
    done = wanted - trials.keys()
    if options.rerun:
        console.print(f"{len(wanted)} trials, {len(trials)} of them to run again")
    else:
        console.print(f"{len(wanted)} trials, {len(done)} of them done already")
    if others := of_other_code(plan, store, done):
        console.print(
            f"{count(len(others), 'finished trial')} kept that other code of the same versions "
            f"trained; --rerun {_CHANGED_CODE} trains them again"
        )
    return trials


def _summary(
    plan: "Plan", store: Store, wanted: set[str], trials: dict[str, Trial]
) -> dict[str, Any]:
    return {
        "experiment": plan.experiment.name,
        "folder": str(store.folder),
        "trials": len(wanted),
        "cached": len(wanted) - len(trials),
        "stand_ins": [d.name for d in plan.datasets.values() if d.stand_in],
        "absent": list(plan.absent),
        "not_ok": {},
    }


def _train(
    plan: "Plan",
    store: Store,
    trials: dict[str, Trial],
    options: RunOptions,
    cluster: "Cluster | None",
) -> None:
    from precbench.runner import run_plan

    n_workers = options.jobs if cluster is None else max(2, cluster.n_workers)
    done, verbosity = 0, {"quiet": options.quiet, "verbose": options.verbose}
    elsewhere = None if cluster is None else cluster.run
    n_workers = 1 if options.timing else n_workers
    expected = expected_seconds(plan, store, trials.values())
    ends = run_plan(plan, store, trials, n_workers=n_workers, elsewhere=elsewhere)
    with Progress(trials, expected, **verbosity) as progress, closing(ends) as finished:
        try:
            for job, _ in finished:
                store.require_lock()
                record = store.read(job.key)
                assert record is not None
                progress.finished(job, record)
                _tell(options, "trial", **record.model_dump(include=set(_TOLD)))
                done += 1
        except KeyboardInterrupt:
            finished.close()
            print(
                f"stopped: {done} of {len(trials)} trials are finished and kept in {store.folder}; "
                "the same command resumes from there",
                file=sys.stderr,
            )
            raise


def _tell(options: RunOptions, event: str, **facts: Any) -> None:
    """Append a line of JSON to the file of events, if there is one."""
    if options.events is None:
        return
    line = json.dumps({"event": event, "time": time.time(), **facts})
    with writing(options.events, refused=InputError), options.events.open("a") as stream:
        stream.write(f"{line}\n")


def split_numbers(text: str | None) -> list[int] | None:
    """Parse ``0,2,5-8``."""
    if text is None:
        return None
    chosen: list[range] = []
    try:
        for piece in text.split(","):
            first, _, last = piece.partition("-")
            chosen.append(range(int(first), int(last or first) + 1))
        if not all(chosen):
            raise ValueError
    except ValueError:
        raise InputError(f"--splits {text!r}: expected numbers such as 0,2 or 0-4") from None
    if max(splits[-1] for splits in chosen) >= MOST_SPLITS:
        raise InputError(f"--splits {text!r}: an experiment has at most {MOST_SPLITS:,} splits")
    return sorted({*itertools.chain(*chosen)})


def _announcement(plan: "Plan") -> Iterator[tuple[str, str]]:
    """Yield lines about the protocol and the data sets, each with its style."""
    yield f"{plan.experiment.title} ({plan.protocol}; {plan.scaling})", ""
    for dataset in plan.datasets.values():
        n, d = dataset.X.shape
        share = dataset.n_pos / n
        text = f"{one_line(dataset.title)}: {n:,} x {d}, {dataset.n_pos:,} positive ({share:.2%})"
        yield text, "bold" if dataset.stand_in else ""
        if dataset.stand_in:
            yield (
                f"{dataset.name} is not available: SYNTHETIC data stand in for it, and the results "
                "below say nothing about the real data",
                "bold red",
            )
    for name, why in plan.absent.items():
        yield f"left out: {name}. {one_line(why)}", "bold"


def _announce(lines: Iterable[tuple[str, str]], console: Screen) -> None:
    for line, style in lines:
        console.say(line, style=style or None)


def _files(report: "Report") -> Iterator[tuple[str, str]]:
    """Yield what the figures and the page of a report are, and their places in its folder."""
    from precbench.report.folder import PAGE

    for path in report.files:
        if path.suffix == ".png":
            yield "figure", f"{path.parent.name}/{path.name}"
    if report.page:
        yield "report", PAGE


def _present(
    store: Store, console: Console, tables: Iterable[Any], files: Iterable[tuple[str, str]]
) -> None:
    """Print the tables of a folder, as they are or were kept, and the paths of its figures."""
    from precbench.cli.tables import OnScreen, Table

    for table in TypeAdapter(list[Table]).validate_python(tables):
        console.print(OnScreen(table))
    console.print(f"tables and records: {store.folder}")
    for kind, place in files:
        console.print(f"{kind}: {store.folder / place}")


def run_all(configs: Iterable[str], options: RunOptions) -> list[dict[str, Any]]:
    """Run configs, and return what is known of each run; mistakes are reported before any work."""
    try:
        runs = [_planned(name, options) for name in configs]
        with _cluster(options) as cluster:
            return [run(cluster) for run in runs]
    finally:
        workers.end()


def _import() -> None:
    """Import what a trial needs."""
    from precbench.runner.worker import warm_up

    warm_up("perceptron-avg")


@takes(RunOptions)
def run(
    configs: Annotated[
        list[str],
        typer.Argument(
            metavar="CONFIG",
            help="Names (see list configs) or files.",
            autocompletion=completion.configs,
        ),
    ],
    options: RunOptions,
) -> int:
    """Run experiments: train the missing trials, then write tables and figures.

    A run that was stopped resumes; after a change to a config only the affected trials run again.
    Figures are drawn again only if the results have changed; plot draws them in any case. If
    nothing has changed since the last run, its tables are shown again.

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

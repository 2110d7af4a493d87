"""A session: from a config to its results, tables, figures and report."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import isfinite
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any

from precbench.core import processes
from precbench.core.errors import InputError
from precbench.core.yaml.document import Document, Keys, Place
from precbench.experiment import Experiment, Study, Trial, load_config
from precbench.experiment.config import from_document
from precbench.experiment.sections import Origin
from precbench.report.folder import Report
from precbench.results.measure import not_ok, write_results
from precbench.results.merge import take_records
from precbench.results.records import HAVE_NUMBERS
from precbench.results.store import Store
from precbench.runner.options import Options
from precbench.runner.study import run_study

if TYPE_CHECKING:
    import pandas as pd

    from precbench.data import Dataset
    from precbench.experiment.plan import Plan
    from precbench.results.records import Record
    from precbench.runner.cluster import Cluster

Config = Experiment | Study


class Observer:
    """Gets the events of a session, and does nothing with them.

    The command line prints them.
    """

    def on_plan(self, work: Work) -> None:
        """Take the work, once the data are read."""

    def on_reuse(self, name: str, n_trials: int) -> None:
        """Take the number of trials that the results of another experiment have."""

    def on_trials(self, work: Work, trials: Mapping[str, Trial]) -> None:
        """Take the trials that are to run, by key."""

    def training(
        self, n_trials: int
    ) -> AbstractContextManager[Callable[[str, Record], None]]:
        """Return a context with a function that takes each finished trial's record."""
        return nullcontext(lambda title, record: None)

    def on_interrupt(self, n_done: int, n_trials: int, folder: Path) -> None:
        """Take how many trials were finished when the user stopped the run."""

    def measuring(self) -> AbstractContextManager[Any]:
        """Return a context around the measuring of the stored results."""
        return nullcontext()


@dataclass(frozen=True, eq=False)
class Results:
    """The results of a config, in a folder.

    Attributes
    ----------
    name : str
        Name of the experiment or the study.
    folder : Path
        With records, tables, figures and report.
    trials, trained : int
        How many trials were asked for, and how many of them were trained now.
    not_ok : dict
        Number of trials by status, other than "ok".
    stand_ins, absent : list of str
        Names of the data sets that synthetic data replace, or that are left out.
    tables : list of Table
        What ``precbench run`` prints.
    files : list of Path
        Tables and figures.
    rows : DataFrame or None
        The rows of this run; None for a study or a shard.
    """

    name: str
    folder: Path
    trials: int = 0
    trained: int = 0
    not_ok: dict[str, int] = field(default_factory=dict)
    stand_ins: list[str] = field(default_factory=list)
    absent: list[str] = field(default_factory=list)
    tables: list[Any] = field(default_factory=list)
    files: list[Path] = field(default_factory=list)
    rows: pd.DataFrame | None = None

    @property
    def has_failed(self) -> bool:
        """Whether a trial has failed; a skipped trial has not."""
        return bool(self.not_ok.keys() - {"skipped"})

    @cached_property
    def frame(self) -> pd.DataFrame:
        """The rows of ``results.csv``, or of ``values.csv`` of a study.

        The first has a row for each solver, split, checkpoint and metric.
        """
        from precbench.results.read import read_run, read_values

        if self._is_study:
            return read_values(self.folder).values
        return read_run(self.folder).results

    @cached_property
    def summary(self) -> pd.DataFrame:
        """Mean, spread, interval and times of each solver, by data set and metric.

        Of a study, the same as `frame`.
        """
        from precbench.results.read import read_run
        from precbench.results.summary import summarise

        if self._is_study:
            return self.frame
        run = read_run(self.folder)
        return summarise(run.results, run.losses, run.test_shares)

    @property
    def figures(self) -> list[Path]:
        """The figures as PNG files."""
        return sorted((self.folder / "figures").glob("*.png"))

    @property
    def report(self) -> Path | None:
        """The page with tables, figures and verdicts; None where there is none."""
        from precbench.results.folders import PAGE

        page = self.folder / PAGE
        return page if page.is_file() else None

    def check(self) -> pd.DataFrame:
        """Compare the results with published numbers and sentences about the config.

        Returns
        -------
        DataFrame
            A row for each claim, with its verdict; without rows for a config without
            claims, or at smoke size.
        """
        import pandas as pd

        from precbench.claims import LedgerRow, load_claims, make_ledger, read_evidence

        evidence = read_evidence([self.folder])
        claims = []
        if self.name in evidence.outcomes or self.name in evidence.values:
            claims = [claim for claim in load_claims() if claim.experiment == self.name]
        rows = [vars(row) for row in make_ledger(claims, evidence)]
        return pd.DataFrame(rows, columns=[*LedgerRow.__annotations__])

    def __repr__(self) -> str:
        """Return name, trials and folder."""
        return (
            f"Results({self.name!r}, {self.trials} trials, folder={str(self.folder)!r})"
        )

    def _repr_html_(self) -> str:
        """Return what a notebook shows."""
        from precbench.report.html import render

        return render(
            "comparison.html.j2", card=[repr(self)], pictures=[], tables=self.tables
        )

    @property
    def _is_study(self) -> bool:
        return (self.folder / "illustration.json").is_file()


@dataclass(frozen=True)
class Work:
    """The part of an experiment that is asked for, with its data and its records.

    Attributes
    ----------
    part : Experiment
        The selected solvers, data sets and splits.
    plan : Plan
        Of the experiment, with the data of the part.
    keys : set of str
        Of the trials that are asked for; of a shard, only its own.
    n_in_all_shards : int
        How many trials of the part all shards have together.
    store : Store
        Where the records are.
    """

    part: Experiment
    plan: Plan
    keys: set[str]
    n_in_all_shards: int
    store: Store

    def reusable(self, options: Options) -> dict[str, Store]:
        """Return by key the store of results of the experiment that this one extends.

        Trials of equal keys have equal numbers. A trial that has a record here is left
        out.
        """
        name = self.plan.experiment.extends
        if not name or options.own_folder is not None:
            return {}
        other = Store(options.folder(name))
        stores = {}
        for key in sorted(self.keys):
            record = other.read(key)
            if record is None or record.status not in HAVE_NUMBERS:
                continue
            if self.store.read(key) is None:
                stores[key] = other
        return stores

    def to_run(self, options: Options) -> dict[str, Trial]:
        """Return the trials without a usable record, by key."""
        from precbench.runner import to_do

        list(self.store.records())  # raises before anything runs if a record is damaged
        return to_do(
            self.plan,
            self.store,
            wanted=self.keys,
            timing=options.timing,
            force=options.force,
            rerun=options.rerun,
            changed_code=options.changed_code,
        )


def read_config(config: str | os.PathLike[str] | Mapping[str, Any] | Config) -> Config:
    """Return a config from its path, its shipped name, its content, or itself."""
    if isinstance(config, Experiment | Study):
        return config
    if isinstance(config, Mapping):
        return _from_content(config)
    return load_config(os.fspath(config), runs_own_classes=True)


def _from_content(content: Mapping[str, Any]) -> Config:
    """Return a config from its content, in which numbers must be finite, as in YAML."""
    # The content has no text: its errors name line 1, column 1.
    document = Document("the config", dict(content), {(): Place(1, 1)})
    problems = [
        (keys, f"not allowed here: {number} (numbers must be finite)")
        for keys, number in _not_finite(content, ())
    ]
    if problems:
        raise document.refusal(problems)
    return from_document(document, Origin(Path(), runs_own_classes=True))


def _not_finite(value: Any, keys: Keys) -> Iterator[tuple[Keys, float]]:
    """Yield the infinite numbers and NaN in a part of a content, with their keys."""
    if isinstance(value, float) and not isfinite(value):
        yield keys, value
    elif isinstance(value, Mapping):
        for key, part in value.items():
            yield from _not_finite(part, (*keys, key))
    elif isinstance(value, list | tuple):
        for i, item in enumerate(value):
            yield from _not_finite(item, (*keys, i))


def selected(experiment: Experiment, options: Options) -> Experiment:
    """Return the part of an experiment that the options select."""
    part = experiment.select(options.solvers, options.datasets, options.splits)
    return part.smoke_size() if options.smoke else part


def plan_work(
    experiment: Experiment,
    options: Options,
    datasets: Mapping[str, Dataset] | None = None,
) -> Work:
    """Read the data of an experiment, but for those given, and plan its trials."""
    from precbench.experiment.plan import make_plan

    part = selected(experiment, options)
    plan = make_plan(
        experiment,
        only=[entry.name for entry in part.datasets],
        mirror=options.mirror,
        stand_ins=options.stand_ins,
        smoke=options.smoke,
        datasets=datasets,
    )
    all_keys = plan.keys_of(part)
    if options.shard is None:
        keys = all_keys
    else:  # whole splits, if times are compared
        keys = options.shard.keys(plan, all_keys, by_split=options.timing)
    store = Store(options.folder(experiment.name))
    return Work(part, plan, keys, n_in_all_shards=len(all_keys), store=store)


def run_config(
    config: Config,
    options: Options,
    *,
    name: str = "",
    datasets: Mapping[str, Dataset] | None = None,
    cluster: Cluster | None = None,
    observer: Observer = Observer(),  # noqa: B008 (without a state)
) -> Results:
    """Run a config: read data, train missing trials, measure them, write the report.

    Parameters
    ----------
    config : Experiment or Study
    options : Options
    name : str
        Name or path of the config, for the command that repeats a trial.
    datasets : mapping, optional
        Data sets that are loaded already, by name.
    cluster : Cluster, optional
        Runs the trials in place of processes of this machine.
    observer : Observer
        Gets the events of the run.
    """
    if isinstance(config, Study):
        return _compute_study(config, options)
    work = plan_work(config, options, datasets)
    observer.on_plan(work)
    plan = work.plan
    store = work.store
    stand_ins = [data.name for data in plan.datasets.values() if data.stand_in]
    with store.lock():
        reused = work.reusable(options)
        take_records(store, reused)
        observer.on_reuse(config.extends, len(reused))
        trials = work.to_run(options)
        observer.on_trials(work, trials)
        shards = [] if options.shard is None else [str(options.shard)]
        store.write_request(work.keys, shards)
        _train(work, trials, options, cluster, observer)
        results = Results(
            name=config.name,
            folder=store.folder,
            trials=len(work.keys),
            trained=len(trials),
            stand_ins=stand_ins,
            absent=list(plan.absent),
        )
        if options.shard is not None:  # tables are made once, of all shards together
            return replace(results, not_ok=_not_ok_of_records(work))
        store.require_lock()
        with observer.measuring():
            rows = write_results(plan, store, config=name)
        report = Report([], [])
        if options.tables and not rows.empty:
            report = _write_report(store.folder, options)
    return replace(
        results,
        not_ok=not_ok(rows, work.part),
        tables=report.tables,
        files=report.files,
        rows=rows,
    )


def _train(
    work: Work,
    trials: dict[str, Trial],
    options: Options,
    cluster: Cluster | None,
    observer: Observer,
) -> None:
    """Train trials here or on a cluster, until all are done or the user interrupts."""
    from precbench.runner import run_plan

    store = work.store
    n_done = 0
    outcomes = run_plan(
        work.plan,
        store,
        trials,
        n_workers=options.at_a_time(cluster),
        elsewhere=None if cluster is None else cluster.run,
    )
    with observer.training(len(trials)) as show, closing(outcomes):
        try:
            for job, _status in outcomes:
                store.require_lock()
                record = store.read(job.key)
                assert record is not None
                show(job.trial.title, record)
                n_done += 1
        except KeyboardInterrupt:
            outcomes.close()  # marks the running trials as interrupted
            observer.on_interrupt(n_done, len(trials), store.folder)
            raise


def _not_ok_of_records(work: Work) -> dict[str, int]:
    """Count by status the records of trials that are not ok."""
    counts = Counter[str]()
    for record in work.store.records():
        if record.key in work.keys and record.status != "ok":
            counts[record.status] += 1
    return dict(counts)


def _compute_study(study: Study, options: Options) -> Results:
    """Compute a study, never on a cluster; it has no trials."""
    store = Store(options.folder(study.name))
    with store.lock():
        run_study(study, store, smoke=options.smoke, mirror=options.mirror)
        report = _write_report(store.folder, options)
    return Results(
        name=study.name, folder=store.folder, tables=report.tables, files=report.files
    )


def _write_report(folder: Path, options: Options) -> Report:
    """Write tables, figures that are older than the results, and the page."""
    from precbench.advice.advised_report import write_report

    return write_report(folder, "changed" if options.figures else "none")


def run(
    config: str | os.PathLike[str] | Mapping[str, Any] | Config,
    *,
    solvers: Sequence[str] | None = None,
    datasets: Sequence[str] | None = None,
    splits: Sequence[int] | None = None,
    jobs: int = 1,
    out: str | os.PathLike[str] = "results",
    smoke: bool = False,
    cluster: str | None = None,
    progress: bool = False,
) -> Results:
    """Run an experiment: train missing trials, write tables, figures and a report.

    As ``precbench run`` does: a run that was stopped resumes, and after a change to a
    config only the affected trials run again.

    Parameters
    ----------
    config : path, str, mapping, Experiment or Study
        A file, the name of a shipped config such as "letter", or the content of a
        config.
    solvers, datasets : sequence of str, optional
        Labels of the solvers and names of the data sets to run; by default all.
    splits : sequence of int, optional
        Numbers of the splits to run; by default all.
    jobs : int, default=1
        Number of trials to run at a time. Results are always the same.
    out : path, default="results"
        The results go to a folder in it, named after the config.
    smoke : bool, default=False
        Whether to try the config out at smoke size, in seconds.
    cluster : str, optional
        Address or file of the scheduler of a Dask cluster, or "local:N".
    progress : bool, default=False
        Whether to show a bar of progress, also in a notebook.

    Returns
    -------
    Results

    Raises
    ------
    InputError
        If the config, an argument or a file of data is not valid.
    DataUnavailableError
        If data can neither be found nor downloaded.

    Examples
    --------
    >>> import tempfile
    >>> import precbench
    >>> folder = tempfile.mkdtemp()
    >>> results = precbench.run("kar2015/counterexample", smoke=True, out=folder)
    >>> results.not_ok
    {}
    """
    if isinstance(jobs, bool) or not isinstance(jobs, Integral) or jobs < 1:
        raise InputError(f"jobs must be an integer of at least 1, found {jobs!r}")
    _refuse_text("solvers", solvers)
    _refuse_text("datasets", datasets)
    _refuse_text("splits", splits)
    checked_config = read_config(config)
    options = Options(
        solvers=solvers,
        datasets=datasets,
        splits=splits,
        jobs=int(jobs),
        out=Path(out),
        smoke=smoke,
    )
    is_named = isinstance(config, str | os.PathLike)
    try:
        with connected(cluster) as workers:
            return run_config(
                checked_config,
                options,
                name=str(config) if is_named else "",
                cluster=workers,
                observer=Bar() if progress else Observer(),
            )
    except KeyboardInterrupt:  # as of a notebook, which goes on
        processes.end()
        raise


def _refuse_text(option: str, names: Sequence[Any] | None) -> None:
    """Refuse a text in place of a list, whose items would be its letters."""
    if isinstance(names, str):
        raise InputError(f"{option} must be a list, found {names!r}; give [{names!r}]")


def connected(
    cluster: str | None, wait: float = 30.0
) -> AbstractContextManager[Cluster | None]:
    """Return a context with a connection to a cluster; None without an address."""
    if cluster is None:
        return nullcontext()
    from precbench.runner.cluster import connect

    return connect(cluster, wait)


class Bar(Observer):
    """Shows a bar of progress on standard error, or in a notebook."""

    @contextmanager
    def training(self, n_trials: int) -> Iterator[Callable[[str, Record], None]]:
        from rich.console import Console
        from rich.progress import Progress

        with Progress(console=Console(stderr=True)) as bars:
            task = bars.add_task("trials", total=n_trials)
            yield lambda title, record: bars.advance(task)

"""``precbench reproduce``."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated

import typer

from precbench.claims import load_claims, make_ledger, read_evidence
from precbench.claims.kinds import Claim
from precbench.claims.ledger import changes, read_ledger, reference_path
from precbench.cli.options import Json, Mirror
from precbench.cli.regressions import report_regressions
from precbench.cli.runs import RunOptions, has_failed, run_one
from precbench.cli.screen import screen
from precbench.cli.screen_tables import print_table
from precbench.core.errors import DataUnavailableError, InputError, did_you_mean
from precbench.core.text import count, duration, one_line
from precbench.data import Dataset
from precbench.experiment import Experiment, Study, load_config
from precbench.experiment.plan import make_plan
from precbench.report.ledger_tables import claims_table


@dataclass(frozen=True)
class _Chosen:
    """What the targets choose of a config."""

    claims: dict[str, Claim] = field(default_factory=dict)  # by id
    datasets: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class _Run:
    """A config, or a part of it, with the claims that its run decides."""

    name: str
    config: Experiment | Study
    claims: Sequence[Claim]
    options: RunOptions
    seconds: float | None  # expected; None for a study
    n_trials: int  # to run

    @property
    def description(self) -> str:
        """How many claims the run decides, on which data, and how long it takes."""
        claims = count(len(self.claims), "claim")
        if self.seconds is None:
            return f"{self.name}: {claims}; a study, computed in one piece"
        data = ", ".join(self.options.datasets or ())
        how = ", one at a time, since times are compared" if self.options.timing else ""
        trials = (
            f"{count(self.n_trials, 'trial')} to run, about"
            f" {duration(self.seconds)}{how}"
        )
        return f"{self.name}, {data}: {claims}; {trials}"


def reproduce(
    targets: Annotated[
        list[str],
        typer.Argument(
            metavar="TARGET",
            help=(
                "Data sets, papers (kar2015) or configs; precbench list claims shows"
                " them."
            ),
        ),
    ],
    jobs: Annotated[
        int,
        typer.Option(
            "--jobs",
            "-j",
            min=1,
            help=(
                "Number of trials to run at a time; always one where times are"
                " compared."
            ),
        ),
    ] = 1,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Run nothing: show what would run, and for how long."
        ),
    ] = False,
    out: Annotated[Path, typer.Option(help="Folder for the results.")] = Path(
        "results"
    ),
    mirror: Mirror = None,
    as_json: Json = False,
) -> int:
    """Decide the published claims about a data set, a paper or a config.

    Prints which parts of which configs will run and how long they will take, runs the
    missing trials, and then prints the verdict on each of the claims. Only real data
    are used: data sets that cannot be obtained are left out, with a note on how to
    provide them.

    Exit code 3: none of the data can be obtained; 4: a verdict is worse than in the
    reference.

    \b
    Examples:
      precbench data fetch kdd08 --accept-terms
      precbench reproduce kdd08 --dry-run
      precbench reproduce kdd08 --jobs 2
      precbench reproduce kar2015/counterexample
    """
    console = screen(quiet=as_json)
    runs: list[_Run] = []
    # Data sets left out, with the reason; `_planned` adds them.
    missing: dict[str, str] = {}
    options = RunOptions(
        jobs=jobs,
        dry_run=dry_run,
        out=out,
        mirror=mirror,
        as_json=as_json,
        no_stand_in=True,
    )
    for config, chosen in _chosen(targets).items():
        run = _planned(config, chosen, options, missing)
        if run is not None:
            runs.append(run)
    if not runs:
        raise DataUnavailableError("\n".join(missing.values()))
    for run in runs:
        console.print(run.description)
    for name, why in missing.items():
        console.print(f"left out: {name}. {one_line(why)}", style="bold")
    console.print(
        f"in all about {duration(sum(run.seconds or 0.0 for run in runs))}, estimated"
        " from the size of the data or from earlier trials"
    )
    if dry_run:
        return 0
    summaries = [run_one(run.config, run.options, run.name) for run in runs]
    claims = [claim for run in runs for claim in run.claims]
    folders = dict.fromkeys(summary["folder"] for summary in summaries)
    existing = [folder for folder in folders if Path(folder).is_dir()]
    ledger = make_ledger(claims, read_evidence(existing))
    if as_json:
        outcome = {
            "runs": summaries,
            "absent": missing,
            "ledger": list(map(vars, ledger)),
        }
        print(json.dumps(outcome, indent=1))
    print_table(claims_table(ledger, f"Claims about {', '.join(targets)}"), console)
    code = report_regressions(changes(ledger, read_ledger(reference_path())))
    return 1 if any(map(has_failed, summaries)) else code


def _chosen(targets: Sequence[str]) -> dict[str, _Chosen]:
    """Return by config the claims about the targets, and the data to use."""
    testable = [claim for claim in load_claims() if claim.is_testable]
    papers = {claim.paper for claim in testable}
    configs = {claim.config for claim in testable}
    data = {name for claim in testable for name in claim.data}
    known = data | papers | configs
    chosen: dict[str, _Chosen] = {}
    for target in targets:
        if target not in known:
            near = did_you_mean(target, known)
            raise InputError(
                f"{target!r} is not a data set, paper or config with claims{near};"
                " precbench list claims shows all claims"
            )
        for claim in testable:
            if claim.is_about(target) or target in (claim.paper, claim.config):
                of_config = chosen.setdefault(claim.config, _Chosen())
                of_config.claims[claim.id] = claim
                if target in data:
                    of_config.datasets.add(target)  # and no others of the claim
                else:
                    of_config.datasets.update(claim.data)
    return chosen


def _planned(
    name: str, chosen: _Chosen, options: RunOptions, missing: dict[str, str]
) -> _Run | None:
    """Return the run of a config, None without data.

    Data sets that cannot be obtained are added to `missing`, with the reason.
    """
    config = load_config(name)
    claims = list(chosen.claims.values())
    if isinstance(config, Study):
        return _Run(name, config, claims, options, seconds=None, n_trials=1)
    loaded = _loaded(config, chosen.datasets, options.mirror, missing)
    if not loaded:
        return None
    available = [entry.name for entry in config.datasets if entry.name in loaded]
    selected = _selected(config, claims, replace(options, datasets=available))
    # With `dry_run` nothing is trained; the time of the missing trials is estimated.
    dry = replace(selected, dry_run=True, quiet=True)
    outlook = run_one(config, dry, name, datasets=loaded)
    # Claims that need no data, or at least one data set that was obtained.
    decided = [
        claim
        for claim in claims
        if not claim.data or not loaded.keys().isdisjoint(claim.data)
    ]
    return _Run(
        name,
        config,
        decided,
        selected,
        seconds=outlook["expected_seconds"],
        n_trials=outlook["trials"] - outlook["cached"],
    )


def _loaded(
    config: Experiment, wanted: set[str], mirror: str | None, missing: dict[str, str]
) -> dict[str, Dataset]:
    """Return the wanted data sets of a config; add absent ones to `missing`."""
    names = {entry.name for entry in config.datasets} & wanted
    loaded: dict[str, Dataset] = {}
    for name in sorted(names - missing.keys()):
        try:
            plan = make_plan(config, only=[name], mirror=mirror, stand_ins=False)
        except DataUnavailableError as error:
            missing[name] = str(error)
        else:
            loaded |= plan.datasets
    return loaded


def _selected(
    config: Experiment, claims: Sequence[Claim], options: RunOptions
) -> RunOptions:
    """Return the options of a run of the trials that decide the claims."""
    labels = sorted({label for claim in claims for label in claim.labels})
    splits = None
    if not labels:
        # The claims compare no solvers, but count rows: one trial of any solver does.
        labels = [next(iter(config.solvers))]
        splits = "0"
    timing = any(claim.is_timed for claim in claims)
    return replace(
        options,
        solvers=labels,
        splits=splits,
        timing=timing,
        jobs=1 if timing else options.jobs,
    )

"""``precbench compare``."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from precbench.cli.model import check_target, plain_value
from precbench.cli.run import RunOptions, has_failed, prepared
from precbench.cli.screen import screen
from precbench.cli.tables import OnScreen
from precbench.contest import fit_best, prepare
from precbench.errors import InputError
from precbench.files import write_whole, writing
from precbench.report.choice import choice_table, choose_method
from precbench.report.folder import PAGE
from precbench.results import read_run
from precbench.text import count, one_line


@dataclass(frozen=True)
class CompareOptions:
    """Options of the command."""

    k: str
    solvers: Sequence[str]
    n_splits: int | None
    seed: int
    jobs: int
    out: Path
    config: Path | None
    save: Path | None
    as_json: bool


def compare_methods(data: Mapping[str, Any], options: CompareOptions) -> int:
    """Compare methods on a file, print which is recommended, and return the exit code."""
    console = screen(quiet=options.as_json)
    folder = options.config.parent if options.config else Path()
    if not folder.is_dir():
        raise InputError(f"--config {options.config}: there is no folder {folder}")
    if options.save:
        check_target(options.save, Path(data["file"]))
    contest = prepare(
        data,
        plain_value(options.k),
        folder=folder,
        solvers=options.solvers or None,
        n_splits=options.n_splits,
        seed=options.seed,
    )
    if options.config:
        if options.config.exists() and options.config.samefile(data["file"]):
            raise InputError(f"--config {options.config} is the file of the rows: name another")
        with writing(options.config, "choose another place", refused=InputError):
            write_whole({options.config: contest.config.encode()})
    experiment = contest.experiment
    n_methods, n_splits = len(experiment.solvers), experiment.protocol.n_splits
    console.print(
        f"{one_line(Path(data['file']).name)}: {contest.rows:,} rows, {contest.features:,} "
        f"features, {contest.positives:,} positive ({contest.positives / contest.rows:.2%}); "
        f"{count(n_methods, 'method')} on {count(n_splits, 'split')}"
    )
    run = RunOptions(jobs=options.jobs, out=options.out, mirror=None, as_json=True)
    summary = prepared(experiment, run, name=str(options.config or ""))()
    choice = choose_method(read_run(summary["folder"]))
    console.print(OnScreen(choice_table(choice, experiment.title)))
    console.print(choice.text)
    console.print(f"tables and records: {summary['folder']}")
    console.print(f"report: {Path(summary['folder']) / PAGE}")
    if options.save:
        fit_best(data, contest, summary["folder"], choice).save(options.save)
        console.print(f"{choice.best}, fitted to all rows: {options.save}")
    if options.config:
        console.print(f"to repeat it: precbench run {options.config}")
    if options.as_json:
        about = {"folder": summary["folder"], "model": options.save and str(options.save)}
        print(json.dumps({**about, **choice.to_dict()}, indent=1))
    return int(has_failed(summary))

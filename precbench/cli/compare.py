"""``precbench compare``."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from precbench.cli import completion
from precbench.cli.model import check_target, plain_value
from precbench.cli.options import (
    Categorical,
    Drop,
    Form,
    Groups,
    Json,
    K,
    Label,
    Missing,
    OwnFile,
    Positive,
    Time,
)
from precbench.cli.run import RunOptions, has_failed, prepared
from precbench.cli.screen import screen
from precbench.cli.tables import OnScreen
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
    from precbench.contest import fit_best, prepare

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


def compare(
    file: OwnFile,
    label: Label = None,
    k: K = "0.25",
    positive: Positive = None,
    groups: Groups = None,
    time: Time = None,
    drop: Drop = None,
    categorical: Categorical = "error",
    missing: Missing = "error",
    form: Form = None,
    solver: Annotated[
        list[str] | None,
        typer.Option(
            help="Compare this method; repeatable [default: those of configs/compare.yaml].",
            autocompletion=completion.solvers,
        ),
    ] = None,
    splits: Annotated[
        int | None,
        typer.Option(
            min=1, help="Number of splits [default: 10; 5 with --time or more than 50,000 rows]."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the splits and solvers.")] = 0,
    jobs: Annotated[
        int | None,
        typer.Option(
            "--jobs", "-j", min=1, help="Number of trials to run at a time [default: all cores]."
        ),
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for the results.")] = Path("results"),
    config: Annotated[
        Path | None, typer.Option(help="Also write the config that repeats the comparison.")
    ] = None,
    save: Annotated[
        Path | None,
        typer.Option(help="Fit the best method to all rows, and write the model to this file."),
    ] = None,
    as_json: Json = False,
) -> int:
    """Compare methods for the top of your own list, and recommend one.

    Linear methods, random features and boosted trees are trained on 70 % of the rows, with
    parameters chosen on some of them, and ranked by the hits among the first k of the other
    rows; this is repeated on several random splits, or on the latest rows with --time. Differences
    within the noise of the splits are called ties. An interrupted comparison resumes where it left
    off.

    \b
    Examples:
      precbench compare customers.csv --label churned --positive yes --k 100 \\
          --save top.npz
      precbench compare visits.parquet --label ill --groups patient \\
          --k "1 %" --missing median
    """
    from precbench.contest import cores

    data = {
        "file": file,
        "format": form,
        "label": label,
        "positive": positive,
        "groups": groups,
        "time": time,
        "drop": drop,
        "categorical": None if categorical == "error" else categorical,
        "missing": None if missing == "error" else missing,
    }
    options = CompareOptions(
        k=k,
        solvers=solver or [],
        n_splits=splits,
        seed=seed,
        jobs=jobs or cores(),
        out=out,
        config=config,
        save=save,
        as_json=as_json,
    )
    return compare_methods(data, options)

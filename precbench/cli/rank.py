"""``precbench rank``."""

import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
import typer

from precbench.advice.contest import shared_parameters
from precbench.cli.options import refuse_unknown, takes
from precbench.cli.runs import RunOptions, Summary, has_failed, run_all
from precbench.cli.screen import screen
from precbench.cli.screen_tables import print_table
from precbench.core.errors import InputError
from precbench.core.files import write_whole
from precbench.core.locations import shipped
from precbench.core.studies import Result
from precbench.core.text import count, duration
from precbench.core.yaml.document import load, parse
from precbench.report.html import study_page
from precbench.report.table import Table, text_table
from precbench.solvers import SOLVERS
from precbench.solvers.own_class import is_own_class
from precbench.survey.ranking import (
    AP,
    LEAST_ROWS,
    MEASURES,
    REFERENCE,
    Survey,
    collect,
    compared,
    in_words,
    standings,
)
from precbench.survey.tasks import read_tasks, write_configs


@dataclass(frozen=True, kw_only=True)
class RankOptions(RunOptions):
    small: Annotated[
        bool,
        typer.Option("--small", help="Use every third data set only, ordered by size."),
    ] = False
    parameters: Annotated[
        str,
        typer.Option(
            "--parameters",
            help=(
                "Parameters of the solver, as YAML: '{C: {tune: [0.1, 1, 10]}}'"
                " [default: as in the survey; for a solver outside the survey, the"
                " solver's defaults]."
            ),
        ),
    ] = ""


@takes(RankOptions)
def rank(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="Solver, see precbench list solvers, or FILE.py:CLASS.",
        ),
    ],
    options: RankOptions,
) -> int:
    """Train a method on the tasks of the survey, and rank it among the methods there.

    Divisions, measures and tuning are those of the survey. The command resumes, and
    runs in shards or on a cluster, as run does. --dry-run says what would be compared,
    and roughly for how long. Writes OUT/rank-NAME.csv and .html.

    \b
    Examples:
      precbench rank pnorm-push --small
      precbench rank my-solver --parameters '{depth: {tune: [2, 4]}}' --jobs 2
    """
    refuse_unknown("solver", SOLVERS.admit(name), SOLVERS, "solvers")
    survey_config = load(shipped("configs") / "top" / "survey.yaml").data
    label = f"{Path(name).name} (yours)"
    entry = {"solver": name, **_parameters(name, options, survey_config)}
    common = shared_parameters(survey_config["common"], {label: entry})
    folder = options.out / "survey-tasks"
    if is_own_class(name):
        entry["solver"] = os.path.relpath(name, folder)  # relative to the configs
    tasks = read_tasks()  # in order of their number of rows
    experiment = "rank-" + re.sub(r"[^A-Za-z0-9_-]+", "-", Path(name).name)
    paths = write_configs(
        folder,
        tasks[::3] if options.small else tasks,
        name=experiment,
        solvers={label: entry},
        common=common,
    )
    console = screen(quiet=options.is_quiet)
    n_methods = pd.read_csv(REFERENCE, usecols=["solver"])["solver"].nunique()
    console.print(
        f"{label} against {count(n_methods, 'method')} of the survey, on"
        f" {count(len(tasks), 'task')}"
    )
    # As for JSON, since tables of a single method say little, but with the progress on
    # standard error; tables of the whole survey are shown below.
    summaries = run_all(map(str, paths), replace(options, as_json=True))
    exit_code = int(any(map(has_failed, summaries)))
    if options.dry_run:
        _show_outlook(name, summaries, options)
        return exit_code
    if options.shard or options.smoke:
        part = "a shard" if options.shard else "the smoke size"
        console.print(f"{part} has no rank; its records are in {options.out}")
        return exit_code
    survey = _join_survey(collect(Path(summary["folder"]) for summary in summaries))
    ranks = standings(survey.values(AP))
    tables = [
        _standing(survey, label, ranks),
        _by_measure(survey, label),
        _by_task(survey, label),
    ]
    stem = options.out / experiment
    # The page is laid out like that of a study. As this is no study, it lacks some
    # fields of `Result`, which are therefore not checked.
    result = Result.model_construct(
        folder=stem,
        parameters=entry,
        name="",
        title=f"Rank of {name} in the survey",
        source=None,
        smoke=False,
    )
    page = study_page(result, tables, figures=[], ledger=[])
    contents = {
        stem.with_suffix(".csv"): ranks.to_csv(lineterminator="\n"),
        stem.with_suffix(".html"): page.html,
    }
    write_whole(contents)
    if options.as_json:
        print(json.dumps({"solver": name, **ranks.loc[label].to_dict()}, indent=1))
    print_table(tables[0], console)  # only the mean ranks; the page has all tables
    for path in contents:
        console.print(f"written: {path}")
    return exit_code


def _show_outlook(
    name: str, summaries: Sequence[Summary], options: RankOptions
) -> None:
    """Print how many trials would run, and for how long, as text or as JSON."""
    n_trials = sum(summary["trials"] for summary in summaries)
    n_done = sum(summary["cached"] for summary in summaries)
    to_fetch: dict[str, int] = {}
    for summary in summaries:
        to_fetch |= summary.get("to_fetch", {})
    # Without its data, a config is not planned, and its time is not known.
    are_planned = all("expected_seconds" in summary for summary in summaries)
    seconds = None
    if are_planned:
        seconds = sum(summary["expected_seconds"] for summary in summaries)
    if options.as_json:
        facts = {
            "solver": name,
            "trials": n_trials,
            "cached": n_done,
            "to_fetch": to_fetch,
            "expected_seconds": seconds,
        }
        print(json.dumps(facts, indent=1))
        return
    console = screen(quiet=options.quiet)
    for dataset, size in to_fetch.items():
        console.print(f"to fetch: {dataset}, at most {size / 1e6:,.1f} MB")
    console.print(f"{count(n_trials, 'trial')}, {n_done:,} of them done already")
    if seconds is not None:
        console.print(
            f"about {duration(seconds)} with {options.jobs} at a time, estimated from"
            " the size of the data or from earlier trials"
        )


def _parameters(
    name: str, options: RankOptions, survey_config: dict[str, Any]
) -> dict[str, Any]:
    """Return the parameters that are typed, or else those of the survey, if any."""
    if not options.parameters:
        return survey_config["solvers"].get(name) or {}
    params = parse(options.parameters, "--parameters").data
    if not isinstance(params, dict):
        raise InputError(
            f"found {options.parameters!r} in --parameters, which maps no names to"
            " values; write them such as '{C: 0.1}'"
        )
    return params


def _join_survey(table: pd.DataFrame) -> Survey:
    """Join results of a method with the survey's on common tasks and splits."""
    committed = pd.read_csv(REFERENCE)
    keys = ["task", "split"]
    shared = table[keys].merge(committed[keys].drop_duplicates())
    if shared.empty:
        raise InputError(
            "the survey has no results on these tasks and splits; change --dataset or"
            " --splits"
        )
    rivals = shared.drop_duplicates().merge(committed)
    return Survey(pd.concat([rivals, shared.merge(table)], ignore_index=True))


def _standing(survey: Survey, label: str, ranks: pd.DataFrame) -> Table:
    """Lay out mean ranks by average precision: the method, and the best of each kind.

    `ranks` are the standings of all methods; "lost" is how far a method falls short of
    the best of a task, as a share of the best.
    """
    values = survey.values(AP)
    shown = {*survey.best(values), label}
    rows = []
    for solver, standing in ranks.iterrows():
        if solver not in shown:
            continue
        comparison = ""
        if solver != label:
            comparison = in_words(compared(values, label, str(solver)))
        rows.append(
            [
                str(solver),
                f"{standing['rank']:.1f}",
                f"{standing['rank_low']:.1f} to {standing['rank_high']:.1f}",
                f"{standing['lost']:.1%}",
                f"{standing['lost_low']:.1%} to {standing['lost_high']:.1%}",
                comparison,
            ]
        )
    header = ["best of its kind", "mean rank", "95 %", "lost", "95 %", "yours is"]
    n_small = int((survey.looked_at(AP) < LEAST_ROWS).sum())
    return text_table(
        f"Average precision on {len(values)} tasks, {len(survey.solvers)} methods",
        header,
        rows,
        f"On {n_small} of the tasks a test part has fewer than {LEAST_ROWS} positives.",
    )


def _by_measure(survey: Survey, label: str) -> Table:
    """Lay out the rank of the method by each measure of the survey.

    On a task, what is lost is 1 - value / best value, and wins are the share of other
    methods beaten; shown are the means.
    """
    rows = []
    for metric, measure in MEASURES.items():
        values = survey.values(metric)
        if values.empty:
            continue
        ranks = standings(values)
        own = ranks.loc[label]
        best = ranks.index[0]
        rows.append(
            [
                measure.title,
                f"{len(values)}",
                f"{own['rank']:.1f}",
                f"{own['lost']:.1%}",
                f"{own['wins']:.0%}",
                str(best),
            ]
        )
    header = ["measure", "tasks", "mean rank", "lost", "wins", "best mean rank"]
    return text_table("By measure", header, rows)


def _by_task(survey: Survey, label: str) -> Table:
    """Lay out average precision and rank by task, beside the best other method."""
    values = survey.values(AP)
    # Rounded, so that values that differ by rounding are tied.
    ranks = values.round(12).rank(axis=1, ascending=False)
    rivals = values.drop(columns=label)
    rows = []
    for task in values.index:
        best = rivals.loc[task].idxmax()
        rows.append(
            [
                task,
                f"{values.loc[task, label]:.3f}",
                f"{ranks.loc[task, label]:g}",
                f"{rivals.loc[task, best]:.3f}",
                str(best),
            ]
        )
    header = ["task", "average precision", "rank", "best of the others", ""]
    return text_table("By task", header, rows)

"""``precbench rank``."""

import json
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import pandas as pd
import typer

from precbench.advice.contest import shared_parameters
from precbench.cli.options import refuse_unknown, takes
from precbench.cli.runs import RunOptions, has_failed, run_all
from precbench.cli.screen import screen
from precbench.cli.screen_tables import print_table
from precbench.core.errors import InputError
from precbench.core.files import write_whole
from precbench.core.locations import shipped
from precbench.core.studies import Result
from precbench.core.yaml.document import load, parse
from precbench.report.html import study_page
from precbench.report.table import Table, text_table
from precbench.solvers import SOLVERS
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
        str, typer.Argument(metavar="NAME", help="Solver, see precbench list solvers.")
    ],
    options: RankOptions,
) -> int:
    """Train a method on the tasks of the survey, and rank it among the methods there.

    Divisions, measures and tuning are those of the survey. The command resumes, and
    runs in shards or on a cluster, as run does. Writes OUT/rank-NAME.csv and .html.

    \b
    Examples:
      precbench rank pnorm-push --small
      precbench rank my-solver --parameters '{depth: {tune: [2, 4]}}' --jobs 2
    """
    refuse_unknown("solver", name, SOLVERS, "solvers")
    survey_config = load(shipped("configs") / "top" / "survey.yaml").data
    # as in the survey; {} for other solvers
    params = survey_config["solvers"].get(name) or {}
    if options.parameters:
        params = parse(options.parameters, "--parameters").data
        if not isinstance(params, dict):
            raise InputError(
                f"found {options.parameters!r} in --parameters, which maps no names to"
                " values; write them such as '{C: 0.1}'"
            )
    label, entry = f"{name} (yours)", {"solver": name, **params}
    # only those of the solver
    common = shared_parameters(survey_config["common"], {label: entry})
    # sorted by number of rows
    tasks = read_tasks()[::3] if options.small else read_tasks()
    experiment = "rank-" + re.sub(r"[^A-Za-z0-9_-]+", "-", name)
    paths = write_configs(
        options.out / "survey-tasks",
        tasks,
        name=experiment,
        solvers={label: entry},
        common=common,
    )
    # Quiet: tables of a single method say little; tables of the whole survey are shown
    # below.
    summaries = run_all(map(str, paths), replace(options, quiet=True))
    exit_code = int(any(map(has_failed, summaries)))
    if options.dry_run or options.shard or options.smoke:  # there is nothing to rank
        return exit_code
    # Rank the method among the methods of the survey; write and print the ranks.
    survey = _join_survey(collect(Path(summary["folder"]) for summary in summaries))
    ranks = standings(survey.values(AP))
    tables = [
        _standing(survey, label, ranks),
        _by_measure(survey, label),
        _by_task(survey, label),
    ]
    stem, title = options.out / experiment, f"Rank of {name} in the survey"
    # unchecked: no study, but the page is made as for a study
    study = Result.model_construct(
        folder=stem, parameters=entry, name="", title=title, source=None, smoke=False
    )
    contents = {
        stem.with_suffix(".csv"): ranks.to_csv(lineterminator="\n"),
        stem.with_suffix(".html"): (
            study_page(study, tables, figures=[], ledger=[]).html
        ),
    }
    write_whole(contents)
    if options.as_json:
        print(json.dumps({"solver": name, **ranks.loc[label].to_dict()}, indent=1))
    console = screen(quiet=options.quiet or options.as_json)
    print_table(tables[0], console)  # only the mean ranks; the page has all tables
    for path in contents:
        console.print(f"written: {path}")
    return exit_code


def _join_survey(table: pd.DataFrame) -> Survey:
    """Join results of a method with the survey's on common tasks and splits."""
    # the survey, columns to join by
    committed, keys = pd.read_csv(REFERENCE), ["task", "split"]
    # common tasks, splits
    shared = table[keys].merge(committed[keys].drop_duplicates())
    if shared.empty:
        raise InputError(
            "the survey has no results on these tasks and splits; change --dataset or"
            " --splits"
        )
    rivals = shared.drop_duplicates().merge(committed)  # results of the other methods
    return Survey(pd.concat([rivals, shared.merge(table)], ignore_index=True))


def _standing(survey: Survey, label: str, ranks: pd.DataFrame) -> Table:
    """Lay out mean ranks by average precision.

    Of the method, and of the best of each kind.
    """
    values = survey.values(AP)  # of which `ranks` are the standings
    shown = {*survey.best(values), label}  # the best of each kind, and the method
    rows = [
        [
            *(solver, f"{ranks['rank'][solver]:.1f}"),
            f"{ranks['rank_low'][solver]:.1f} to {ranks['rank_high'][solver]:.1f}",
            f"{ranks['lost'][solver]:.1%}",
            f"{ranks['lost_low'][solver]:.1%} to {ranks['lost_high'][solver]:.1%}",
            "" if solver == label else in_words(compared(values, label, solver)),
        ]
        for solver in ranks.index
        if solver in shown
    ]
    header = ["best of its kind", "mean rank", "95 %", "lost", "95 %", "yours is"]
    # tasks with few positives to test on
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
        row = [
            measure.title,
            f"{len(values)}",
            f"{own['rank']:.1f}",
            f"{own['lost']:.1%}",
        ]
        # the best by mean rank
        rows.append([*row, f"{own['wins']:.0%}", str(ranks.index[0])])
    header = ["measure", "tasks", "mean rank", "lost", "wins", "best mean rank"]
    return text_table("By measure", header, rows)


def _by_task(survey: Survey, label: str) -> Table:
    """Lay out average precision and rank by task, beside the best other method."""
    values = survey.values(AP)
    # differences by rounding are ties
    ranks = values.round(12).rank(axis=1, ascending=False)
    best = values.drop(columns=label).idxmax(axis=1)
    rows = [
        [
            *(task, f"{values.loc[task, label]:.3f}", f"{ranks.loc[task, label]:g}"),
            *(f"{values.loc[task, best[task]]:.3f}", str(best[task])),
        ]
        for task in values.index
    ]
    header = ["task", "average precision", "rank", "best of the others", ""]
    return text_table("By task", header, rows)

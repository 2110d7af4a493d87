"""``precbench rank``."""

import json
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

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
    label = f"{name} (yours)"
    entry = {"solver": name, **_parameters(name, options, survey_config)}
    tasks = read_tasks()  # in order of their number of rows
    experiment = "rank-" + re.sub(r"[^A-Za-z0-9_-]+", "-", name)
    paths = write_configs(
        options.out / "survey-tasks",
        tasks[::3] if options.small else tasks,
        name=experiment,
        solvers={label: entry},
        common=shared_parameters(survey_config["common"], {label: entry}),
    )
    # Quiet, since tables of a single method say little; tables of the whole survey are
    # shown below.
    summaries = run_all(map(str, paths), replace(options, quiet=True))
    exit_code = int(any(map(has_failed, summaries)))
    if options.dry_run or options.shard or options.smoke:  # there is nothing to rank
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
    console = screen(quiet=options.quiet or options.as_json)
    print_table(tables[0], console)  # only the mean ranks; the page has all tables
    for path in contents:
        console.print(f"written: {path}")
    return exit_code


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

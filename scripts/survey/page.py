"""What docs/which-method.md and the README say of the survey, from its reference.

``make docs`` puts it there. Every sentence with a number is made here, by a rule, so
that other results make another page.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from precbench.data import DATASETS
from precbench.ranking.statistics import LEVEL
from precbench.survey.ranking import (
    AP,
    LEAST_ROWS,
    LINEAR,
    MAIN,
    MEASURES,
    REFERENCE,
    ROPE,
    TREES,
    Survey,
    compared,
    in_words,
    kind_of,
    losses,
    standings,
)
from precbench.survey.tasks import N_SPLITS, N_SPLITS_SHORT, is_short
from scripts.survey import rare
from scripts.survey.comparison import rank, write_profiles, write_ranks
from scripts.survey.tables import laid_out

PICTURES = ("ranks", "profiles", "times")
PAPERS = {
    "Kar et al. 2015": "[kar2015](papers/kar2015.md)",
    "Kar et al. 2014": "[kar2014](papers/kar2014.md)",
    "pushes": "[rudin2009](papers/rudin2009.md), TopPush",
    "Gultekin and Paisley 2020": "[gultekin](papers/gultekin.md)",
}
BUDGETS = (1.0, 10.0, 100.0)  # seconds to choose the parameters and to train
POSITIVES = (30, 300, 3000)  # in training
SHARES = (0.02, 0.05, 0.2)
WIDE = 20  # training rows for each column
TRAIN_SHARE = 0.7
LEAST_TASKS = 5  # in a situation
HEADLINE = (AP, MAIN)
SHOWN = (AP, MAIN, "precision_at_k(k=100)", "partial_auc_mcclish(beta=0.1)", "auc")
NEAR = 0.01  # of logistic regression's AUC to that of boosting: nearly linear
_TOP = 5


def sound(survey: Survey, metric: str) -> list[str]:
    """Return the real tasks that a headline may rest on."""
    n_rows = survey.looked_at(metric)
    are_enough = n_rows >= LEAST_ROWS
    have_values = n_rows.index.isin(survey.values(metric).index)
    return list(n_rows.index[are_enough & have_values])


def median_seconds(survey: Survey, tasks: Sequence[str] | None = None) -> pd.DataFrame:
    """Return the median seconds to choose and to train, tasks by contestants."""
    wide = survey.table.pivot_table("seconds", "task", "solver", aggfunc="median")
    names = survey.real if tasks is None else list(tasks)
    return wide.loc[names, survey.solvers]


def nearly_linear(survey: Survey) -> list[str]:
    """Return the real tasks where logistic regression's AUC is near boosting's."""
    auc = survey.values("auc")
    gap = auc["hist-gradient-boosting"] - auc["logistic-regression"]
    return list(auc.index[gap <= NEAR])


class Choice(NamedTuple):
    """What is recommended in a situation: the best mean rank.

    Attributes
    ----------
    solver : str
    tasks : int
        Their number in the situation.
    lost : float
        What it loses to the best of each task, in the mean.
    most : float
        What it loses at most.
    where : str
        The task on which it loses most.
    rival : str
        The best of another kind.
    standing : {"ahead", "practically equivalent", "behind", "undecided"}
        Against `rival`.
    linear : str
        The best of the linear methods.
    linear_lost : float
        What that loses, in the mean.
    """

    solver: str
    tasks: int
    lost: float
    most: float
    where: str
    rival: str
    standing: str
    linear: str
    linear_lost: float


def choose(survey: Survey, values: pd.DataFrame) -> Choice | None:
    """Choose for a situation, of whose tasks and contestants these are the values.

    Return None where the tasks are too few.
    """
    if len(values) < LEAST_TASKS:
        return None
    first, rival, *_others = survey.best(values)
    linear = survey.best(values, LINEAR)[0]
    lost = losses(values)
    return Choice(
        solver=first,
        tasks=len(values),
        lost=float(lost[first].mean()),
        most=float(lost[first].max()),
        where=str(lost[first].idxmax()),
        rival=rival,
        standing=in_words(compared(values, first, rival)),
        linear=linear,
        linear_lost=float(lost[linear].mean()),
    )


def answer(survey: Survey, *metrics: str) -> str:
    """Give the answer by each measure, and say what has not been run."""
    paragraphs = [_answer(survey, metric) for metric in metrics or HEADLINE]
    incomplete = _incomplete(survey)
    if incomplete:
        divisions = ", ".join(incomplete)
        paragraphs.append(
            f"*Not complete*: divisions that have been run of {divisions}."
        )
    return "\n\n".join(paragraphs) + "\n"


def _incomplete(survey: Survey) -> list[str]:
    """List the tasks that lack divisions, each with the number that has been run."""
    n_run_by_task = survey.table.groupby("task")["split"].nunique()
    texts = []
    for task in survey.all_tasks.itertuples():
        n_run = n_run_by_task.get(task.Index, 0)
        n_wanted = N_SPLITS_SHORT if is_short(task) else N_SPLITS
        if n_run < n_wanted:
            texts.append(f"{task.Index} {n_run} of {n_wanted}")
    return texts


def _answer(survey: Survey, metric: str) -> str:
    """Say which method is the best by a measure, and how far ahead of the others."""
    title = MEASURES[metric].title
    tasks = sound(survey, metric)
    values = survey.values(metric, tasks)
    choice = choose(survey, values)
    if choice is None:
        return f"For {title} there are too few tasks."
    table = standings(values)
    first, second = map(str, table.index[:2])
    mean_rank = _interval(table, first, "rank", "{:.1f}")
    lost = _interval(table, first, "lost", "{:.1%}")
    trees = next(solver for solver in survey.best(values) if kind_of(solver) == TREES)
    lost_by_trees = _interval(table, trees, "lost", "{:.1%}")
    lost_by_linear = _interval(table, choice.linear, "lost", "{:.1%}")
    where = f"all {len(tasks)} real tasks"
    if len(tasks) < len(survey.real):
        where = (
            f"the {len(tasks)} of {len(survey.real)} real tasks where it looks at"
            f" {LEAST_ROWS} rows of a test part or more"
        )
    posterior = compared(values, first, second)
    against = (
        f"Against the next, `{second}`, it is {in_words(posterior)}: better by more"
        f" than {ROPE} on the next task with probability {posterior.first:.2f}"
    )
    if choice.rival != second:
        against += (
            f"; against the best of another kind, `{choice.rival}`, {choice.standing}"
        )
    return (
        f"**{title[0].upper()}{title[1:]}: `{first}`.** On {where}, its mean rank among"
        f" {len(survey.solvers)} methods is {mean_rank}, and it loses {lost} to"
        f" the best method of each task, at most {choice.most:.0%} ({choice.where})."
        f" {against}. The best trees, `{trees}`, lose {lost_by_trees}, the best linear"
        f" method, `{choice.linear}`, {lost_by_linear}."
    )


def _interval(table: Any, solver: str, name: str, form: str) -> str:
    """Return a value of a table of `standings` with its 95 % interval."""
    value = form.format(table.at[solver, name])
    low = form.format(table.at[solver, f"{name}_low"])
    high = form.format(table.at[solver, f"{name}_high"])
    return f"{value} ({low} to {high})"


def panel(survey: Survey, *metrics: str) -> str:
    """Lay out what the kinds of tasks of the rare panel recommend, and all of them."""
    index = survey.tasks.index
    is_natural = survey.tasks["kind"] == "natural"
    is_in_bench = pd.Series(rare.in_bench(survey), index)
    parts = {
        "all": pd.Series(True, index),
        "natural": is_natural,
        "thinned": ~is_natural,
        "without sources of the benchmark of advice": ~is_in_bench,
    }
    choices = {}
    for metric in metrics:
        values = survey.values(metric, sound(survey, metric))
        for name, is_in_part in parts.items():
            title = f"{MEASURES[metric].title}: {name}"
            choices[title] = choose(survey, values[is_in_part[values.index]])
    return laid_out(["tasks", "number", *_HEADER[1:]], _rows(choices))


def folds(survey: Survey, *metrics: str) -> str:
    """Lay out the answers where rivals choose by a fifth of the rows, and by folds."""
    panels = {"a fifth of the rows": rare_panel(folds=False), "five folds": survey}
    tasks = pd.read_csv(rare.FOLDED)["task"].unique()
    choices = {}
    for metric in metrics:
        for way, panel_of_way in panels.items():
            title = f"{MEASURES[metric].title}: by {way}"
            values = panel_of_way.values(metric, tasks)
            choices[title] = choose(panel_of_way, values)
    return laid_out(["rivals choose", "tasks", *_HEADER[1:]], _rows(choices))


def fits(survey: Survey) -> str:
    """Report what the training took, and the failures."""
    table = survey.table
    n_wanted = len(table[["task", "split"]].drop_duplicates()) * len(survey.solvers)
    failed = n_wanted - len(table)
    return (
        f"To choose and to train took {table['seconds'].sum() / 3600:.1f} hours of a"
        f" core; of {n_wanted:,} fits {failed} failed and {table['stopped'].sum()} were"
        " stopped by a limit.\n"
    )


def measures(survey: Survey) -> str:
    """Lay out what is recommended for each measure; † marks those on unsound tasks."""
    choices = {}
    for metric, measure in MEASURES.items():
        tasks = sound(survey, metric)
        title = measure.title if tasks else f"{measure.title} †"
        values = survey.values(metric, tasks or survey.real)
        choices[title] = choose(survey, values)
    return laid_out(["measure", *_HEADER], _rows(choices))


_HEADER = [
    "tasks",
    "use",
    "loses",
    "at most",
    "best of another kind",
    "against it",
    "best linear method",
    "loses",
]


def _rows(choices: Mapping[str, Choice | None]) -> list[list[str]]:
    """Return a line for each situation that has a recommendation."""
    rows = []
    for situation, choice in choices.items():
        if choice is not None:
            rows.append([situation, *_cells(choice)])
    return rows


def _cells(choice: Choice) -> list[str]:
    is_linear = choice.linear == choice.solver
    return [
        f"{choice.tasks}",
        f"`{choice.solver}`",
        f"{choice.lost:.1%}",
        f"{choice.most:.0%} ({choice.where})",
        f"`{choice.rival}`",
        choice.standing,
        "itself" if is_linear else f"`{choice.linear}`",
        "" if is_linear else f"{choice.linear_lost:.1%}",
    ]


def situations(survey: Survey) -> str:
    """Recommend a method for each situation, by average precision on all real tasks.

    † marks those with a task of whose test part it looks at few rows.
    """
    n_rows = survey.looked_at(AP)
    values = survey.values(AP)
    choices = {}
    for name, is_in_situation in _kinds_of_tasks(survey).items():
        tasks = [task for task in values.index if is_in_situation[task]]
        title = f"{name} †" if (n_rows[tasks] < LEAST_ROWS).any() else name
        choices[title] = choose(survey, values.loc[tasks])
    for budget in BUDGETS:
        title = f"at most {budget:g} s to choose and to train"
        choices[title] = choose(survey, _values_within(budget, survey, values))
    return laid_out(["situation", *_HEADER], _rows(choices))


def _kinds_of_tasks(survey: Survey) -> dict[str, pd.Series]:
    """Return kinds of tasks by size and difficulty, with whether each task is of it."""
    tasks = survey.tasks
    n_pos = TRAIN_SHARE * tasks["positives"]
    share = tasks["positives"] / tasks["rows"]
    rows_a_column = TRAIN_SHARE * tasks["rows"] / tasks["columns"]
    is_linear = pd.Series(tasks.index.isin(nearly_linear(survey)), tasks.index)
    return {
        **_between("training positives", n_pos, POSITIVES, "{:,}"),
        **_between("positive rows", share, SHARES, "{:.0%}"),
        f"fewer than {WIDE} training rows for each column": rows_a_column < WIDE,
        f"{WIDE} training rows for each column, or more": rows_a_column >= WIDE,
        "nearly linear": is_linear,
        "not linear": ~is_linear,
    }


def _between(
    name: str, values: pd.Series, bounds: Sequence[float], form: str
) -> dict[str, pd.Series]:
    """Return the ranges between bounds, with whether each value lies there."""
    texts = [form.format(bound) for bound in bounds]
    ranges = {f"{name}: up to {texts[0]}": values <= bounds[0]}
    for i in range(len(bounds) - 1):
        is_between = (values > bounds[i]) & (values <= bounds[i + 1])
        ranges[f"{name}: {texts[i]} to {texts[i + 1]}"] = is_between
    ranges[f"{name}: more than {texts[-1]}"] = values > bounds[-1]
    return ranges


def _values_within(budget: float, survey: Survey, values: pd.DataFrame) -> pd.DataFrame:
    """Return values where a method that takes longer reaches what chance does.

    Methods that take longer on every task are left out.
    """
    is_fast = median_seconds(survey, list(values.index)) <= budget
    chance = values["no-skill"] if "no-skill" in values else 0 * values.iloc[:, 0]
    filled = values.where(is_fast).apply(lambda column: column.fillna(chance))
    return filled.loc[:, is_fast.any()]


def contestants(survey: Survey) -> str:
    """Lay out where all contestants stand, by average precision first."""
    table = {}
    header = ["contestant", "kind"]
    for metric in SHOWN:
        tasks = sound(survey, metric) or survey.real
        table[metric] = standings(survey.values(metric, tasks))
        header.append(MEASURES[metric].title)
        if metric in HEADLINE:
            header.append("lost")
    header.append("seconds")
    seconds = median_seconds(survey).median()
    rows = []
    for solver in map(str, table[AP].index):
        cells = [solver, kind_of(solver)]
        for metric in SHOWN:
            if metric in HEADLINE:
                cells.append(_interval(table[metric], solver, "rank", "{:.1f}"))
                cells.append(f"{table[metric]['lost'][solver]:.1%}")
            else:
                cells.append(f"{table[metric]['rank'][solver]:.1f}")
        cells.append(_seconds(seconds[solver]))
        rows.append(cells)
    return laid_out(header, rows, numbers=len(header) - 2)


def pairs(survey: Survey, metric: str) -> str:
    """Lay out the Bayesian comparisons of the first with the next few."""
    values = survey.values(metric, sound(survey, metric))
    first, *others = standings(values).index[:_TOP]
    rows = []
    for other in others:
        posterior = compared(values, first, other)
        rows.append(
            [
                f"`{other}`",
                f"{posterior.first:.2f}",
                f"{posterior.equivalent:.2f}",
                f"{posterior.second:.2f}",
                in_words(posterior),
            ]
        )
    header = ["against", f"`{first}` better", "equivalent", "worse", f"`{first}` is"]
    return laid_out(header, rows)


def tests(survey: Survey, metric: str) -> str:
    """Report the tests over data sets, of all contestants and of the best by kind."""
    values = survey.values(metric, sound(survey, metric))
    everyone = rank(values)
    leaders = rank(values[survey.best(values)])
    names = list(map(str, leaders.ranks.index))
    pairs_of_leaders = list(combinations(names, 2))
    differing = [(a, b) for a, b in pairs_of_leaders if leaders.p[a][b] <= LEVEL]
    first = names[0]
    others = [f"`{b}`" for a, b in differing if a == first]
    outcome = (
        f"find {len(differing)} of the {len(pairs_of_leaders)} pairs of these different"
    )
    if others:
        outcome += f", `{first}` from {', '.join(others)}"
    return (
        f"By {MEASURES[metric].title}, on {len(values)} tasks, Friedman's test (in the"
        f" form of Iman and Davenport) of all {len(survey.solvers)} contestants has p ="
        f" {everyone.friedman:.1g}; of the best of each of {len(leaders.ranks)} kinds p"
        f" = {leaders.friedman:.1g}. Wilcoxon's tests with Holm's correction"
        f" {outcome}.\n"
    )


def cost(survey: Survey) -> str:
    """Compare how long it takes to choose and to train."""
    values = survey.values(AP, sound(survey, AP))
    first = survey.best(values)[0]
    linear = survey.best(values, LINEAR)[0]
    seconds = median_seconds(survey)
    ratio = (seconds[first] / seconds[linear]).median()
    median = seconds.median()
    slowest = str(median.idxmax())
    worst = str(seconds.max(axis=1).idxmax())
    return (
        f"To choose the parameters and to train takes `{first}` a median of"
        f" {_seconds(median[first])} s of a task, `{linear}` {_seconds(median[linear])}"
        f" s; the median ratio is {ratio:.2g}. The slowest is `{slowest}` with"
        f" {_seconds(median[slowest])} s, on {worst}"
        f" {_seconds(seconds[slowest][worst])} s.\n"
    )


def papers(survey: Survey) -> str:
    """Lay out what the methods of each paper are best at, among the linear ones."""
    linear = survey.solvers_of(*LINEAR)
    among_all = standings(survey.values(AP, sound(survey, AP)))
    ranks_among_linear = {}
    for metric in MEASURES:
        tasks = sound(survey, metric) or survey.real
        table = standings(survey.values(metric, tasks)[linear])
        ranks_among_linear[metric] = table["rank"]
    rows = []
    for kind, link in PAPERS.items():
        ranks = pd.DataFrame(ranks_among_linear).loc[survey.solvers_of(kind)]
        best_by_ap = str(ranks[AP].idxmin())
        best_measure = str(ranks.min().idxmin())
        best_by_it = str(ranks[best_measure].idxmin())
        rank_by_it = ranks[best_measure][best_by_it]
        title = MEASURES[best_measure].title
        rows.append(
            [
                link,
                f"`{best_by_ap}` ({ranks[AP][best_by_ap]:.1f})",
                _interval(among_all, best_by_ap, "lost", "{:.1%}"),
                f"{title}: `{best_by_it}` ({rank_by_it:.1f})",
            ]
        )
    header = [
        "paper",
        "best at average precision",
        "loses to the best of all",
        "best measure",
    ]
    return laid_out(header, rows)


def synthetic(survey: Survey) -> str:
    """Lay out the best of each kind on the synthetic sets."""
    names = [
        name
        for name in survey.table["task"].unique()
        if name not in survey.all_tasks.index
    ]
    if not names:
        return "They have not been run.\n"
    values = survey.values(AP, names)
    best = values.max(axis=1)
    rows = []
    for solver in survey.best(values):
        cells = [f"{solver} ({kind_of(solver)})"]
        for task, value in values[solver].items():
            text = f"{value:.3f}"
            cells.append(f"**{text}**" if value == best[task] else text)
        rows.append(cells)
    titles = [DATASETS[name].title.removeprefix("Synthetic, ") for name in values.index]
    return laid_out(["best of its kind", *titles], rows, numbers=len(titles))


def draw(name: str, folder: Path) -> Path:
    """Draw one of `PICTURES`, of the best of each kind over the real tasks."""
    survey = committed()
    values = survey.values(AP, sound(survey, AP))
    shown = survey.best(values)
    caption = (
        f"The best contestant of each of {len(shown)} kinds, {len(values)} real tasks."
    )
    stem = folder / name
    if name == "ranks":
        title = "Average precision: mean ranks"
        paths = write_ranks(values[shown], stem, title, caption)
    elif name == "profiles":
        title = "Average precision: how far behind the best"
        paths = write_profiles(values[shown], "value", stem, title, caption)
    else:
        title = "Seconds to choose the parameters and to train"
        seconds = median_seconds(survey, list(values.index))[shown]
        paths = write_profiles(seconds, "time", stem, title, caption)
    return next(path for path in paths if path.suffix == ".png")


@cache
def committed() -> Survey:
    """Read the committed reference of the survey."""
    return Survey(pd.read_csv(REFERENCE))


@cache
def rare_panel(folds: bool = True) -> Survey:
    """Read the values of the rare panel; rivals choose by folds, or by a fifth."""
    keys = ["task", "split", "solver"]
    table = pd.read_csv(rare.REFERENCE).set_index(keys)
    if folds:
        table.update(pd.read_csv(rare.FOLDED).set_index(keys))
    return Survey(table.reset_index(), rare.TASKS)


def _seconds(seconds: float) -> str:
    return f"{seconds:.2g}" if seconds < 100 else f"{seconds:.0f}"


# By the names that the marks in the pages have.
PARTS: dict[str, Callable[..., str]] = {
    "answer": answer,
    "measures": measures,
    "situations": situations,
    "contestants": contestants,
    "pairs": pairs,
    "tests": tests,
    "cost": cost,
    "papers": papers,
    "synthetic": synthetic,
    "panel": panel,
    "folds": folds,
    "fits": fits,
}

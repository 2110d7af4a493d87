"""What docs/which-method.md and the README say of the survey, from its reference.

``make docs`` puts it there. Every sentence with a number is made here, by a rule, so
that other results make another page.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import chain, combinations, pairwise
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
    looked = survey.looked_at(metric)
    measured = set(survey.values(metric).index)
    return [name for name in looked.index[looked >= LEAST_ROWS] if name in measured]


def median_seconds(survey: Survey, tasks: Sequence[str] | None = None) -> pd.DataFrame:
    """Return the median seconds to choose and to train, tasks by contestants."""
    wide = survey.table.pivot_table("seconds", "task", "solver", aggfunc="median")
    return wide.loc[survey.real if tasks is None else list(tasks), survey.solvers]


def nearly_linear(survey: Survey) -> list[str]:
    """Return the real tasks where logistic regression's AUC is near boosting's."""
    auc = survey.values("auc")
    gap = auc["hist-gradient-boosting"] - auc["logistic-regression"]
    return list(auc.index[gap <= NEAR])


class Choice(NamedTuple):
    """What is recommended in a situation.

    The best mean rank, and what it loses, at most `where`.

    `rival` is the best of another kind, against which it is "ahead", "practically
    equivalent", "behind" or "undecided"; `linear` the best of the linear methods.
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
    """Choose for a situation: these tasks and contestants.

    None where the tasks are too few.
    """
    if len(values) < LEAST_TASKS:
        return None
    first, rival, *_ = survey.best(values)
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
    """Give the answer, and what it rests on."""
    paragraphs = [_answer(survey, metric) for metric in metrics or HEADLINE]
    return "\n\n".join([*paragraphs, *_lacking(survey)]) + "\n"


def _lacking(survey: Survey) -> Iterator[str]:
    """Say what of the survey has not been run."""
    run = survey.table.groupby("task")["split"].nunique()
    short = []
    for task in survey.all_tasks.itertuples():
        n_run = run.get(task.Index, 0)
        n_wanted = N_SPLITS_SHORT if is_short(task) else N_SPLITS
        if n_run < n_wanted:
            short.append(f"{task.Index} {n_run} of {n_wanted}")
    if short:
        yield f"*Not complete*: divisions that have been run of {', '.join(short)}."


def _answer(survey: Survey, metric: str) -> str:
    title = MEASURES[metric].title
    tasks = sound(survey, metric)
    values = survey.values(metric, tasks)
    choice = choose(survey, values)
    if choice is None:
        return f"For {title} there are too few tasks."
    table = standings(values)
    first, second = map(str, table.index[:2])
    trees = next(solver for solver in survey.best(values) if kind_of(solver) == TREES)
    lost = {
        solver: _interval(table, solver, "lost", "{:.1%}")
        for solver in (first, trees, choice.linear)
    }
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
        f" {len(survey.solvers)} methods is"
        f" {_interval(table, first, 'rank', '{:.1f}')}, and it loses {lost[first]} to"
        f" the best method of each task, at most {choice.most:.0%} ({choice.where})."
        f" {against}. The best trees, `{trees}`, lose {lost[trees]}, the best linear"
        f" method, `{choice.linear}`, {lost[choice.linear]}."
    )


def _interval(table: Any, solver: str, name: str, form: str) -> str:
    """Return a value of `standings` with its 95 % interval."""
    value = form.format(table.at[solver, name])
    low = form.format(table.at[solver, f"{name}_low"])
    high = form.format(table.at[solver, f"{name}_high"])
    return f"{value} ({low} to {high})"


def panel(survey: Survey, *metrics: str) -> str:
    """Lay out what the kinds of tasks of the rare panel recommend, and all of them."""
    natural = survey.tasks["kind"] == "natural"
    parts = {
        "all": natural | True,
        "natural": natural,
        "thinned": ~natural,
        "without sources of the benchmark of advice": ~pd.Series(
            rare.in_bench(survey), natural.index
        ),
    }
    rows = []
    for metric in metrics:
        values = survey.values(metric, sound(survey, metric))
        for name, here in parts.items():
            chosen = choose(survey, values[here[values.index]])
            rows.append(_row(f"{MEASURES[metric].title}: {name}", chosen))
    return laid_out(["tasks", "number", *_HEADER[1:]], filter(None, rows))


def folds(survey: Survey, *metrics: str) -> str:
    """Lay out the answers where rivals choose by a fifth of the rows, and by folds."""
    ways = {"a fifth of the rows": rare_panel(folds=False), "five folds": survey}
    tasks = pd.read_csv(rare.FOLDED)["task"].unique()
    rows = []
    for metric in metrics:
        for way, panel_of_way in ways.items():
            chosen = choose(panel_of_way, panel_of_way.values(metric, tasks))
            rows.append(_row(f"{MEASURES[metric].title}: by {way}", chosen))
    return laid_out(["rivals choose", "tasks", *_HEADER[1:]], filter(None, rows))


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
    """Lay out what is recommended for each measure."""
    rows = []
    for metric, measure in MEASURES.items():
        tasks = sound(survey, metric)
        choice = choose(survey, survey.values(metric, tasks or survey.real))
        rows.append(_row(measure.title if tasks else f"{measure.title} †", choice))
    return laid_out(["measure", *_HEADER], filter(None, rows))


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


def _row(situation: str, choice: Choice | None) -> list[str] | None:
    if choice is None:
        return None
    is_linear = choice.linear == choice.solver
    return [
        situation,
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
    """Recommend a method for each situation, by average precision on all real tasks."""
    tasks = survey.tasks
    n_pos = TRAIN_SHARE * tasks["positives"]
    share = tasks["positives"] / tasks["rows"]
    rows_a_column = TRAIN_SHARE * tasks["rows"] / tasks["columns"]
    linear = tasks.index.isin(nearly_linear(survey))
    looked = survey.looked_at(AP)
    values = survey.values(AP)
    parts = [
        *_between("training positives", n_pos, POSITIVES, "{:,}"),
        *_between("positive rows", share, SHARES, "{:.0%}"),
        (f"fewer than {WIDE} training rows for each column", rows_a_column < WIDE),
        (f"{WIDE} training rows for each column, or more", rows_a_column >= WIDE),
        ("nearly linear", pd.Series(linear, tasks.index)),
        ("not linear", pd.Series(~linear, tasks.index)),
    ]
    rows = []
    for name, here in parts:
        some = [task for task in values.index if here[task]]
        looks_at_few = len(some) > 0 and (looked[some] < LEAST_ROWS).any()
        title = f"{name} †" if looks_at_few else name
        rows.append(_row(title, choose(survey, values.loc[some])))
    seconds = median_seconds(survey, list(values.index))
    chance = values["no-skill"] if "no-skill" in values else 0 * values.iloc[:, 0]
    for budget in BUDGETS:
        is_fast = seconds <= budget
        # a method that is too slow on a task leaves one no better than chance
        within = values.where(is_fast).apply(lambda column: column.fillna(chance))
        within = within.loc[:, is_fast.any()]
        title = f"at most {budget:g} s to choose and to train"
        rows.append(_row(title, choose(survey, within)))
    return laid_out(["situation", *_HEADER], filter(None, rows))


def _between(
    name: str, values: pd.Series, bounds: Sequence[float], form: str
) -> Iterator[tuple[str, pd.Series]]:
    """Yield the ranges between bounds, with what lies in each."""
    first, last = form.format(bounds[0]), form.format(bounds[-1])
    yield f"{name}: up to {first}", values <= bounds[0]
    for low, high in pairwise(bounds):
        text = f"{name}: {form.format(low)} to {form.format(high)}"
        yield text, (values > low) & (values <= high)
    yield f"{name}: more than {last}", values > bounds[-1]


def contestants(survey: Survey) -> str:
    """Lay out where all contestants stand, by average precision first."""
    table = {
        m: standings(survey.values(m, sound(survey, m) or survey.real)) for m in SHOWN
    }
    seconds = median_seconds(survey).median()
    rows = []
    for solver in map(str, table[AP].index):
        cells = [solver, kind_of(solver)]
        for metric in HEADLINE:
            cells.append(_interval(table[metric], solver, "rank", "{:.1f}"))
            cells.append(f"{table[metric]['lost'][solver]:.1%}")
        cells += [f"{table[m]['rank'][solver]:.1f}" for m in SHOWN if m not in HEADLINE]
        rows.append([*cells, _seconds(seconds[solver])])
    titles = [[MEASURES[m].title, *["lost"] * (m in HEADLINE)] for m in SHOWN]
    header = ["contestant", "kind", *chain.from_iterable(titles), "seconds"]
    return laid_out(header, rows, numbers=len(header) - 2)


def pairs(survey: Survey, metric: str) -> str:
    """Lay out the Bayesian comparisons of the first with the next few."""
    values = survey.values(metric, sound(survey, metric))
    first, *others = standings(values).index[:_TOP]
    rows = []
    for other in others:
        posterior = compared(values, first, other)
        shares = (f"{p:.2f}" for p in posterior)
        rows.append([f"`{other}`", *shares, in_words(posterior)])
    header = ["against", f"`{first}` better", "equivalent", "worse", f"`{first}` is"]
    return laid_out(header, rows)


def tests(survey: Survey, metric: str) -> str:
    """Report the tests over data sets."""
    values = survey.values(metric, sound(survey, metric))
    everyone = rank(values)
    ranking = rank(values[survey.best(values)])
    listed = list(combinations(map(str, ranking.p), 2))
    differ = [pair for pair in listed if ranking.p[pair[0]][pair[1]] <= LEVEL]
    first = listed[0][0]
    others = [f"`{b}`" for a, b in differ if a == first]
    outcome = f"find {len(differ)} of the {len(listed)} pairs of these different"
    if others:
        outcome += f", `{first}` from {', '.join(others)}"
    return (
        f"By {MEASURES[metric].title}, on {len(values)} tasks, Friedman's test (in the"
        f" form of Iman and Davenport) of all {len(survey.solvers)} contestants has p ="
        f" {everyone.friedman:.1g}; of the best of each of {len(ranking.ranks)} kinds p"
        f" = {ranking.friedman:.1g}. Wilcoxon's tests with Holm's correction"
        f" {outcome}.\n"
    )


def cost(survey: Survey) -> str:
    """Compare what it takes to choose and to train."""
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
    among_linear = {}
    for metric in MEASURES:
        tasks = sound(survey, metric) or survey.real
        among_linear[metric] = standings(survey.values(metric, tasks)[linear])
    rows = []
    for kind, link in PAPERS.items():
        of_kind = survey.solvers_of(kind)
        ranks = pd.DataFrame(
            {
                metric: table.loc[of_kind, "rank"]
                for metric, table in among_linear.items()
            }
        )
        leader = str(ranks[AP].idxmin())
        metric = str(ranks.min().idxmin())
        best = str(ranks[metric].idxmin())
        rows.append(
            [
                link,
                f"`{leader}` ({ranks[AP][leader]:.1f})",
                _interval(among_all, leader, "lost", "{:.1%}"),
                f"{MEASURES[metric].title}: `{best}` ({ranks[metric][best]:.1f})",
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
        for value, most in zip(values[solver], best, strict=True):
            cells.append(f"**{value:.3f}**" if value == most else f"{value:.3f}")
        rows.append(cells)
    titles = [DATASETS[name].title.removeprefix("Synthetic, ") for name in values.index]
    return laid_out(["best of its kind", *titles], rows, numbers=len(titles))


def draw(name: str, folder: Path) -> Path:
    """Draw the best of each kind over the real tasks: `PICTURES`, one at a time."""
    survey = committed()
    values = survey.values(AP, sound(survey, AP))
    shown = survey.best(values)
    about = (
        f"The best contestant of each of {len(shown)} kinds, {len(values)} real tasks."
    )
    stem = folder / name
    if name == "ranks":
        made = write_ranks(values[shown], stem, "Average precision: mean ranks", about)
    elif name == "profiles":
        title = "Average precision: how far behind the best"
        made = write_profiles(values[shown], "value", stem, title, about)
    else:
        title = "Seconds to choose the parameters and to train"
        seconds = median_seconds(survey, list(values.index))[shown]
        made = write_profiles(seconds, "time", stem, title, about)
    return next(path for path in made if path.suffix == ".png")


@cache
def committed() -> Survey:
    """Read the committed reference of the survey."""
    return Survey(pd.read_csv(REFERENCE))


@cache
def rare_panel(folds: bool = True) -> Survey:
    """Read the values of the rare panel; rivals choose by folds, or by a fifth."""
    fit = ["task", "split", "solver"]
    table = pd.read_csv(rare.REFERENCE).set_index(fit)
    if folds:
        table.update(pd.read_csv(rare.FOLDED).set_index(fit))
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

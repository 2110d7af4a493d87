"""What docs/which-method.md and the README say of the survey, made from its reference alone.

``make docs`` puts it there. Every sentence with a number is made here, by a rule, so that other
results make another page.
"""

from collections.abc import Callable, Mapping
from functools import cache
from itertools import combinations
from pathlib import Path

import pandas as pd

from precbench.data import DATASETS
from precbench.report.comparison import rank, write_profiles, write_ranks
from precbench.statistics import LEVEL
from precbench.survey.choice import (
    FEATURES,
    LINEAR,
    MAIN,
    MOST,
    NEAR,
    REFERENCE,
    TREES,
    Choice,
    Survey,
    is_synthetic,
    kind_of,
    ranks_of,
)
from precbench.survey.tables import laid_out

MEASURES = {  # what each looks at, and its name in the tables
    "precision_at_k(k=10)": ("the first 10 rows", "prec@10"),
    "precision_at_k(k=100)": ("the first 100 rows", "prec@100"),
    "precision_at_k(k=0.05)": ("a twentieth of the positives", "prec@0.05"),
    MAIN: ("a quarter of the positives", "prec@0.25"),
    "precision_at_k(k=1.0)": ("as many rows as positives", "prec@1.0"),
    "partial_auc(beta=0.01)": ("up to 1 % of the negatives", "pAUC(0.01)"),
    "partial_auc(beta=0.1)": ("up to 10 % of the negatives", "pAUC(0.1)"),
    "auc": ("the whole list", "AUC"),
}
PICTURES = ("ranks", "profiles", "times")
PAPERS = {
    "Kar et al. 2015": "[kar2015](papers/kar2015.md)",
    "Kar et al. 2014": "[kar2014](papers/kar2014.md)",
    "pushes": "[rudin2009](papers/rudin2009.md), TopPush",
    "Gultekin and Paisley 2020": "[gultekin](papers/gultekin.md)",
}
BUDGETS = (0.01, 0.1, 1.0, 10.0)  # seconds to choose the parameters and to train
TEST_SHARE = 0.3
LARGE = 10_000  # rows
RARE = 0.01  # of the rows are positive


def answer(survey: Survey) -> str:
    """Give the answer, and what it rests on."""
    chosen = survey.choose(survey.real)
    assert chosen is not None
    values, tied = survey.values(survey.real), survey.tied(survey.real)
    groups = {kind: survey.of(kind) for kind in (TREES, FEATURES)}
    groups["linear methods"] = survey.linear
    best = values.max(axis=1)
    wins = {name: int((values[of].max(axis=1) == best).sum()) for name, of in groups.items()}
    level = {name: int(tied[of].any(axis=1).sum()) for name, of in groups.items()}
    [whose] = [name for name, of in groups.items() if chosen.solver in of]
    found = "No kind of method wins in most places"
    if 2 * wins[whose] > chosen.n:
        most = chosen.tied >= MOST * chosen.n
        often = "win or tie almost everywhere" if most else "win more often than not"
        found = f"{whose.capitalize()} {often}"
    elif (values[survey.linear].max(axis=1) < best).sum() >= MOST * chosen.n:
        found = "Trees and random features win almost everywhere, in turns"
    cards = [DATASETS[name] for name in values.index]
    rows = [f"{card.rows:,}" for card in sorted(cards, key=lambda card: card.rows)]
    shares = sorted(card.positives / card.rows for card in cards)
    few, many = _percent(shares[0]), _percent(shares[-1])
    text = (
        f"**{found}: use `{chosen.solver}`.** On {chosen.n} real data sets ({rows[0]} to "
        f"{rows[-1]} rows, {few} to {many} positive) its prec@0.25 is the best, or not "
        f"significantly different from the best, on {chosen.tied}. The highest mean is reached by "
        f"{_counts(wins)} (ties counted for both). Best or tied, with the best method of each "
        f"group chosen in hindsight for each data set, are {_counts(level)}."
    )
    n = survey.wide("n", survey.real).max(axis=1)
    if (n < 2).any():
        names = ", ".join(n.index[n < 2])
        text += f" On {names} only one split was run, so that no test is possible."
    return f"{text}\n\n{_on_synthetic(survey)}\n" if survey.synthetic else f"{text}\n"


def _on_synthetic(survey: Survey) -> str:
    """Say on which synthetic data a linear method is better than a tree, and by how much."""
    values = survey.values(survey.synthetic)
    [linear, *_], [tree] = survey.best(values, LINEAR), survey.best(values, [TREES])
    above = values[linear] - values[tree]
    cards = {name: DATASETS[name] for name in above.index}
    rare = [
        name
        for name, card in cards.items()
        if not card.non_linear and card.positives <= RARE * card.rows
    ]
    listed = "; ".join(f"{_title(name)}: {_signed(above[name])}" for name in cards)
    splits = int(survey.wide("n", survey.synthetic).max().max())
    return (
        f"On {len(values)} synthetic data sets, never counted among the real ones, `{linear}`, the "
        f"best linear method there, is better than `{tree}`, the best tree method, on "
        f"{int((above > 0).sum())}, among them {int((above[rare] > 0).sum())} of the {len(rare)} "
        f"with a linear signal and at most {_percent(RARE)} positive. The differences of "
        f"prec@0.25 ({splits} split{'s' if splits > 1 else ''}): {listed}."
    )


def situations(survey: Survey) -> str:
    """Recommend a method for each situation."""
    cards = {name: DATASETS[name] for name in survey.real}
    few = [name for name, card in cards.items() if card.rows < LARGE]
    frequent = [name for name, card in cards.items() if 5 * card.positives >= card.rows]
    near = survey.nearly_linear()
    rows = [
        (f"{depth} ({title})", survey.choose(survey.real, metric))
        for metric, (depth, title) in MEASURES.items()
    ]
    for here, elsewhere, names in (
        (f"fewer than {LARGE:,} rows", f"{LARGE:,} rows and more", few),
        ("positives: a fifth and more", "positives: less than a fifth", frequent),
        ("nearly linear (see below)", "not linear", near),
    ):
        others = [name for name in survey.real if name not in names]
        rows += [(here, survey.choose(names)), (elsewhere, survey.choose(others))]
    rows += [
        (f"at most {budget:g} s to choose and train", survey.choose(survey.real, budget=budget))
        for budget in BUDGETS
    ]
    rows += [(f"synthetic: {_title(name)}", survey.choose([name])) for name in survey.synthetic]
    header = [
        *("situation", "use", "sure?", "best or tied", "alone", "Wilcoxon"),
        *("best linear method", "best or tied", "difference"),
    ]
    return laid_out(header, [_row(name, found) for name, found in rows if found is not None])


def _row(situation: str, found: Choice) -> list[str]:
    row = [situation, f"`{found.solver}`", found.sure, f"{found.tied} of {found.n}"]
    least = 2.0 ** (1 - found.n) * found.kinds  # p-value at Holm's first step
    row += [str(found.alone), f"{found.ahead} of {found.kinds}" if least <= LEVEL else "–"]
    if found.linear == found.solver:
        return [*row, "itself", "", ""]
    return [*row, f"`{found.linear}`", str(found.linear_tied), _signed(-found.behind)]


def linearity(survey: Survey) -> str:
    """Say which data sets are nearly linear."""
    near = survey.nearly_linear()
    return (
        f"*Nearly linear* is a problem on which the AUC of logistic regression is within "
        f"{NEAR:g} of the best one, which two quick fits show: {', '.join(near) or 'none'}. The "
        f"other {len(survey.real) - len(near)} real data sets are not.\n"
    )


def by_dataset(survey: Survey, of: str) -> str:
    """Lay out the best of each kind against the data sets that are "real" or "synthetic"."""
    datasets = survey.real if of == "real" else survey.synthetic
    values, tied = survey.values(datasets), survey.tied(datasets)
    best = values.max(axis=1)
    cells = []
    for solver in survey.best(values):
        row = [f"{solver} ({kind_of(solver)})"]
        for name in values.index:
            value = values.loc[name, solver]
            is_best = value == best[name]
            mark = " ≈" if tied.loc[name, solver] and not is_best else ""
            row.append(f"**{value:.3f}**" if is_best else f"{value:.3f}{mark}")
        cells.append(row)
    names = [_title(name) for name in values.index]
    return laid_out(["best of its kind", *names], cells, numbers=len(names))


def ranks(survey: Survey) -> str:
    """Lay out the mean ranks of all contestants over the real data sets, and their times."""
    measured = set(survey.table["metric"])
    metrics = [MAIN, *(metric for metric in MEASURES if metric in measured - {MAIN})]
    of_metric = {metric: ranks_of(survey.values(survey.real, metric)) for metric in metrics}
    cells = []
    for solver in of_metric[MAIN].sort_values(kind="stable").index:
        row = [solver, kind_of(solver)]
        for of in of_metric.values():
            text = f"{of[solver]:.1f}"
            row.append(f"**{text}**" if of[solver] == of.min() else text)
        times = (_median(survey, solver, of) for of in ("seconds", "tuning_seconds"))
        cells.append([*row, _tied(survey, [solver]), *times])
    titles = [MEASURES[metric][1] for metric in metrics]
    header = ["contestant", "kind", *titles, "best or tied", "train (s)", "choose (s)"]
    return laid_out(header, cells, numbers=len(header) - 2)


def short(survey: Survey) -> str:
    """Lay out the best of each kind for the README."""
    values = survey.values(survey.real)
    mean_ranks = ranks_of(values)
    cells = []
    for solver in survey.best(values):
        row = [solver, kind_of(solver), f"{mean_ranks[solver]:.1f}", _tied(survey, [solver])]
        cells.append([*row, f"{values[solver].mean():.3f}", _median(survey, solver)])
    header = ["best of its kind", "kind", "mean rank", "best or tied", "mean prec@0.25", "seconds"]
    return laid_out(header, cells, numbers=4)


def tests(survey: Survey) -> str:
    """Report the tests over data sets."""
    values = survey.values(survey.real)
    everyone, ranking = rank(values), rank(values[survey.best(values)])
    pairs = list(combinations(map(str, ranking.p), 2))
    different = [f"`{a}` from `{b}`" for a, b in pairs if ranking.p[a][b] <= LEVEL]
    least = 2.0 ** (1 - len(values)) * len(pairs)  # p-value at Holm's first step
    found = f"find {len(different)} of these {len(pairs)} pairs different"
    if different:
        found += f": {'; '.join(different)}"
    if least > LEVEL:
        found += f"; over {len(values)} data sets no p-value can be below {least:.2g}"
    return (
        f"Friedman's test (in the form of Iman and Davenport) of all {len(survey.solvers)} "
        f"contestants: p = {everyone.friedman.p_f:.1g}; of the best of each of "
        f"{len(ranking.ranks)} kinds: p = {ranking.friedman.p_f:.1g}. Wilcoxon's tests with "
        f"Holm's correction {found}. With ten data sets, Holm-corrected Wilcoxon tests of all "
        f"pairs have no power beyond seven methods, so we compare seven kinds.\n"
    )


def cost(survey: Survey) -> str:
    """Compare what it takes to choose and to train."""
    values = survey.values(survey.real)
    first, linear = survey.best(values)[0], survey.best(values, LINEAR)[0]
    total, train = (survey.times[of].loc[survey.real] for of in ("total", "seconds"))
    both, alone = total.median().map(_seconds), train.median().map(_seconds)
    ratio = (total[first] / total[linear]).median()
    slowest, worst = str(total.median().idxmax()), str(total.max(axis=1).idxmax())
    return (
        f"To choose the parameters and to train takes `{first}` a median of {both[first]} s, "
        f"`{linear}` {both[linear]} s; the median ratio is {ratio:.2g}. Training alone takes "
        f"{alone[first]} s and {alone[linear]} s. The slowest is `{slowest}` with a median of "
        f"{both[slowest]} s, on {worst} {_seconds(total[slowest][worst])} s.\n"
    )


def papers(survey: Survey) -> str:
    """Lay out what the methods of each paper are best at, among the linear ones."""
    linear = survey.linear
    cells = []
    for kind, link in PAPERS.items():
        ours = survey.of(kind)
        found = pd.DataFrame(
            {m: ranks_of(survey.values(survey.real, m)[linear])[ours] for m in [MAIN, *MEASURES]}
        )
        leader, at = str(found[MAIN].idxmin()), str(found.min().idxmin())
        best = str(found[at].idxmin())
        row = [link, f"`{leader}` ({found[MAIN][leader]:.1f})"]
        row.append(f"{MEASURES[at][1]}: `{best}` ({found[at][best]:.1f})")
        for names in (survey.real, survey.synthetic):
            values = survey.values(names)[linear]
            won = values.index[values[ours].max(axis=1) >= values.max(axis=1)]
            row.append("; ".join(map(_title, won)) or "–")
        cells.append([*row, _tied(survey, ours), _median(survey, leader)])
    header = [
        *("paper", f"best at {MEASURES[MAIN][1]}", "best measure", "best linear method on"),
        *("synthetic sets", "best or tied", "seconds"),
    ]
    return laid_out(header, cells, numbers=2)


def needless(survey: Survey) -> str:
    """List the contestants that are never the best nor tied with it."""
    n = survey.wide("n", survey.real + survey.synthetic).max(axis=1)
    tested = [name for name in n.index[n > 1] if DATASETS[name].rows >= LARGE]
    tied = pd.concat([survey.tied(tested, metric) for metric in MEASURES])
    names = [f"`{solver}`" for solver in survey.solvers if not tied[solver].any()]
    where = (
        f"On the {len(tested)} data sets with at least {LARGE:,} rows and more than one split, "
        f"real or synthetic, "
    )
    if not names:
        return (
            f"{where}every contestant is best or tied with the best somewhere, by at least one of "
            f"the {len(MEASURES)} measures.\n"
        )
    return (
        f"{where}these are never the best nor tied with it, by any of the {len(MEASURES)} "
        f"measures: {', '.join(names)}.\n"
    )


def sizes(survey: Survey) -> str:
    """List the data sets."""
    n = survey.table.groupby("dataset")["n"].max()
    cells = []
    for name in survey.real + survey.synthetic:
        card = DATASETS[name]
        share = _percent(card.positives / card.rows)
        cells.append([name, f"{card.rows:,}", card.features, share, n[name]])
    return laid_out(["data set", "rows", "features", "positive", "splits"], cells, numbers=4)


def smallest(survey: Survey) -> str:
    """Say how few rows prec@0.25 looks at on the real data sets with the fewest positives."""
    rows = {name: TEST_SHARE * DATASETS[name].positives / 4 for name in survey.real}
    few = [f"{rows[name]:.0f} rows of {name}" for name in sorted(rows, key=rows.__getitem__)]
    seen = ", ".join(few[:3])
    return f"- In a test set, prec@0.25 looks at {seen}: there the tests have little power.\n"


def draw(name: str, folder: Path) -> Path:
    """Draw the best of each kind over the real data sets: `PICTURES`, one at a time."""
    survey = committed()
    values = survey.values(survey.real)
    shown = survey.best(values)
    about = f"The best contestant of each of {len(shown)} kinds, real data sets only."
    stem = folder / name
    if name == "ranks":
        made = write_ranks(values[shown], stem, "prec@0.25: mean ranks", about)
    elif name == "profiles":
        title = "prec@0.25: how far behind the best"
        made = write_profiles(values[shown], "value", stem, title, about)
    else:
        seconds = survey.times["total"].loc[values.index, shown]
        title = "Seconds to choose the parameters and to train"
        made = write_profiles(seconds, "time", stem, title, about)
    return next(path for path in made if path.suffix == ".png")


@cache
def committed() -> Survey:
    """Read the committed reference of the survey."""
    return Survey(pd.read_csv(REFERENCE))


def _title(dataset: str) -> str:
    """Return the name of a data set, of a synthetic one what is special about it."""
    card = DATASETS[dataset]
    return card.title.removeprefix("Synthetic, ") if is_synthetic(dataset) else dataset


def _tied(survey: Survey, solvers: list[str]) -> str:
    tied = survey.tied(survey.real)[solvers].any(axis=1)
    return f"{int(tied.sum())} of {len(tied)}"


def _median(survey: Survey, solver: str, of: str = "total") -> str:
    return _seconds(survey.times[of].loc[survey.real, solver].median())


def _counts(of: Mapping[str, int]) -> str:
    return ", ".join(f"{name} on {n}" for name, n in of.items())


def _signed(difference: float) -> str:
    return f"{difference:+.3f}".replace("-", "−")


def _seconds(seconds: float) -> str:
    return f"{seconds:.2g}" if seconds < 100 else f"{seconds:.0f}"


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %"


_PARTS = (
    *(answer, situations, linearity, by_dataset, ranks, short),
    *(tests, cost, papers, needless, sizes, smallest),
)
PARTS: dict[str, Callable[..., str]] = {part.__name__.replace("_", "-"): part for part in _PARTS}
"""By the names that the marks in the pages have."""

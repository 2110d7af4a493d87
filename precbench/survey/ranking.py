"""The results of the survey: where each method stands, and how sure that is.

The rules are in docs/survey-rules.md.
"""

import json
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from precbench.core.errors import InputError
from precbench.core.locations import shipped
from precbench.ranking.statistics import Posterior, bayesian_signed_rank, mean_ranks
from precbench.survey.tasks import TASKS, TEST_SHARE

REFERENCE = shipped("results/reference") / "survey.csv.gz"
TREES = "trees"
FEATURES = "random features"
CLASSIFIERS = "linear classifiers"
STACKS = "ensembles of several kinds"
NETWORKS = "neural networks"
NONE = "no skill"
KINDS = {
    TREES: (
        "hist-gradient-boosting",
        "lightgbm",
        "lightgbm-lambdarank",
        "xgboost",
        "catboost",
        "random-forest",
        "extra-trees",
    ),
    FEATURES: (),  # of any solver whose label says so, see `kind_of`
    CLASSIFIERS: ("logistic-regression", "linear-svm"),
    "Kar et al. 2015": ("perceptron-avg", "perceptron-max", "sgd-avg", "sgd-max"),
    "Kar et al. 2014": ("1pmb", "2pmb", "psg", "cutting-plane", "ftrl"),
    "pushes": ("pnorm-push", "ir-push", "rankboost", "toppush", "toppush-k"),
    "Gultekin and Paisley 2020": (
        "bbr",
        "bbr-pairs",
        "lcbr",
        "oam",
        "adaoam",
        "pgd",
        "spam",
    ),
    NETWORKS: ("mlp",),
    STACKS: ("ensemble",),
    NONE: ("no-skill",),
}
LINEAR = [
    kind for kind in KINDS if kind not in (TREES, FEATURES, STACKS, NETWORKS, NONE)
]
COMPARED = [kind for kind in KINDS if kind != NONE]
AP = "average_precision"
MAIN = "precision_at_k(k=0.25)"
# A task counts in a headline if the measure looks at so many rows of a test part.
LEAST_ROWS = 20
ROPE = 0.01  # values that differ by less are practically equivalent
SURE = 0.95  # the posterior probability from which a comparison is decided
_DRAWS = 2000  # bootstrap samples


class Measure(NamedTuple):
    """A measure of the survey, which looks at some rows of a test part.

    Attributes
    ----------
    title : str
    basis : {"rows", "positives", "negatives"}
        What `amount` counts, or is a share of.
    amount : float
        A number of rows; or a share of the positives or of the negatives.
    """

    title: str
    basis: str
    amount: float


MEASURES = {
    "precision_at_k(k=10)": Measure("prec@10", "rows", 10),
    "precision_at_k(k=100)": Measure("prec@100", "rows", 100),
    MAIN: Measure("prec@0.25", "positives", 0.25),
    "precision_at_k(k=1.0)": Measure("prec@1.0", "positives", 1),
    AP: Measure("average precision", "positives", 1),
    "partial_auc_mcclish(beta=0.01)": Measure("pAUC(0.01)", "negatives", 0.01),
    "partial_auc_mcclish(beta=0.1)": Measure("pAUC(0.1)", "negatives", 0.1),
    "auc": Measure("AUC", "positives", 1),
}
_FIT = ["task", "solver", "split"]  # what names a fit
COLUMNS = [*_FIT, *MEASURES, "seconds", "stopped"]


def kind_of(solver: str) -> str:
    """Return the kind of a contestant; for a solver of no kind, its name."""
    name, _comma, variant = solver.partition(", ")  # as in "sgd-avg, random features"
    if FEATURES in variant:
        return FEATURES
    for kind, names in KINDS.items():
        if name in names:
            return kind
    return name


def collect(folders: Iterable[Path]) -> pd.DataFrame:
    """Gather what each contestant reached on each split of each task.

    Parameters
    ----------
    folders : iterable of pathlib.Path
        Results folders of experiments.

    Returns
    -------
    pandas.DataFrame
        ``task``, ``solver``, ``split``, the measures, ``seconds`` to choose parameters
        and to train, and whether a limit ``stopped`` the fit. Left out are stand-ins,
        smoke runs, splits on which some contestant has not been run, and fits that
        failed.

    Raises
    ------
    InputError
        If no row remains.
    """
    tables = []
    for folder in folders:
        of_folder = _finals(folder)
        if of_folder is not None:
            tables.append(of_folder)
    if all(table.empty for table in tables):
        raise InputError(
            "the given folders hold no results of the survey; run: make survey"
        )
    finals = pd.concat(tables, ignore_index=True)
    rows = finals.assign(
        seconds=finals["wall_seconds"] + finals["tuning_seconds"].fillna(0),
        stopped=finals["stopped"].notna(),
        task=finals["dataset"],
    )
    # The rows of a fit, one for each measure, have the same values of these.
    fits = rows.groupby(_FIT, sort=False)[["seconds", "stopped"]].first()
    measured = rows.pivot(index=_FIT, columns="metric", values="value")
    values = measured.reindex(columns=[*MEASURES])
    for metric, measure in MEASURES.items():
        if measure.basis == "negatives":  # a pAUC, which is on McClish's scale
            values[metric] = share_of_area(values[metric], beta=measure.amount)
    return fits.join(values).reset_index()[COLUMNS]


def _finals(folder: Path) -> pd.DataFrame | None:
    """Return the final values of fits on splits that every contestant has run.

    Failed fits are left out, and fits on stand-ins: synthetic rows, for a data set that
    could not be had. Return None for a folder without results, or of smoke size.
    """
    path = folder / "results.csv"
    if not path.exists():
        return None
    experiment = json.loads((folder / "experiment.json").read_text())
    if experiment["smoke"]:
        return None
    # These columns hold True and False, and are read and compared as text.
    flags = {"final": str, "stand_in": str}
    rows = pd.read_csv(path, dtype=flags, low_memory=False)
    n_contestants = rows.groupby(["dataset", "split"])["solver"].transform("nunique")
    complete = rows[n_contestants == rows["solver"].nunique()]
    return complete.query("final == 'True' and stand_in == 'False' and status == 'ok'")


def share_of_area(mcclish: Any, beta: float) -> Any:
    """Return the area under the ROC curve up to the rate `beta`, divided by `beta`.

    McClish's value, 1/2 + 1/2 (share - beta / 2) / (1 - beta / 2), counts ties by
    expectation; the pAUC of kar2014 would be 1/2 if all scores were equal.
    """
    return (2 * mcclish - 1) * (1 - beta / 2) + beta / 2


class Survey:
    """Where each contestant stands on the tasks.

    Parameters
    ----------
    table : pandas.DataFrame
        As `collect` returns it.
    tasks : pathlib.Path, optional
        A CSV file of the real tasks, if need be with their share of test rows as
        ``test_share``.

    Attributes
    ----------
    solvers : list of str
        The contestants, in the order of the table.
    all_tasks : pandas.DataFrame
        Every real task of the file, by name.
    tasks : pandas.DataFrame
        Those that have results.
    """

    def __init__(self, table: pd.DataFrame, tasks: Path = TASKS) -> None:
        self.table = table
        self.solvers = list(table["solver"].unique())
        self.all_tasks = pd.read_csv(tasks, keep_default_na=False).set_index("task")
        self.tasks = self.all_tasks[self.all_tasks.index.isin(table["task"])]

    @property
    def real(self) -> list[str]:
        """The names of the real tasks that have results."""
        return list(self.tasks.index)

    def solvers_of(self, *kinds: str) -> list[str]:
        """Return the contestants of `kinds`, in the order of the table."""
        return [solver for solver in self.solvers if kind_of(solver) in kinds]

    @cached_property
    def _means(self) -> pd.DataFrame:
        """Return means over the splits, by task and solver.

        A failed fit counts as chance.
        """
        results = self.table.set_index(_FIT)[[*MEASURES]]
        splits = self.table[["task", "split"]].drop_duplicates()
        fits = splits.merge(pd.DataFrame({"solver": self.solvers}), how="cross")
        # A fit that has failed has no results: its row becomes NaN.
        values = results.reindex(pd.MultiIndex.from_frame(fits[_FIT]))
        chance = _by_chance(results)
        chance_of_fits = pd.DataFrame(
            chance.reindex(
                pd.MultiIndex.from_frame(fits[["task", "split"]])
            ).to_numpy(),
            index=values.index,
            columns=values.columns,
        )
        filled = values.fillna(chance_of_fits)
        return filled.groupby(level=["task", "solver"], sort=False).mean()

    def values(self, metric: str, tasks: Sequence[str] | None = None) -> pd.DataFrame:
        """Return mean values, tasks by contestants, on tasks that have the measure.

        The default of `tasks` are all real tasks.
        """
        wide = self._means[metric].unstack("solver")[self.solvers]
        names = self.real if tasks is None else list(tasks)
        return wide.loc[names].dropna(how="all")

    def looked_at(self, metric: str) -> pd.Series:
        """Return the test rows that a measure looks at, for each real task."""
        measure = MEASURES[metric]
        if measure.basis == "rows":
            return pd.Series(measure.amount, self.tasks.index)
        if measure.basis == "positives":
            n_of_class = self.tasks["positives"]
        else:
            n_of_class = self.tasks["rows"] - self.tasks["positives"]
        test_share = self.tasks.get("test_share", TEST_SHARE)
        return measure.amount * test_share * n_of_class

    def best(self, values: pd.DataFrame, kinds: Iterable[str] = COMPARED) -> list[str]:
        """Return the best contestant of each kind by mean rank, the best first.

        `values` has tasks as rows and contestants as columns.
        """
        ranks = pd.Series(mean_ranks(values), values.columns)
        leaders = []
        for kind in kinds:
            solvers = [solver for solver in self.solvers_of(kind) if solver in values]
            if solvers:
                leaders.append(str(ranks[solvers].idxmin()))
        return sorted(leaders, key=ranks.__getitem__)


def _by_chance(results: pd.DataFrame) -> pd.DataFrame:
    """Return what chance reaches, by task and split.

    That is what no-skill reaches; without no-skill 0, or NaN where the task lacks a
    measure.
    """
    is_no_skill = results.index.get_level_values("solver") == "no-skill"
    values = results[is_no_skill] if is_no_skill.any() else results * 0
    return values.groupby(level=["task", "split"]).first()


def losses(values: pd.DataFrame) -> pd.DataFrame:
    """Return how far values fall short: 1 - value / best, 0 if best <= 0, by task."""
    best = values.max(axis=1)
    return (1 - values.div(best.where(best > 0), axis=0)).fillna(0.0)


def standings(values: pd.DataFrame) -> pd.DataFrame:
    """Return where contestants stand, with 95 % intervals by bootstrap over the tasks.

    Parameters
    ----------
    values : pandas.DataFrame
        Tasks by contestants.

    Returns
    -------
    pandas.DataFrame
        By contestant, the best mean rank first: means of ``rank``, ``lost`` (see
        `losses`) and ``wins`` (share of other contestants beaten), each with the limits
        ``_low`` and ``_high``.
    """
    # The best has rank 1; rounded, values that differ by rounding share a rank.
    ranks = values.round(12).rank(axis=1, ascending=False)
    n_tasks, n_contestants = values.shape
    measures = {
        "rank": ranks,
        "lost": losses(values),
        "wins": (n_contestants - ranks) / max(n_contestants - 1, 1),
    }
    draws = np.random.default_rng(0).integers(0, n_tasks, (_DRAWS, n_tasks))
    # How often each task is drawn: draws by tasks.
    counts = np.array([np.bincount(draw, minlength=n_tasks) for draw in draws])
    columns: dict[str, Any] = {}
    for name, table in measures.items():
        # The mean over the tasks that are drawn: draws by contestants.
        means = counts @ table.to_numpy() / n_tasks
        low, high = np.quantile(means, [0.025, 0.975], axis=0)
        columns[name] = table.mean()
        columns[f"{name}_low"] = low
        columns[f"{name}_high"] = high
    return pd.DataFrame(columns, values.columns).sort_values("rank", kind="stable")


def compared(values: pd.DataFrame, first: str, second: str) -> Posterior:
    """Return how probably each is better, or both are equivalent, over the tasks.

    By the Bayesian signed-rank test; `values` has contestants as columns.
    """
    return bayesian_signed_rank(values[first], values[second], ROPE)


def in_words(posterior: Posterior) -> str:
    """Return in words how the first contestant compares with the second."""
    if posterior.first >= SURE:
        return "ahead"
    if posterior.equivalent >= SURE:
        return "practically equivalent"
    if posterior.second >= SURE:
        return "behind"
    return "undecided"

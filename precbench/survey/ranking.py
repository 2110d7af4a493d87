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
TREES, FEATURES, CLASSIFIERS = "trees", "random features", "linear classifiers"
STACKS, NETWORKS, NONE = "ensembles of several kinds", "neural networks", "no skill"
KINDS = {
    TREES: (
        *(
            "hist-gradient-boosting",
            "lightgbm",
            "lightgbm-lambdarank",
            "xgboost",
            "catboost",
        ),
        *("random-forest", "extra-trees"),
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
AP, MAIN = "average_precision", "precision_at_k(k=0.25)"
# that a measure must look at in a test part, for the task to count in a headline
LEAST_ROWS = 20
ROPE = 0.01  # values that differ by less are practically equivalent
SURE = 0.95  # the posterior probability from which a comparison is decided
_DRAWS = 2000  # bootstrap samples


class Measure(NamedTuple):
    """A measure of the survey, which looks at some rows of a test part."""

    title: str
    # what `share` is a share of: "positives" or "negatives"; "rows" if a number
    basis: str
    share: float  # of the basis; for "rows" the number of rows


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
COLUMNS = ["task", "solver", "split", *MEASURES, "seconds", "stopped"]


def kind_of(solver: str) -> str:
    """Return the kind of a contestant.

    For a solver of no kind in `KINDS` return its name.
    """
    name, _comma, special = solver.partition(", ")  # as in "sgd-avg, random features"
    if FEATURES in special:
        return FEATURES
    return next((kind for kind, names in KINDS.items() if name in names), name)


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
    parts = []
    for folder in folders:
        path = folder / "results.csv"
        if (
            path.exists()
            and not json.loads((folder / "experiment.json").read_text())["smoke"]
        ):
            rows = pd.read_csv(
                path, dtype={"final": str, "stand_in": str}, low_memory=False
            )
            n_run = rows.groupby(["dataset", "split"])["solver"].transform("nunique")
            # splits run by every contestant
            whole = rows[n_run == rows["solver"].nunique()]
            # The flags `final` and `stand_in` were read as text, so they are compared
            # with text.
            parts.append(
                whole.query(
                    "final == 'True' and stand_in == 'False' and status == 'ok'"
                )
            )
    if not parts or not sum(map(len, parts)):
        raise InputError(
            "the given folders hold no results of the survey; run: make survey"
        )
    rows = pd.concat(parts, ignore_index=True)
    # to train and to choose
    seconds = rows["wall_seconds"] + rows["tuning_seconds"].fillna(0)
    rows = rows.assign(
        seconds=seconds, stopped=rows["stopped"].notna(), task=rows["dataset"]
    )
    place = ["task", "solver", "split"]
    # of any measure
    fits = rows.groupby(place, sort=False)[["seconds", "stopped"]].first()
    wide = rows.pivot(index=place, columns="metric", values="value").reindex(
        columns=[*MEASURES]
    )
    for metric, measure in MEASURES.items():
        # pAUC: from McClish's scale back to a share of the area
        if measure.basis == "negatives":
            wide[metric] = share_of_area(wide[metric], measure.share)
    return fits.join(wide).reset_index()[COLUMNS]


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
    """

    def __init__(self, table: pd.DataFrame, tasks: Path = TASKS) -> None:
        self.table = table
        self.solvers = list(table["solver"].unique())
        # all real tasks
        self.known = pd.read_csv(tasks, keep_default_na=False).set_index("task")
        self.tasks = self.known[self.known.index.isin(table["task"])]  # with results

    @property
    def real(self) -> list[str]:  # the names of the real tasks with results
        return list(self.tasks.index)

    def of(self, *kinds: str) -> list[str]:
        """Return the contestants of `kinds`, in the order of the table."""
        return [solver for solver in self.solvers if kind_of(solver) in kinds]

    @cached_property
    def _means(self) -> pd.DataFrame:
        """Return means over the splits, by task and solver.

        A failed split counts as chance.
        """
        results = self.table.set_index(["task", "solver", "split"])[[*MEASURES]]
        splits = self.table[["task", "split"]].drop_duplicates()
        # `full` has a row of NaN for each split on which a solver has failed.
        expected = splits.merge(pd.DataFrame({"solver": self.solvers}), how="cross")
        full = results.reindex(
            pd.MultiIndex.from_frame(expected[["task", "solver", "split"]])
        )
        # By chance: as no-skill, or else 0 (results * 0 is NaN where a measure is
        # missing).
        chance = (
            results.xs("no-skill", level="solver")
            if "no-skill" in self.solvers
            else results * 0
        )
        # one row for each split
        chance = chance.groupby(level=["task", "split"]).first()
        # as `full`
        chance = chance.reindex(pd.MultiIndex.from_frame(expected[["task", "split"]]))
        filled = full.fillna(pd.DataFrame(chance.to_numpy(), full.index, full.columns))
        return filled.groupby(level=["task", "solver"], sort=False).mean()

    def values(self, metric: str, tasks: Sequence[str] | None = None) -> pd.DataFrame:
        """Return mean values, tasks by contestants, of `tasks` (default.

        Real) with the measure.
        """
        wide = self._means[metric].unstack("solver")[self.solvers]
        return wide.loc[self.real if tasks is None else list(tasks)].dropna(how="all")

    def looked_at(self, metric: str) -> pd.Series:
        """Return the test rows that a measure looks at, for each real task."""
        measure, positives = MEASURES[metric], self.tasks["positives"]
        counts = {"positives": positives, "negatives": self.tasks["rows"] - positives}
        if measure.basis == "rows":  # then the share is a number of rows
            return pd.Series(measure.share, self.tasks.index)
        return (
            measure.share
            * self.tasks.get("test_share", TEST_SHARE)
            * counts[measure.basis]
        )

    def best(self, values: pd.DataFrame, kinds: Iterable[str] = COMPARED) -> list[str]:
        """Return the best contestant of each kind by mean rank, the best first."""
        ranks = pd.Series(mean_ranks(values), values.columns)
        by_kind = ([s for s in self.of(kind) if s in values] for kind in kinds)
        # or none
        leaders = [str(ranks[solvers].idxmin()) for solvers in by_kind if solvers]
        return sorted(leaders, key=ranks.__getitem__)


def losses(values: pd.DataFrame) -> pd.DataFrame:
    """Return how far values fall short of the task's best.

    1 - value / best, 0 if best <= 0.
    """
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
    # best: 1; ties up to rounding share
    ranks = values.round(12).rank(axis=1, ascending=False)
    n = values.shape[1]  # contestants
    measures = {
        "rank": ranks,
        "lost": losses(values),
        "wins": (n - ranks) / max(n - 1, 1),
    }
    # tasks
    drawn = np.random.default_rng(0).integers(0, len(values), (_DRAWS, len(values)))
    # by task
    times = np.array([np.bincount(tasks, minlength=len(values)) for tasks in drawn])
    columns: dict[str, Any] = {}
    for name, table in measures.items():
        means = times @ table.to_numpy() / len(values)  # by draw and contestant
        low, high = np.quantile(means, [0.025, 0.975], axis=0)
        columns |= {name: table.mean(), f"{name}_low": low, f"{name}_high": high}
    return pd.DataFrame(columns, values.columns).sort_values("rank", kind="stable")


def compared(values: pd.DataFrame, first: str, second: str) -> Posterior:
    """Return how probably each is better, by the Bayesian signed-rank test."""
    return bayesian_signed_rank(values[first], values[second], ROPE)


def in_words(posterior: Posterior) -> str:
    """Return in words how the first contestant compares with the second."""
    words = ("ahead", "practically equivalent", "behind")  # in the order of `Posterior`
    return next(
        (w for w, p in zip(words, posterior, strict=True) if p >= SURE), "undecided"
    )

"""The means of the survey, and the methods that they recommend."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from precbench.data import DATASETS
from precbench.errors import InputError
from precbench.experiment import Experiment, load_config
from precbench.locations import shipped
from precbench.statistics import LEVEL, holm, mean_ranks, signed_rank_test

REFERENCE = shipped("results/reference") / "top.csv"
COLUMNS = [
    *("dataset", "synthetic", "solver", "metric", "n", "mean", "std", "low", "high", "rank"),
    *("p_best", "tied", "seconds", "tuning_seconds"),
]
TREES, FEATURES, CLASSIFIERS = "trees", "random features", "linear classifiers"
STACKS, NETWORKS, NO_SKILL = "ensembles of several kinds", "neural networks", "no skill"
KINDS = {
    TREES: (
        *("hist-gradient-boosting", "lightgbm", "lightgbm-lambdarank"),
        *("random-forest", "extra-trees", "xgboost", "catboost"),
    ),
    FEATURES: (),  # before whatever solver
    CLASSIFIERS: ("logistic-regression", "linear-svm"),
    "Kar et al. 2015": ("perceptron-avg", "perceptron-max", "sgd-avg", "sgd-max"),
    "Kar et al. 2014": ("1pmb", "2pmb", "psg", "cutting-plane", "ftrl"),
    "pushes": ("pnorm-push", "ir-push", "rankboost", "toppush", "toppush-k"),
    STACKS: ("ensemble",),
    NETWORKS: ("mlp",),
    NO_SKILL: ("no-skill",),
    "Gultekin and Paisley 2020": ("bbr", "bbr-pairs", "lcbr", "oam", "adaoam", "pgd", "spam"),
}
"""Seven with results, since over ten data sets the tests of all pairs of more have no power."""
LINEAR = [kind for kind in KINDS if kind not in (TREES, FEATURES, STACKS, NETWORKS, NO_SKILL)]
MAIN = "precision_at_k(k=0.25)"
NEAR = 0.01  # of logistic regression's AUC to the best one, where a problem is called linear
MOST = 0.8  # of the data sets


def kind_of(solver: str) -> str:
    """Return the kind of a contestant, by its label: ``SOLVER`` or ``SOLVER, what is special``."""
    name, _, special = solver.partition(", ")
    if "random features" in special:
        return FEATURES
    return next(kind for kind, names in KINDS.items() if name in names)


def collect(results: Path) -> pd.DataFrame:
    """Gather the summaries of the survey, with ranks; a stand-in has no place in a reference."""
    config = load_config("top/letter")
    assert isinstance(config, Experiment)
    contestants = set(config.solvers)
    parts = []
    for path in sorted(results.glob("top-*/summary.csv")):
        run = json.loads(path.with_name("experiment.json").read_text())
        if not run["smoke"] and contestants.issuperset(run["solvers"]):
            parts.append(pd.read_csv(path))
    if not parts:
        raise InputError(f"{results}: nothing of the survey was run; precbench run top/letter")
    found = pd.concat(parts, ignore_index=True).query("not stand_in and n > 0")
    found = found.sort_values("dataset", key=lambda names: names.map(_place), kind="stable")
    of_one = found.groupby(["dataset", "metric"], sort=False)
    whole = found["n"] == of_one["n"].transform("max")  # else it failed on some splits
    groups = [found["dataset"], found["metric"]]
    value = found["mean"].round(12).where(whole, -1).groupby(groups)
    first = value.rank(ascending=False, method="min") == 1
    found = found.assign(
        synthetic=found["dataset"].map(is_synthetic),
        rank=value.rank(ascending=False),
        tied=whole & (first | (found["p_best"] > LEVEL) | (found["n"] < 2)),
    )
    return found[COLUMNS]


def is_synthetic(dataset: str) -> bool:
    """Say whether a data set is generated."""
    return DATASETS[dataset].format == "synthetic"


def _place(dataset: str) -> tuple[bool, int, float]:
    card = DATASETS[dataset]
    if card.format != "synthetic":
        return False, card.rows, 0
    return True, card.features, (card.non_linear or 0) - card.positives / card.rows


def ranks_of(values: pd.DataFrame) -> pd.Series:
    """Return the mean rank of each column, 1 the best."""
    return pd.Series(mean_ranks(values), values.columns)


class Choice(NamedTuple):
    """The recommended method in a situation, and how certain that is.

    Attributes
    ----------
    solver : str
        The best mean rank.
    n, tied, alone : int
        Data sets; those where it is the best, or tied with it; those of them where no contestant of
        another kind is.
    rival : int
        Data sets where the contestant of another kind that is so most often is.
    ahead, kinds : int
        Other kinds than whose best contestant it is better, by Wilcoxon's test with Holm's
        correction; other kinds.
    linear : str
        The best mean rank of the linear methods.
    linear_tied : int
    behind : float
        Mean distance of the linear method from the choice.
    """

    solver: str
    n: int
    tied: int
    alone: int
    rival: int
    ahead: int
    kinds: int
    linear: str
    linear_tied: int
    behind: float

    @property
    def sure(self) -> str:
        """Say in a word how sure it is."""
        if self.ahead == self.kinds or self.alone == self.n:
            return "sure"
        mostly = self.tied >= MOST * self.n and self.tied > self.rival
        return "likely" if mostly or self.ahead >= max(self.kinds - 1, 1) else "open"


class Survey:
    """The results of the survey: what was best where, and what is recommended.

    Parameters
    ----------
    table : pandas.DataFrame
        As `collect` gives it.
    """

    def __init__(self, table: pd.DataFrame) -> None:
        self.table = table
        self.solvers = list(table["solver"].unique())
        self.linear = self.of(*LINEAR)
        generated = table["synthetic"].astype(bool)
        self.real = list(table.loc[~generated, "dataset"].unique())
        self.synthetic = list(table.loc[generated, "dataset"].unique())
        self._wide = {
            of: table.pivot(index=["dataset", "metric"], columns="solver", values=of)[self.solvers]
            for of in ("n", "mean", "tied")
        }
        once = table.drop_duplicates(["dataset", "solver"])
        once = once.assign(total=once["seconds"] + once["tuning_seconds"])
        self.times = {
            of: once.pivot(index="dataset", columns="solver", values=of)[self.solvers]
            for of in ("seconds", "tuning_seconds", "total")
        }

    def of(self, *kinds: str) -> list[str]:
        """Return the contestants of these kinds."""
        return [solver for solver in self.solvers if kind_of(solver) in kinds]

    def wide(self, column: str, datasets: Sequence[str], metric: str = MAIN) -> pd.DataFrame:
        """Return a column as data sets by contestants, without data sets that lack the metric."""
        of_metric = self._wide[column]
        known = set(of_metric.index)
        return of_metric.loc[[(d, metric) for d in datasets if (d, metric) in known]].droplevel(1)

    def values(self, datasets: Sequence[str], metric: str = MAIN) -> pd.DataFrame:
        """Return the means, 0 where a contestant did not finish all splits."""
        n = self.wide("n", datasets, metric)
        return self.wide("mean", datasets, metric).where(n.eq(n.max(axis=1), axis=0), 0.0)

    def tied(self, datasets: Sequence[str], metric: str = MAIN) -> pd.DataFrame:
        """Return where a contestant is the best, or not significantly different from it."""
        return self.wide("tied", datasets, metric) == True  # noqa: E712, of which some are missing

    def best(self, values: pd.DataFrame, kinds: Iterable[str] = KINDS) -> list[str]:
        """Return the contestant with the best mean rank of each kind, the best first."""
        ranks = ranks_of(values)
        of_kind = filter(None, map(self.of, kinds))
        return sorted((str(ranks[of].idxmin()) for of in of_kind), key=ranks.__getitem__)

    def choose(
        self, datasets: Sequence[str], metric: str = MAIN, budget: float | None = None
    ) -> Choice | None:
        """Choose for a situation: these data sets, this measure, so many seconds.

        Over the budget a contestant has the value 0, and is tied with none; the best it may be tied
        with is that of all.
        """
        values, tied = self.values(datasets, metric), self.tied(datasets, metric)
        if values.empty:
            return None
        if budget is not None:
            fits = self.times["total"].loc[values.index] <= budget
            values, tied = values.where(fits, 0.0), tied & fits
        first, *others = self.best(values)
        linear = self.best(values, LINEAR)[0]
        kinds = pd.Series({solver: kind_of(solver) for solver in self.solvers})
        other = tied.loc[:, (kinds != kind_of(first)).to_numpy()]
        tests = [signed_rank_test(values[first], values[solver]) for solver in others]
        adjusted = holm([test.p for test in tests])
        return Choice(
            solver=first,
            n=len(values),
            tied=int(tied[first].sum()),
            alone=int((tied[first] & ~other.any(axis=1)).sum()),
            rival=int(other.sum().max()),
            ahead=sum(
                bool(p <= LEVEL and test.above > test.below)
                for p, test in zip(adjusted, tests, strict=True)
            ),
            kinds=len(others),
            linear=linear,
            linear_tied=int(tied[linear].sum()),
            behind=float((values[first] - values[linear]).mean()),
        )

    def nearly_linear(self) -> list[str]:
        """Return the real data sets on which logistic regression's AUC is near the best one."""
        values = self.values(self.real, "auc")
        if values.empty:
            return []
        gap = values.max(axis=1) - values["logistic-regression"]
        return list(values.index[gap <= NEAR])

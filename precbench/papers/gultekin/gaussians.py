"""Figure 1 of gultekin: BBR and LCBR beside the optimal rankers of Gaussian mixtures.

The paper is Gultekin and Paisley, "Risk bounds for low cost bipartite ranking".
"""

import itertools
from collections.abc import Iterator
from typing import Annotated, NamedTuple

import numpy as np
import pandas as pd
from pydantic import Field, PositiveFloat
from threadpoolctl import threadpool_limits

from precbench.core.errors import InputError
from precbench.core.studies import AtLeastTwo, Count, Seed, Share, timed_fit
from precbench.papers.gultekin.mixtures import (
    MixturePair,
    MixtureProblem,
    draw_mixture_pair,
)
from precbench.solvers import BBR, LCBR, LinearRanker
from precbench.solvers.bbr.ball import minimise_over_ball

_MIXTURE, _ROWS, _PAIRS, _RATIO, _SKEW = range(5)  # streams of random numbers


class _Record(NamedTuple):
    """A value that one repetition measures."""

    part: str  # of the figure: pairs, covariance or skew
    components: int  # of the mixture of a class
    method: str
    measure: str
    value: float
    pairs: float = np.nan  # that LCBR draws
    share: float = 0.5  # of positives


class _Row(NamedTuple):
    """A value of the table, over all repetitions."""

    part: str
    components: float
    method: str
    pairs: float
    share: float
    measure: str
    statistic: str
    value: float


# Rows of the table that have the same values here are repetitions of each other.
_KEYS = ["part", "components", "method", "pairs", "share", "measure"]


def gaussian_mixtures(
    problems: Annotated[list[MixtureProblem], Field(min_length=1)],
    features: Count,
    rows: AtLeastTwo,  # of a training set
    # of LCBR; the last for ``speed``
    pairs: Annotated[list[Count], Field(min_length=1)],
    radius: PositiveFloat,  # of the ball in which w lies
    skewed: MixtureProblem,  # of the last panel
    skewed_pairs: Count,  # of LCBR in the last panel
    # of positives in the last panel
    shares: Annotated[list[Share], Field(min_length=2)],
    eccentricity: Share,  # of another covariance
    repetitions: AtLeastTwo,
    timed: Count,  # the first repetitions, which also time the loop
    drawn: AtLeastTwo,  # rows of each class, for the largest AUC
    seed: Seed,
) -> pd.DataFrame:
    """Compare BBR and LCBR with the optimal rankers of Gaussian mixtures (Figure 1)."""
    # Each repetition draws new means of the components, training rows and pairs of
    # LCBR. Risk and AUC are those of the distribution, in closed form. Seconds are CPU
    # seconds of a fit, which other programs disturb less than wall-clock seconds, with
    # the checks of the input or without: the least of the repetitions, which run the
    # solvers in turn on one thread.
    for share in shares:
        if not 0 < round(rows * share) < rows:
            raise InputError(
                f"shares: with rows = {rows} and the share {share:g} a class has no"
                " rows; raise rows, or give a share closer to 0.5"
            )
    numbers = [problem.components for problem in problems]
    if len(set(numbers)) < len(numbers):
        raise InputError(
            f"problems: equal numbers of components in {numbers}; give each once"
        )
    records: list[_Record] = []
    with threadpool_limits(1):
        for problem, i in itertools.product(problems, range(repetitions)):
            repetition = _Repetition(problem, features, (seed, problem.components, i))
            records += _fit_methods(
                repetition, rows, pairs, radius, with_loop=i < timed
            )
            records += _optima(repetition, radius, drawn, eccentricity)
        for i in range(repetitions):
            repetition = _Repetition(skewed, features, (seed, skewed.components, i))
            records += _fit_skewed(repetition, rows, skewed_pairs, shares, radius)
    table = _statistics(pd.DataFrame(records))
    extra = [
        *_speed_ups(table, pairs[-1]),
        *_larger_ends(table, skewed, skewed_pairs, shares),
    ]
    return pd.concat([table, pd.DataFrame(extra)], ignore_index=True)


class _Repetition(NamedTuple):
    """What one repetition draws: its mixture, rows and pairs."""

    problem: MixtureProblem
    features: int
    entropy: tuple[int, ...]  # seeds

    def rng(self, *stream: int) -> np.random.Generator:
        return np.random.default_rng([*self.entropy, *stream])

    def mixture(self, eccentricity: float = 0.0) -> MixturePair:
        return draw_mixture_pair(
            self.problem.components,
            self.problem.sigma,
            self.features,
            self.rng(_MIXTURE),
            eccentricity=eccentricity,
        )


class _Method(NamedTuple):
    """A solver to be timed, and whether its risk and AUC are measured as well."""

    name: str
    pairs: float  # that it draws; NaN for all pairs
    solver: LinearRanker
    is_measured: bool


def _fit_methods(
    repetition: _Repetition,
    rows: int,
    pairs: list[int],
    radius: float,
    *,
    with_loop: bool,
) -> Iterator[_Record]:
    """Time BBR and LCBR, with `with_loop` also BBR's loop; measure risk and AUC."""
    components = repetition.problem.components
    mixture = repetition.mixture()
    X, y = mixture.sample(
        n_pos=rows // 2, n_neg=rows - rows // 2, rng=repetition.rng(_ROWS)
    )
    methods = [_Method("bbr", np.nan, BBR(radius=radius), is_measured=True)]
    # A fit on a single pair is timed, so that `_speed_ups` can leave out what every
    # fit takes.
    for n in dict.fromkeys([1, *pairs]):
        solver = LCBR(n, radius=radius, random_state=repetition.rng(_PAIRS, n))
        methods.append(_Method("lcbr", n, solver, is_measured=n in pairs))
    if with_loop:
        loop = BBR(radius=radius, accumulate="pairs")
        methods.append(_Method("bbr-pairs", np.nan, loop, is_measured=False))
    weights = {}  # by method
    for method in methods:
        seconds = timed_fit(method.solver, X, y)
        w = method.solver.coef_
        weights[method.name] = w
        values = {
            "seconds": seconds.after_checks,
            "seconds with checks": seconds.in_all,
        }
        if method.is_measured:
            values["risk"] = mixture.risk(w)
            values["auc"] = mixture.auc(w)
        for measure, value in values.items():
            yield _Record(
                "pairs", components, method.name, measure, value, pairs=method.pairs
            )
    if with_loop:
        difference = float(np.abs(weights["bbr-pairs"] - weights["bbr"]).max())
        yield _Record("pairs", components, "bbr-pairs", "difference of w", difference)


def _optima(
    repetition: _Repetition, radius: float, drawn: int, eccentricity: float
) -> Iterator[_Record]:
    """Measure the best linear ranker and the best scores of the distribution.

    The best linear ranker is measured for another covariance as well.
    """
    components = repetition.problem.components
    mixture = repetition.mixture()
    best = _linear_optimum(mixture, radius)
    yield _Record("pairs", components, "optimum", "risk", best.risk)
    yield _Record("pairs", components, "optimum", "auc", best.auc)
    # No scores have a larger AUC than the likelihood ratio, whose AUC is estimated.
    largest_auc = mixture.largest_auc(drawn, repetition.rng(_RATIO))
    yield _Record("pairs", components, "likelihood-ratio", "auc", largest_auc)
    eccentric = _linear_optimum(repetition.mixture(eccentricity), radius)
    yield _Record("covariance", components, "optimum", "auc", eccentric.auc)
    difference = eccentric.auc - best.auc
    yield _Record("covariance", components, "optimum", "auc less isotropic", difference)


class _Optimum(NamedTuple):
    """What the best linear ranker of a distribution reaches."""

    auc: float
    risk: float


def _linear_optimum(mixture: MixturePair, radius: float) -> _Optimum:
    """Measure the w of least risk in the ball, by moments.

    The risk is the mean of the loss (3), (1 - w'z)^2 / 2 = 1/2 - w'z + w'zz'w / 2, over
    the differences z = x^1 - x^0 of a positive and a negative: `mean` is E[z], `second`
    E[zz'].
    """
    w = minimise_over_ball(mixture.second, mixture.mean, radius)
    return _Optimum(mixture.auc(w), mixture.risk(w))


def _fit_skewed(
    repetition: _Repetition, rows: int, pairs: int, shares: list[float], radius: float
) -> Iterator[_Record]:
    """Measure the AUC of BBR and LCBR by the share of positives (Figure 1, (j))."""
    components = repetition.problem.components
    mixture = repetition.mixture()
    for share in shares:
        n_pos = round(rows * share)
        X, y = mixture.sample(n_pos, rows - n_pos, repetition.rng(_SKEW, n_pos))
        bbr = BBR(radius=radius).fit(X, y)
        yield _Record(
            "skew", components, "bbr", "auc", mixture.auc(bbr.coef_), share=share
        )
        rng = repetition.rng(_SKEW, n_pos, pairs)
        lcbr = LCBR(pairs, radius=radius, random_state=rng).fit(X, y)
        auc = mixture.auc(lcbr.coef_)
        yield _Record("skew", components, "lcbr", "auc", auc, pairs=pairs, share=share)


# The names that pandas has for the statistics.
_STATISTICS = {
    "mean": "mean",
    "standard error": "sem",
    "least": "min",
    "largest": "max",
}
# Other measures have their mean and its standard error.
_STATISTICS_OF = {
    "seconds": ["least"],
    "seconds with checks": ["least"],
    "difference of w": ["largest"],
}


def _statistics(records: pd.DataFrame) -> pd.DataFrame:
    """Return statistics over the repetitions, as rows of the table."""
    parts = []
    for measure, values in records.groupby("measure", sort=False):
        # NaN, no pairs, is a key
        repetitions = values.groupby(_KEYS, sort=False, dropna=False)["value"]
        for name in _STATISTICS_OF.get(str(measure), ["mean", "standard error"]):
            part = repetitions.agg(_STATISTICS[name]).reset_index()
            parts.append(part.assign(statistic=name))
    return pd.concat(parts, ignore_index=True)[[*_Row._fields]]


def _speed_ups(table: pd.DataFrame, pairs: int) -> Iterator[_Row]:
    """Yield how many times faster than BBR's loop are BBR by moments and LCBR."""
    # The seconds of ``bbr-pairs``, the loop of Algorithm 1, are divided by the seconds
    # of a method; for ``accumulation``, the seconds that each of the two takes beyond a
    # fit on one pair. The paper states that LCBR is 100 times as fast.
    yield _speed_row(np.nan, "lcbr", pairs, "stated", 100.0)
    # BBR draws no pairs: 0, as a key with NaN would not be found.
    timed = table[table["statistic"] == "least"].fillna({"pairs": 0})
    keys = ["measure", "components", "method", "pairs"]
    least = timed.set_index(keys)["value"].to_dict()
    for components in timed["components"].unique():
        ratios = {}  # of LCBR
        for measure in ("seconds", "seconds with checks"):
            by_loop = least[measure, components, "bbr-pairs", 0]
            by_moments = least[measure, components, "bbr", 0]
            ratios[measure] = by_loop / least[measure, components, "lcbr", pairs]
            yield _speed_row(components, "bbr", np.nan, measure, by_loop / by_moments)
        on_one_pair = least["seconds", components, "lcbr", 1]
        on_all_pairs = least["seconds", components, "bbr-pairs", 0] - on_one_pair
        on_drawn_pairs = least["seconds", components, "lcbr", pairs] - on_one_pair
        if on_all_pairs > 0 and on_drawn_pairs > 0:
            ratios["accumulation"] = on_all_pairs / on_drawn_pairs
        for statistic, ratio in ratios.items():
            yield _speed_row(components, "lcbr", pairs, statistic, ratio)


def _speed_row(
    components: float, method: str, pairs: float, statistic: str, ratio: float
) -> _Row:
    return _Row(
        part="speed",
        components=components,
        method=method,
        pairs=pairs,
        share=np.nan,
        measure="speed-up",
        statistic=statistic,
        value=ratio,
    )


def _larger_ends(
    table: pd.DataFrame, skewed: MixtureProblem, pairs: int, shares: list[float]
) -> Iterator[_Row]:
    """Yield for each method the larger of its mean AUCs at the first and last share."""
    means = table[(table["part"] == "skew") & (table["statistic"] == "mean")]
    ends = means[means["share"].isin([shares[0], shares[-1]])]
    for method, n_drawn in (("bbr", np.nan), ("lcbr", pairs)):
        yield _Row(
            part="skew",
            components=skewed.components,
            method=method,
            pairs=n_drawn,
            share=np.nan,
            measure="auc",
            statistic="larger mean of both ends",
            value=float(ends["value"][ends["method"] == method].max()),
        )

"""Figure 1 of gultekin (Gultekin and Paisley, "Risk bounds for low cost bipartite ranking")."""

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
    table = _statistics(pd.DataFrame(records, columns=_COLUMNS))
    extra = [
        *_speed_ups(table, pairs[-1]),
        *_larger_ends(table, skewed, skewed_pairs, shares),
    ]
    return pd.concat(
        [table, pd.DataFrame(extra, columns=table.columns)], ignore_index=True
    )


_COLUMNS = ["part", "components", "method", "pairs", "share", "measure", "value"]
_Record = tuple[str, int, str, float, float, str, float]  # in the order of `_COLUMNS`


class _Repetition(NamedTuple):
    # draws its mixture, and makes generators for its rows and pairs
    problem: MixtureProblem
    features: int
    entropy: tuple[int, ...]  # seeds

    def rng(self, *stream: int) -> np.random.Generator:
        return np.random.default_rng([*self.entropy, *stream])

    def mixture(self, eccentricity: float = 0.0) -> MixturePair:
        return draw_mixture_pair(
            self.problem.components, self.problem.sigma, self.features, self.rng(_MIXTURE),
            eccentricity=eccentricity,
        )  # fmt: skip


def _fit_methods(
    repetition: _Repetition,
    rows: int,
    pairs: list[int],
    radius: float,
    *,
    with_loop: bool,
) -> Iterator[_Record]:  # in the order of `_COLUMNS`
    """Time BBR and LCBR, with `with_loop` also BBR's loop.

    Measure their risk and AUC.
    """
    # k: components of a class
    mixture, k = repetition.mixture(), repetition.problem.components
    X, y = mixture.sample(
        n_pos=rows // 2, n_neg=rows - rows // 2, rng=repetition.rng(_ROWS)
    )
    solvers: list[tuple[str, float, LinearRanker]] = [
        ("bbr", np.nan, BBR(radius=radius))
    ]
    solvers += [
        ("lcbr", n, LCBR(n, radius=radius, random_state=repetition.rng(_PAIRS, n)))
        for n in dict.fromkeys([1, *pairs])  # each once; a single pair is only timed
    ]
    if with_loop:
        solvers.append(("bbr-pairs", np.nan, BBR(radius=radius, accumulate="pairs")))
    weights = {}  # by method
    for method, n_drawn, solver in solvers:  # n_drawn: NaN for all pairs
        seconds, with_checks = timed_fit(solver, X, y)
        weights[method] = w = solver.coef_
        yield "pairs", k, method, n_drawn, 0.5, "seconds", seconds
        yield "pairs", k, method, n_drawn, 0.5, "seconds with checks", with_checks
        # others: only timed
        if method == "bbr" or (method == "lcbr" and n_drawn in pairs):
            yield "pairs", k, method, n_drawn, 0.5, "risk", mixture.risk(w)
            yield "pairs", k, method, n_drawn, 0.5, "auc", mixture.auc(w)
    if with_loop:
        difference = float(np.abs(weights["bbr-pairs"] - weights["bbr"]).max())
        yield "pairs", k, "bbr-pairs", np.nan, 0.5, "difference of w", difference


def _optima(
    repetition: _Repetition, radius: float, drawn: int, eccentricity: float
) -> Iterator[_Record]:  # in the order of `_COLUMNS`
    """Measure the best linear ranker, the best scores, and the best w for another covariance."""
    mixture, eccentric = repetition.mixture(), repetition.mixture(eccentricity)
    k = repetition.problem.components
    # of the least risk, by moments
    w = minimise_over_ball(mixture.second, mixture.mean, radius)
    auc = mixture.auc(w)
    yield "pairs", k, "optimum", np.nan, 0.5, "risk", mixture.risk(w)
    yield "pairs", k, "optimum", np.nan, 0.5, "auc", auc
    # of any scores, estimated
    largest_auc = mixture.largest_auc(drawn, repetition.rng(_RATIO))
    yield "pairs", k, "likelihood-ratio", np.nan, 0.5, "auc", largest_auc
    other_auc = eccentric.auc(
        minimise_over_ball(eccentric.second, eccentric.mean, radius)
    )
    yield "covariance", k, "optimum", np.nan, 0.5, "auc", other_auc
    yield "covariance", k, "optimum", np.nan, 0.5, "auc less isotropic", other_auc - auc


def _fit_skewed(
    repetition: _Repetition, rows: int, pairs: int, shares: list[float], radius: float
) -> Iterator[_Record]:  # in the order of `_COLUMNS`
    """Measure the AUC of BBR and LCBR for each share of positives (Figure 1, panel (j))."""
    # k: components of a class
    mixture, k = repetition.mixture(), repetition.problem.components
    for share in shares:
        n_pos = round(rows * share)
        X, y = mixture.sample(n_pos, rows - n_pos, repetition.rng(_SKEW, n_pos))
        bbr = BBR(radius=radius)
        lcbr = LCBR(
            pairs, radius=radius, random_state=repetition.rng(_SKEW, n_pos, pairs)
        )
        yield "skew", k, "bbr", np.nan, share, "auc", mixture.auc(bbr.fit(X, y).coef_)
        yield "skew", k, "lcbr", pairs, share, "auc", mixture.auc(lcbr.fit(X, y).coef_)


_STATISTICS = {
    "mean": "mean",
    "standard error": "sem",
    "least": "min",
    "largest": "max",
}
_STATISTICS_OF = {  # measures with statistics of their own
    "seconds": ("least",), "seconds with checks": ("least",), "difference of w": ("largest",),
}  # fmt: skip


def _statistics(table: pd.DataFrame) -> pd.DataFrame:
    """Return statistics over the repetitions.

    By `_STATISTICS_OF`, else mean and standard error.
    """
    keys = list(table.columns[:-1])  # all but "value"
    groups = [  # of each measure, with the name of each of its statistics
        # NaN, no pairs, is a key
        (values.groupby(keys, sort=False, dropna=False)["value"], name)
        for measure, values in table.groupby("measure", sort=False)
        for name in _STATISTICS_OF.get(str(measure), ("mean", "standard error"))
    ]
    parts = [
        g.agg(_STATISTICS[name]).reset_index().assign(statistic=name)
        for g, name in groups
    ]
    return pd.concat(parts, ignore_index=True)[[*keys, "statistic", "value"]]


# As `_COLUMNS`, with the statistic before the value.
_Row = tuple[str, float, str, float, float, str, str, float]


def _speed_ups(table: pd.DataFrame, pairs: int) -> Iterator[_Row]:
    """Yield how many times faster than BBR's loop are BBR by moments and LCBR on `pairs` pairs."""
    # The seconds of ``bbr-pairs``, the loop of Algorithm 1, are divided by the seconds
    # of a method; for ``accumulation``, the seconds that each of the two takes beyond a
    # fit on one pair.
    keys = ["measure", "components", "method", "pairs"]
    # 0 for BBR, which draws none
    timed = table[table["statistic"] == "least"].fillna({"pairs": 0})
    least = timed.set_index(keys)["value"].to_dict()
    # by the paper
    yield "speed", np.nan, "lcbr", pairs, np.nan, "speed-up", "stated", 100.0
    for components in timed["components"].unique():
        loop, moments, on_one_pair, on_pairs = (  # of each fit: its seconds by measure
            {
                m: least[m, components, method, n]
                for m in ("seconds", "seconds with checks")
            }
            for method, n in (
                ("bbr-pairs", 0),
                ("bbr", 0),
                ("lcbr", 1),
                ("lcbr", pairs),
            )
        )
        for measure in loop:
            ratio = loop[measure] / moments[measure]
            yield "speed", components, "bbr", np.nan, np.nan, "speed-up", measure, ratio
        ratios = {measure: loop[measure] / on_pairs[measure] for measure in loop}
        of_all, of_drawn = (
            fit["seconds"] - on_one_pair["seconds"] for fit in (loop, on_pairs)
        )
        if min(of_all, of_drawn) > 0:
            ratios["accumulation"] = of_all / of_drawn
        for statistic, ratio in ratios.items():
            yield (
                "speed",
                components,
                "lcbr",
                pairs,
                np.nan,
                "speed-up",
                statistic,
                ratio,
            )


def _larger_ends(
    table: pd.DataFrame, skewed: MixtureProblem, pairs: int, shares: list[float]
) -> Iterator[_Row]:
    """Yield for each method the larger of its mean AUCs at the first and at the last share."""
    means = table[(table["part"] == "skew") & (table["statistic"] == "mean")]
    ends = means[means["share"].isin([shares[0], shares[-1]])]
    for method, n in (("bbr", np.nan), ("lcbr", pairs)):
        most = float(ends["value"][ends["method"] == method].max())
        yield (
            "skew",
            skewed.components,
            method,
            n,
            np.nan,
            "auc",
            "larger mean of both ends",
            most,
        )

"""The bounds of kar2014 beside measured values: regret, stability, uniform convergence.

References
----------
kar2014 : Kar, Narasimhan, Jain, "Online and stochastic gradient methods for non-decomposable loss
    functions", NIPS 2014.
"""

import math
from collections.abc import Callable, Iterator
from typing import Annotated, Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import Field, PositiveFloat

from precbench.data import load_dataset
from precbench.errors import InputError
from precbench.losses import PartialAUC, struct
from precbench.papers.types import Count, DatasetNames, Seed, Share, Sizes
from precbench.solvers import FTRL
from precbench.topk import resolve_k

__all__ = ["STUDIES", "regret", "uniform_convergence"]

Objectives = Annotated[list[Literal["prbep", "prec@k", "pauc"]], Field(min_length=1)]

DELTA = 0.05
SINGLE, BATCHES = "single rows", "batches of sqrt(T)"
_PAPER = 2.0  # slopes of (3) are so many times those of the struct surrogate at half the weights
_FEATURES = 3  # of random points


def regret(
    datasets: DatasetNames,
    objectives: Objectives,
    horizons: Sizes,
    top: Share,
    beta: Share,
    radius: PositiveFloat,
    trials: Count,
    seed: Seed,
) -> pd.DataFrame:
    """Play `FTRL` on streams of growing length and compare its regret with the theorems.

    The stream of a data set is its rows, divided by the largest norm of a row, in random order;
    horizon T takes the first T of them, one row at a time, or ceil(sqrt(T)) at a time.

    Parameters
    ----------
    datasets : list of str
    objectives : list of {"prbep", "prec@k", "pauc"}
    horizons : list of int
    top, beta, radius : float
        As in `FTRL`.
    trials : int
        Random pairs of weights for the constants of Lemmas 2 and 12.
    seed : int

    Returns
    -------
    pandas.DataFrame
        ``dataset``, ``objective``, ``rows`` (how they come), ``horizon``, ``quantity``,
        ``value``; the lemmas have a quantity only. The losses are those of `FTRL`: of "prec@k"
        and "prbep" a quarter of the paper's at twice the weights. Quantities:

        ``regret``
            The penalties of the player less the least loss in the ball, divided by T, for "pauc"
            by beta T_+ T_-.
        ``regret, at most``
            An upper bound of it, by the certified gaps of FTRL and of the leader.
        ``bound``
            Theorem 1 with the constants of `FTRL`, for "prec@k" and "prbep" those of the paper.
        ``sqrt(s) times the bound``
            Lemma 13, for batches: sqrt(s) times the bound for single rows.
        ``proof of Lemma 13``
            6 ||w*|| sqrt(s/T) in the scaling of the paper, for batches of a struct surrogate.
        ``rate``
            sqrt(s/T), for "pauc" sqrt(s (1/T_+ + 1/T_-)); s is 1 or the rows of a batch.
        ``constant``
            ``regret, at most`` divided by the rate.
        ``w = 0``
            The regret of always playing w = 0.

    Raises
    ------
    InputError
        If a data set has fewer rows than a horizon, or the first rows are of one class.
    DataUnavailableError
        If a data set cannot be obtained.

    Notes
    -----
    kar2014, Theorems 1 and 3, Lemmas 2, 12 and 13.
    """
    rows: list[tuple[str, str, str, float, str, float]] = []
    for dataset in datasets:
        X, y = _stream(dataset, seed)
        for objective in objectives:
            for horizon in horizons:
                if horizon > len(y):
                    raise InputError(
                        f"{dataset} has {len(y):,} rows and a horizon {horizon:,}: shorten it"
                    )
                player = FTRL(objective, top=top, beta=beta, radius=radius, shuffle=False)
                for way, values in _play(player, X[:horizon], y[:horizon]):
                    rows += [(dataset, objective, way, horizon, q, v) for q, v in values.items()]
    rows += [("", "", "", np.nan, q, v) for q, v in _constants(top, trials, seed).items()]
    columns = ["dataset", "objective", "rows", "horizon", "quantity", "value"]
    return pd.DataFrame(rows, columns=columns)


def _stream(dataset: str, seed: int) -> tuple[Any, NDArray[np.float64]]:
    """Return the rows in random order and in the unit ball, with their labels."""
    loaded = load_dataset(dataset)
    order = np.random.default_rng(seed).permutation(len(loaded.y))
    X: Any = loaded.X[order]
    squares = X.multiply(X) if hasattr(X, "multiply") else X * X
    return X / float(np.sqrt(squares.sum(axis=1).max())), loaded.y[order]


def _play(player: FTRL, X: Any, y: NDArray) -> Iterator[tuple[str, dict[str, float]]]:
    n, n_pos = len(y), int(np.sum(y > 0))
    struct = player.objective != "pauc"
    scale = n if struct else player.beta * n_pos * (n - n_pos)
    rate = math.sqrt(1 / n) if struct else math.sqrt(1 / n_pos + 1 / (n - n_pos))
    single = 0.0
    for way, size in ((SINGLE, 1), (BATCHES, math.ceil(math.sqrt(n)))):
        player.set_params(batch_size=size).fit(X, y)
        leader = player.leader(X, y)
        found = (float(np.sum(player.penalties_)) - leader.loss) / scale
        most = found + (leader.gap + player.error_ * float(np.sum(player.lipschitz_))) / scale
        bound = player.radius * math.sqrt(2 * float(np.sum(player.lipschitz_**2))) / scale
        values = {
            "regret": found,
            "regret, at most": most,
            "bound": bound,
            "rate": math.sqrt(size) * rate,
            "constant": most / (math.sqrt(size) * rate),
            "w = 0": (_loss_at_zero(player, y) - leader.loss) / scale,
        }
        if size == 1:
            single = bound
        else:
            values["sqrt(s) times the bound"] = math.sqrt(size) * single
            if struct:  # 6 sqrt(s/T) at twice the weights, a quarter of it
                values["proof of Lemma 13"] = 3 * player.radius * math.sqrt(size / n)
        yield way, values


def _loss_at_zero(player: FTRL, y: NDArray) -> float:
    """Return the sum of the penalties of w = 0, the loss of all rows."""
    n, n_pos = len(y), int(np.sum(y > 0))
    if player.objective == "pauc":  # each hinge is 1
        return n_pos * resolve_k(player.beta, n - n_pos)
    k = n_pos if player.objective == "prbep" else resolve_k(player.top, n)
    return min(k, n - n_pos)  # negatives are the k highest


def _constants(top: float, trials: int, seed: int) -> dict[str, float]:
    """Return the largest ratios that Lemmas 2 and 12 bound, of random and of adverse points."""
    rng = np.random.default_rng(seed)
    in_lists, in_case, of_penalties = zip(
        *(_ratios(*_points(rng, trial), top) for trial in range(trials)), strict=True
    )
    return {
        "Lemma 2, largest ratio": max(in_lists),
        "Lemma 2, stated": 3.0,
        "Case 2.1, largest ratio": max(in_case),
        "Case 2.1, stated": 9.0,
        "Lemma 12, largest ratio": max(of_penalties),
        "Lemma 12, stated": 8.0,
    }


def _points(
    rng: np.random.Generator, trial: int
) -> tuple[NDArray, NDArray, NDArray[np.float64], NDArray[np.float64]]:
    """Draw labelled points of norm at most 1, and two weights close to each other or not.

    In every other trial the points are adverse: on a line along which the weights differ.
    """
    n = int(rng.integers(3, 30))
    X = rng.standard_normal((n, _FEATURES))
    w = rng.standard_normal(_FEATURES)
    other = w + 10.0 ** rng.uniform(-4, 1) * rng.standard_normal(_FEATURES)
    if trial % 2:
        axis = (w - other) / np.linalg.norm(w - other)
        X = rng.choice([-1.0, 1.0], (n, 1)) * axis + 1e-3 * X
    X /= max(1.0, float(np.linalg.norm(X, axis=1).max()))
    y = rng.choice([-1, 1], n)
    y[rng.permutation(n - 1)[:2]] = [-1, 1]
    return X, y, w, other


def _ratios(
    X: NDArray, y: NDArray, w: NDArray[np.float64], other: NDArray[np.float64], top: float
) -> tuple[float, float, float]:
    """Return ratios to ||w - w'||: in sorted lists, in Case 2.1, and of the last penalty."""
    distance = float(np.linalg.norm(w - other))
    here, there = ((X @ v) - y for v in (w, other))
    lists = np.abs(np.sort(here) - np.sort(there)).max()
    ahead, behind = (np.sort(z[:-1])[::-1] for z in (here, there))
    in_case = (here[-1] <= ahead) & (there[-1] <= behind)
    case = 2 * (ahead - behind) - (here[-1] - there[-1])
    scores, positive, n = (X @ w, X @ other), y > 0, len(y)
    penalties = [
        [struct(s, positive, k)[0] - struct(s[:-1], positive[:-1], k_before)[0] for s in scores]
        for k, k_before in (
            (int(np.sum(positive)), int(np.sum(positive[:-1]))),  # of PRBEP
            (resolve_k(top, n), resolve_k(top, n - 1)),
        )
    ]
    return (
        float(lists) / distance,
        float(np.abs(case[in_case]).max(initial=0.0)) / distance,
        _PAPER * float(np.abs(np.diff(penalties)).max()) / distance,
    )


def uniform_convergence(
    datasets: DatasetNames,
    objectives: Objectives,
    sizes: Sizes,
    weights: Count,
    samples: Count,
    top: Share,
    beta: Share,
    radius: PositiveFloat,
    seed: Seed,
) -> pd.DataFrame:
    """Measure the largest deviation over many w of surrogates on a sample from those on all rows.

    The rows are divided by the largest norm of a row; samples are drawn without replacement. The
    w are random ones in the ball, drawn towards the difference between the means of the classes.

    Parameters
    ----------
    datasets : list of str
    objectives : list of {"prbep", "prec@k", "pauc"}
        The struct surrogate divided by the number of rows, with as many ones as there are
        positives or with the share `top`, and the mean hinge over the pairs of a positive and
        one of the share `beta` of the negatives.
    sizes : list of int
        Rows of a sample.
    weights, samples : int
        Number of w, and of samples of each size.
    top, beta : float
    radius : float
        Radius of the ball.
    seed : int

    Returns
    -------
    pandas.DataFrame
        ``dataset``, ``objective``, ``size``, ``quantity``, ``value``, with the quantities
        ``deviation`` (the 95 % quantile over the samples that have rows of both classes),
        ``rate`` (sqrt(log(1/0.05) / size)), ``constant`` (their ratio), and without a size the
        ``slope`` of log(deviation) against log(size), and the ``stated slope`` -1/2.

    Raises
    ------
    InputError
        If a data set has fewer rows than a sample, or samples of one class only.
    DataUnavailableError
        If a data set cannot be obtained.

    Notes
    -----
    kar2014, Definition 5 and Theorems 7 and 8, with a finite set of w for the ball.
    """
    rows: list[tuple[str, str, float, str, float]] = []
    for dataset in datasets:
        X, y = _stream(dataset, seed)
        positive = y > 0
        if max(sizes) > len(y):
            raise InputError(
                f"{dataset} has {len(y):,} rows and a sample of {max(sizes):,}: draw fewer"
            )
        rng = np.random.default_rng(seed)
        scores = np.asarray(_in_ball(rng, X, positive, weights, radius) @ X.T)
        for objective in objectives:
            of = _MEASURES[objective](top, beta)
            at_w, quantiles = [(s, of(s, positive)) for s in scores], list[float]()
            for size in sizes:
                drawn = (rng.choice(len(y), size, replace=False) for _ in range(samples))
                deviations = [
                    max(abs(of(s[chosen], positive[chosen]) - p) for s, p in at_w)
                    for chosen in drawn
                    if 0 < np.sum(positive[chosen]) < size
                ]
                if not deviations:
                    raise InputError(
                        f"no sample of {size} rows of {dataset} has both classes: draw more"
                    )
                quantiles.append(float(np.quantile(deviations, 1 - DELTA)))
                rate = math.sqrt(math.log(1 / DELTA) / size)
                values = {
                    "deviation": quantiles[-1],
                    "rate": rate,
                    "constant": quantiles[-1] / rate,
                }
                rows += [(dataset, objective, size, name, v) for name, v in values.items()]
            slope = -math.inf  # where a sample is all rows
            if min(quantiles) > 0:
                slope = float(np.polyfit(np.log(sizes), np.log(quantiles), 1)[0])
            rows.append((dataset, objective, np.nan, "slope", slope))
    rows.append(("", "", np.nan, "stated slope", -0.5))
    return pd.DataFrame(rows, columns=["dataset", "objective", "size", "quantity", "value"])


def _in_ball(
    rng: np.random.Generator, X: Any, positive: NDArray[np.bool_], n: int, radius: float
) -> NDArray[np.float64]:
    axis = np.asarray(X[positive].mean(axis=0) - X[~positive].mean(axis=0)).ravel()
    axis /= max(float(np.linalg.norm(axis)), 1e-300)
    W = rng.standard_normal((n, X.shape[1])) / math.sqrt(X.shape[1])
    W += rng.random((n, 1)) * axis
    W /= np.linalg.norm(W, axis=1, keepdims=True)
    return radius * rng.random((n, 1)) * W


_Measure = Callable[[NDArray, NDArray[np.bool_]], float]


def _mean_struct(top: float | None) -> _Measure:
    def of(scores: NDArray, positive: NDArray[np.bool_]) -> float:
        k = int(np.sum(positive)) if top is None else resolve_k(top, len(positive))
        return struct(scores, positive, k)[0] / len(positive)

    return of


_MEASURES: dict[str, Callable[[float, float], _Measure]] = {
    "prbep": lambda top, beta: _mean_struct(None),
    "prec@k": lambda top, beta: _mean_struct(top),
    "pauc": lambda top, beta: (
        lambda scores, positive: PartialAUC(beta).evaluate(scores, positive)[0]
    ),
}

STUDIES: dict[str, Callable[..., pd.DataFrame]] = {
    "regret": regret,
    "uniform-convergence": uniform_convergence,
}

"""The bounds of kar2014 beside measured values."""

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, PositiveFloat

from precbench.core.errors import InputError
from precbench.core.studies import (
    AtLeastTwo,
    Count,
    DatasetNames,
    Seed,
    Share,
    Sizes,
    rows_of,
    table_of,
)
from precbench.data import load_dataset
from precbench.ranking.losses import F1, PartialAUC
from precbench.ranking.losses import struct as struct_surrogate
from precbench.ranking.topk import resolve_k
from precbench.solvers import FTRL, OnePMB
from precbench.solvers.ftrl.estimator import Leader

Objectives = Annotated[list[Literal["prbep", "prec@k", "pauc"]], Field(min_length=1)]
Converging = Annotated[
    list[Literal["prbep", "prec@k", "pauc", "pauc, logistic", "f1", "g-mean"]],
    Field(min_length=1),
]

DELTA = 0.05  # the probability with which a bound may fail
# how a player takes the rows of a stream
SINGLE = "single rows"
BATCHES = "batches of sqrt(T)"
# The Lipschitz constant of the loss (3), in units of that of `struct`: up to a constant
# (3) at w is 4 times `struct` at w / 2.
_SLOPE = 2.0
_FEATURES = 3  # of random points


@table_of("dataset", "objective", "rows", "horizon", "quantity", "value")
def regret(
    datasets: DatasetNames,
    objectives: Objectives,
    horizons: Sizes,  # T
    top: Share,  # of the rows, for "prec@k"
    beta: Share,  # of the negatives, for "pauc"
    radius: PositiveFloat,  # of the ball in which w lies
    trials: Count,  # random pairs of weights
    seed: Seed,
) -> Iterator[tuple[str, str, str, float, str, float]]:
    """Play `FTRL` on growing streams, and compare its regret with the theorems."""
    # A stream is the rows of a data set, divided by the largest norm of a row, in
    # random order; horizon T takes the first T rows, one or ceil(sqrt(T)) rows at a
    # time (Theorems 1 and 3, Lemmas 9, 10 and 13). Lemmas 2 and 12 have random pairs of
    # weights, no stream. For "prec@k" and "prbep" the loss of `FTRL` at w is a quarter
    # of the paper's loss at 2 w.
    for dataset in datasets:
        X, y = _stream(dataset, seed, horizons=max(horizons))
        for objective in objectives:
            for horizon in horizons:
                player = FTRL(
                    objective, top=top, beta=beta, radius=radius, shuffle=False
                )
                single = _play_rows(player, X[:horizon], y[:horizon])
                yield from rows_of(single, dataset, objective, SINGLE, horizon)
                batches = _play_batches(
                    player, X[:horizon], y[:horizon], single_row_bound=single["bound"]
                )
                yield from rows_of(batches, dataset, objective, BATCHES, horizon)
                if objective == "pauc":
                    values = _extreme_streams(player, X, y, horizon)
                    yield from rows_of(values, dataset, objective, SINGLE, horizon)
    # Ratios and constants of Lemmas 2, 10 and 12, which need no data set.
    yield from rows_of(_constants(top, trials, seed), "", "", "", np.nan)


def _stream(dataset: str, seed: int, **needed: int) -> tuple[Any, NDArray[np.float64]]:
    """Return rows and labels in random order, the rows divided by their largest norm.

    `needed` are numbers of rows by the parameter that asks for them; too few rows are
    refused.
    """
    loaded = load_dataset(dataset)
    for name, n_rows in needed.items():
        if n_rows > len(loaded.y):
            raise InputError(
                f"{name}: {n_rows:,} exceeds the {len(loaded.y):,} rows of {dataset};"
                f" lower {name}"
            )
    order = np.random.default_rng(seed).permutation(len(loaded.y))
    X: Any = loaded.X[order]
    squares = X.multiply(X) if hasattr(X, "multiply") else X * X  # sparse, or dense
    return X / float(np.sqrt(squares.sum(axis=1).max())), loaded.y[order]


class _Scale(NamedTuple):
    """What divides the losses on a stream, and how fast the regret then falls."""

    divisor: float
    rate: float  # without its constant


def _scale(player: FTRL, y: NDArray) -> _Scale:
    """Return the scale of the regret in Theorem 1, or for "pauc" in Theorem 3."""
    n = len(y)
    if player.objective == "pauc":
        n_pos = int(np.sum(y > 0))
        n_neg = n - n_pos
        # beta T_+ T_- pairs; O(sqrt(1 / T_+ + 1 / T_-))
        return _Scale(
            player.beta * n_pos * n_neg, rate=math.sqrt(1 / n_pos + 1 / n_neg)
        )
    # T rows; O(sqrt(1 / T)), as G_t is at most 8
    return _Scale(n, rate=math.sqrt(1 / n))


def _play_rows(player: FTRL, X: Any, y: NDArray) -> dict[str, float]:
    """Return the regret of FTRL that plays row by row, its bounds and its steps."""
    weights = [np.zeros(X.shape[1])]  # w_0, w_1, ...
    player.set_params(batch_size=1)
    player.fit(X, y, trace=partial(_append_weights, weights))
    leader = player.leader(X, y)
    scale = _scale(player, y)
    values = _regret_and_bounds(player, leader, y, scale)
    return values | _steps(player, X, y, weights, leader, scale.divisor)


def _play_batches(
    player: FTRL, X: Any, y: NDArray, single_row_bound: float
) -> dict[str, float]:
    """Return the regret of FTRL that plays sqrt(T) rows at a time, and its bounds.

    `single_row_bound` is the bound on the regret R(T) of playing row by row.
    """
    size = math.ceil(math.sqrt(len(y)))
    player.set_params(batch_size=size).fit(X, y)
    values = _regret_and_bounds(player, player.leader(X, y), y, _scale(player, y))
    # Lemma 13: R(T, s) <= sqrt(s) R(T)
    values["sqrt(s) times the bound"] = math.sqrt(size) * single_row_bound
    if player.objective != "pauc":
        # By the proof of Lemma 13 the regret of (3) is at most 6 ||w*|| sqrt(s / T).
        # (3) is 4 times our loss, at 2 w: 6 * 2 / 4 = 3.
        values["proof of Lemma 13"] = 3 * player.radius * math.sqrt(size / len(y))
    return values


def _append_weights(weights: list[NDArray[np.float64]], player: Any) -> None:
    """Append the weights of a player if they are new, as a trace of its fit."""
    # A trace may be called again at the end of a batch, whose w is appended already.
    if player.n_iter_ == len(weights):
        weights.append(player.coef_.copy())


def _regret_and_bounds(
    player: FTRL, leader: Leader, y: NDArray, scale: _Scale
) -> dict[str, float]:
    """Return the regret of a fitted player against the leader, and what bounds it.

    The regret (Section 3) is sum_t L_t(w_t) / T - least loss in the ball / T; "pauc"
    divides by beta T_+ T_- instead (Theorem 3).
    """
    regret = _regret_against(leader, player)
    at_most = regret.at_least / scale.divisor + regret.error / scale.divisor
    # Theorem 1: ||w*|| sqrt(2 sum_t G_t^2) / T, with the G_t of `FTRL`
    sum_of_squares = float(np.sum(player.lipschitz_**2))
    bound = player.radius * math.sqrt(2 * sum_of_squares) / scale.divisor
    # Batches of s rows have at most sqrt(s) times the regret (Lemma 13).
    rate = math.sqrt(player.batch_size) * scale.rate
    return {
        "regret": regret.at_least / scale.divisor,
        "regret, at most": at_most,
        "bound": bound,
        "rate": rate,
        "constant": at_most / rate,
        "w = 0": (_loss_at_zero(player, y) - leader.loss) / scale.divisor,
    }


class _Regret(NamedTuple):
    """The regret of a fitted player in sums of losses, not in means."""

    at_least: float
    error: float  # the most by which it is larger


def _regret_against(leader: Leader, player: FTRL) -> _Regret:
    """Return the regret of a fitted player against the leader."""
    # The leader's loss may be `gap` above the least one, each played w may be `error_`
    # from the exact one.
    error = leader.gap + player.error_ * float(np.sum(player.lipschitz_))
    return _Regret(float(np.sum(player.penalties_)) - leader.loss, error)


def _steps(
    player: FTRL,
    X: Any,
    y: NDArray,
    weights: list[NDArray[np.float64]],  # w_0, w_1, ...
    leader: Leader,  # the best w in hindsight, w*
    divisor: float,  # of losses
) -> dict[str, float]:
    """Return both sides of Lemma 9, and the largest ratio of the sides of Lemma 10."""
    loss = player._loss(X, y > 0)  # `at(w, t)`: at w, on the first t rows
    # Lemma 9: sum_t L_t(w_{t+1}) <= loss of w* + eta / 2 ||w*||^2
    penalties = []
    for t, w in enumerate(weights[1:]):
        with_row = loss.at(w, t + 1).risk
        without_row = loss.at(w, t).risk if t else 0.0
        penalties.append(with_row - without_row)
    bound = leader.loss + 0.5 * player.eta_ * float(leader.w @ leader.w)
    # Each w may be off by `error_`.
    bound += player.error_ * float(np.sum(player.lipschitz_))
    # Lemma 10, divided by ||w_{t+1} - w_t||: eta ||w_{t+1} - w_t|| <= G_t
    steps = np.linalg.norm(np.diff(weights, axis=0), axis=1)
    least_steps = steps - 2 * player.error_  # both w may be off
    moved = player.lipschitz_ > 0  # G_t is 0 where a row adds no penalty
    ratios = player.eta_ * least_steps[moved] / player.lipschitz_[moved]
    return {
        "forward loss": float(sum(penalties)) / divisor,
        "forward bound": bound / divisor,
        "largest step": float(np.max(ratios)),
    }


def _extreme_streams(
    player: FTRL, X: Any, y: NDArray, horizon: int
) -> dict[str, float]:
    """Return the pAUC regret of streams at the extremes of Theorem 3.

    Its rate sqrt(1 / T_+ + 1 / T_-) is largest for one positive, for which a lower
    bound of the regret is returned, and least for a balanced stream, for which an upper
    bound is returned.
    """
    pos, neg = np.flatnonzero(y > 0), np.flatnonzero(y < 0)
    # "an adversary may wish to provide the lone positive point in the last round"
    lone = np.append(neg[: horizon - 1], pos[0])
    half = min(horizon // 2, len(pos), len(neg))
    balanced = np.sort(np.concatenate([pos[:half], neg[:half]]))  # in the order of X
    return {
        "regret, lone positive": _regret_of(player, X[lone], y[lone]).at_least,
        "regret, balanced": _regret_of(player, X[balanced], y[balanced]).at_most,
    }


class _Limits(NamedTuple):
    """Limits of a regret, divided by what divides the losses."""

    at_least: float
    at_most: float


def _regret_of(player: FTRL, X: Any, y: NDArray) -> _Limits:
    """Play a stream row by row, and return the limits of the regret."""
    player.set_params(batch_size=1).fit(X, y)
    regret = _regret_against(player.leader(X, y), player)
    divisor = _scale(player, y).divisor
    return _Limits(
        at_least=regret.at_least / divisor,
        at_most=(regret.at_least + regret.error) / divisor,
    )


def _loss_at_zero(player: FTRL, y: NDArray) -> float:
    """Return the loss of w = 0 on all rows, where all scores tie."""
    n = len(y)
    n_pos = int(np.sum(y > 0))
    if player.objective == "pauc":
        # The hinge is 1 for each positive with each of the share beta of the negatives.
        return n_pos * resolve_k(player.beta, n - n_pos)
    k = n_pos if player.objective == "prbep" else resolve_k(player.top, n)
    return min(k, n - n_pos)  # the worst order of a tie: negatives on top


def _constants(top: float, trials: int, seed: int) -> dict[str, float]:
    """Return the constants that Lemmas 2, 10, 12 and Case 2.1 state, and measured ones.

    Measured are the largest ratios of random points; that of Lemma 10 is measured on
    streams, by `_steps`.
    """
    rng = np.random.default_rng(seed)
    ratios_of_lemma_2 = []
    ratios_of_case_2_1 = []
    ratios_of_lemma_12 = []
    for i in range(trials):
        is_every_second = i % 2 == 1
        points = _draw_points(rng, is_adverse=is_every_second)
        ratios_of_lemma_2.append(_lemma_2(points))
        ratios_of_case_2_1.append(_case_2_1(points))
        ratios_of_lemma_12.append(_lemma_12(points, top))
    return {
        "Lemma 2, largest ratio": max(ratios_of_lemma_2),
        "Lemma 2, stated": 3.0,
        "Case 2.1, largest ratio": max(ratios_of_case_2_1),
        "Case 2.1, stated": 9.0,
        "Lemma 12, largest ratio": max(ratios_of_lemma_12),
        "Lemma 12, stated": 8.0,
        "Lemma 10, stated": 1.0,
    }


class _Points(NamedTuple):
    """Points of norm at most 1 with labels, and two weight vectors."""

    X: NDArray
    y: NDArray
    w: NDArray[np.float64]
    v: NDArray[np.float64]

    @property
    def distance(self) -> float:  # ||w - v||
        return float(np.linalg.norm(self.w - self.v))

    def z(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return z_i = w'x_i - y_i at these weights."""
        return (self.X @ weights) - self.y


def _draw_points(rng: np.random.Generator, *, is_adverse: bool) -> _Points:
    """Draw points and two weight vectors at any distance.

    Adverse points lie near a line along which the weights differ.
    """
    n = int(rng.integers(3, 30))
    X = rng.standard_normal((n, _FEATURES))
    w = rng.standard_normal(_FEATURES)
    distance = 10.0 ** rng.uniform(-4, 1)  # its order of magnitude
    v = w + distance * rng.standard_normal(_FEATURES)
    if is_adverse:
        axis = (w - v) / np.linalg.norm(w - v)
        X = rng.choice([-1.0, 1.0], (n, 1)) * axis + 1e-3 * X
    X /= max(1.0, float(np.linalg.norm(X, axis=1).max()))
    y = rng.choice([-1, 1], n)
    # Both classes come before the last row, as `_lemma_12` leaves it out.
    y[rng.permutation(n - 1)[:2]] = [-1, 1]
    return _Points(X, y, w, v)


def _lemma_2(points: _Points) -> float:
    """Return by how much an entry of the sorted list of the z_i changes, / ||w - v||.

    Lemma 2: |z_{i_k} - z'_{j_k}| <= 3 ||w - v||, where z is at w and z' at v.
    """
    sorted_at_w = np.sort(points.z(points.w))
    sorted_at_v = np.sort(points.z(points.v))
    return float(np.abs(sorted_at_w - sorted_at_v).max()) / points.distance


def _case_2_1(points: _Points) -> float:
    """Return the largest change in Case 2.1 of the proof of Lemma 12, / ||w - v||.

    Case 2.1: if z_t <= z_{i_a} and z'_t <= z'_{j_a}, for the last row t and the entry a
    of the sorted lists of the others, then
    2 (z_{i_a} - z'_{j_a}) - (z_t - z'_t) <= 9 ||w - v||.
    """
    at_w = points.z(points.w)
    at_v = points.z(points.v)
    sorted_at_w = np.sort(at_w[:-1])[::-1]  # from the largest down
    sorted_at_v = np.sort(at_v[:-1])[::-1]
    in_case = (at_w[-1] <= sorted_at_w) & (at_v[-1] <= sorted_at_v)
    change = 2 * (sorted_at_w - sorted_at_v) - (at_w[-1] - at_v[-1])
    # The case is the same with w and v exchanged, so both signs of the change count.
    return float(np.abs(change[in_case]).max(initial=0.0)) / points.distance


def _lemma_12(points: _Points, top: float) -> float:
    """Return by how much the penalty L_t of the last row changes, / ||w - v||.

    Lemma 12: |L_t(w) - L_t(v)| <= 8 ||w - v||. L_t is the loss (3) with the row t less
    the loss without it, here for PRBEP (k is n_pos) and for prec@k.
    """
    n = len(points.y)
    positive = points.y > 0
    n_pos = int(np.sum(positive))
    n_pos_before = int(np.sum(positive[:-1]))
    of_prbep = _change_of_penalty(points, n_pos, n_pos_before)
    of_prec = _change_of_penalty(points, resolve_k(top, n), resolve_k(top, n - 1))
    return _SLOPE * max(of_prbep, of_prec) / points.distance


def _change_of_penalty(points: _Points, k: int, k_before: int) -> float:
    """Return |L_t(w) - L_t(v)| of the last row, in units of `struct`.

    `k` is that of all rows, `k_before` that of the rows before the last.
    """

    def penalty(weights: NDArray[np.float64]) -> float:
        scores = points.X @ weights
        positive = points.y > 0
        loss, _gradient = struct_surrogate(scores, positive, k)
        loss_before, _gradient = struct_surrogate(scores[:-1], positive[:-1], k_before)
        return loss - loss_before

    return float(abs(penalty(points.v) - penalty(points.w)))


@table_of("dataset", "objective", "size", "quantity", "value")
def uniform_convergence(
    datasets: DatasetNames,
    objectives: Converging,
    sizes: Sizes,  # of samples
    weights: Count,  # how many w
    samples: Count,  # of each size
    top: Share,  # of the rows, for "prec@k"
    beta: Share,  # of the negatives, for "pauc"
    radius: PositiveFloat,
    seed: Seed,
) -> Iterator[tuple[str, str, int, str, float]]:
    """Measure how far surrogates on samples deviate from their values on all rows."""
    # Theorems 7 and 8: with probability 1 - delta a surrogate on s random rows is
    # within O(sqrt(log(1 / delta) / s)) of its value on all rows, for all w in the ball
    # (Definition 5); here for some random w. Rows are divided by the largest norm;
    # samples are without replacement. ``deviation``: 95 % quantile over samples of both
    # classes; ``constant``: deviation / rate.
    for dataset in datasets:
        X, y = _stream(dataset, seed, sizes=max(sizes))
        positive = y > 0
        rng = np.random.default_rng(seed)
        W = _in_ball(rng, X, positive, weights, radius)
        scores = np.asarray(W @ X.T)  # a row for each w
        for objective in objectives:
            measure = partial(_mean_loss, objective, top=top, beta=beta)
            on_all_rows = [measure(of_w, positive) for of_w in scores]
            for size in sizes:
                drawn = [
                    rng.choice(len(y), size, replace=False) for _ in range(samples)
                ]
                deviations = _deviations(scores, positive, on_all_rows, drawn, measure)
                if not deviations:
                    raise InputError(
                        f"sizes: no sample of {size} rows of {dataset} has both"
                        " classes; give larger sizes"
                    )
                deviation = float(np.quantile(deviations, 1 - DELTA))
                # without its open constant
                rate = math.sqrt(math.log(1 / DELTA) / size)
                values = {
                    "deviation": deviation,
                    "rate": rate,
                    "constant": deviation / rate,
                }
                yield from rows_of(values, dataset, objective, size)


def _deviations(
    scores: NDArray[np.float64],  # a row for each w
    positive: NDArray[np.bool_],
    on_all_rows: list[float],  # the measure, for each w
    samples: list[NDArray[np.intp]],  # the rows of each
    measure: "_Measure",
) -> list[float]:
    """Return by sample of both classes the largest deviation over all w."""
    deviations = []
    for rows in samples:
        has_both_classes = 0 < np.sum(positive[rows]) < len(rows)
        if not has_both_classes:
            continue
        on_sample = [
            measure(of_w, positive[rows]) for of_w in scores.take(rows, axis=1)
        ]
        by_w = [
            abs(sampled - whole)
            for sampled, whole in zip(on_sample, on_all_rows, strict=True)
        ]
        deviations.append(max(by_w))
    return deviations


def _in_ball(
    rng: np.random.Generator, X: Any, positive: NDArray[np.bool_], n: int, radius: float
) -> NDArray[np.float64]:
    """Draw n weight vectors in the ball, towards the difference of the class means."""
    axis = np.asarray(X[positive].mean(axis=0) - X[~positive].mean(axis=0)).ravel()
    axis /= max(float(np.linalg.norm(axis)), 1e-300)  # 0 stays 0: equal means
    W = rng.standard_normal((n, X.shape[1])) / math.sqrt(X.shape[1])
    W += rng.random((n, 1)) * axis  # moves each w by a random length
    W /= np.linalg.norm(W, axis=1, keepdims=True)
    return radius * rng.random((n, 1)) * W  # a row for each w


@table_of("theorem", "dataset", "objective", "size", "quantity", "value")
def error_bounds(
    datasets: DatasetNames,
    objectives: Objectives,
    horizons: Sizes,  # T, the rows of a stream
    streams: AtLeastTwo,  # of each horizon
    buffers: Sizes,  # s, the rows of a buffer of 1PMB
    rows: AtLeastTwo,  # of a pass of 1PMB
    orders: AtLeastTwo,  # of the rows of the pass
    samples: Count,  # of s rows
    eta0: PositiveFloat,  # step size of 1PMB
    top: Share,  # of the rows, for "prec@k"
    beta: Share,  # of the negatives, for "pauc"
    radius: PositiveFloat,  # of the ball in which w lies
    seed: Seed,
) -> Iterator[tuple[str, str, str, int, str, float]]:
    """Measure the excess risk of FTRL on streams, and of 1PMB in one pass."""
    # Theorems 4 (14 for "pauc") and 6. Rows are divided by the largest norm, losses by
    # the number of rows; the loss of "pauc" is the mean hinge. The excess is the risk
    # less a lower bound of the least risk in the ball and, for FTRL, less its regret.
    # Shown is the 95 % quantile of the excess over streams (FTRL) or orders (1PMB).
    for dataset in datasets:
        X, y = _stream(dataset, seed, horizons=max(horizons), rows=rows)
        for objective in objectives:
            measure = partial(_mean_loss, objective, top=top, beta=beta)
            player = FTRL(
                objective,
                top=top,
                beta=beta,
                radius=radius,
                average=True,
                shuffle=False,
            )
            least_risk = _best(player, X, y).least_risk
            for horizon in horizons:
                values = _theorem_4(
                    player, X, y, horizon, streams, measure, least_risk, seed
                )
                yield from rows_of(values, "Theorem 4", dataset, objective, horizon)
            if objective == "prec@k":
                continue  # 1PMB cannot minimise this loss, as its k is of the positives
            X_n, y_n = X[:rows], y[:rows]  # the rows of the pass
            best_of_pass = _best(player, X_n, y_n)
            for size in buffers:
                solver = _one_pass(objective, size, beta=beta, eta0=eta0, radius=radius)
                values = _theorem_6(
                    solver, X_n, y_n, orders, samples, measure, best_of_pass, seed
                )
                yield from rows_of(values, "Theorem 6", dataset, objective, size)


def _one_pass(
    objective: str, size: int, *, beta: float, eta0: float, radius: float
) -> OnePMB:
    """Return 1PMB for an objective, with buffers of `size` rows."""
    if objective == "pauc":
        name = "pauc"
        step = eta0
    else:
        # "prbep" is the prec@k of 1PMB with k = 1.0, all positives. This loss is a sum
        # over rows, where that of "pauc" is a mean over pairs.
        name = "prec@k"
        step = eta0 / size
    return OnePMB(
        name,
        k=1.0,
        beta=beta,
        batch_size=size,
        epochs=1,
        eta0=step,
        radius=radius,
        shuffle=False,
    )


def _terms(player: FTRL, y: NDArray) -> float:
    """Return the number of rows, or of pairs, over which an objective sums its loss."""
    if player.objective != "pauc":
        return len(y)
    n_pos = int(np.sum(y > 0))
    n_neg = len(y) - n_pos
    return n_pos * resolve_k(player.beta, n_neg)


class _Best(NamedTuple):
    """The best w in the ball, as far as it was found."""

    w: NDArray[np.float64]  # w*
    least_risk: float  # a lower bound of the mean loss of w*


def _best(player: FTRL, X: Any, y: NDArray) -> _Best:
    # `leader` needs a fit, to any rows: here to the first row of each class.
    two = [np.argmax(y > 0), np.argmax(y < 0)]
    leader = player.fit(X[two], y[two]).leader(X, y)
    return _Best(leader.w, (leader.loss - leader.gap) / _terms(player, y))


def _theorem_4(
    player: FTRL,
    X: Any,
    y: NDArray,
    horizon: int,  # T
    streams: int,
    measure: "_Measure",  # of scores and positives: the mean loss
    least_risk: float,  # a lower bound of the mean loss of w*
    seed: int,
) -> dict[str, float]:
    """Return the excess risk of FTRL on random streams and its bound by Theorem 4.

    With batches of s = sqrt(T) rows and probability 1 - delta, the mean of w_1 to w_T
    has a risk of at most the risk of w* + regret + O((log(1 / delta) / T)^(1/4)). The
    excess is the difference of the two risks, less the regret.
    """
    rng = np.random.default_rng([seed, horizon])
    above_least = []  # risks, less the least one
    regrets = []
    player.set_params(batch_size=math.ceil(math.sqrt(horizon)))
    for _ in range(streams):
        drawn = rng.choice(len(y), horizon, replace=False)
        player.fit(X[drawn], y[drawn])  # `coef_` is the mean of the w_t
        regret = _regret_against(player.leader(X[drawn], y[drawn]), player)
        regrets.append(regret.at_least / _terms(player, y[drawn]))
        above_least.append(measure(X @ player.coef_, y > 0) - least_risk)
    risk_at_zero = measure(np.zeros(len(y)), y > 0)
    return {
        "excess": float(np.quantile(np.subtract(above_least, regrets), 1 - DELTA)),
        # the open constant is taken as 1
        "bound": (math.log(1 / DELTA) / horizon) ** 0.25,
        # the excess of w = 0 on the stream where it is largest
        "w = 0": risk_at_zero - least_risk - min(regrets),
    }


def _theorem_6(
    solver: OnePMB,
    X: Any,
    y: NDArray,
    orders: int,  # passes
    samples: int,  # of as many rows as a buffer
    measure: "_Measure",  # of scores and positives: the mean loss
    best: _Best,  # on these rows
    seed: int,
) -> dict[str, float]:
    """Return the excess risk of passes of 1PMB and its bound by Theorem 6.

    After n rows in buffers of s the excess is at most 2 alpha + O(sqrt(s / n)), if on s
    random rows the risk deviates by at most alpha from the risk on all n rows, for all
    w.
    """
    size = int(solver.batch_size)
    positive = y > 0
    rng = np.random.default_rng([seed, size])
    weights = [best.w]  # w*, then one w for each order
    excesses = []
    for _ in range(orders):
        order = rng.permutation(len(y))
        w = solver.fit(X[order], y[order]).coef_
        weights.append(w)
        excesses.append(measure(X @ w, positive) - best.least_risk)
    all_scores = [X @ w for w in weights]
    losses = [measure(scores, positive) for scores in all_scores]
    alpha = 0.0  # over samples and these w
    for _ in range(samples):
        drawn = rng.choice(len(y), size, replace=False)
        has_both_classes = 0 < np.sum(positive[drawn]) < size
        if not has_both_classes:
            continue
        for scores, loss in zip(all_scores, losses, strict=True):
            deviation = abs(measure(scores[drawn], positive[drawn]) - loss)
            alpha = max(alpha, deviation)
    return {
        "excess": float(np.quantile(excesses, 1 - DELTA)),
        # the open constant is taken as 1
        "bound": 2 * alpha + math.sqrt(size / len(y)),
        "w = 0": measure(np.zeros(len(y)), positive) - best.least_risk,
    }


_Measure = Callable[[NDArray, NDArray[np.bool_]], float]


def _mean_loss(
    objective: str,
    scores: NDArray,
    positive: NDArray[np.bool_],
    *,
    top: float,  # of the rows, for "prec@k"
    beta: float,  # of the negatives, for "pauc" and "pauc, logistic"
) -> float:
    """Return the surrogate of an objective, a mean over rows or pairs of rows.

    For "f1" and "g-mean" it is that of one loss of all rows.
    """
    n = len(scores)
    if objective == "prbep":
        loss, _ = struct_surrogate(scores, positive, int(np.sum(positive)))
        return loss / n
    if objective == "prec@k":
        loss, _ = struct_surrogate(scores, positive, resolve_k(top, n))
        return loss / n
    if objective == "pauc":
        loss, _ = PartialAUC(beta).evaluate(scores, positive)
        return loss
    if objective == "pauc, logistic":
        return _logistic_pauc(scores, positive, beta)
    if objective == "f1":
        loss, _ = F1().evaluate(scores, positive)
        return loss
    assert objective == "g-mean"
    return _g_mean(scores, positive)


def _logistic_pauc(scores: NDArray, positive: NDArray[np.bool_], beta: float) -> float:
    """Return (5) with phi(c) = log(1 + e^-c), as a mean over its pairs."""
    neg = -np.sort(-scores[~positive])  # from the highest down
    top_neg = neg[: resolve_k(beta, len(neg))]
    pos = scores[positive][:, np.newaxis]
    return float(np.logaddexp(0, top_neg - pos).mean())


def _g_mean(scores: NDArray, positive: NDArray[np.bool_]) -> float:
    """Return the struct surrogate of 1 - sqrt(recall of positives * of negatives).

    As for `F1`, it is the largest value over all labellings of the loss + (sum of the
    scores of negatives labelled 1 - sum of the scores of positives labelled 0) / n_pos.
    The best labelling has a 1 for the a highest positives and the b highest negatives:
    n_pos times its value is n_pos (1 - sqrt(a / n_pos) sqrt(1 - b / n_neg)) - sum of
    the other positives + sum of these negatives.
    """
    pos = -np.sort(-scores[positive])  # from the highest down
    neg = -np.sort(-scores[~positive])
    n_pos, n_neg = len(pos), len(neg)
    sums_of_others = np.append(0.0, np.cumsum(pos[::-1]))[::-1]  # by a
    sums_of_neg = np.append(0.0, np.cumsum(neg))  # by b
    roots = np.sqrt(1 - np.arange(n_neg + 1) / n_neg)  # by b
    best = -math.inf  # without the n_pos of the loss's 1
    for a, sum_of_others in enumerate(sums_of_others):
        by_b = sums_of_neg - n_pos * math.sqrt(a / n_pos) * roots
        best = max(best, float(by_b.max()) - sum_of_others)
    return 1 + best / n_pos

"""The bounds of kar2014 beside measured values.

Regret, stability, convergence, error.
"""

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Annotated, Any, Literal

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
from precbench.ranking.losses import F1, PartialAUC, struct
from precbench.ranking.topk import resolve_k
from precbench.solvers import FTRL, OnePMB
from precbench.solvers.ftrl.estimator import Leader

Objectives = Annotated[list[Literal["prbep", "prec@k", "pauc"]], Field(min_length=1)]
Converging = Annotated[
    list[Literal["prbep", "prec@k", "pauc", "pauc, logistic", "f1", "g-mean"]],
    Field(min_length=1),
]

DELTA = 0.05  # the probability with which a bound may fail
SINGLE, BATCHES = "single rows", "batches of sqrt(T)"
# of (3) over `struct`: (3) at w is 4 times `struct` at w / 2, up to a constant
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
    """Play `FTRL` on streams of growing length and compare its regret with the theorems."""
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
                # (SINGLE or BATCHES, values)
                played = [*_play(player, X[:horizon], y[:horizon])]
                if objective == "pauc":
                    played.append((SINGLE, _extreme_streams(player, X, y, horizon)))
                for way, values in played:
                    yield from rows_of(values, dataset, objective, way, horizon)
    # Ratios and constants of Lemmas 2, 10 and 12, which need no data set.
    yield from rows_of(_constants(top, trials, seed), "", "", "", np.nan)


def _stream(dataset: str, seed: int, **needed: int) -> tuple[Any, NDArray[np.float64]]:
    """Return the rows of a data set in random order, divided by their largest norm, and labels.

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


def _play(player: FTRL, X: Any, y: NDArray) -> Iterator[tuple[str, dict[str, float]]]:
    """Yield the regret of FTRL and its bounds.

    By single rows, then by batches of sqrt(T).
    """
    # The regret is (sum of the penalties - least loss in the ball) / T; "pauc" divides
    # by beta T_+ T_- instead. With Lipschitz constants G_t of penalties, the regret is
    # at most sqrt(2 sum_t G_t^2) radius / T (Theorem 1), which is O(sqrt(1 / T)), or
    # O(sqrt(1 / T_+ + 1 / T_-)) for "pauc" (Theorem 3), and with s rows at a time at
    # most sqrt(s) times as much (Lemma 13).
    n, n_pos = len(y), int(np.sum(y > 0))
    is_sum = player.objective != "pauc"  # over rows; "pauc" sums over pairs of rows
    scale = n if is_sum else player.beta * n_pos * (n - n_pos)
    rate = math.sqrt(1 / n) if is_sum else math.sqrt(1 / n_pos + 1 / (n - n_pos))
    bound_of_single = 0.0  # set by the single rows, which come first
    for way, size in ((SINGLE, 1), (BATCHES, math.ceil(math.sqrt(n)))):
        played = [np.zeros(X.shape[1])]  # w_0, w_1, ..., appended by the trace
        player.set_params(batch_size=size).fit(
            X, y, trace=partial(_append_weights, played)
        )
        leader = player.leader(X, y)
        # at most `error` below the exact
        regret_found, error = _regret_against(leader, player)
        at_most = regret_found / scale + error / scale
        bound = (
            player.radius * math.sqrt(2 * float(np.sum(player.lipschitz_**2))) / scale
        )
        values = {
            "regret": regret_found / scale,
            "regret, at most": at_most,
            "bound": bound,  # of Theorem 1, with the G_t of `FTRL`
            "rate": math.sqrt(size) * rate,  # the O(...), without its constant
            # by which to multiply the rate
            "constant": at_most / (math.sqrt(size) * rate),
            # the regret of w = 0
            "w = 0": (_loss_at_zero(player, y) - leader.loss) / scale,
        }
        if size == 1:
            bound_of_single = bound
            values |= _steps(player, X, y, played, leader, scale)
        else:
            # Lemma 13
            values["sqrt(s) times the bound"] = math.sqrt(size) * bound_of_single
            # 6 ||w*|| sqrt(s / T), where the paper's loss is 4 times ours, at 2 w
            if is_sum:
                # 6 * 2 / 4
                values["proof of Lemma 13"] = 3 * player.radius * math.sqrt(size / n)
        yield way, values


def _regret_against(leader: Leader, player: FTRL) -> tuple[float, float]:
    """Return a lower bound of the regret against the leader, and the largest error of the bound."""
    error = leader.gap + player.error_ * float(np.sum(player.lipschitz_))
    return float(np.sum(player.penalties_)) - leader.loss, error


def _append_weights(played: list[NDArray[np.float64]], player: Any) -> None:  # a trace
    # at the end of a batch, whose w is not in `played`
    if player.n_iter_ == len(played):
        played.append(player.coef_.copy())


def _steps(
    player: FTRL,
    X: Any,
    y: NDArray,
    played: list[NDArray[np.float64]],  # w_0, w_1, ...
    leader: Leader,  # the best w in hindsight
    scale: float,  # divides losses
) -> dict[str, float]:
    """Return both sides of Lemma 9, and the largest ratio eta ||step|| / G_t of Lemma 10."""
    # Lemma 9: the penalties L_t of w_{t+1} (forward, rows t from 0) sum to at most the
    # loss of the leader w* plus eta/2 ||w*||^2. Lemma 10: eta ||w_{t+1} - w_t|| <= G_t.
    loss = player._loss(X, y > 0)  # `at(w, t)`: at w, on the first t rows
    forward = sum(
        loss.at(w, t + 1).risk - (loss.at(w, t).risk if t else 0.0)  # L_t of w_{t+1}
        for t, w in enumerate(played[1:])
    )
    bound = leader.loss + 0.5 * player.eta_ * float(leader.w @ leader.w)
    # each w may be off by `error_`
    bound += player.error_ * float(np.sum(player.lipschitz_))
    # lower bounds
    steps = np.linalg.norm(np.diff(played, axis=0), axis=1) - 2 * player.error_
    moved = player.lipschitz_ > 0  # G_t is 0 where a row adds no penalty
    return {
        "forward loss": float(forward) / scale,
        "forward bound": bound / scale,
        "largest step": float(
            np.max(player.eta_ * steps[moved] / player.lipschitz_[moved])
        ),
    }


def _extreme_streams(
    player: FTRL, X: Any, y: NDArray, horizon: int
) -> dict[str, float]:
    """Return a lower bound of the pAUC regret with one positive, an upper bound if balanced."""
    # Extremes of Theorem 3: sqrt(1 / T_+ + 1 / T_-) is largest for one positive, least
    # if balanced.
    pos, neg = np.flatnonzero(y > 0), np.flatnonzero(y < 0)
    half = min(horizon // 2, len(pos), len(neg))
    balanced = np.sort(np.concatenate([pos[:half], neg[:half]]))  # in the order of X
    regrets = []  # (lower, upper) bounds
    # the one positive comes last
    for rows in (np.append(neg[: horizon - 1], pos[0]), balanced):
        player.set_params(batch_size=1).fit(X[rows], y[rows])
        n_pos = int(np.sum(y[rows] > 0))
        scale = player.beta * n_pos * (len(rows) - n_pos)
        least, error = _regret_against(player.leader(X[rows], y[rows]), player)
        regrets.append((least / scale, (least + error) / scale))
    (least_of_one, _), (_, most_of_balanced) = regrets
    return {"regret, lone positive": least_of_one, "regret, balanced": most_of_balanced}


def _loss_at_zero(player: FTRL, y: NDArray) -> float:
    """Return the loss of w = 0 on all rows, where all scores tie."""
    n, n_pos = len(y), int(np.sum(y > 0))
    if player.objective == "pauc":  # a hinge of 1 for each pair that counts
        # beta: a share of the negatives
        return n_pos * resolve_k(player.beta, n - n_pos)
    # top: of all rows
    k = n_pos if player.objective == "prbep" else resolve_k(player.top, n)
    return min(k, n - n_pos)  # the worst order of a tie: negatives on top


def _constants(top: float, trials: int, seed: int) -> dict[str, float]:
    """Return the constants of Lemmas 2, 10, 12, Case 2.1.

    Stated, and largest for random points.
    """
    rng = np.random.default_rng(seed)
    lists, cases, penalties = np.transpose(
        [_ratios(*_points(rng, is_adverse=i % 2 == 1), top) for i in range(trials)]
    )
    return {
        "Lemma 2, largest ratio": max(lists),
        "Lemma 2, stated": 3.0,
        "Case 2.1, largest ratio": max(cases),
        "Case 2.1, stated": 9.0,
        "Lemma 12, largest ratio": max(penalties),
        "Lemma 12, stated": 8.0,
        "Lemma 10, stated": 1.0,  # measured by `_steps`
    }


def _points(
    rng: np.random.Generator, *, is_adverse: bool
) -> tuple[NDArray, NDArray, NDArray[np.float64], NDArray[np.float64]]:
    """Return points of norm at most 1, their labels and two weight vectors at any distance."""
    # Adverse points lie near a line along which the weights differ.
    n = int(rng.integers(3, 30))
    X = rng.standard_normal((n, _FEATURES))
    w = rng.standard_normal(_FEATURES)
    # near or far
    other = w + 10.0 ** rng.uniform(-4, 1) * rng.standard_normal(_FEATURES)
    if is_adverse:
        axis = (w - other) / np.linalg.norm(w - other)
        X = rng.choice([-1.0, 1.0], (n, 1)) * axis + 1e-3 * X
    X /= max(1.0, float(np.linalg.norm(X, axis=1).max()))
    y = rng.choice([-1, 1], n)
    # both classes before the last row, for `_ratios`
    y[rng.permutation(n - 1)[:2]] = [-1, 1]
    return X, y, w, other


def _ratios(
    X: NDArray,
    y: NDArray,
    w: NDArray[np.float64],
    other: NDArray[np.float64],
    top: float,
) -> tuple[float, float, float]:
    """Return what Lemma 2, Case 2.1 and Lemma 12 bound, divided by the distance ||w - v||."""
    # v is `other`. Lemma 2: from w to v no entry of the sorted list of w'x - y changes
    # by more than 3 ||w - v||. Lemma 12: the penalty L_t of the last row, the loss with
    # less the loss without this row, changes by at most 8 ||w - v||. Case 2.1 of the
    # proof: if the last entry z_t is at most an entry z_i of the others, at w and at v,
    # 2 z_i - z_t changes by up to 9 ||w - v||.
    distance = float(np.linalg.norm(w - other))
    at_w, at_other = ((X @ u) - y for u in (w, other))  # the lists, unsorted
    change_of_lists = np.abs(np.sort(at_w) - np.sort(at_other)).max()
    # falling
    ordered, ordered_other = (np.sort(z[:-1])[::-1] for z in (at_w, at_other))
    in_case = (at_w[-1] <= ordered) & (at_other[-1] <= ordered_other)
    change = 2 * (ordered - ordered_other) - (at_w[-1] - at_other[-1])  # of Case 2.1
    scores, positive, n = (X @ w, X @ other), y > 0, len(y)
    # at w and at v, a row for each k; `struct` returns the loss and a gradient
    penalties = [
        [
            struct(s, positive, k)[0] - struct(s[:-1], positive[:-1], k_before)[0]
            for s in scores
        ]
        for k, k_before in (  # k with the last row, and without it
            (int(np.sum(positive)), int(np.sum(positive[:-1]))),  # of PRBEP
            (resolve_k(top, n), resolve_k(top, n - 1)),  # of prec@k
        )
    ]
    return (
        float(change_of_lists) / distance,
        float(np.abs(change[in_case]).max(initial=0.0)) / distance,
        # of the paper's loss (3)
        _SLOPE * float(np.abs(np.diff(penalties)).max()) / distance,
    )


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
    """Measure the largest deviation over w of surrogates on a sample from values on all rows."""
    # Theorems 7 and 8: with probability 1 - delta a surrogate on s random rows is
    # within O(sqrt(log(1 / delta) / s)) of its value on all rows, for all w in the ball
    # (Definition 5); here for some random w. Rows are divided by the largest norm;
    # samples are without replacement. ``deviation``: 95 % quantile over samples of both
    # classes; ``constant``: deviation / rate.
    for dataset in datasets:
        X, y = _stream(dataset, seed, sizes=max(sizes))
        positive = y > 0
        rng = np.random.default_rng(seed)
        # a row for each w
        scores = np.asarray(_in_ball(rng, X, positive, weights, radius) @ X.T)
        for objective in objectives:
            measure = partial(_MEASURES[objective], top=top, beta=beta)
            on_all_rows = [measure(s, positive) for s in scores]
            for size in sizes:
                # rows
                drawn = (
                    rng.choice(len(y), size, replace=False) for _ in range(samples)
                )
                parts = (
                    (scores.take(chosen, axis=1), positive[chosen]) for chosen in drawn
                )
                deviations = [  # of each sample, the largest over all w
                    max(
                        abs(measure(s, is_pos) - on_all)
                        for s, on_all in zip(sampled_scores, on_all_rows, strict=True)
                    )
                    for sampled_scores, is_pos in parts
                    if 0 < np.sum(is_pos) < size  # both classes
                ]
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


def _in_ball(
    rng: np.random.Generator, X: Any, positive: NDArray[np.bool_], n: int, radius: float
) -> NDArray[np.float64]:
    """Draw n weight vectors in the ball, towards the difference between the class means."""
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
    """Measure the excess risk of FTRL on streams of growing length, and of 1PMB in one pass."""
    # Theorems 4 (14 for "pauc") and 6. Rows are divided by the largest norm, losses by
    # the number of rows; the loss of "pauc" is the mean hinge. The excess is the risk
    # less a lower bound of the least risk in the ball: shown is its 95 % quantile over
    # streams (FTRL) or orders (1PMB).
    for dataset in datasets:
        X, y = _stream(dataset, seed, horizons=max(horizons), rows=rows)
        for objective in objectives:
            measure = partial(_MEASURES[objective], top=top, beta=beta)
            player = FTRL(
                objective,
                top=top,
                beta=beta,
                radius=radius,
                average=True,
                shuffle=False,
            )
            _, least_risk = _best(player, X, y)  # a lower bound of the mean loss
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
    # Return 1PMB with buffers of `size` rows. "prbep" is its prec@k with k = 1.0, all
    # positives: this loss is a sum over rows, hence eta0 / size, where that of "pauc"
    # is a mean over pairs.
    name, eta = ("pauc", eta0) if objective == "pauc" else ("prec@k", eta0 / size)
    return OnePMB(
        name,
        k=1.0,
        beta=beta,
        batch_size=size,
        epochs=1,
        eta0=eta,
        radius=radius,
        shuffle=False,
    )


def _terms(player: FTRL, y: NDArray) -> float:
    """Return the number of rows, or of pairs of rows, over which an objective sums its loss."""
    n, n_pos = len(y), int(np.sum(y > 0))
    return (
        n_pos * resolve_k(player.beta, n - n_pos) if player.objective == "pauc" else n
    )


def _best(player: FTRL, X: Any, y: NDArray) -> tuple[NDArray[np.float64], float]:
    """Return the best w in the ball, and a lower bound of the mean loss of any w there."""
    two = [np.argmax(y > 0), np.argmax(y < 0)]  # the first row of each class
    # `leader` needs a fit, to any rows
    leader = player.fit(X[two], y[two]).leader(X, y)
    return leader.w, (leader.loss - leader.gap) / _terms(player, y)


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
    """Return the excess risk of FTRL on random streams less the regret, and Theorem 4's bound."""
    # With probability 1 - delta the mean of w_1 to w_T has a risk of at most the risk
    # of w* plus the regret plus O((log(1 / delta) / T)^(1/4)).
    rng = np.random.default_rng([seed, horizon])
    excesses, regrets = [], []
    player.set_params(batch_size=math.ceil(math.sqrt(horizon)))
    for _ in range(streams):
        drawn = rng.choice(len(y), horizon, replace=False)
        player.fit(X[drawn], y[drawn])
        least_regret, _ = _regret_against(player.leader(X[drawn], y[drawn]), player)
        # per row, or pair of rows
        regrets.append(least_regret / _terms(player, y[drawn]))
        # at the mean of the w_t
        excesses.append(measure(X @ player.coef_, y > 0) - least_risk)
    return {
        "excess": float(np.quantile(np.subtract(excesses, regrets), 1 - DELTA)),
        # the open constant is taken as 1
        "bound": (math.log(1 / DELTA) / horizon) ** 0.25,
        # The excess of w = 0 less the regret, on the stream where this is largest
        "w = 0": measure(np.zeros(len(y)), y > 0) - least_risk - min(regrets),
    }


def _theorem_6(
    solver: OnePMB,
    X: Any,
    y: NDArray,
    orders: int,  # passes
    samples: int,  # of as many rows as a buffer
    measure: "_Measure",  # of scores and positives: the mean loss
    best: tuple[NDArray[np.float64], float],  # w*, and a lower bound of its mean loss
    seed: int,
) -> dict[str, float]:
    """Return the excess risk of passes of 1PMB in random orders, and Theorem 6's bound."""
    # The excess is at most 2 gamma + O(sqrt(s / n)) after n rows in buffers of s, if
    # gamma bounds how far the risk on s random rows deviates from the risk on all n
    # rows, for all w.
    best_w, least_risk = best
    size, positive = int(solver.batch_size), y > 0
    rng = np.random.default_rng([seed, size])
    weights, excesses = [best_w], []  # weights: w*, then one w for each order
    for _ in range(orders):
        order = rng.permutation(len(y))
        weights.append(solver.fit(X[order], y[order]).coef_)
        # at the w just fitted
        excesses.append(measure(X @ weights[-1], positive) - least_risk)
    at_w = [(X @ w, measure(X @ w, positive)) for w in weights]  # scores, loss
    largest = 0.0  # deviation, over samples and these w
    for _ in range(samples):
        drawn = rng.choice(len(y), size, replace=False)
        if 0 < np.sum(positive[drawn]) < size:  # both classes
            deviations = (
                abs(measure(s[drawn], positive[drawn]) - loss) for s, loss in at_w
            )
            largest = max(largest, *deviations)
    return {
        "excess": float(np.quantile(excesses, 1 - DELTA)),
        # the open constant is taken as 1
        "bound": 2 * largest + math.sqrt(size / len(y)),
        "w = 0": measure(np.zeros(len(y)), positive) - least_risk,
    }


_Measure = Callable[[NDArray, NDArray[np.bool_]], float]


def _logistic_pauc(scores: NDArray, positive: NDArray[np.bool_], beta: float) -> float:
    neg = -np.sort(-scores[~positive])
    neg = neg[: resolve_k(beta, len(neg))]  # the share `beta` with the highest scores
    return float(np.logaddexp(0, neg - scores[positive][:, None]).mean())


def _g_mean(scores: NDArray, positive: NDArray[np.bool_]) -> float:
    """Return the struct surrogate of 1 - sqrt(recall of positives * recall of negatives)."""
    # As for `F1`: the largest value over all labellings of the loss + (sum of the
    # scores of negatives labelled 1 - sum of the scores of positives labelled 0) /
    # n_pos.
    pos, neg = (-np.sort(-scores[side]) for side in (positive, ~positive))
    # Only labellings with 1 for the highest `n_true` positives and 0, 1, … negatives
    # can be best. by n_true: sum of the other positives
    missed = np.append(0.0, np.cumsum(pos[::-1]))[::-1]
    # by number of negatives: sum of the highest
    gained = np.append(0.0, np.cumsum(neg))
    root_of_recall = np.sqrt(1 - np.arange(len(neg) + 1) / len(neg))
    best = -math.inf  # the maximum without the 1, times n_pos
    for n_true, missed_scores in enumerate(missed):
        value = gained - len(pos) * math.sqrt(n_true / len(pos)) * root_of_recall
        best = max(best, float(value.max()) - missed_scores)
    return 1 + best / len(pos)


# The surrogates, as functions of scores and of which rows are positive, with `top` and
# `beta`
_MEASURES: dict[str, Callable[..., float]] = {
    "prbep": (
        lambda s, positive, **_: struct(s, positive, int(np.sum(positive)))[0] / len(s)
    ),
    "prec@k": (
        lambda s, positive, top, **_: (
            struct(s, positive, resolve_k(top, len(s)))[0] / len(s)
        )
    ),
    "pauc": lambda s, positive, beta, **_: PartialAUC(beta).evaluate(s, positive)[0],
    "pauc, logistic": lambda s, positive, beta, **_: _logistic_pauc(s, positive, beta),
    "f1": lambda s, positive, **_: F1().evaluate(s, positive)[0],
    "g-mean": lambda s, positive, **_: _g_mean(s, positive),
}

"""Perceptron@k, SGD@k, 1PMB and 2PMB as the papers write them, in NumPy.

Slow, and easy to check: one function for a batch, one for the path of w. The kernel has
to give the same numbers (tests/test_twins.py), the perceptrons to the last bit where
all sums are exact. The surrogates and objectives are in `precbench.ranking.losses`,
each with its equation.
"""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from precbench.ranking.losses import AUC, SURROGATES, Loss, PartialAUC
from precbench.ranking.topk import TopK, resolve_k
from precbench.solvers.common.driver import visiting_order
from precbench.solvers.minibatch.estimator import reservoir_sample


def perceptron_step(
    scores: NDArray[np.float64], positive: NDArray[np.bool_], k: int, variant: str
) -> NDArray[np.float64]:
    """Return c_i of ``w_t = w_{t-1} - sum_i c_i x_i`` (kar2015, Algorithms 1, 2)."""
    # The sort is stable: of equal scores the one visited earlier comes first.
    ranking = np.argsort(-scores, kind="stable")
    in_top = np.zeros(len(scores), dtype=bool)
    in_top[ranking[:k]] = True
    false_positive = in_top & ~positive  # FP
    n_false = int(false_positive.sum())
    # FN: the positives that are not among the k first, highest score first.
    missed = [i for i in ranking if positive[i] and not in_top[i]]
    c = np.zeros(len(scores))
    c[false_positive] = 1.0
    if n_false == 0:  # no mistake: w stays
        return c
    if variant == "avg":  # Algorithm 1: D_t = |FP| / |FN| on every false negative
        c[missed] = -n_false / len(missed)
    else:  # Algorithm 2: 1 on the |FP| first false negatives
        c[missed[:n_false]] = -1.0
    return c


def batch_step(
    scores: NDArray[np.float64], positive: NDArray[np.bool_], k: int, rule: "str | Loss"
) -> NDArray[np.float64]:
    """Return the c_i of ``w_t = P_W[w_{t-1} - eta_t sum_i c_i x_i]``.

    The rule is "perceptron-avg" or "perceptron-max", a surrogate of kar2015 by its
    name, or an objective of kar2014; c is a subgradient of the last two in the scores.
    """
    if isinstance(rule, str) and rule.startswith("perceptron-"):
        return perceptron_step(scores, positive, k, rule.removeprefix("perceptron-"))
    # Objective of kar2014, appendix H, or surrogate of kar2015: (7), (6), (4), (3).
    loss = rule if isinstance(rule, Loss) else replace(SURROGATES[rule], k=k)
    _value, subgradient = loss.evaluate(scores, positive)
    return subgradient


def path(
    X: NDArray[np.float64],
    y: NDArray[Any],
    order: Any,
    rule: "str | Loss",
    *,
    k: TopK = 0.25,
    batch_size: int = 50,
    eta0: float | None = None,
    radius: float | None = None,
    start: Any = 0.0,
    **_other_parameters: Any,
) -> NDArray[np.float64]:
    """Return w after each batch of the rows of `order`, shape (n_batches, n_features).

    This is kar2015, Algorithms 1 to 4, and kar2014, Algorithm 1. `start` is the w
    before the first batch. Other parameters of a solver have no effect.
    """
    compares_pairs = isinstance(rule, PartialAUC | AUC)
    w = np.zeros(X.shape[1]) + start
    weights = []
    for t, first in enumerate(range(0, len(order), batch_size), start=1):
        rows = order[first : first + batch_size]
        positive = y[rows] > 0
        n_pos = int(positive.sum())
        is_empty = n_pos == 0 or (compares_pairs and n_pos == len(rows))
        if not is_empty:
            # A count may exceed the rows of a batch, which `resolve_k` refuses.
            wanted = k if isinstance(k, int) else resolve_k(k, n_pos, len(rows))
            scores = X[rows] @ w
            c = batch_step(scores, positive, min(wanted, n_pos), rule)
            eta = 1.0 if eta0 is None else eta0 / np.sqrt(t)
            w = w - eta * (X[rows].T @ c)
            norm = np.linalg.norm(w)
            if radius is not None and norm > radius:  # P_W
                w = w * (radius / norm)
        weights.append(w)
    return np.array(weights)


def with_constant(X: NDArray[np.float64], rule: "str | Loss") -> NDArray[np.float64]:
    """Append a column of ones, whose weight is the intercept."""
    if not isinstance(rule, Loss) or not rule.has_threshold:
        return X
    return np.column_stack((X, np.ones(len(X))))


def order_of_2pmb(
    y: NDArray[Any],
    *,
    batch_size: int,
    reservoir_size: int | None,
    epochs: int,
    rng: np.random.Generator,
) -> list[int]:
    """Return the order in which 2PMB visits rows (kar2014, Algorithm 2).

    Pass 1 fills the buffer B+ with positives. Pass 2 streams the negatives: the buffer
    comes before each batch of them.
    """
    pos, neg = np.flatnonzero(y > 0), np.flatnonzero(y < 0)
    buffer = pos[reservoir_sample(len(pos), reservoir_size or batch_size, rng)]
    order: list[int] = []
    for _epoch in range(epochs):
        streamed = neg[visiting_order(len(neg), True, rng)]
        for start in range(0, len(neg), batch_size):
            order.extend(buffer)
            order.extend(streamed[start : start + batch_size])
    return order

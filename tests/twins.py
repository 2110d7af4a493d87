"""Slow twins of the solvers: the papers' algorithms and problems in a few lines of NumPy."""

from dataclasses import replace
from itertools import combinations, product

import numpy as np
from scipy.optimize import brentq, minimize

from precbench.ranking.losses import AUC, SURROGATES, Loss, PartialAUC
from precbench.ranking.topk import resolve_k

# --- paths: the weights after each batch, or after each row, in a given order --------------------


def perceptron_coefficients(scores, positive, k, variant):
    """kar2015, Algorithms 1 and 2: what is taken from w, as weights of the rows."""
    ranking = np.argsort(-scores, kind="stable")
    top = np.zeros(len(scores), dtype=bool)
    top[ranking[:k]] = True
    coefficients = (top & ~positive).astype(float)
    missed = [i for i in ranking if positive[i] and not top[i]]
    n_false = int(coefficients.sum())
    if n_false and variant == "avg":
        coefficients[missed] = -n_false / len(missed)
    else:
        coefficients[missed[:n_false]] = -1.0
    return coefficients


def with_constant(X, rule):
    """Append a column of ones, whose weight is the intercept, for an objective with a threshold."""
    has_threshold = isinstance(rule, Loss) and rule.has_threshold
    return np.column_stack((X, np.ones(len(X)))) if has_threshold else X


def minibatch_path(
    X, y, order, rule, k=0.25, batch_size=50, eta0=None, radius=None, start=0.0, **_
):
    """Return w after each batch, shape (n_batches, n_features).

    The rule is a surrogate's name, "perceptron-avg" or "perceptron-max", or an objective.
    """
    pairs = isinstance(rule, (PartialAUC, AUC))
    w, path = np.zeros(X.shape[1]) + start, []
    for t, first in enumerate(range(0, len(order), batch_size), start=1):
        rows = order[first : first + batch_size]
        positive = y[rows] > 0
        n_pos = int(positive.sum())
        if n_pos and not (pairs and n_pos == len(rows)):
            batch_k = min(k if isinstance(k, int) else resolve_k(k, n_pos, len(rows)), n_pos)
            scores = X[rows] @ w
            if isinstance(rule, Loss):
                c = rule.evaluate(scores, positive)[1]
            elif rule.startswith("perceptron"):
                c = perceptron_coefficients(scores, positive, batch_k, rule[11:])
            else:
                c = replace(SURROGATES[rule], k=batch_k).evaluate(scores, positive)[1]
            w = w - (1.0 if eta0 is None else eta0 / np.sqrt(t)) * (X[rows].T @ c)
            if radius is not None and np.linalg.norm(w) > radius:
                w = w * (radius / np.linalg.norm(w))
        path.append(w)
    return np.array(path)


def oam_path(X, y, order, solver):
    """Zhao et al. 2011, Algorithms 1 to 4; places in the reservoirs from one draw a row."""
    rng = np.random.default_rng(solver.random_state).spawn(1)[0]
    w, path = np.zeros(X.shape[1]), []
    kept, seen = {1: [], -1: []}, {1: 0, -1: 0}
    size = solver.reservoir_size
    for x, label in zip(X[order], y[order], strict=True):
        penalty = solver.C * max(1, seen[-label] / size)
        differences = [label * (x - other) for other in kept[-label]]
        if solver.update == "sequential":
            for z in differences:
                loss = max(0.0, 1 - w @ z)
                if z.any():  # of a row like itself nothing can be learnt
                    w = w + min(penalty / 2, loss / (z @ z)) * z
        else:
            violating = [z for z in differences if w @ z <= 1]
            w = w + penalty / 2 * np.sum([*violating, np.zeros_like(w)], axis=0)
        seen[label] += 1
        place = rng.integers(0, np.array([seen[label]]))[0]
        if len(kept[label]) < size:
            kept[label].append(x)
        elif place < size:
            kept[label][place] = x
        path.append(w)
    return np.array(path)


def pgd_path(X, y, order, solver):
    """Boissier et al. 2016: the mean over all earlier rows, pair by pair."""
    w, path = np.zeros(X.shape[1]), []
    for t, i in enumerate(order, start=1):
        gradient = np.zeros_like(w)
        for j in order[: t - 1]:
            z = X[i] - X[j]
            gradient += (w @ z - (y[i] - y[j])) * z / (t - 1)
        w = w - solver.eta0 / t**solver.power_t * gradient
        path.append(w)
    return np.array(path)


def _projected(u, h, radius):
    """The point of the ball that is nearest to u in the norm with the weights h."""
    if np.linalg.norm(u) <= radius:
        return u

    def excess(nu):
        return np.linalg.norm(h * u / (h + nu)) - radius

    top = 1.0
    while excess(top) > 0:
        top *= 2
    return h * u / (h + brentq(excess, 0, top, xtol=1e-300, rtol=4 * np.finfo(float).eps))


def adaoam_path(X, y, order, solver):
    """Ding et al. 2015, Algorithm 1, the gradient pair by pair."""
    w, squares, path = np.zeros(X.shape[1]), np.zeros(X.shape[1]), []
    for t, i in enumerate(order):
        others = [j for j in order[:t] if y[j] != y[i]]
        if others:
            gradient = solver.reg * w
            for j in others:
                z = y[i] * (X[i] - X[j])
                gradient = gradient - (1 - w @ z) * z / len(others)
            squares += gradient**2
            h = solver.delta + np.sqrt(squares)
            w = _projected(w - solver.eta0 * gradient / h, h, 1 / np.sqrt(solver.reg))
        path.append(w)
    return np.array(path)


def spam_path(X, y, order, solver, known=None):
    """Natole et al. 2018, Algorithm 1, with a, b and alpha; known: the rows of the first pass."""
    w, path = np.zeros(X.shape[1]), []
    for t, i in enumerate(order, start=1):
        rows = order[:t] if known is None else known
        pos, neg = X[rows][y[rows] > 0], X[rows][y[rows] < 0]
        if len(pos) and len(neg):
            p = len(pos) / len(rows)
            a, b = w @ pos.mean(axis=0), w @ neg.mean(axis=0)
            alpha = b - a
            x, score = X[i], w @ X[i]
            if y[i] > 0:
                gradient = 2 * (1 - p) * ((score - a) - (1 + alpha)) * x
            else:
                gradient = 2 * p * ((score - b) + (1 + alpha)) * x
            eta = solver.eta0 / np.sqrt(t)
            u = w - eta * gradient
            u = np.sign(u) * np.maximum(0, np.abs(u) - eta * solver.l1_reg)
            w = u / (1 + eta * solver.reg)
        path.append(w)
    return np.array(path)


# --- problems that a general solver solves -------------------------------------------------------


def hinge_planes(X, y, n_top):
    """List the planes below the sum of hinges over pairs with the n_top first negatives."""
    pos, neg = np.flatnonzero(y > 0), np.flatnonzero(y < 0)
    for top in combinations(neg, n_top):
        pairs = np.array([X[j] - X[i] for i in pos for j in top]).reshape(-1, X.shape[1])
        for active in product((0, 1), repeat=len(pairs)):
            yield sum(active), np.array(active) @ pairs


def lowest_point(offsets, slopes, curvature=1.0, C=1.0, radius=None):
    """Minimise ``curvature / 2 ||w||^2 + C max(offsets + slopes @ w)``, in the ball if any.

    By a general solver over w and a bound xi of the planes, begun away from the solution.
    """
    constraints = [
        {"type": "ineq", "fun": lambda v: v[-1] - offsets - slopes @ v[:-1],
         "jac": lambda v: np.column_stack((-slopes, np.ones(len(slopes))))},
    ]  # fmt: skip
    if radius is not None:
        constraints.append({
            "type": "ineq", "fun": lambda v: radius**2 - v[:-1] @ v[:-1],
            "jac": lambda v: np.append(-2 * v[:-1], 0),
        })  # fmt: skip
    found = minimize(
        lambda v: 0.5 * curvature * v[:-1] @ v[:-1] + C * v[-1],
        np.append(np.full(slopes.shape[1], 0.01), np.abs(offsets).max() + 1),
        jac=lambda v: np.append(curvature * v[:-1], C), constraints=constraints, method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 1000},
    )  # fmt: skip
    w = found.x[:-1]
    return w if radius is None else w * min(1.0, radius / max(np.linalg.norm(w), 1e-300))


# --- the risks of rudin2009 ----------------------------------------------------------------------


def pnorm_push(y, scores, p, loss="exponential", push="top", bottom_weight=1.0):
    """rudin2009, sections 2 and 7: the logarithm of R and its gradient in the scores.

    At the top, ``R = sum_k (sum_i loss(s_i - s_k))**p`` over negatives k and positives i; at the
    bottom, ``R = sum_i (sum_k loss(s_i - s_k))**p``; "both" is the first plus `bottom_weight`
    times the second. R itself overflows soon.
    """
    z = _differences(y, scores)
    log_losses, slopes = z, np.ones_like(z)
    if loss == "logistic":
        losses = np.logaddexp(0, z)
        # Where the loss underflows it is e^z.
        log_losses = np.where(z < -36, z, np.log(np.where(z < -36, 1.0, losses)))
        slopes = np.exp(-np.logaddexp(0, -z) - log_losses)
    sides = {"top": {0: 1.0}, "bottom": {1: 1.0}, "both": {0: 1.0, 1: bottom_weight}}[push]
    log_risks = {side: p * np.logaddexp.reduce(log_losses, axis=side) for side in sides}
    log_terms = [np.logaddexp.reduce(log_risks[side]) + np.log(sides[side]) for side in sides]
    total = np.logaddexp.reduce(log_terms)
    by_pairs = np.zeros_like(z)
    for side, weight in sides.items():
        heights = np.expand_dims((p - 1) / p * log_risks[side], side)
        by_pairs += weight * p * np.exp(heights + log_losses - total) * slopes
    return total, _by_scores(y, by_pairs)


def ir_push(y, scores):
    """rudin2009 (2): ``sum_i ln(1 + sum_k exp(s_k - s_i))`` and its gradient in the scores."""
    z = _differences(y, scores)
    terms = np.logaddexp(0, np.logaddexp.reduce(z, axis=1))
    return terms.sum(), _by_scores(y, np.exp(z - terms[:, None]))


def _differences(y, scores):
    """Return ``s_k - s_i``, a row for each positive i and a column for each negative k."""
    return scores[y < 0] - scores[y > 0][:, None]


def _by_scores(y, by_pairs):
    """Sum derivatives with respect to ``s_k - s_i`` up to those with respect to the scores."""
    gradient = np.empty(len(y))
    gradient[y > 0] = -by_pairs.sum(axis=1)
    gradient[y < 0] = by_pairs.sum(axis=0)
    return gradient

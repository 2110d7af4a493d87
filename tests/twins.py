"""Slow twins of the kernels: the papers' algorithms in a few lines of NumPy."""

from dataclasses import replace

import numpy as np

from precbench.losses import AUC, SURROGATES, Loss, PartialAUC
from precbench.topk import resolve_k


def perceptron_coefficients(scores, positive, k, variant):
    """kar2015, Algorithms 1 and 2: what is taken from w, as weights of the rows."""
    ranking = np.argsort(-scores, kind="stable")
    top = np.zeros(len(scores), dtype=bool)
    top[ranking[:k]] = True
    false_pos = top & ~positive
    missed = [i for i in ranking if positive[i] and not top[i]]
    coefficients = false_pos.astype(float)
    n_false = int(false_pos.sum())
    if n_false:
        if variant == "avg":
            coefficients[missed] = -n_false / len(missed)
        else:
            coefficients[missed[:n_false]] = -1.0
    return coefficients, n_false


def minibatch_path(X, y, order, rule, k, batch_size, eta0=None, radius=None, start=0.0):
    """Return w after each batch, shape (n_batches, n_features), and the mistakes.

    The rule is a surrogate's name, "perceptron-avg" or "perceptron-max", or an objective; with an
    objective that has a threshold, the last column of w is the intercept.
    """
    X = np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=float)
    if isinstance(rule, Loss) and rule.has_threshold:
        X = np.column_stack((X, np.ones(len(X))))
    pairs = isinstance(rule, (PartialAUC, AUC))
    w, path, mistakes = np.zeros(X.shape[1]) + start, [], 0
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
                c, n_false = perceptron_coefficients(scores, positive, batch_k, rule[11:])
                mistakes += n_false
            else:
                c = replace(SURROGATES[rule], k=batch_k).evaluate(scores, positive)[1]
            w = w - (1.0 if eta0 is None else eta0 / np.sqrt(t)) * (X[rows].T @ c)
            if radius is not None and np.linalg.norm(w) > radius:
                w = w * (radius / np.linalg.norm(w))
        path.append(w)
    return np.array(path), mistakes


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
    total = np.logaddexp.reduce(
        [np.logaddexp.reduce(log_risks[side]) + np.log(sides[side]) for side in sides]
    )
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

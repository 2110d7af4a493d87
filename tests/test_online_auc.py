"""OAM, PGD, AdaOAM and SPAM: streams, and the batch optimum. Their twins: test_twins.py."""

from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from precbench.solvers import PGD, SPAM, AdaOAM
from tests.laws import problem
from tests.test_twins import ONLINE_AUC, make


@pytest.mark.parametrize("name", ONLINE_AUC)
def test_a_stream_is_a_chain_of_partial_fits(name):
    X, y = problem(300)
    solver, chain = make(name, epochs=2), make(name)
    cuts = [slice(*cut) for cut in pairwise([0, 90, 200, 300])]
    pieces = [(X[cut], y[cut].astype(float)) for cut in cuts]
    solver.fit_pieces(7, lambda: ((*p, np.arange(len(p[1]), dtype=np.int32)) for p in pieces))
    chain.partial_fit(X, y).partial_fit(X, y)
    assert_array_equal(solver.coef_, chain.coef_)
    assert solver.n_rows_seen_ == 600


def least_squares(X, y, reg=0.0):
    """Minimise the pairwise squared loss of labels: least squares with an intercept."""
    return np.linalg.lstsq(X - X.mean(axis=0), y - y.mean(), rcond=None)[0]


def of_pairs(X, y, reg):
    """Minimise the mean of (1 - <w, x - x'>)^2 / 2 over the pairs, and reg / 2 |w|^2."""
    pos, neg = X[y > 0], X[y < 0]
    mu = pos.mean(axis=0) - neg.mean(axis=0)
    second = np.cov(pos.T, bias=True) + np.cov(neg.T, bias=True) + np.outer(mu, mu)
    return np.linalg.solve(second + reg * np.eye(len(mu)), mu)


@pytest.mark.parametrize(("solver", "optimum", "reg"), [
    (PGD(eta0=0.1, power_t=0.75), least_squares, 0.0),
    *((AdaOAM(eta0=0.05), of_pairs, reg) for reg in (1e-4, 0.3)),
    *((SPAM(eta0=0.1, average=True), of_pairs, reg) for reg in (1e-4, 0.3)),
])  # fmt: skip
def test_it_comes_to_the_optimum(solver, optimum, reg):
    """With correlated features of different scales, and labels with noise."""
    rng = np.random.default_rng(4)
    X = rng.standard_normal((2000, 8)) @ (np.eye(8) + 0.3 * rng.standard_normal((8, 8)))
    y = np.where(X @ rng.standard_normal(8) + 2 * rng.standard_normal(2000) > 2, 1, -1)
    best, p = optimum(X, y, reg), (y > 0).mean()
    if optimum is of_pairs:
        solver.set_params(reg=2 * p * (1 - p) * reg if isinstance(solver, SPAM) else reg)
    coef = solver.set_params(epochs=20, random_state=0).fit(X, y).coef_
    assert np.linalg.norm(coef - best) < 0.05 * np.linalg.norm(best)

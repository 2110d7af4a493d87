"""Projected subgradient descent on the risk of all rows, in NumPy.

The solver has to give the same numbers (tests/test_twins.py).
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from precbench.ranking.losses import Loss
from precbench.solvers.minibatch import reference as minibatch


def path(
    X: NDArray[np.float64],
    y: NDArray[Any],
    loss: Loss,
    *,
    top: int,
    eta0: float,
    radius: float | None,
    n_steps: int,
) -> NDArray[np.float64]:
    """Return w_1, w_2, ... of steps that each see all rows.

    The steps are ``w_t = P_W[w_{t-1} - eta0 / sqrt(t) g_t]``. The risk is a share: with
    prec@k of k = `top` rows it is the loss divided by k, at scores multiplied by k / n;
    with F1 it is the loss at scores multiplied by n_pos / n. So w is that of the
    mini-batch method on rows that are multiplied likewise.
    """
    n = len(y)
    scale = 1.0  # of the scores
    share = 1.0  # of the loss
    if loss.name == "prec@k":
        scale = top / n
        share = 1 / top
    elif loss.name == "f1":
        scale = int(np.count_nonzero(y > 0)) / n
    return minibatch.path(
        scale * minibatch.with_constant(X, loss),
        y,
        np.tile(np.arange(n), n_steps),
        loss,
        k=top,
        batch_size=n,
        eta0=eta0 * share,
        radius=radius,
    )

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
    """Return w_1, w_2, ....

    ``w_t = P_W[w_{t-1} - eta0 / sqrt(t) g_t]``, all rows in each step.

    The risk is a share: with prec@k of k = `top` rows the loss divided by k, at scores
    multiplied by k / n; with F1 at scores multiplied by n_pos / n. So w is that of the
    mini-batch method on rows that are multiplied so.
    """
    n, n_pos = len(y), int(np.count_nonzero(y > 0))
    spread, share = {"prec@k": (top / n, 1 / top), "f1": (n_pos / n, 1.0)}.get(
        loss.name, (1.0, 1.0)
    )
    return minibatch.path(
        spread * minibatch.with_constant(X, loss),
        y,
        np.tile(np.arange(n), n_steps),
        loss,
        k=top,
        batch_size=n,
        eta0=eta0 * share,
        radius=radius,
    )

"""Where the surrogates have their minimum: at w = 0, if no ranking can be better.

At w = 0 the avg surrogate of n rows has the value k, and its subgradients are the sums of k
different negatives less k times the mean of the positives. Being convex, it is least at w = 0 if
and only if one of their convex combinations is 0: if the mean of the positives is a mean of the
negatives in which none has a weight above 1/k. For the max surrogate the mean of the positives may
be weighted too, none above 1/k. A linear programme decides it.

For the problems of the cutting plane, a risk with the square of ||w||, the answer is the same for
every C, as the square has the gradient 0 at w = 0. There the most violated labellings of "at least
k" ones, and those of the F-measure, have no true positive and any number of false ones, and the
constant column makes their weights sum up to the number of the positives: w = 0 is the minimiser
if and only if the mean of the positives is a mean of negatives in which none weighs more than
1/n_pos, whatever k is. For pAUC none may weigh more than 1/ceil(beta n_neg). With exactly k ones, as (3) has
it, k times a mean of negatives, none above 1/k, has to be n_pos times the mean of the positives.

References
----------
kar2015 : Kar, Narasimhan, Jain, "Surrogate functions for maximizing precision at the top",
    ICML 2015, (3), (6) and (7).
"""

from typing import Annotated, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import Field, PositiveFloat
from scipy import sparse

from precbench.data import DATASETS, load_dataset
from precbench.data.preprocess import Scaler, Scaling
from precbench.losses import SURROGATES
from precbench.seeds import trial_seed
from precbench.solvers import SGDAtK, as_rows, linear_scores
from precbench.studies import Count, DatasetNames, Seed
from precbench.topk import resolve_k

__all__ = ["is_least_at_zero", "surrogate_minima"]

_LEARNT = ("avg", "max")
"""Surrogates on which SGD@k is run."""
_PROBLEMS = ("struct", "struct, at least k", "pauc")
"""Those of 1PMB and of the cutting plane."""
_MINIMISER = "w = 0 is a minimiser"
_ROWS: dict[str, Scaling] = {"as scaled": "none", "of norm 1": "unit-norm"}


def surrogate_minima(
    datasets: DatasetNames,
    k: Annotated[float, Field(gt=0, le=1)],
    beta: Annotated[float, Field(gt=0, le=1)],
    eta0: Annotated[list[PositiveFloat], Field(min_length=1)],
    epochs: Count,
    batch_size: Count,
    seed: Seed,
) -> pd.DataFrame:
    """Compare the surrogates at the w of SGD@k with their values at w = 0, on all rows.

    Parameters
    ----------
    datasets : list of str
        Scaled as their cards recommend.
    k : float
        Fraction of the positives.
    beta : float
        Fraction of the negatives, for pAUC.
    eta0 : list of float
        Step sizes of SGD@k.
    epochs, batch_size : int
        Of SGD@k.
    seed : int

    Returns
    -------
    pandas.DataFrame
        ``dataset``, ``rows`` (as scaled, or of norm 1), ``surrogate``, ``quantity``, ``eta0``,
        ``value``: whether w = 0 is a minimiser (1 or 0), of avg, max, struct, struct with at least
        k ones (and of PRBEP and the F-measure likewise) and pAUC; of avg and max also, for each
        step size, the surrogate as a multiple of its value at w = 0.
    """
    table = []
    for name in datasets:
        dataset = load_dataset(name)
        scaler = Scaler(DATASETS[name].scaling).fit(dataset.X)
        scaled, positive = scaler.transform_in_place(dataset.X.copy()), dataset.y > 0
        for rows, scaling in _ROWS.items():
            X = Scaler(scaling).fit(scaled).transform_in_place(scaled)
            for problem in _PROBLEMS:
                least = is_least_at_zero(X, positive, beta if problem == "pauc" else k, problem)
                table.append([name, rows, problem, _MINIMISER, np.nan, float(least)])
            least = False
            for surrogate in _LEARNT:
                labels = [name, rows, surrogate]
                # Where avg is least at w = 0, so is max: it lies above avg and touches it there.
                least = least or is_least_at_zero(X, positive, k, surrogate)
                table.append([*labels, _MINIMISER, np.nan, float(least)])
                loss = SURROGATES[surrogate]
                zero = loss.value(np.zeros(len(positive)), positive, k)
                for step in eta0:
                    solver = SGDAtK(
                        surrogate,
                        k=k,
                        eta0=step,
                        epochs=epochs,
                        batch_size=batch_size,
                        random_state=trial_seed(seed, name, 0),
                    )
                    w = solver.fit(X, dataset.y).coef_
                    ratio = loss.value(linear_scores(as_rows(X), w), positive, k) / zero
                    table.append([*labels, "relative to w = 0", step, ratio])
    columns = ["dataset", "rows", "surrogate", "quantity", "eta0", "value"]
    return pd.DataFrame(table, columns=columns)


def is_least_at_zero(X: Any, positive: NDArray[np.bool_], k: float | int, surrogate: str) -> bool:
    """Return whether no w makes a surrogate smaller than w = 0 does.

    Parameters
    ----------
    X : ndarray or csr_matrix of shape (n_samples, n_features)
    positive : ndarray of bool, shape (n_samples,)
        With at least k negatives.
    k : float or int
        Fraction of the positives, or a count; for "pauc" of the negatives.
    surrogate : {"avg", "max", "struct", "struct, at least k", "pauc"}
    """
    from scipy.optimize import linprog

    n_pos = int(positive.sum())
    count = resolve_k(k, len(positive) - n_pos if surrogate == "pauc" else n_pos)
    # The weights of the negatives: their sum, and the largest that one of them may have.
    total = count / n_pos if surrogate == "struct" else 1.0
    most = 1 / n_pos if surrogate.startswith("struct") else 1 / count
    high, low = sparse.csc_array(X[positive].T), sparse.csc_array(X[~positive].T)
    if surrogate != "max":
        high = sparse.csc_array(high.mean(axis=1)[:, np.newaxis])
    blocks = [
        [low, -high],
        [np.ones((1, low.shape[1])), None],
        [None, np.ones((1, high.shape[1]))],
    ]
    largest = 1 / min(count, high.shape[1])
    bounds = np.repeat([[0, most], [0, largest]], [low.shape[1], high.shape[1]], axis=0)
    wanted = np.append(np.zeros(X.shape[1]), [total, 1])
    equations = sparse.block_array(blocks, format="csc")
    nothing = np.zeros(len(bounds))
    result = linprog(nothing, A_eq=equations, b_eq=wanted, bounds=bounds, method="highs-ipm")
    assert result.status in (0, 2), result.message  # feasible or not
    return bool(result.status == 0)

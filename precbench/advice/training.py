"""Fit a model to a labelled table, and measure its quality on held-out rows."""

from collections.abc import Mapping, Sequence
from typing import Any, Unpack

from scipy.sparse import issparse

from precbench.advice.length import Worth, measure_length
from precbench.advice.quality import (
    RECOMMENDED,
    as_texts,
    held_out_quality,
    held_out_splits,
)
from precbench.core.errors import InputError
from precbench.core.kinds import Scaling
from precbench.model.model import Model, make_solver
from precbench.ranking.topk import TopK, resolve_k, several_k
from precbench.tables.own_file import read_amounts, read_own_file
from precbench.tables.own_table import Source, open_table
from precbench.tables.reading import ReadingOptions


def fit(
    table: Source,
    *,
    label: str | None = None,
    k: TopK | Sequence[TopK] = 0.25,
    solver: str | None = None,
    params: Mapping[str, Any] | None = None,
    scaling: Scaling | None = None,
    fourier: int | None = None,
    weight: str | None = None,
    gain: float | str | None = None,
    cost: float | None = None,
    list_rows: int | None = None,
    n_splits: int = 5,
    random_state: int = 0,
    allow: Sequence[str] = (),
    **reading: Unpack[ReadingOptions],
) -> Model:
    """Fit a model to all rows of a labelled table, and measure how it ranks new ones.

    As ``precbench fit`` does: models fitted to 70 % of the rows are measured on the
    other 30 %, or, with a column of times, models fitted to the past are measured on
    the period that follows.

    Parameters
    ----------
    table : path or DataFrame
        See `precbench.tables.own_file.read_own_file`.
    label : str, optional
        Column of the labels; svmlight and npz files have labels of their own.
    k : int, float or str, or a list of these, default=0.25
        Length of the top of the list to score. An int is a number of rows, a float in
        (0, 1] a fraction of the positives, and text such as "1 %" a fraction of the
        rows; fractions are rounded up. So 1 is a single row, and 1.0 as many rows as
        there are positives.
    solver : str, optional
        By default "hist-gradient-boosting", and "sgd-avg" for sparse rows and with
        `fourier`.
    params : mapping, optional
        Parameters of the solver, other than `k` and `random_state`.
    scaling : str, optional
        "standardise", "unit", "unit-norm", "standardise-unit-norm" or "none". By
        default "standardise", and "none" for sparse rows and for trees.
    fourier : int, optional
        Number of random Fourier features to use instead of the features.
    weight : str, optional
        Column of weights of the training rows; not a feature.
    gain : float or str, optional
        What each hit gains, or the name of a column that holds the gain of each row as
        a hit.
    cost : float, optional
        What each row of the list costs.
    list_rows : int, optional
        Length of the list of new rows for which hits are expected; by default as many
        as `table`.
    n_splits : int, default=5
        Number of splits, or of periods, on which models are measured.
    random_state : int, default=0
        Seed of the splits and of the model.
    allow : sequence of str
        Columns to use even if they look like a leak, an identifier or a code.
    **reading
        ``positive``, ``groups``, ``time``, ``drop``, ``id``, ``categorical``,
        ``numeric``, ``missing`` and ``format`` of
        `precbench.tables.own_file.read_own_file`.

    Returns
    -------
    Model
        With the methods ``rank``, ``explain`` and ``save``; ``about`` holds the
        measured quality.

    Raises
    ------
    InputError
        If an argument is not valid, or the table cannot be read as it stands.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> import precbench
    >>> x = np.random.default_rng(0).standard_normal((2, 400))
    >>> table = pd.DataFrame({"age": x[0], "bill": x[1], "churned": x[0] + x[1] > 2})
    >>> model = precbench.fit(table, label="churned", k=20, n_splits=2)
    >>> model.rank(table, top=3)["score"].is_monotonic_decreasing
    True
    """
    ks = several_k(k)
    if solver is not None:  # only to raise an error before the table is read
        _parameters(solver, params or {}, ks[0], random_state)
    worth = _worth(gain, cost)
    own = open_table(table, {"label": label, **reading})
    amounts = None
    if isinstance(gain, str):
        amounts = read_amounts(own, gain, "gain")
    weights = None
    if weight:
        weights = read_amounts(own, weight, "weight")
        reading["drop"] = [*reading.get("drop", ()), weight]  # not a feature
    dataset, encoding = read_own_file(own, label=label, allow=allow, **reading)
    del own  # frees its memory
    X = dataset.X
    n_rows = len(dataset.y)
    for length in ks:  # only to raise an error if a length is too large
        resolve_k(length, dataset.n_pos, list_rows or n_rows)
    if solver is None:
        solver = "sgd-avg" if issparse(X) or fourier else RECOMMENDED
    if scaling is None:
        # Trees of the features themselves need no scaling.
        has_trees = hasattr(make_solver(solver, {}), "to_trees") and not fourier
        scaling = "none" if has_trees or issparse(X) else "standardise"
    how: dict[str, Any] = {"solver": solver, "scaling": scaling}  # for `Model.fit`
    how |= _parameters(solver, params or {}, ks[0], random_state)
    if fourier:
        how["fourier"] = {"n_components": fourier, "random_state": random_state}
    splits = held_out_splits(dataset, n_splits, random_state)
    measured = held_out_quality(
        dataset, splits, ks[0], how, weights, amounts, encoding, list_rows or n_rows
    )
    forecast = measure_length(
        measured.lists,
        measured.test_share,
        ks,
        dataset.n_pos,
        n_rows,
        method=solver,
        list_rows=list_rows,
        worth=worth,
    )
    model = Model.fit(X, dataset.y, encoding=encoding, sample_weight=weights, **how)
    model = model.calibrated(measured.lists, measured.test_share, X)
    model = model.profiled(X, measured.lists, dataset.imputed)
    positive = as_texts(reading.get("positive"))
    stated = {"length": forecast, "label": label, "positive": positive}
    quality = measured.quality.model_copy(update=stated)
    model.about.update(quality.model_dump(exclude_unset=True))
    model.about["weight"] = weight
    model.about["groups"] = 0
    if dataset.groups is not None:
        model.about["groups"] = len(set(dataset.groups.tolist()))
    return model


def _worth(gain: float | str | None, cost: float | None) -> Worth | None:
    """Return what hits and rows are worth; text is the name of a column of gains."""
    if gain is None and cost is None:
        return None
    if isinstance(gain, str):
        return Worth(column=gain, cost=cost or 0.0)
    return Worth(gain=gain, cost=cost or 0.0)


def _parameters(
    solver: str, params: Mapping[str, Any], k: TopK, random_state: int
) -> dict[str, Any]:
    """Return `params`, with `k` and `random_state` if the solver has them."""
    known = make_solver(solver, params).get_params()  # raises an error for unknown ones
    all_params = dict(params)
    for name, value in {"k": k, "random_state": random_state}.items():
        if name in params:
            raise InputError(
                f"params must not hold {name!r}; give {name}= as an argument"
            )
        if name in known:
            all_params[name] = value
    return all_params

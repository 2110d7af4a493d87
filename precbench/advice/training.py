"""Fit a model to labelled rows, and measure its quality on held-out rows."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Unpack

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from precbench.advice.given_rows import (
    Gains,
    amounts_of_rows,
    column_name,
    gains_of_rows,
    gains_of_table,
    read_rows,
    refuse_table_options,
    table_options,
)
from precbench.advice.length import measure_length
from precbench.advice.quality import (
    RECOMMENDED,
    as_texts,
    held_out_quality,
    held_out_splits,
)
from precbench.advice.stated_recipe import state_recipe
from precbench.core.errors import InputError
from precbench.core.kinds import Scaling
from precbench.data import Dataset
from precbench.model.model import Model, make_solver
from precbench.ranking.topk import TopK, resolve_k, several_k
from precbench.solvers import SOLVERS
from precbench.tables.encoding import Encoding
from precbench.tables.own_file import read_amounts, read_own_file
from precbench.tables.own_table import open_table
from precbench.tables.reading import Categorical, ColumnOptions, Label, Missing
from precbench.tables.roles import require_same_rows


def fit(
    X: Any,
    y: Any = None,
    *,
    k: TopK | Sequence[TopK] = 0.25,
    label: str | None = None,
    positive: Label | Sequence[Label] | None = None,
    groups: Any = None,
    time: Any = None,
    categorical: Categorical = "error",
    missing: Missing = "error",
    solver: str | None = None,
    params: Mapping[str, Any] | None = None,
    scaling: Scaling | None = None,
    fourier: int | None = None,
    weight: Any = None,
    gain: Any = None,
    cost: float = 0.0,
    list_rows: int | None = None,
    n_splits: int = 5,
    random_state: int = 0,
    allow: Sequence[str] = (),
    **reading: Unpack[ColumnOptions],
) -> Model:
    """Fit a model to all labelled rows, and measure how it ranks new ones.

    As ``precbench fit`` does: models fitted to 70 % of the rows are measured on the
    other 30 %, or, with a column of times, models fitted to the past are measured on
    the period that follows.

    Parameters
    ----------
    X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features), or path
        Without `y`, a labelled table: a file, or a frame with the column `label`.
    y : array-like of shape (n_samples,), optional
        0 and 1, -1 and 1, truth values, or other labels of which `positive` names the
        hits.
    k : int, float or str, or a list of these, default=0.25
        Length of the top of the list to score. An int is a number of rows, a float in
        (0, 1] a fraction of the positives, and text such as "1 %" a fraction of the
        rows; fractions are rounded up. So 1 is a single row, and 1.0 as many rows as
        there are positives.
    label : str, optional
        Column of the labels, in place of `y`; svmlight and npz files have labels of
        their own.
    positive : str or number, or a list of these, optional
        The labels of the positive class; not needed for 0 and 1, or -1 and 1.
    groups : array-like of shape (n_samples,), or str, optional
        Rows with the same value stay together; of a labelled table, the name of a
        column.
    time : array-like of shape (n_samples,), or str, optional
        Numbers, or dates as text: models are measured on the latest rows. Of a labelled
        table, the name of a column.
    categorical : {"error", "one-hot"} or sequence of str
        Treatment of text in a frame, or the columns whose text or numbers are
        categories.
    missing : {"error", "mean", "median", "most-frequent"}
        Treatment of missing values in a frame.
    solver : str, optional
        A name, or a class in a file as "FILE.py:CLASS". By default
        "hist-gradient-boosting", and "sgd-avg" for sparse rows and with `fourier`.
    params : mapping, optional
        Parameters of the solver, other than `k` and `random_state`.
    scaling : str, optional
        "standardise", "unit", "unit-norm", "standardise-unit-norm" or "none". By
        default "standardise", and "none" for sparse rows and for trees.
    fourier : int, optional
        Number of random Fourier features to use instead of the features.
    weight : array-like of shape (n_samples,), or str, optional
        Weights of the training rows; of a labelled table, the name of a column, which
        is not a feature.
    gain : float, array-like of shape (n_samples,), or str, optional
        What every hit gains, or for each row its gain as a hit; of a labelled table,
        the name of a column with these gains.
    cost : float, default=0.0
        What each row of the list costs.
    list_rows : int, optional
        Length of the list of new rows for which hits are expected; by default as many
        as `X` has.
    n_splits : int, default=5
        Number of splits, or of periods, on which models are measured.
    random_state : int, default=0
        Seed of the splits and of the model.
    allow : sequence of str
        Columns of a labelled table to use even if they look like a leak, an identifier
        or a code.
    **reading
        Of a labelled table: ``drop``, ``id``, ``numeric`` and ``format`` of
        `precbench.tables.own_file.read_own_file`, and how the file is written.

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
    >>> same = precbench.fit(table[["age", "bill"]], table["churned"], k=20, n_splits=2)
    >>> same.about["precision_at_k"] == model.about["precision_at_k"]
    True
    >>> model.rank(table, top=3)["score"].is_monotonic_decreasing
    True
    """
    ks = several_k(k)
    if solver is not None:
        solver = SOLVERS.admit(solver)
        # only to raise an error before the table is read
        _parameters(solver, params or {}, ks[0], random_state)
    options: dict[str, Any]
    if y is None:
        options = table_options(
            label, positive, groups, time, categorical, missing, reading
        )
        rows = read_table(X, options, column_name("weight", weight), gain, cost, allow)
    else:
        refuse_table_options({"label": label, "allow": allow, **reading})
        require_same_rows(X, y=y, groups=groups, time=time, weight=weight, gain=gain)
        read = read_rows(X, y, positive, categorical, missing, groups, time)
        n_rows = len(read.dataset.y)
        weights = None
        if weight is not None:
            weights = amounts_of_rows(weight, "weight", n_rows)
            weight = "weight"  # its name, as the model states it
        rows = LabelledRows(*read, weights, gains_of_rows(gain, cost, n_rows))
        options = {"categorical": categorical, "missing": missing}
    if solver is None:
        has_linear = issparse(rows.dataset.X) or fourier
        solver = "sgd-avg" if has_linear else RECOMMENDED
    if scaling is None:
        # Trees of the features themselves need no scaling.
        has_trees = hasattr(make_solver(solver, {}), "to_trees") and not fourier
        is_unscaled = has_trees or issparse(rows.dataset.X)
        scaling = "none" if is_unscaled else "standardise"
    how: dict[str, Any] = {"solver": solver, "scaling": scaling}  # for `Model.fit`
    how |= _parameters(solver, params or {}, ks[0], random_state)
    if fourier:
        how["fourier"] = {"n_components": fourier, "random_state": random_state}
    model = fit_measured(rows, how, ks, list_rows, n_splits, random_state)
    model.about["label"] = label
    model.about["positive"] = as_texts(positive)
    model.about["weight"] = weight
    model.about["recipe"] = state_recipe(
        reading=options,
        allow=allow,
        k=ks,
        list_rows=list_rows,
        worth=rows.gains.worth,
        fourier=how.get("fourier"),
        n_splits=n_splits,
        random_state=random_state,
    )
    return model


class LabelledRows(NamedTuple):
    """Rows to fit a model to.

    Attributes
    ----------
    dataset : Dataset
    encoding : Encoding or None
        How columns became features; None for bare arrays.
    weights : ndarray of shape (n_samples,) or None
        Of the rows in training.
    gains : Gains
    """

    dataset: Dataset
    encoding: Encoding | None
    weights: NDArray[np.float64] | None
    gains: Gains


def read_table(
    table: Any,
    options: Mapping[str, Any],
    weight: str | None,
    gain: Any,
    cost: float,
    allow: Sequence[str],
) -> LabelledRows:
    """Read a labelled table by options of `read_own_file`, and its weights and gains.

    The column `weight` is no feature.
    """
    own = open_table(table, options)
    gains = gains_of_table(own, gain, cost)
    reading = dict(options)
    weights = None
    if weight:
        weights = read_amounts(own, weight, "weight")
        reading["drop"] = [*reading.get("drop", ()), weight]
    dataset, encoding = read_own_file(own, allow=allow, **reading)
    return LabelledRows(dataset, encoding, weights, gains)


def fit_measured(
    rows: LabelledRows,
    how: dict[str, Any],
    ks: Sequence[TopK],
    list_rows: int | None,
    n_splits: int,
    random_state: int,
) -> Model:
    """Return a model of all rows that states its quality on held-out rows.

    `how` has the arguments of `Model.fit`.
    """
    dataset, encoding, weights, gains = rows
    X = dataset.X
    n_rows = len(dataset.y)
    for length in ks:  # only to raise an error if a length is too large
        resolve_k(length, dataset.n_pos, list_rows or n_rows)
    splits = held_out_splits(dataset, n_splits, random_state)
    measured = held_out_quality(
        dataset,
        splits,
        ks[0],
        how,
        weights,
        gains.amounts,
        encoding,
        list_rows or n_rows,
    )
    forecast = measure_length(
        measured.lists,
        measured.test_share,
        ks,
        dataset.n_pos,
        n_rows,
        method=how["solver"],
        list_rows=list_rows,
        worth=gains.worth,
    )
    model = Model.fit(X, dataset.y, encoding=encoding, sample_weight=weights, **how)
    model = model.calibrated(measured.lists, measured.test_share, X)
    if encoding is not None:
        model = model.profiled(X, measured.lists, dataset.imputed)
    quality = measured.quality.model_copy(update={"length": forecast})
    model.about.update(quality.model_dump(exclude_unset=True))
    model.about["groups"] = 0
    if dataset.groups is not None:
        model.about["groups"] = len(set(dataset.groups.tolist()))
    return model


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

"""Fit the recipe of a model to new rows, and say what has changed."""

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from precbench.advice.given_rows import (
    amounts_of_rows,
    column_name,
    gains_of_rows,
    read_rows,
    refuse_table_options,
)
from precbench.advice.quality import Quality, as_texts, describe_quality, quality_of
from precbench.advice.stated_recipe import (
    COLUMN_LISTS,
    StatedRecipe,
    derived_recipe,
    recipe_of,
)
from precbench.advice.training import LabelledRows, fit_measured, read_table
from precbench.core.errors import InputError
from precbench.core.text import count
from precbench.model.model import Model, make_solver
from precbench.ranking.topk import first_rows, resolve_k
from precbench.tables.encoding import Encoding
from precbench.tables.own_file import read_new_blocks
from precbench.tables.own_table import OwnTable, open_table, several
from precbench.tables.problems import OPTION_WORDS, listed
from precbench.tables.reading import (
    Categorical,
    ColumnOptions,
    Label,
    LayoutOptions,
    Missing,
)
from precbench.tables.roles import require_same_rows

# Options that say how a file is written
_LAYOUT = tuple(LayoutOptions.__annotations__)
_MOST_SHOWN = 5  # columns and categories, each


@dataclass(frozen=True, eq=False, repr=False)
class Refit:
    """A model of new rows, and what differs from the model before.

    Attributes
    ----------
    model : Model
        Of the new rows, with the solver, parameters, scaling and options of the old.
    rows_before, rows : int or None
        Rows that the models were fitted to; None if the old model does not state it.
    positives_before, positives : int or None
        Hits among these.
    quality_before, quality : Quality or None
        On held-out rows; None if that of the old model was not measured.
    gained, lost : list of str
        Columns that only the new model uses, and those that only the old one used.
    new_categories : dict of str to list of str
        By column that both use, the categories that the old model did not know.
    k : int
        Length of the list of the new rows, by the first k of the model.
    on_both : int or None
        Of the first `k` new rows by the new model, how many are among the first `k` by
        the old one; None if the old model cannot score the new rows.
    reason : str
        Why it cannot, or "".
    """

    model: Model
    rows_before: int | None
    rows: int
    positives_before: int | None
    positives: int
    quality_before: Quality | None
    quality: Quality
    k: int
    on_both: int | None
    reason: str = ""
    gained: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    new_categories: dict[str, list[str]] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return what has changed as values of JSON."""
        return {
            "solver": self.model.solver,
            "before": _measured(
                self.rows_before, self.positives_before, self.quality_before
            ),
            "now": _measured(self.rows, self.positives, self.quality),
            "gained": self.gained,
            "lost": self.lost,
            "new_categories": self.new_categories,
            "k": self.k,
            "on_both": self.on_both,
        }

    def sentences(self) -> list[str]:
        """Return what has changed in words."""
        sentences = [
            f"rows: {_number(self.rows_before)} before, {self.rows:,} now; positive:"
            f" {_number(self.positives_before)} before, {self.positives:,} now"
        ]
        if self.quality_before is None:
            sentences.append("before: the quality was not measured")
        else:
            sentences.append(f"before: {describe_quality(self.quality_before)}")
        sentences.append(f"now: {describe_quality(self.quality)}")
        if self.gained:
            gained = listed(self.gained, _MOST_SHOWN)
            sentences.append(f"new columns: {gained}")
        if self.lost:
            lost = listed(self.lost, _MOST_SHOWN)
            sentences.append(f"columns no longer used: {lost}")
        for column, texts in self.new_categories.items():
            new = listed(texts, _MOST_SHOWN)
            sentences.append(f"new categories in {column}: {new}")
        if not (self.gained or self.lost or self.new_categories):
            sentences.append("the columns and their categories are the same")
        if self.on_both is None:
            sentences.append(f"the old model cannot rank the new rows: {self.reason}")
        else:
            sentences.append(
                f"of the first {count(self.k, 'new row')}, {self.on_both:,}"
                f" ({self.on_both / self.k:.0%}) are on the lists of both models"
            )
        return sentences

    def __repr__(self) -> str:
        """Return what has changed in words."""
        return "\n".join(self.sentences())


def _number(n: int | None) -> str:
    return "unknown" if n is None else f"{n:,}"


def _measured(
    rows: int | None, positives: int | None, quality: Quality | None
) -> dict[str, Any]:
    """Return sizes and measured quality as values of JSON."""
    facts: dict[str, Any] = {"rows": rows, "positives": positives}
    for name in ("k", "precision_at_k", "precision_at_k_interval", "auc"):
        facts[name] = None if quality is None else getattr(quality, name)
    return facts


def refit(
    model: Model | str | os.PathLike[str],
    X: Any,
    y: Any = None,
    *,
    label: str | None = None,
    positive: Label | Sequence[Label] | None = None,
    groups: Any = None,
    time: Any = None,
    categorical: Categorical | None = None,
    missing: Missing | None = None,
    weight: Any = None,
    gain: Any = None,
    allow: Sequence[str] = (),
    **reading: Unpack[ColumnOptions],
) -> Refit:
    """Fit the recipe of a model to new labelled rows, as ``precbench refit`` does.

    Solver, parameters, scaling, random features, label, options of reading, k and gains
    are those of the model; the quality is measured anew. An option that is given here
    replaces that of the model.

    Parameters
    ----------
    model : Model or path
        Fitted by `fit` or `compare`.
    X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features), or path
        Without `y`, a labelled table: a file, or a frame with the column of labels.
    y : array-like of shape (n_samples,), optional
        Labels of the rows, for a model that was fitted to X and y.
    label, positive, categorical, missing : optional
        See `precbench.fit`.
    groups, time, weight, gain : array-like of shape (n_samples,), or str, optional
        See `precbench.fit`; needed where the model was fitted to arrays of these.
    allow : sequence of str
        Further columns to use even if they look like a leak, an identifier or a code.
    **reading
        Of a labelled table: ``drop``, ``id``, ``numeric`` and ``format`` of
        `precbench.tables.own_file.read_own_file`, and how the file is written.

    Returns
    -------
    Refit
        With the new ``model``, and what has changed.

    Raises
    ------
    InputError
        If the model does not state an option that is needed, or the rows cannot be
        read as they stand.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> import precbench
    >>> x = np.random.default_rng(0).standard_normal((2, 800))
    >>> table = pd.DataFrame({"age": x[0], "bill": x[1], "churned": x[0] + x[1] > 2})
    >>> model = precbench.fit(table[:400], label="churned", k=20, n_splits=2)
    >>> again = precbench.refit(model, table)
    >>> again.rows_before, again.rows
    (400, 800)
    """
    name = "the model" if isinstance(model, Model) else str(model)
    fitted = model if isinstance(model, Model) else Model.load(model)
    quality_before = quality_of(fitted, name)
    stated = recipe_of(fitted, name)
    recipe = derived_recipe(fitted, quality_before) if stated is None else stated
    if quality_before is not None:
        label = label or quality_before.label
        positive = positive or quality_before.positive
    given = {
        "groups": groups,
        "time": time,
        "categorical": categorical,
        "missing": missing,
        **reading,
    }
    given = {option: value for option, value in given.items() if value is not None}
    options: dict[str, Any] = dict(recipe.reading) | given
    weight = fitted.about.get("weight") if weight is None else weight
    gain = (recipe.gain_column or recipe.gain) if gain is None else gain
    _require_stated(fitted, name, quality_before, options)
    if y is None:
        weight = column_name("weight", weight)
        for option in ("groups", "time"):
            column_name(option, options.get(option))  # refuses an array
        options = {"label": label, "positive": positive, **options}
        own = open_table(X, options)
        if own.frame is not None:
            if stated is None:
                _require_known_columns(own, fitted, name, options, weight)
            options = _with_present_columns(options, own)
        columns = [] if own.frame is None else [*own.frame.columns]
        allowed = _present([*recipe.allow, *allow], columns)
        rows = read_table(own, options, weight, gain, recipe.cost or 0.0, allowed)
        weight_name = weight
    else:
        refuse_table_options({"allow": allow, **reading})
        allowed = []
        rows = _read_bare_rows(X, y, positive, options, weight, gain, recipe.cost)
        weight_name = None if weight is None else "weight"
    refitted = fit_measured(
        rows,
        _fit_arguments(fitted, recipe),
        recipe.k,
        recipe.list_rows,
        recipe.n_splits,
        recipe.random_state,
    )
    refitted.about["label"] = label
    refitted.about["positive"] = as_texts(positive)
    refitted.about["weight"] = weight_name
    refitted.about["recipe"] = recipe.restated(options, allowed)
    layout = {key: given[key] for key in _LAYOUT if key in given}
    score_before = partial(_scores_by, fitted, X, layout if y is None else None)
    return _changes(fitted, refitted, rows, score_before, quality_before)


def _require_stated(
    model: Model, name: str, quality: Quality | None, options: Mapping[str, Any]
) -> None:
    """Refuse a model that was fitted with an option which it does not state."""
    columns = () if model.encoding is None else model.encoding.columns
    fills_gaps = any(column.indicator for column in columns)
    is_lacking = {
        "missing": fills_gaps and "missing" not in options,
        "groups": bool(model.about.get("groups")) and "groups" not in options,
        "time": (
            quality is not None and quality.split == "time" and "time" not in options
        ),
    }
    lacking = [option for option, lacks in is_lacking.items() if lacks]
    if lacking:
        raise InputError(
            f"{name} does not state {listed(lacking)}, with which it was fitted; give"
            f" {listed(lacking)} again"
        )


def _require_known_columns(
    own: OwnTable, model: Model, name: str, options: Mapping[str, Any], weight: Any
) -> None:
    """Refuse columns that a model without a recipe may have left out, or new ones."""
    columns = [*own.frame.columns]
    known = {options["label"], options.get("groups"), options.get("time"), weight}
    for option in ("drop", "id"):
        known.update(_present(options.get(option, ()), columns))
    if model.encoding is not None:
        known.update(column.name for column in model.encoding.columns)
    unknown = [column for column in columns if column not in known]
    if unknown:
        raise InputError(
            f"{name} does not state which columns it left out; name"
            f" {listed(unknown, _MOST_SHOWN)} in drop or id, or fit a new model"
        )


def _with_present_columns(options: Mapping[str, Any], own: OwnTable) -> dict[str, Any]:
    """Return options without the columns that the new table does not have."""
    columns = [*own.frame.columns]
    present = dict(options)
    for option in COLUMN_LISTS:
        if option in present and not isinstance(present[option], str):
            present[option] = _present(present[option], columns)
    return present


def _present(texts: Sequence[str], columns: Sequence[str]) -> list[str]:
    """Return the columns that are named, of those that there are.

    A text may name several; "one-hot" stands for all columns of text.
    """
    names = [*columns, *OPTION_WORDS["categorical"]]
    return [name for name in dict.fromkeys(several(texts)) if name in names]


def _read_bare_rows(
    X: Any,
    y: Any,
    positive: Label | Sequence[Label] | None,
    options: Mapping[str, Any],
    weight: Any,
    gain: Any,
    cost: float | None,
) -> LabelledRows:
    """Read rows and labels by the options of `refit`; columns are given as arrays."""
    groups = options.get("groups")
    time = options.get("time")
    columns = {"y": y, "groups": groups, "time": time, "weight": weight, "gain": gain}
    require_same_rows(X, **columns)
    read = read_rows(
        X,
        y,
        positive,
        options.get("categorical", "error"),
        options.get("missing", "error"),
        groups,
        time,
    )
    n_rows = len(read.dataset.y)
    weights = None
    if weight is not None:
        weights = amounts_of_rows(weight, "weight", n_rows)
    gains = gains_of_rows(gain, cost or 0.0, n_rows)
    return LabelledRows(*read, weights, gains)


def _fit_arguments(model: Model, recipe: StatedRecipe) -> dict[str, Any]:
    """Return the arguments of `Model.fit` by which a model was fitted."""
    how: dict[str, Any] = {
        "solver": model.solver,
        "scaling": model.scaler.kind,
        **model.params,
    }
    if "random_state" in make_solver(model.solver, model.params).get_params():
        how["random_state"] = recipe.random_state
    if recipe.fourier is not None:
        how["fourier"] = recipe.fourier
    return how


def _changes(
    before: Model,
    after: Model,
    rows: LabelledRows,
    score_before: Callable[[], NDArray[np.float64]],
    quality_before: Quality | None,
) -> Refit:
    """Compare the models before and after, also by their lists of the new rows."""
    quality = quality_of(after, "the new model")
    assert quality is not None  # measured just now
    n_rows = len(rows.dataset.y)
    k = resolve_k(quality.k, rows.dataset.n_pos, n_rows)
    on_both = None
    reason = ""
    try:
        with warnings.catch_warnings():  # reading the rows to fit has warned
            warnings.simplefilter("ignore")
            old_scores = score_before()
    except InputError as error:  # such as a column that the new rows lack
        reason = str(error)
    else:
        scores = after.decision_function(rows.dataset.X, n_jobs=-1)
        old_top = first_rows(old_scores, k)
        on_both = len(np.intersect1d(first_rows(scores, k), old_top))
    columns_before = _categories(before.encoding)
    columns = _categories(after.encoding)
    new_categories = {}
    for column in columns.keys() & columns_before.keys():
        new = sorted({*columns[column]} - {*columns_before[column]})
        if new and columns_before[column]:
            new_categories[column] = new
    return Refit(
        model=after,
        rows_before=before.about.get("rows"),
        rows=n_rows,
        positives_before=before.about.get("positives"),
        positives=rows.dataset.n_pos,
        quality_before=quality_before,
        quality=quality,
        k=k,
        on_both=on_both,
        reason=reason,
        gained=[column for column in columns if column not in columns_before],
        lost=[column for column in columns_before if column not in columns],
        new_categories=dict(sorted(new_categories.items())),
    )


def _scores_by(
    model: Model, X: Any, layout: Mapping[str, Any] | None
) -> NDArray[np.float64]:
    """Score new rows by the old model, which encodes the columns in its own way.

    `layout` says how the file of a table is written; None for bare rows.
    """
    if layout is None:
        return model.decision_function(X, n_jobs=-1)
    if model.encoding is None:
        raise InputError("it was fitted to arrays, and knows no columns")
    blocks = read_new_blocks(X, model.encoding, **layout)
    parts = [model.decision_function(features, n_jobs=-1) for features, _ in blocks]
    return np.concatenate(parts)


def _categories(encoding: Encoding | None) -> dict[str, tuple[str, ...]]:
    """Return the categories of each column; of numbers and dates none."""
    columns = () if encoding is None else encoding.columns
    return {column.name: column.categories or () for column in columns}

"""How a model was fitted, as its file states it, so that it can be fitted again."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

from pydantic import Field

from precbench.advice.length import Worth
from precbench.advice.quality import Quality
from precbench.core.errors import InputError
from precbench.core.strict_json import Count, Fields, Number, checked
from precbench.model.model import Model
from precbench.ranking.topk import TopK

# Options of reading that say what the columns are. Those of a file alone, such as its
# separator, are not stated: the next file may be written in another way.
_Option = Literal[
    "groups",
    "time",
    "drop",
    "id",
    "categorical",
    "numeric",
    "missing",
    "decimal",
    "date_format",
]
COLUMN_LISTS = ("drop", "id", "categorical", "numeric")  # each lists columns


class StatedRecipe(Fields):
    """What a model states of its fit beside label, solver, parameters and scaling.

    Attributes
    ----------
    reading : dict
        Options of reading that were given, see `read_own_file`.
    allow : list of str
        Columns that were used although they look like a leak or an identifier.
    k : list of int, float or str
        Lengths of the list.
    list_rows : int or None
        Rows of the lists to come; None for as many as were fitted to.
    gain, cost : float or None
        What each hit gains, and each row of the list costs; None without a profit.
    gain_column : str or None
        Column of the gains, in place of `gain`.
    fourier : dict or None
        Options of the random features.
    n_splits : int
        Splits on which models were to be measured.
    random_state : int
    """

    reading: dict[_Option, str | list[str]] = Field(default_factory=dict)
    allow: list[str] = Field(default_factory=list)
    k: list[Count | Number | str] = Field(min_length=1)
    list_rows: Count | None = None
    gain: Number | None = None
    gain_column: str | None = None
    cost: Number | None = None
    fourier: dict[str, int | Number | str | None] | None = None
    n_splits: Count = 5
    random_state: Count = 0

    def restated(
        self, reading: Mapping[str, Any], allow: Sequence[str]
    ) -> dict[str, Any]:
        """Return the recipe with other `reading` and `allow`, as values of JSON.

        Arrays, such as of groups, are not stated.
        """
        changes = {"reading": _stated_options(reading), "allow": [*allow]}
        return self.model_copy(update=changes).model_dump(exclude_defaults=True)


def _stated_options(reading: Mapping[str, Any]) -> dict[_Option, str | list[str]]:
    """Return those options that say what the columns are, as texts and lists of text.

    An array in place of the name of a column is left out.
    """
    options: dict[_Option, str | list[str]] = {}
    for name in get_args(_Option):
        value = reading.get(name)
        if isinstance(value, str):
            if value != "error":
                options[name] = value
        elif name in COLUMN_LISTS and value:
            options[name] = [*value]
    return options


def state_recipe(
    *,
    reading: Mapping[str, Any],
    allow: Sequence[str],
    k: Sequence[TopK],
    list_rows: int | None,
    worth: Worth | None,
    fourier: Mapping[str, Any] | None,
    n_splits: int,
    random_state: int,
) -> dict[str, Any]:
    """Return a `StatedRecipe` as values of JSON, without what was not given."""
    recipe = StatedRecipe(
        reading=_stated_options(reading),
        allow=[*allow],
        k=[*k],
        list_rows=list_rows,
        gain=None if worth is None else worth.gain,
        gain_column=None if worth is None else worth.column,
        cost=None if worth is None else worth.cost,
        fourier=None if fourier is None else dict(fourier),
        n_splits=n_splits,
        random_state=random_state,
    )
    return recipe.model_dump(exclude_defaults=True)


def recipe_of(model: Model, name: str) -> StatedRecipe | None:
    """Return what a model states of its fit; None of a model that states nothing."""
    if "recipe" not in model.about:
        return None
    try:
        return checked(model.about["recipe"], StatedRecipe)
    except ValueError as error:
        raise InputError(
            f"{name}: the stored recipe is damaged ({error}); fit and save the model"
            " again"
        ) from error


def derived_recipe(model: Model, quality: Quality | None) -> StatedRecipe:
    """Return what else a model shows of its fit, if it states no recipe.

    Its columns are known, but not which others were left out.
    """
    columns = () if model.encoding is None else model.encoding.columns
    reading: dict[_Option, str | list[str]] = {}
    categorical = [column.name for column in columns if column.categories is not None]
    if categorical:
        reading["categorical"] = categorical
    fourier: dict[str, int | float | str | None] | None = None
    if model.random_features is not None:
        n_components = len(model.random_features.offset)
        fourier = {"n_components": n_components, "random_state": 0}
    length = None if quality is None else quality.length
    profit = None if length is None else length.profit
    return StatedRecipe(
        reading=reading,
        allow=[column.name for column in columns],
        k=[model.params.get("k", 0.25) if quality is None else quality.k],
        gain=None if profit is None else profit.gain,
        gain_column=None if profit is None else profit.column,
        cost=None if profit is None else profit.cost,
        fourier=fourier,
        n_splits=5 if quality is None else quality.splits,
    )

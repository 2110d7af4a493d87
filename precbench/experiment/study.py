"""A config without trials: one of `precbench.papers` with its parameters."""

import inspect
from collections.abc import Callable
from functools import cache, partial
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

from pydantic import (
    AfterValidator,
    Field,
    ValidationInfo,
    create_model,
    field_validator,
    model_validator,
)

from precbench.experiment.sections import Metric, MetricEntry
from precbench.yaml.models import Items, Name, Section, at, refuse, unknown

if TYPE_CHECKING:
    import pandas as pd


class Illustration(Section):
    """A config file with the key ``illustration``.

    Attributes
    ----------
    name, title : str
    source : str or None
        The figure, table or section of a paper.
    illustration : str
        The kind, a key of `precbench.papers.ILLUSTRATIONS`.
    parameters : dict
        All arguments of its function, as the file says them.
    smoke : dict
        Those of them that are replaced at the smoke size.
    """

    name: Name
    title: str
    source: str | None = None
    illustration: str
    parameters: dict[str, Any] = Field(default_factory=dict, validate_default=True)
    smoke: dict[str, Any] = Field(default_factory=dict)

    @field_validator("illustration")
    @classmethod
    def _exists(cls, kind: str) -> str:
        from precbench.papers import ILLUSTRATIONS

        refuse(at((), unknown("illustration", kind, ILLUSTRATIONS)))
        return kind

    @field_validator("parameters")
    @classmethod
    def _fit_the_kind(cls, parameters: dict[str, Any], info: ValidationInfo) -> dict[str, Any]:
        if "illustration" in info.data:
            _arguments(info.data["illustration"], parameters)
        return parameters

    @field_validator("smoke")
    @classmethod
    def _replaces_some(cls, smoke: dict[str, Any], info: ValidationInfo) -> dict[str, Any]:
        if {"illustration", "parameters"} <= set(info.data):
            _arguments(info.data["illustration"], {**info.data["parameters"], **smoke})
        return smoke

    @model_validator(mode="after")
    def _can_be_tried(self) -> "Illustration":
        """Find by a try what is wrong with the parameters together."""
        if self.is_quick:
            try:
                self.smoke_size().compute()
            except ValueError as error:
                refuse(at(("parameters",), [str(error)]))
        return self

    @property
    def is_quick(self) -> bool:
        """Whether it needs no data and seconds at most."""
        from precbench.papers import QUICK

        return self.illustration in QUICK

    def compute(self) -> "pd.DataFrame":
        """Return the table of this illustration."""
        from precbench.papers import ILLUSTRATIONS

        return ILLUSTRATIONS[self.illustration](**self.arguments())

    def arguments(self) -> dict[str, Any]:
        """Return the arguments for the function of this kind."""
        return _arguments(self.illustration, self.parameters)

    def smoke_size(self) -> "Illustration":
        """Return the same illustration at its smoke size."""
        return self.model_copy(update={"parameters": {**self.parameters, **self.smoke}})


def _arguments(kind: str, parameters: dict[str, Any]) -> dict[str, Any]:
    checked = _parameters_of(kind).model_validate(parameters)
    return {name: getattr(checked, name) for name in type(checked).model_fields}


@cache
def _parameters_of(kind: str) -> type[Section]:
    """Return the section that the signature of an illustration asks for."""
    from precbench.papers import ILLUSTRATIONS
    from precbench.papers.rudin2009 import Measures

    function = ILLUSTRATIONS[kind]
    # A config says the names of metrics, as in an experiment; the function wants functions.
    as_configured: dict[Any, Any] = {
        Measures: Annotated[Items[MetricEntry], AfterValidator(_functions)]
    }
    types = get_type_hints(function, include_extras=True)
    fields: dict[str, Any] = {
        name: (as_configured.get(types[name], types[name]), ...)
        for name in inspect.signature(function).parameters
    }
    return create_model(kind, __base__=Section, **fields)


def _functions(metrics: tuple[Metric, ...]) -> dict[str, Callable[..., float]]:
    from precbench.metrics import METRICS

    return {metric.label: partial(METRICS[metric.name], **metric.params) for metric in metrics}

"""A config without trials: a kind of `precbench.studies` with its parameters."""

import inspect
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

from pydantic import (
    AfterValidator,
    AliasChoices,
    Field,
    ValidationInfo,
    create_model,
    field_validator,
    model_validator,
)

from precbench.experiment.sections import MetricEntry
from precbench.metrics import Metric
from precbench.studies import STUDIES, Measures
from precbench.yaml.models import Items, Line, Name, Section, at, refuse, unknown

if TYPE_CHECKING:
    import pandas as pd

STUDY_KEYS = ("study", "illustration")
"""The key that makes a config a study, and its former name, which results and summaries keep."""


class Study(Section):
    """A config file with the key ``study``.

    Attributes
    ----------
    name, title : str
    source : str or None
        The figure, table or section of a paper.
    kind : str
        A key of `precbench.studies.STUDIES`; the value of ``study`` in the file.
    parameters : dict
        All arguments of its function, as the file gives them.
    smoke : dict
        The arguments that are replaced at the smoke size.
    """

    name: Name
    title: Line
    source: Line | None = None
    kind: str = Field(validation_alias=AliasChoices(*STUDY_KEYS))
    parameters: dict[str, Any] = Field(default_factory=dict, validate_default=True)
    smoke: dict[str, Any] = Field(default_factory=dict)

    @field_validator("kind")
    @classmethod
    def _exists(cls, kind: str) -> str:
        refuse(at((), unknown("study", kind, STUDIES)))
        return kind

    @field_validator("parameters")
    @classmethod
    def _match_the_function(cls, parameters: dict[str, Any], info: ValidationInfo) -> Any:
        if "kind" in info.data:
            _arguments(info.data["kind"], parameters)
        return parameters

    @field_validator("smoke")
    @classmethod
    def _replaces_parameters(cls, smoke: dict[str, Any], info: ValidationInfo) -> dict[str, Any]:
        if {"kind", "parameters"} <= set(info.data):
            parameters = info.data["parameters"]
            _arguments(info.data["kind"], {**parameters, **smoke})
            refuse(
                problem
                for name, few in smoke.items()
                if isinstance(few, dict)
                for key in few
                for problem in at((name, key), unknown("entry", key, parameters.get(name, few)))
            )
        return smoke

    @model_validator(mode="after")
    def _try_if_quick(self) -> "Study":
        """Find by a trial computation parameters that are invalid only together."""
        if self.is_quick:
            try:
                self.smoke_size().compute()
            except ValueError as error:
                refuse(at(("parameters",), [str(error)]))
        return self

    @property
    def is_quick(self) -> bool:
        """Whether it needs no data and a few seconds at most."""
        return STUDIES[self.kind].quick

    def compute(self) -> "pd.DataFrame":
        """Return the table of this study."""
        return STUDIES[self.kind].function(**self.arguments())

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of the function, converted to the annotated types."""
        return _arguments(self.kind, self.parameters)

    def smoke_size(self) -> "Study":
        """Return the same study at its smoke size."""
        return self.model_copy(update={"parameters": {**self.parameters, **self.smoke}})


def _arguments(kind: str, parameters: dict[str, Any]) -> dict[str, Any]:
    checked = _parameters_of(kind).model_validate(parameters)
    return {name: getattr(checked, name) for name in type(checked).model_fields}


@cache
def _parameters_of(kind: str) -> type[Section]:
    """Return the section of a config that the signature of a study asks for."""
    function = STUDIES[kind].function
    # A config names metrics, as an experiment does; the function takes callables.
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
    return {metric.label: metric for metric in metrics}

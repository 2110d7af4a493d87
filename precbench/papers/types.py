"""Types of the parameters of studies; a config is checked against them."""

from collections.abc import Callable, Mapping
from typing import Annotated

from numpy.typing import ArrayLike
from pydantic import Field, PositiveFloat

from precbench.yaml.models import Section

__all__ = [
    "AtLeastTwo",
    "Count",
    "DatasetNames",
    "Measures",
    "MixtureProblem",
    "Seed",
    "Share",
    "Sizes",
]

Count = Annotated[int, Field(ge=1)]
AtLeastTwo = Annotated[int, Field(ge=2)]
Seed = Annotated[int, Field(ge=0)]
Share = Annotated[float, Field(gt=0, lt=1)]
DatasetNames = Annotated[list[str], Field(min_length=1)]
Sizes = Annotated[list[AtLeastTwo], Field(min_length=2)]

Measures = Mapping[str, Callable[[ArrayLike, ArrayLike], float]]
"""Functions of labels and scores, by label; a config lists metrics as an experiment does."""


class MixtureProblem(Section):
    """Two classes of Gaussian mixtures; each component has the covariance ``sigma**2 I``."""

    components: Count
    sigma: PositiveFloat

"""What the parameters of illustrations may be; a config is checked against these."""

from typing import Annotated

from pydantic import Field, PositiveFloat

from precbench.yaml.models import Section

__all__ = ["Count", "MixtureProblem", "Points", "Seed", "Share"]

Count = Annotated[int, Field(ge=1)]
Points = Annotated[int, Field(ge=2)]
Seed = Annotated[int, Field(ge=0)]
Share = Annotated[float, Field(gt=0, lt=1)]


class MixtureProblem(Section):
    """Two classes of so many components, each with the covariance ``sigma**2 I``."""

    components: Count
    sigma: PositiveFloat

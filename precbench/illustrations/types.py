"""What the parameters of illustrations may be; a config is checked against these."""

from typing import Annotated

from pydantic import Field

__all__ = ["Count", "Points", "Seed", "Share"]

Count = Annotated[int, Field(ge=1)]
Points = Annotated[int, Field(ge=2)]
Seed = Annotated[int, Field(ge=0)]
Share = Annotated[float, Field(gt=0, lt=1)]

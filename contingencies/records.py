"""The base of everything a user writes down: frozen, strict records, and the kinds of numbers and names in them."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

NAME_PATTERN = r"^[a-z0-9][a-z0-9._-]{0,99}$"
Name = Annotated[str, Field(pattern=NAME_PATTERN, description="lower-case letters, digits, '.', '_' and '-'")]
BusNumber = Annotated[int, Field(ge=0, le=10**9, description="bus number as printed in the case")]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NonNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Real = Annotated[float, Field(allow_inf_nan=False)]
Text = Annotated[str, Field(max_length=10_000)]


class Record(BaseModel):
    """A frozen, strict value: unknown fields and silently converted types are errors."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

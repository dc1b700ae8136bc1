"""The base of everything a user writes down: frozen, strict records, and the kinds of numbers and names in them."""

from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SerializerFunctionWrapHandler, model_serializer

SMALLEST, LARGEST = 1e-9, 1e9  # of what a description states: far beyond any grid, far from overflow
DUST = 1e-30  # a computed zero is far above this; less is a slip, and its products vanish
NAME_PATTERN = r"^[a-z0-9][a-z0-9._-]{0,99}$"
Name = Annotated[str, Field(pattern=NAME_PATTERN, description="lower-case letters, digits, '.', '_' and '-'")]
BusNumber = Annotated[int, Field(ge=0, le=10**9, description="bus number as printed in the case")]


def _not_tiny(value: float) -> float:
    if value < SMALLEST:
        raise ValueError(f"{value} is smaller than anything in a grid; write at least {SMALLEST:g}")
    return value


def not_dust(value: float) -> float:
    """The value, or an error for one that is neither 0 nor anything."""
    if 0 < abs(value) < DUST:
        raise ValueError(f"{value} is smaller than anything in a grid; write 0")
    return value


Positive = Annotated[float, Field(gt=0, le=LARGEST, allow_inf_nan=False), AfterValidator(_not_tiny)]
NonNegative = Annotated[float, Field(ge=0, le=LARGEST, allow_inf_nan=False), AfterValidator(not_dust)]
Real = Annotated[float, Field(ge=-LARGEST, le=LARGEST, allow_inf_nan=False), AfterValidator(not_dust)]
Text = Annotated[str, Field(max_length=10_000)]
# Kinds with limits of their own; a `le` in the field itself would be overruled by that of `Positive`.
Thousand = Annotated[float, Field(gt=0, le=1000, allow_inf_nan=False), AfterValidator(_not_tiny)]
Milliseconds = Annotated[float, Field(gt=0, le=1e6, allow_inf_nan=False), AfterValidator(_not_tiny)]
Frequency = Annotated[float, Field(ge=1, le=1000, allow_inf_nan=False)]
Power = Annotated[float, Field(ge=1e-3, le=1e7, allow_inf_nan=False)]


class Record(BaseModel):
    """A frozen, strict value: unknown fields and silently converted types are errors.

    `added_later` names optional fields that came after identities had been given out: absent (None), they
    are no part of what is written down, so that older descriptions keep their SHA-256.
    """

    added_later: ClassVar[frozenset[str]] = frozenset()

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    @model_serializer(mode="wrap")
    def _without_absent(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        content: dict[str, Any] = write(self)
        return {key: value for key, value in content.items() if value is not None or key not in self.added_later}

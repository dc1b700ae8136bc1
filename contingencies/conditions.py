"""Conditions: what varies from one operating point to another, and over which ranges.

A contingency may be a family over continuous conditions: a factor of all loads or of a group of them, the active
power of units, the position of a line fault. What a point of them does to the network is the business of
`contingencies.point_networks`.
"""

from typing import Annotated

from pydantic import Field, field_validator, model_validator

from contingencies.documents import FieldError
from contingencies.points import Axis
from contingencies.records import BusNumber, Positive, Real, Record

BusKey = Annotated[str, Field(pattern=r"^(0|[1-9][0-9]{0,9})$", description="bus number as printed in the case")]
GroupName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]{0,39}$")]
MOST = 6  # conditions together: beyond that no number of operating points that one can solve fills the ranges


def _ordered(name: str, limits: tuple[float, float]) -> None:
    if not limits[0] < limits[1]:
        raise ValueError(f"{name} ends at {limits[1]}, which is not above its start {limits[0]}; give [low, high]")


class LoadGroup(Record):
    """A factor of the loads of an area or of some buses."""

    factor: tuple[Positive, Positive] = Field(description="smallest and largest factor of P and Q")
    area: Annotated[int, Field(ge=0)] | None = Field(None, description="number of the area in the case")
    buses: tuple[BusNumber, ...] | None = Field(None, min_length=1, description="bus numbers as printed in the case")

    @model_validator(mode="after")
    def _one_way(self) -> "LoadGroup":
        _ordered("factor", self.factor)
        if (self.area is None) == (self.buses is None):
            raise ValueError("name either an area or buses, whose loads the factor multiplies")
        return self


class Conditions(Record):
    """What varies: at most six conditions, each over its range."""

    load: tuple[Positive, Positive] | None = Field(None, description="factor of all loads, P and Q")
    loads: dict[GroupName, LoadGroup] = Field(default_factory=dict, description="factors of groups of loads, by name")
    generation: dict[BusKey, tuple[Real, Real]] = Field(
        default_factory=dict, description="MW of the units at a bus, by its number; the slack balances"
    )
    position: tuple[Real, Real] | None = Field(None, description="of a line fault, strictly between 0 and 1")

    @field_validator("load", "position")
    @classmethod
    def _in_order(cls, limits: tuple[float, float] | None) -> tuple[float, float] | None:
        if limits is not None:
            _ordered("the range", limits)
        return limits

    @field_validator("position")
    @classmethod
    def _inside(cls, limits: tuple[float, float] | None) -> tuple[float, float] | None:
        if limits is not None and not (limits[0] > 0 and limits[1] < 1):
            raise ValueError(f"{list(limits)} is not strictly between 0 and 1; use a range such as [0.05, 0.95]")
        return limits

    @field_validator("generation")
    @classmethod
    def _each_in_order(cls, generation: dict[str, tuple[float, float]]) -> dict[str, tuple[float, float]]:
        for bus, limits in generation.items():
            _ordered(f"the range of bus {bus}", limits)
        return generation

    @model_validator(mode="after")
    def _some_but_few(self) -> "Conditions":
        count = len(self.axes)
        if count == 0:
            raise ValueError("conditions names none; add load, loads, generation or position, or leave the block out")
        if count > MOST:
            raise FieldError("generation" if self.generation else "loads", f"{count} conditions; give at most {MOST}")
        return self

    def __hash__(self) -> int:  # mappings have none of their own
        return hash(self.model_dump_json())

    @property
    def axes(self) -> tuple[Axis, ...]:
        """The conditions in their order: load, groups of loads, generation, position."""
        found = [] if self.load is None else [Axis("load", *self.load)]
        found += [Axis(f"load.{name}", *group.factor) for name, group in sorted(self.loads.items())]
        by_bus = sorted(self.generation.items(), key=lambda item: int(item[0]))
        found += [Axis(f"generation.{bus}", *limits, unit="MW") for bus, limits in by_bus]
        return tuple(found if self.position is None else [*found, Axis("position", *self.position)])

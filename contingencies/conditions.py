"""Conditions: what varies from one operating point to another, over which ranges, and single points of them.

A contingency may be a family over continuous conditions: a factor of all loads or of a group of them, the active
power of units, the position of a line fault. This module knows ranges and numbers only; what a point does to the
network is the business of `contingencies.operating_points`.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, field_validator, model_validator

from contingencies.documents import FieldError
from contingencies.errors import UsageError
from contingencies.records import BusNumber, Positive, Real, Record

Float = NDArray[np.float64]
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
    def axes(self) -> tuple["Axis", ...]:
        """The conditions in their order: load, groups of loads, generation, position."""
        found = [] if self.load is None else [Axis("load", *self.load)]
        found += [Axis(f"load.{name}", *group.factor) for name, group in sorted(self.loads.items())]
        by_bus = sorted(self.generation.items(), key=lambda item: int(item[0]))
        found += [Axis(f"generation.{bus}", *limits, unit="MW") for bus, limits in by_bus]
        return tuple(found if self.position is None else [*found, Axis("position", *self.position)])


@dataclass(frozen=True)
class Axis:
    """One condition and its range, both ends included."""

    name: str  # load, load.GROUP, generation.BUS or position
    low: float
    high: float
    unit: str = ""

    def __str__(self) -> str:
        return f"{self.name} {self.low:g} to {self.high:g}{' ' if self.unit else ''}{self.unit}"

    def holds(self, value: float) -> bool:
        """Whether a value lies in the range."""
        return self.low <= value <= self.high


@dataclass(frozen=True)
class Point:
    """One operating point: a value for every condition of a contingency, in their order."""

    names: tuple[str, ...] = ()
    values: tuple[float, ...] = ()

    def __str__(self) -> str:
        return ", ".join(f"{name}={value:g}" for name, value in zip(self.names, self.values, strict=True))

    def to_dict(self) -> dict[str, float]:
        """Values by name."""
        return dict(zip(self.names, self.values, strict=True))


OWN_POINT = Point()  # the case's own, of a contingency without conditions


def parse_at(texts: Iterable[str]) -> dict[str, float]:
    """`load=1.1` as the user writes conditions; each name once."""
    given: dict[str, float] = {}
    for text in texts:
        name, sign, number = text.partition("=")
        try:
            value = float(number)
        except ValueError:
            value = math.nan
        if not sign or not math.isfinite(value):
            raise UsageError(f"--at {text[:60]!r} is not NAME=NUMBER; write a condition such as load=1.1.")
        if name.strip() in given:
            raise UsageError(f"--at names {name.strip()} twice; give each condition once.")
        given[name.strip()] = value
    return given


def point_at(name: str, axes: tuple[Axis, ...], given: Mapping[str, float], own: Mapping[str, float]) -> Point:
    """The operating point of some given conditions; the others have the case's own values.

    Parameters
    ----------
    name : str
        Of the contingency, for complaints.
    axes : tuple of Axis
    given : mapping
        Values by name of condition.
    own : mapping
        The case's own values.
    """
    check_names(name, axes, given)
    values = []
    for axis in axes:
        value = float(given.get(axis.name, own[axis.name]))
        if not axis.holds(value):
            if axis.name in given:
                raise UsageError(f"{name}: {axis.name} = {value:g} is out of its range; it goes from {_range(axis)}.")
            raise UsageError(
                f"{name}: {axis.name} is not given and the case's own value {value:g} is out of its range, "
                f"{_range(axis)}; give {axis.name}."
            )
        values.append(value)
    return Point(tuple(axis.name for axis in axes), tuple(values))


def check_names(name: str, axes: tuple[Axis, ...], given: Iterable[str]) -> None:
    """Refuse conditions that a contingency does not have."""
    known = [axis.name for axis in axes]
    for one in given:
        if one not in known:
            some = f"it has {', '.join(known)}" if known else "it has none; add a conditions block to its description"
            raise UsageError(f"{name} has no condition {one[:60]!r}; {some}.")


def sample_points(axes: tuple[Axis, ...], count: int, seed: int) -> Float:
    """Points (count, d) that fill the ranges evenly: a scrambled Sobol sequence, the first of which do so, too."""
    from scipy.stats import qmc

    if not axes:
        return np.empty((count, 0))
    drawn = qmc.Sobol(len(axes), scramble=True, seed=np.random.default_rng(seed)).random_base2(
        max(0, math.ceil(math.log2(max(count, 1))))
    )
    low, high = limits_of(axes)
    points: Float = low + (high - low) * drawn[:count]
    return points


def limits_of(axes: tuple[Axis, ...]) -> tuple[Float, Float]:
    """Lower and upper ends (d,) of all ranges."""
    return np.array([axis.low for axis in axes]), np.array([axis.high for axis in axes])


def _range(axis: Axis) -> str:
    return f"{axis.low:g} to {axis.high:g}{' ' if axis.unit else ''}{axis.unit}"

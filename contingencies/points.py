"""Ranges of conditions and single points of them: plain numbers, light enough for the path of a query."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from contingencies.errors import UsageError

Float = NDArray[np.float64]


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
    check_given(name, axes, given)
    values = []
    for axis in axes:
        value = float(given.get(axis.name, own[axis.name]))
        if not axis.holds(value):
            raise UsageError(
                f"{name}: {axis.name} is not given and the case's own value {value:g} is out of its range, "
                f"{_range(axis)}; give {axis.name}."
            )
        values.append(value)
    return Point(tuple(axis.name for axis in axes), tuple(values))


def check_given(name: str, axes: tuple[Axis, ...], given: Mapping[str, float]) -> None:
    """Refuse conditions that a contingency does not have, and values out of their ranges."""
    check_names(name, axes, given)
    for axis in axes:
        if axis.name in given and not axis.holds(given[axis.name]):
            value = given[axis.name]
            raise UsageError(f"{name}: {axis.name} = {value:g} is out of its range; it goes from {_range(axis)}.")


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

"""Which places of a network a family takes: by voltage, area and rating, and by names to include or exclude."""

import math
from dataclasses import dataclass
from fnmatch import fnmatchcase

import numpy as np

from contingencies.errors import UsageError
from contingencies.network import Network


@dataclass(frozen=True)
class Selection:
    """Limits that a place must keep; the default takes every place.

    A line has the voltage of its higher end and belongs to the areas of both. Names are those of the members without
    that of the system, such as line-16-17-remove; patterns may hold * and ?.
    """

    kv_min: float = 0.0  # kV
    kv_max: float = math.inf  # kV
    areas: tuple[int, ...] = ()  # none: all
    rating_min: float = 0.0  # MVA, of lines
    include: tuple[str, ...] = ()  # patterns, none: all
    exclude: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not 0 <= self.kv_min <= self.kv_max:
            raise UsageError(
                f"voltages from {self.kv_min:g} to {self.kv_max:g} kV hold nothing; give --kv-min below --kv-max."
            )
        if not (math.isfinite(self.rating_min) and self.rating_min >= 0):
            raise UsageError(f"a rating of at least {self.rating_min:g} MVA cannot be had; give one above 0.")

    def takes_bus(self, network: Network, *positions: int) -> bool:
        """Whether a bus, or a line between two buses, is within voltages and areas."""
        at = list(positions)
        kv = float(network.base_kv[at].max())
        in_area = not self.areas or bool(np.isin(network.area[at], self.areas).any())
        return self.kv_min <= kv <= self.kv_max and in_area

    def takes_line(self, network: Network, branch: int) -> bool:
        """Whether a line is within voltages, areas and rating."""
        ends = int(network.branches.start[branch]), int(network.branches.end[branch])
        return bool(network.branches.rating[branch] >= self.rating_min) and self.takes_bus(network, *ends)

    def takes_name(self, place: str) -> bool:
        """Whether a name is included and not excluded."""
        included = not self.include or any(fnmatchcase(place, pattern) for pattern in self.include)
        return included and not any(fnmatchcase(place, pattern) for pattern in self.exclude)


EVERYWHERE = Selection()

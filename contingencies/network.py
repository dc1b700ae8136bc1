"""A solved operating point: buses, branches and classical machines, per unit on the system base.

Bus numbers are the printed ones; everything else is indexed by position. `contingencies.operating_point` makes
one from a plain network, and says what becomes of loads and units.
"""

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from contingencies.errors import SpecError
from contingencies.formats.tables import Complex, Float, Int, Text
from contingencies.library import System


@dataclass(frozen=True, eq=False)
class Branches:
    """Two-port admittances of the branches in service, pu, lines first; `is_line` marks those that may be removed."""

    start: Int  # (m,) position of the from bus
    end: Int  # (m,)
    y_ff: Complex  # (m,) the four entries of each branch's stamp
    y_ft: Complex
    y_tf: Complex
    y_tt: Complex
    y_series: Complex  # (m,) 1 / (r + jx)
    is_line: NDArray[np.bool_]  # (m,)
    circuit: Int  # (m,) 1, 2, ... among branches between the same two buses
    name: Text  # (m,) circuit as the file prints it; may be empty
    rating: Float  # (m,) MVA; 0 where the case does not say


@dataclass(frozen=True, eq=False)
class Network:
    """A solved network with its machines."""

    name: str
    base_mva: float
    omega_b: float  # rad/s
    bus_numbers: Int  # (n_b,) printed numbers
    base_kv: Float  # (n_b,) kV; 0 where the case does not say
    area: Int  # (n_b,)
    east: Float  # (n_b,) where the case draws the bus, in any unit; NaN where it does not say
    north: Float  # (n_b,)
    position: dict[int, int]  # printed number -> position; buses joined by a closed switch share one
    V: Complex  # (n_b,) solved voltages, pu
    y_shunt: Complex  # (n_b,) fixed shunts, pu
    y_load: Complex  # (n_b,) loads as constant admittances, pu
    branches: Branches
    machine_bus: Int  # (n_g,) positions
    H: Float  # (n_g,) s
    x_d: Float  # (n_g,) pu
    D: Float  # (n_g,) pu
    E: Float  # (n_g,) internal voltage magnitude, pu
    delta_0: Float  # (n_g,) rad

    @property
    def n_buses(self) -> int:
        return len(self.bus_numbers)

    @property
    def n_machines(self) -> int:
        return len(self.machine_bus)

    @cached_property
    def lines_between(self) -> dict[tuple[int, int], list[int]]:
        """Branches between two bus positions (ordered pair), in circuit order."""
        found: dict[tuple[int, int], list[int]] = {}
        for k, (i, j) in enumerate(zip(self.branches.start.tolist(), self.branches.end.tolist(), strict=True)):
            found.setdefault((min(i, j), max(i, j)), []).append(k)
        return found

    def bus(self, number: int, field: str) -> int:
        """Position of a printed bus number; `field` names where the user wrote it."""
        if number not in self.position:
            raise SpecError(f"{field}: bus {number} does not exist in {self.name}; {known_buses(self.bus_numbers)}.")
        return self.position[number]

    def machine(self, number: int, field: str) -> int:
        """Index of the machine at a printed bus number."""
        machines = np.flatnonzero(self.machine_bus == self.bus(number, field))
        if len(machines) == 0:
            numbers = self.bus_numbers[self.machine_bus]
            raise SpecError(f"{field}: there is no generator at bus {number} of {self.name}; {known_buses(numbers)}.")
        return int(machines[0])

    def between(self, buses: tuple[int, int], field: str) -> list[int]:
        """All branches between two printed bus numbers, in circuit order."""
        i, j = self.bus(buses[0], field), self.bus(buses[1], field)
        found = self.lines_between.get((min(i, j), max(i, j)), [])
        if not found:
            name = f"{buses[0]}-{buses[1]}"
            raise SpecError(f"{field}: {self.name} has no line {name}; name two buses that a line connects.")
        return found

    def line(self, buses: tuple[int, int], circuit: int | None, field: str) -> int:
        """Index of a removable line between two printed bus numbers."""
        found, name = self.between(buses, field), f"{buses[0]}-{buses[1]}"
        if circuit is None:
            if len(found) > 1:
                raise SpecError(
                    f"{field}: {self.name} has {len(found)} circuits {name}; add circuit: 1 to {len(found)}."
                )
            chosen = found[0]
        elif circuit > len(found):
            raise SpecError(f"{field}: {self.name} has no circuit {circuit} of {name}; it has {len(found)}.")
        else:
            chosen = found[circuit - 1]
        if not self.branches.is_line[chosen]:
            raise SpecError(f"{field}: {name} of {self.name} is a transformer, not a line; name a line.")
        return chosen


def known_buses(numbers: Int) -> str:
    """The first of some bus numbers, for a complaint."""
    shown = ", ".join(str(n) for n in sorted(numbers.tolist())[:12])
    return f"it has {shown}{', ...' if len(numbers) > 12 else ''}"


@lru_cache(maxsize=16)
def solve_network(system: System) -> Network:
    """Solve the power flow of a system and attach its machines; once per process, and kept on disk."""
    from contingencies.network_cache import keep_network, load_network
    from contingencies.operating_point import solve_afresh

    network = load_network(system)
    if network is None:
        network = solve_afresh(system)
        keep_network(system, network)
    return network

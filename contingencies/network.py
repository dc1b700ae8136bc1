"""A solved operating point: buses, branches and classical machines, per unit on the system base.

Loads (and static generation) become constant admittances at the solved voltages; each generator
bus gets a classical machine, a constant voltage E behind x'd. Bus numbers are the printed ones;
everything else is indexed by position.
"""

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from contingencies.errors import SpecError
from contingencies.library import System

Complex = NDArray[np.complex128]
Float = NDArray[np.float64]
Int = NDArray[np.int64]

OUT_OF_SERVICE = 4  # bus type in pandapower's internal tables


@dataclass(frozen=True, eq=False)
class Branches:
    """Two-port admittances of the branches in service, pu; `is_line` marks those that may be removed."""

    start: Int  # (m,) position of the from bus
    end: Int  # (m,)
    y_ff: Complex  # (m,) the four entries of each branch's stamp
    y_ft: Complex
    y_tf: Complex
    y_tt: Complex
    y_series: Complex  # (m,) 1 / (r + jx)
    is_line: NDArray[np.bool_]  # (m,)
    circuit: Int  # (m,) 1, 2, ... among branches between the same two buses


@dataclass(frozen=True, eq=False)
class Network:
    """A solved network with its machines."""

    name: str
    base_mva: float
    omega_b: float  # rad/s
    bus_numbers: Int  # (n_b,) printed numbers
    base_kv: Float  # (n_b,) kV; 0 where the case does not say
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
            raise SpecError(f"{field}: bus {number} does not exist in {self.name}; {_known(self.bus_numbers)}.")
        return self.position[number]

    def machine(self, number: int, field: str) -> int:
        """Index of the machine at a printed bus number."""
        machines = np.flatnonzero(self.machine_bus == self.bus(number, field))
        if len(machines) == 0:
            numbers = self.bus_numbers[self.machine_bus]
            raise SpecError(f"{field}: there is no generator at bus {number} of {self.name}; {_known(numbers)}.")
        return int(machines[0])

    def line(self, buses: tuple[int, int], circuit: int | None, field: str) -> int:
        """Index of a removable line between two printed bus numbers."""
        i, j = self.bus(buses[0], field), self.bus(buses[1], field)
        found = self.lines_between.get((min(i, j), max(i, j)), [])
        name = f"{buses[0]}-{buses[1]}"
        if not found:
            raise SpecError(f"{field}: {self.name} has no line {name}; name two buses that a line connects.")
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


def _known(numbers: Int) -> str:
    shown = ", ".join(str(n) for n in sorted(numbers.tolist())[:12])
    return f"it has {shown}{', ...' if len(numbers) > 12 else ''}"


@lru_cache(maxsize=16)
def solve_network(system: System) -> Network:
    """Solve the power flow of a system and attach its machines; once per process, and kept on disk."""
    from contingencies.network_cache import keep_network, load_network

    network = load_network(system)
    if network is None:
        network = solve_afresh(system)
        keep_network(system, network)
    return network


def solve_afresh(system: System) -> Network:
    """Solve the power flow of a system and attach its machines."""
    from contingencies.cases import solved_net

    net, numbers = solved_net(system)
    buses = _Buses.of(system, net, numbers)
    scale = float(net._ppc["baseMVA"]) / system.spec.base_mva
    branches = _branches(net, buses, scale)
    return _assemble(system, net, buses, branches, scale)


@dataclass(frozen=True)
class _Buses:
    rows: Int  # rows of pandapower's internal bus table that are in service
    row_position: dict[int, int]
    numbers: Int
    position: dict[int, int]
    unconnected: frozenset[int]  # printed numbers of buses that are out of service or cut off from the slack

    @staticmethod
    def of(system: System, net: Any, numbers: dict[Any, int]) -> "_Buses":
        table = net._ppc["bus"].real
        rows = np.flatnonzero(table[:, 1] != OUT_OF_SERVICE)
        row_position = {int(row): k for k, row in enumerate(rows)}
        lookup = net._pd2ppc_lookups["bus"]
        position: dict[int, int] = {}
        printed = np.full(len(rows), -1, dtype=np.int64)
        for index, number in numbers.items():
            row = int(lookup[index])
            if row in row_position:
                position[number] = row_position[row]
                if printed[row_position[row]] < 0:
                    printed[row_position[row]] = number
        fresh = max(numbers.values(), default=0) + 1  # auxiliary buses pandapower adds get numbers of their own
        for k in np.flatnonzero(printed < 0):
            printed[k] = fresh
            position[fresh] = int(k)
            fresh += 1
        return _Buses(rows, row_position, printed, position, frozenset(numbers.values()) - frozenset(position))


def _branches(net: Any, buses: _Buses, scale: float) -> Branches:
    from pandapower.pypower.idx_brch import BR_R, BR_STATUS, BR_X, F_BUS, T_BUS
    from pandapower.pypower.makeYbus import branch_vectors

    table = net._ppc["branch"]
    first, last = net._pd2ppc_lookups["branch"].get("line", (0, 0))
    is_line = np.zeros(len(table), dtype=bool)
    is_line[first:last] = True
    keep = table[:, BR_STATUS].real > 0
    start_rows, end_rows = table[:, F_BUS].real.astype(int), table[:, T_BUS].real.astype(int)
    keep &= np.isin(start_rows, buses.rows) & np.isin(end_rows, buses.rows)
    table, is_line = table[keep], is_line[keep]
    y_tt, y_ff, y_ft, y_tf = branch_vectors(table, len(table))
    start = np.array([buses.row_position[row] for row in start_rows[keep]], dtype=np.int64)
    end = np.array([buses.row_position[row] for row in end_rows[keep]], dtype=np.int64)
    seen: dict[tuple[int, int], int] = {}
    circuit = np.empty(len(table), dtype=np.int64)
    for k, (i, j) in enumerate(zip(start.tolist(), end.tolist(), strict=True)):
        pair = (min(i, j), max(i, j))
        circuit[k] = seen[pair] = seen.get(pair, 0) + 1
    y_series = 1.0 / (table[:, BR_R].real + 1j * table[:, BR_X].real)
    return Branches(
        start, end, y_ff * scale, y_ft * scale, y_tf * scale, y_tt * scale, y_series * scale, is_line, circuit
    )


def _assemble(system: System, net: Any, buses: _Buses, branches: Branches, scale: float) -> Network:
    table = net._ppc["bus"].real[buses.rows]
    V = table[:, 7] * np.exp(1j * np.deg2rad(table[:, 8]))
    base = system.spec.base_mva
    y_shunt = (table[:, 4] + 1j * table[:, 5]) / base
    injected = V * np.conj(_current(V, y_shunt, branches))  # what each bus sends into the network, pu
    load = (table[:, 2] + 1j * table[:, 3]) / base

    machine_bus, H, x_d, D = _machines(system, net, buses)
    # Away from machines the load is whatever balances the solved voltages, so that the
    # operating point is an equilibrium to round-off and not only to the power flow's tolerance.
    at_machine = np.zeros(len(V), dtype=bool)
    at_machine[machine_bus] = True
    load = np.where(at_machine, load, -injected)
    y_load = np.conj(load) / np.abs(V) ** 2

    V_machine = V[machine_bus]
    current = np.conj((injected + load)[machine_bus] / V_machine)
    E = V_machine + 1j * x_d * current
    return Network(
        name=system.name, base_mva=base, omega_b=2 * np.pi * system.spec.frequency_hz,
        bus_numbers=buses.numbers, base_kv=table[:, 9], position=buses.position, V=V, y_shunt=y_shunt, y_load=y_load,
        branches=branches, machine_bus=machine_bus, H=H, x_d=x_d, D=D, E=np.abs(E), delta_0=np.angle(E),
    )  # fmt: skip


def _current(V: Complex, y_shunt: Complex, branches: Branches) -> Complex:
    current = y_shunt * V
    np.add.at(current, branches.start, branches.y_ff * V[branches.start] + branches.y_ft * V[branches.end])
    np.add.at(current, branches.end, branches.y_tf * V[branches.start] + branches.y_tt * V[branches.end])
    return current


def _machines(system: System, net: Any, buses: _Buses) -> tuple[Int, Float, Float, Float]:
    """Machine positions in the order of the system file, and H, x'd, D on the system base."""
    lookup = net._pd2ppc_lookups["bus"]
    running = [*net.gen.bus[net.gen.in_service], *net.ext_grid.bus[net.ext_grid.in_service]]
    generator_positions = {
        buses.row_position[int(lookup[index])] for index in running if int(lookup[index]) in buses.row_position
    }
    units = system.spec.machines.units
    positions = []
    for k, unit in enumerate(units):
        position, where = buses.position.get(unit.bus), system.where("machines", "units", k, "bus")
        if unit.bus in buses.unconnected:
            raise SpecError(
                f"{where}: bus {unit.bus} is out of service or not connected to the slack "
                "bus; connect it, or leave its machine out."
            )
        if position is None or position not in generator_positions:
            raise SpecError(
                f"{where}: there is no generator at bus {unit.bus}; "
                f"{_known(buses.numbers[sorted(generator_positions)])}."
            )
        positions.append(position)
    missing = sorted(buses.numbers[sorted(generator_positions - set(positions))].tolist())
    if missing:
        raise SpecError(
            f"{system.where('machines', 'units')}: machine data missing for the generator at bus "
            f"{', '.join(map(str, missing[:8]))}{', ...' if len(missing) > 8 else ''}; add H and x_d."
        )
    # From a machine base to the system base: H and D scale with the MVA, reactances inversely.
    ratio = np.array([1.0 if unit.mva is None else unit.mva / system.spec.base_mva for unit in units])
    H = np.array([unit.H for unit in units]) * ratio
    x_d = np.array([unit.x_d for unit in units]) / ratio
    D = np.array([unit.D for unit in units]) * ratio
    return np.array(positions, dtype=np.int64), H, x_d, D

"""From a plain network and its power flow to a solved operating point with classical machines.

Each bus of the system file's machines gets one classical machine, a constant voltage E behind x'd, for all units
of the bus together. A bus whose units hold the voltage needs one; units at a PQ bus may have one. Everything else
that draws or feeds power (loads, static generation, units without a machine) becomes a constant admittance at
the solved voltages, theory.md eq. (5).
"""

import numpy as np

from contingencies.cases import read_case
from contingencies.errors import SpecError
from contingencies.formats.case import Case
from contingencies.formats.energised import energised
from contingencies.formats.stamps import series_admittance, two_ports
from contingencies.formats.tables import PQ, Complex, Float, Int, sum_at
from contingencies.library import System
from contingencies.network import Branches, Network, known_buses
from contingencies.power_flow import PowerFlow, Solution

LOWEST_V, HIGHEST_V = 0.1, 3.0  # pu, of a solved bus; grids at the nose of their curves are near 0.5
HIGHEST_E = 10.0  # pu, behind x'd: x'd times the current is below 1 on any base


def solve_afresh(system: System) -> Network:
    """Solve the power flow of a system and attach its machines."""
    case = read_case(system).on_base(system.spec.base_mva)
    try:
        live = energised(case)
        solution = PowerFlow(live).solve()
    except SpecError as error:
        raise SpecError(f"{system.where('network')}: {error}") from None
    unconnected = frozenset(_printed(case)) - frozenset(_printed(live))
    return network_at(system, live, solution, unconnected)


def network_at(system: System, live: Case, solution: Solution, unconnected: frozenset[int] = frozenset()) -> Network:
    """A solved operating point with the system's machines.

    Parameters
    ----------
    system : System
        Names the machines.
    live : Case
        The network without its dead parts, on the system's base.
    solution : Solution
        Its power flow.
    unconnected : frozenset of int
        Printed numbers of buses that were left out, for complaints.
    """
    V, branches, position = solution.V, _branches(live), _printed(live)
    y_shunt = sum_at(len(V), live.shunts.bus, live.shunts.y)
    injected = V * np.conj(_current(V, y_shunt, branches))  # what each bus sends into the network, pu
    machine_bus = _machine_buses(system, live, position, unconnected)
    H, x_d, D = _machine_data(system)
    # Away from machines the load is whatever balances the solved voltages, so that the
    # operating point is an equilibrium to round-off and not only to the power flow's tolerance.
    at_machine = np.zeros(len(V), dtype=bool)
    at_machine[machine_bus] = True
    load = np.where(at_machine, _load(live, V), -injected)
    V_machine = V[machine_bus]
    current = np.conj((injected + load)[machine_bus] / V_machine)
    E = V_machine + 1j * x_d * current
    _check_plausible(system, live, V, machine_bus, E)
    return Network(
        name=system.name, base_mva=live.base_mva, omega_b=2 * np.pi * system.spec.frequency_hz,
        bus_numbers=live.buses.number, base_kv=live.buses.base_kv, area=live.buses.area, east=live.buses.east,
        north=live.buses.north, position=position, V=V, y_shunt=y_shunt, y_load=np.conj(load) / np.abs(V) ** 2,
        branches=branches, machine_bus=machine_bus,
        H=H, x_d=x_d, D=D, E=np.abs(E), delta_0=np.angle(E),
    )  # fmt: skip


def _check_plausible(system: System, live: Case, V: Complex, machine_bus: Int, E: Complex) -> None:
    """A power flow of impossible data can still converge; its voltages give it away."""
    numbers, v, e = live.buses.number, np.abs(V), np.abs(E)
    far = np.flatnonzero(~((v >= LOWEST_V) & (v <= HIGHEST_V)))
    if len(far):
        k = int(far[0])
        raise SpecError(
            f"{system.where('network')}: the power flow gives {v[k]:.3g} pu at bus {numbers[k]}, which no grid has; "
            "check set points, impedances, taps, loads and shunts near it."
        )
    far = np.flatnonzero(~((e >= LOWEST_V) & (e <= HIGHEST_E)))
    if len(far):
        k = int(far[0])
        raise SpecError(
            f"{system.where('machines', 'units', k, 'x_d')}: the machine at bus {numbers[machine_bus[k]]} would have "
            f"an internal voltage of {e[k]:.3g} pu; check x_d, its base and the dispatch."
        )


def _printed(case: Case) -> dict[int, int]:
    """Printed number -> position; buses joined by a closed switch share one."""
    numbers: dict[int, int] = {int(number): k for k, number in enumerate(case.buses.number)}
    return numbers | dict(case.merged)


def _branches(live: Case) -> Branches:
    """Lines first, then transformers, each in the order of the file; circuits are counted in this order."""
    order = np.argsort(live.branches.is_transformer, kind="stable")
    rows = live.branches.taken(order)
    seen: dict[tuple[int, int], int] = {}
    circuit = np.empty(len(rows), dtype=np.int64)
    for k, (i, j) in enumerate(zip(rows.start.tolist(), rows.end.tolist(), strict=True)):
        pair = (min(i, j), max(i, j))
        circuit[k] = seen[pair] = seen.get(pair, 0) + 1
    return Branches(
        rows.start, rows.end, *two_ports(rows), series_admittance(rows), ~rows.is_transformer, circuit, rows.circuit,
        rows.rating,
    )  # fmt: skip


def _load(live: Case, V: Complex) -> Complex:
    """What loads draw at the solved voltages, less what units feed that are no machines, (n_b,) pu."""
    loads, units, v = live.loads, live.units, np.abs(V)[live.loads.bus]
    drawn = sum_at(len(V), loads.bus, loads.S_power + loads.S_current * v + loads.S_impedance * v**2)
    others = ~units.is_machine
    fed: Complex = drawn - sum_at(len(V), units.bus[others], (units.P + 1j * units.Q)[others])
    return fed


def _current(V: Complex, y_shunt: Complex, branches: Branches) -> Complex:
    current = y_shunt * V
    np.add.at(current, branches.start, branches.y_ff * V[branches.start] + branches.y_ft * V[branches.end])
    np.add.at(current, branches.end, branches.y_tf * V[branches.start] + branches.y_tt * V[branches.end])
    return current


def _machine_buses(system: System, live: Case, position: dict[int, int], unconnected: frozenset[int]) -> Int:
    """Positions of the machines in the order of the system file, (n_g,)."""
    generators = live.units.bus[live.units.is_machine]
    allowed, numbers = set(generators.tolist()), live.buses.number
    positions = []
    for k, unit in enumerate(system.spec.machines.units):
        where = system.where("machines", "units", k, "bus")
        if unit.bus in unconnected:
            raise SpecError(
                f"{where}: bus {unit.bus} is out of service or not connected to the slack "
                "bus; connect it, or leave its machine out."
            )
        if position.get(unit.bus) not in allowed:
            known = known_buses(numbers[sorted(allowed)])
            raise SpecError(f"{where}: there is no generator at bus {unit.bus}; {known}.")
        positions.append(position[unit.bus])
    needed = set(generators[live.buses.kind[generators] != PQ].tolist())
    missing = sorted(numbers[sorted(needed - set(positions))].tolist())
    if missing:
        raise SpecError(
            f"{system.where('machines', 'units')}: machine data missing for the generator at bus "
            f"{', '.join(map(str, missing[:8]))}{', ...' if len(missing) > 8 else ''}; add H and x_d."
        )
    return np.array(positions, dtype=np.int64)


def _machine_data(system: System) -> tuple[Float, Float, Float]:
    """H, x'd, D on the system base: from a machine base H and D scale with the MVA, reactances inversely."""
    units = system.spec.machines.units
    ratio = np.array([1.0 if unit.mva is None else unit.mva / system.spec.base_mva for unit in units])
    H = np.array([unit.H for unit in units]) * ratio
    x_d = np.array([unit.x_d for unit in units]) / ratio
    D = np.array([unit.D for unit in units]) * ratio
    return H, x_d, D

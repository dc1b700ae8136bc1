"""Networks at points of conditions: what each condition does to loads and units, and the power flow there.

A load factor multiplies P and Q of all loads or of a group of them (a load in both is multiplied twice). The active
power of a unit is set, in the case's proportions where a bus has several, and the slack balances. Set points of
voltages stay, and reactive limits are ignored, as at the case's own point. Position needs no power flow: it moves
the fault point along its line.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from contingencies.cases import read_case
from contingencies.conditions import Conditions, LoadGroup
from contingencies.errors import Problems, SpecError, UsageError
from contingencies.formats.case import Case
from contingencies.formats.energised import bus_kinds, energised
from contingencies.formats.tables import SLACK, Float, Int
from contingencies.library import Contingency
from contingencies.network import Network, known_buses
from contingencies.operating_point import network_at
from contingencies.points import OWN_POINT, Axis, Point, check_given, point_at
from contingencies.power_flow import PowerFlow, Solution
from contingencies.spec import LineFault

HALVINGS = 12  # of the way to a point without solution: where it was lost, to 1/4096 of the way


def axes_of(contingency: Contingency) -> tuple[Axis, ...]:
    """The conditions of a contingency; none without the block."""
    conditions = contingency.spec.conditions
    return () if conditions is None else conditions.axes


@dataclass(frozen=True, eq=False)
class PointNetworks:
    """A network, ready to be solved at the points of a contingency's conditions.

    Loads and units are those of the case; `loads_of` and `units_of` say which of their rows a condition moves.
    """

    contingency: Contingency
    axes: tuple[Axis, ...]
    live: Case
    flow: PowerFlow
    solution: Solution  # at the case's own point
    loads_of: dict[str, Int]  # condition -> rows of the loads
    units_of: dict[str, Int]  # condition -> rows of the units
    own: dict[str, float]  # the case's own values

    @staticmethod
    def of(contingency: Contingency) -> "PointNetworks":
        """Read the case and check that every condition means something in it."""
        system = contingency.system
        live = energised(read_case(system).on_base(system.spec.base_mva))
        flow = PowerFlow(live)
        loads_of, units_of, own = _rows(contingency, live)
        return PointNetworks(
            contingency, axes_of(contingency), live, flow, _solved(contingency, flow), loads_of, units_of, own
        )

    def at(self, values: Float) -> Network:
        """The solved network at a point (d,), or one sentence that says where the solution was lost."""
        case = self._case(values)
        try:
            solution = self.flow.solve(case, self.solution.V)
        except SpecError:
            raise SpecError(self._lost(values)) from None
        return network_at(self.contingency.system, case, solution)

    def _case(self, values: Float) -> Case:
        S = np.ones(len(self.live.loads))
        P = self.live.units.P.copy()
        for axis, value in zip(self.axes, values, strict=True):
            if axis.name in self.loads_of:
                S[self.loads_of[axis.name]] *= value
            elif axis.name in self.units_of:
                rows = self.units_of[axis.name]
                P[rows] = value / self.live.base_mva * _shares(P[rows])
        loads = replace(
            self.live.loads,
            **{name: S * getattr(self.live.loads, name) for name in ("S_power", "S_current", "S_impedance")},
        )
        return replace(self.live, loads=loads, units=replace(self.live.units, P=P))

    def _lost(self, values: Float) -> str:
        """How far from the case's own point towards another one there is a solution."""
        own = np.array([self.own[axis.name] for axis in self.axes])
        reached, missed = 0.0, 1.0
        for _ in range(HALVINGS):
            middle = 0.5 * (reached + missed)
            try:
                self.flow.solve(self._case(own + middle * (values - own)), self.solution.V)
                reached = middle
            except SpecError:
                missed = middle
        names = tuple(axis.name for axis in self.axes)
        last = Point(names, tuple((own + reached * (values - own)).tolist()))
        return (
            f"{self.contingency.where('conditions')}: the power flow has no solution at "
            f"{Point(names, tuple(np.asarray(values).tolist()))}; on the way there from the case's own point it was "
            f"lost after {last}; narrow the ranges."
        )


@lru_cache(maxsize=8)
def point_networks(contingency: Contingency) -> PointNetworks:
    """The networks of a contingency's conditions; its case is read once per process."""
    return PointNetworks.of(contingency)


def point_of(contingency: Contingency, given: Mapping[str, float]) -> Point:
    """The operating point of given conditions; the others have the case's own values, which must be in range."""
    axes = axes_of(contingency)
    check_given(contingency.name, axes, given)  # before the case is read, which takes seconds
    return point_at(contingency.name, axes, given, point_networks(contingency).own) if axes else OWN_POINT


def solve_at(contingency: Contingency, given: Mapping[str, float]) -> Network:
    """The network of a contingency's system at loads and dispatch of any contingency's liking, conditions or not."""
    block: dict[str, Any] = {"generation": {}}
    for name, value in given.items():
        if name == "load" and value > 0:
            block["load"] = (0.5 * value, 2.0 * value)
        elif name.startswith("generation.") and name.partition(".")[2].isascii() and name.partition(".")[2].isdigit():
            block["generation"][name.partition(".")[2]] = (value - 1.0, value + 1.0)
        else:
            raise UsageError(f"a system has no condition {name[:60]!r} = {value:g}; use load > 0 and generation.BUS.")
    free = replace(contingency, spec=contingency.spec.model_copy(update={"conditions": Conditions(**block)}))
    networks = PointNetworks.of(free)
    return networks.at(np.array([given[axis.name] for axis in networks.axes]))


def at_position(contingency: Contingency, values: Float) -> Contingency:
    """The contingency with its fault where a point (d,) of its conditions says."""
    position = [value for axis, value in zip(axes_of(contingency), values, strict=True) if axis.name == "position"]
    fault = contingency.spec.fault
    if not position or not isinstance(fault, LineFault):
        return contingency
    moved = fault.model_copy(update={"position": float(position[0])})
    return replace(contingency, spec=contingency.spec.model_copy(update={"fault": moved}))


def _rows(contingency: Contingency, live: Case) -> tuple[dict[str, Int], dict[str, Int], dict[str, float]]:
    """Rows of loads and of units that each condition moves, and the case's own values."""
    conditions, fault = contingency.spec.conditions, contingency.spec.fault
    assert conditions is not None, "only contingencies with conditions have points"
    loads_of, units_of, own = dict[str, Int](), dict[str, Int](), dict[str, float]()
    problems = Problems()
    if conditions.load is not None:
        loads_of["load"] = np.arange(len(live.loads))
    for name, group in conditions.loads.items():
        with problems.gather():
            loads_of[f"load.{name}"] = _loads_of_group(contingency, live, name, group)
    for bus in conditions.generation:
        with problems.gather():
            rows = units_of[f"generation.{bus}"] = _units_at(contingency, live, int(bus))
            own[f"generation.{bus}"] = float(live.units.P[rows].sum() * live.base_mva)
    problems.raise_any()
    own |= dict.fromkeys(loads_of, 1.0)
    if isinstance(fault, LineFault):
        own["position"] = fault.position
    return loads_of, units_of, own


def _loads_of_group(contingency: Contingency, live: Case, name: str, group: LoadGroup) -> Int:
    if group.area is not None:
        where, wanted = contingency.where("conditions", "loads", name, "area"), f"area {group.area}"
        rows = np.flatnonzero(live.buses.area[live.loads.bus] == group.area)
    else:
        assert group.buses is not None
        where, wanted = contingency.where("conditions", "loads", name, "buses"), "these buses"
        rows = np.flatnonzero(np.isin(live.loads.bus, [_bus(live, number, where) for number in group.buses]))
    if not len(rows):
        loaded = known_buses(np.unique(live.buses.number[live.loads.bus]))
        raise SpecError(f"{where}: {live.name} has no load in {wanted}; name buses with loads: {loaded}.")
    return rows


def _units_at(contingency: Contingency, live: Case, number: int) -> Int:
    where = contingency.where("conditions", "generation", str(number))
    bus = _bus(live, number, where)
    rows = np.flatnonzero(live.units.in_service & (live.units.bus == bus))
    if not len(rows):
        running = known_buses(np.unique(live.buses.number[live.units.bus[live.units.in_service]]))
        raise SpecError(f"{where}: there is no generator at bus {number} of {live.name}; {running}.")
    if bus_kinds(live)[bus] == SLACK:
        raise SpecError(f"{where}: bus {number} is the slack, which balances all others; name another generator.")
    return rows


def _bus(live: Case, number: int, where: str) -> int:
    joined = dict(live.merged)
    if number in joined:
        return joined[number]
    known = known_buses(live.buses.number)
    return int(live.buses.position(number, lambda _, n: f"{where}: bus {n} does not exist in {live.name}; {known}.")[0])


def _shares(P: Float) -> Float:
    """How the units of a bus share its power: as in the case, evenly where the case has none."""
    total = P.sum()
    return P / total if abs(total) > 1e-9 else np.full(len(P), 1.0 / len(P))


def _solved(contingency: Contingency, flow: PowerFlow) -> Solution:
    try:
        return flow.solve()
    except SpecError as error:
        raise SpecError(f"{contingency.system.where('network')}: {error}") from None

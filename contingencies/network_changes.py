"""What a contingency does to its network: where the fault sits, which branches open, which machines leave.

Everything that needs the network to exist (a bus, a line, no island left behind) is checked here, and told with
file and line.
"""

from dataclasses import dataclass

import numpy as np

from contingencies.clearing_specs import RemoveLine, SetMechanical, Trip, TripFeeders
from contingencies.connectivity import removal_problem
from contingencies.errors import Problems, SpecError
from contingencies.fault_specs import BusFault, LineFault, MechanicalFault, ShortCircuit
from contingencies.library import Contingency
from contingencies.network import Complex, Float, Int, Network
from contingencies.reduction import Reduction


@dataclass(frozen=True, eq=False)
class FaultPoint:
    """Where the fault sits: a point whose open-circuit voltage is weights @ V[nodes].

    The fault is a shunt alpha * y, or a path through the impedance z_f; one of both is None.
    """

    nodes: Int  # (1,) a bus, or (2,) the ends of a line
    weights: Complex
    z_series: complex  # pu, impedance of the line segments seen from the virtual node; 0 at a bus
    y: complex | None  # pu, shunt at severity 1
    z_f: complex | None = None  # pu, fault impedance at severity 1; 0 is a bolted fault


@dataclass(frozen=True, eq=False)
class NetworkChange:
    """What a contingency does to the grid: fault point, branches and machines that leave, changed P_m."""

    point: FaultPoint | None
    removed: tuple[int, ...]
    removal_nodes: Int  # (m,) ends of the removed branches, ascending
    tripped: tuple[int, ...]  # machines, ascending
    P_m_slope: Float  # (n,) pu
    P_m_post: Float  # (n,) pu

    @staticmethod
    def of(contingency: Contingency, reduction: Reduction) -> "NetworkChange":
        network = reduction.network
        problems = Problems()  # a user hears of a wrong fault and of a wrong clearing together
        with problems.gather():
            point = _fault_point(contingency, network)
        with problems.gather():
            tripped = _tripped_machines(contingency, network)
            removed = _removed_branches(contingency, network, tripped)
        problems.raise_any()
        P_m_slope, P_m_post = _mechanical_power(contingency, reduction, tripped)
        rows = np.array(removed, dtype=np.int64)
        ends = np.concatenate([network.branches.start[rows], network.branches.end[rows]])
        return NetworkChange(point, removed, np.unique(ends), tripped, P_m_slope, P_m_post)

    @property
    def touched(self) -> list[Int]:
        """Groups of buses whose mutual impedances the closed forms need."""
        return [self.removal_nodes] if self.point is None else [self.point.nodes, self.removal_nodes]


def _fault_point(contingency: Contingency, network: Network) -> FaultPoint | None:
    fault = contingency.spec.fault
    if isinstance(fault, BusFault):
        node = network.bus(fault.bus, contingency.where("fault", "bus"))
        y = None if fault.shunt_pu is None else fault.shunt_pu.admittance
        return FaultPoint(np.array([node]), np.ones(1, dtype=complex), 0j, y, _impedance(contingency, network, node))
    if isinstance(fault, LineFault):
        where = contingency.where("fault", "line")
        line = network.line(fault.line, fault.circuit, where)
        i, j = (network.bus(number, where) for number in fault.line)
        y_line, far = complex(network.branches.y_series[line]), fault.position
        weights = np.array([1.0 - far, far], dtype=complex)
        z_f = _impedance(contingency, network, i)
        y = y_line if z_f is None else None
        return FaultPoint(np.array([i, j]), weights, far * (1.0 - far) / y_line, y, z_f)
    return None


def _impedance(contingency: Contingency, network: Network, node: int) -> complex | None:
    """Fault impedance, pu on the system base; None when the fault is given by an admittance."""
    fault = contingency.spec.fault
    assert isinstance(fault, ShortCircuit)
    if fault.impedance_pu is not None:
        return fault.impedance_pu.value
    if fault.impedance_ohm is None:
        return None
    kv = float(network.base_kv[node])
    if fault.impedance_ohm.value != 0 and not kv > 0:
        raise SpecError(
            f"{contingency.where('fault', 'impedance_ohm')}: bus {network.bus_numbers[node]} has no base voltage in "
            "the network, so that ohms cannot be converted; give impedance_pu."
        )
    return fault.impedance_ohm.value * network.base_mva / kv**2 if kv > 0 else 0j


def _tripped_machines(contingency: Contingency, network: Network) -> tuple[int, ...]:
    clearing = contingency.spec.clearing
    if not isinstance(clearing, Trip):
        return ()
    where = contingency.where("clearing", "generators")
    tripped = tuple(sorted(network.machine(bus, where) for bus in clearing.generators))
    if network.n_machines - len(tripped) < 2:
        raise SpecError(
            f"{where}: tripping {len(tripped)} of {network.n_machines} generators leaves none that could lose "
            "synchronism with another; trip fewer."
        )
    return tripped


def _removed_branches(contingency: Contingency, network: Network, tripped: tuple[int, ...]) -> tuple[int, ...]:
    spec = contingency.spec
    if isinstance(spec.clearing, RemoveLine):
        if spec.clearing.line is not None:
            where = contingency.where("clearing", "line")
            removed: tuple[int, ...] = (network.line(spec.clearing.line, spec.clearing.circuit, where),)
        else:
            assert isinstance(spec.fault, LineFault)
            removed = (network.line(spec.fault.line, spec.fault.circuit, contingency.where("fault", "line")),)
    elif isinstance(spec.clearing, Trip):
        where = contingency.where("clearing", "lines")
        named = [(line[0], line[1], line[2] if len(line) == 3 else None) for line in spec.clearing.lines]
        removed = tuple(network.line((first, second), circuit, where) for first, second, circuit in named)
    elif isinstance(spec.clearing, TripFeeders):
        assert isinstance(spec.fault, BusFault)
        bus = network.bus(spec.fault.bus, contingency.where("fault", "bus"))
        branches = network.branches
        removed = tuple(np.flatnonzero(branches.is_line & ((branches.start == bus) | (branches.end == bus))).tolist())
        if not removed:
            raise SpecError(
                f"{contingency.where('clearing', 'action')}: bus {spec.fault.bus} has no feeder that can be tripped; "
                "use restore."
            )
    else:
        return ()
    problem = removal_problem(network, removed, tripped)
    if problem:
        where = contingency.where("clearing", "action")
        raise SpecError(f"{where}: {spec.clearing.action} {problem}; clear another way.")
    return removed


def _mechanical_power(contingency: Contingency, reduction: Reduction, tripped: tuple[int, ...]) -> tuple[Float, Float]:
    """Slope of the fault-on P_m in alpha, and the post-clearing P_m, (n_g,) each, pu."""
    spec, network = contingency.spec, reduction.network
    slope, post = np.zeros(network.n_machines), reduction.P_m
    fault, clearing = spec.fault, spec.clearing
    if isinstance(fault, MechanicalFault):
        machine = network.machine(fault.generator, contingency.where("fault", "generator"))
        slope[machine] = fault.coefficient * reduction.P_m[machine]
    if isinstance(clearing, SetMechanical):
        generator = clearing.generator
        if generator is None:
            assert isinstance(fault, MechanicalFault)
            generator = fault.generator
        machine = network.machine(generator, contingency.where("clearing", "generator"))
        post = reduction.P_m.copy()
        post[machine] = clearing.factor * reduction.P_m[machine]
    if tripped:
        post = reduction.P_m.copy()
        post[list(tripped)] = 0.0
    return slope, post

"""The compiler: a contingency becomes the operators of its three phases, closed form in alpha.

Faults and clearing actions change the network by a matrix of rank one or two, so by the Woodbury
identity one sparse factorisation per network serves every contingency, and one solve per bus serves
every member of a family that touches the bus (theory.md eqs. (9)-(11)):

    Y_fault(alpha) = Y_pre + c(alpha) w u^T,   c(alpha) by one of the laws of `contingencies.severity`
    Y_post         = Y_pre + W M U^T

with u and w the transfer to and from the machines
(equal unless the network has phase shifters). The low-rank factors are what is stored; matrices
are formed on request, so that families on networks with thousands of buses stay small.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from contingencies.connectivity import removal_problem
from contingencies.errors import Problems, SpecError
from contingencies.library import Contingency
from contingencies.network import Complex, Float, Int, Network, solve_network
from contingencies.reduction import BusTransfers, Reduction, reduce_network
from contingencies.severity import admittance_law, fault_coefficient, impedance_law
from contingencies.spec import (
    BusFault,
    LineFault,
    MechanicalFault,
    RemoveLine,
    SetMechanical,
    ShortCircuit,
    Trip,
    TripFeeders,
    Window,
)


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
class PhaseOperators:
    """All that the swing equation needs of one contingency.

    `E`, `H`, `D`, `delta_0`, `P_m_pre`, `P_m_slope`, `P_m_post` are (n,) in house units; the
    fault-on mechanical power is P_m_pre + alpha * P_m_slope.
    """

    name: str
    window: Window
    severity: tuple[float, float]
    max_separation: float  # rad
    omega_b: float  # rad/s
    E: Float
    H: Float
    D: Float
    delta_0: Float
    Y_pre: Complex  # (n, n), shared by all contingencies of a system
    P_m_pre: Float
    P_m_slope: Float
    P_m_post: Float
    fault_from: Complex  # w (n,)
    fault_to: Complex  # u (n,)
    fault_gain: complex  # pu; of the law of severity, 0 for a mechanical fault
    fault_bend: complex
    fault_z_th: complex  # pu, Thevenin impedance at the fault point
    post_from: Complex  # W (n, m); m = 0 when the topology is restored
    post_core: Complex  # M (m, m)
    post_to: Complex  # U (n, m)
    fault_point: FaultPoint | None  # for the full-network simulator
    removed_branches: tuple[int, ...]
    network: Network
    machine_buses: tuple[int, ...]  # printed numbers
    tripped_machines: tuple[int, ...] = ()  # gone from clearing on: no current, no P_m, angles no longer count

    @property
    def n_machines(self) -> int:
        return len(self.E)

    @cached_property
    def counted_machines(self) -> Int:
        """Machines whose angles count in the separation after clearing, (q,) ascending."""
        return np.setdiff1d(np.arange(self.n_machines), self.tripped_machines)

    def Y_fault(self, alpha: float | Float) -> Complex:
        """Fault-on reduced admittance, (..., n, n) for alpha (...)."""
        c = np.asarray(fault_coefficient(np.asarray(alpha, dtype=float), self.fault_gain, self.fault_bend))
        fault: Complex = self.Y_pre + c[..., None, None] * np.outer(self.fault_from, self.fault_to)
        return fault

    def P_m_fault(self, alpha: float | Float) -> Float:
        """Fault-on mechanical power, (..., n) for alpha (...)."""
        power: Float = self.P_m_pre + np.asarray(alpha, dtype=float)[..., None] * self.P_m_slope
        return power

    @cached_property
    def Y_post(self) -> Complex:
        """Post-clearing reduced admittance, (n, n)."""
        if self.post_core.size == 0:
            return self.Y_pre
        post: Complex = self.Y_pre + self.post_from @ self.post_core @ self.post_to.T
        gone = list(self.tripped_machines)
        post[gone], post[:, gone] = 0.0, 0.0  # already so but for round-off
        return post


def as_bolted(operators: PhaseOperators) -> PhaseOperators | None:
    """The same contingency with a bolted fault at severity 1, for comparison; None without a fault in the network."""
    point = operators.fault_point
    if point is None:
        return None
    gain, bend = impedance_law(0j, operators.fault_z_th)
    return replace(operators, fault_gain=gain, fault_bend=bend, fault_point=replace(point, y=None, z_f=0j))


def compile_contingency(contingency: Contingency) -> PhaseOperators:
    """Operators of the three phases; raises SpecError when the contingency does not fit its network."""
    return compile_spec(contingency, reduce_network(solve_network(contingency.system)))


def compile_spec(contingency: Contingency, reduction: Reduction) -> PhaseOperators:
    """Operators of a contingency on an already factorised network."""
    return compile_family([contingency], reduction)[0]


def compile_members(contingencies: Sequence[Contingency]) -> list[PhaseOperators]:
    """Operators of contingencies of one system, sharing one factorisation."""
    return compile_family(contingencies, reduce_network(solve_network(contingencies[0].system)))


def compile_family(contingencies: Sequence[Contingency], reduction: Reduction) -> list[PhaseOperators]:
    """Operators of contingencies of one system, sharing one solve per touched bus, in the given order.

    Every contingency is looked at before the mistakes of all of them are raised together.
    """
    network = reduction.network
    problems, changes = Problems(), list[_Change]()
    for contingency in contingencies:
        with problems.gather():
            changes.append(_Change.of(contingency, reduction))
    problems.raise_any()
    transfers = reduction.transfers(nodes for change in changes for nodes in change.touched)
    machine_buses = tuple(network.bus_numbers[network.machine_bus].tolist())
    operators = []
    for contingency, change in zip(contingencies, changes, strict=True):
        spec = contingency.spec
        w, u, z_th = _fault_factors(change.point, reduction, transfers)
        gain, bend = _severity_law(change.point, z_th)
        W, M, U = _without_machines(_post_factors(change, reduction, transfers), reduction, change.tripped)
        operators.append(
            PhaseOperators(
                name=spec.name, window=spec.window, severity=spec.severity,
                max_separation=spec.stability.max_separation_rad, omega_b=network.omega_b,
                E=network.E, H=network.H, D=network.D, delta_0=network.delta_0,
                Y_pre=reduction.Y_pre, P_m_pre=reduction.P_m, P_m_slope=change.P_m_slope, P_m_post=change.P_m_post,
                fault_from=w, fault_to=u, fault_gain=gain, fault_bend=bend, fault_z_th=z_th,
                post_from=W, post_core=M, post_to=U, fault_point=change.point, removed_branches=change.removed,
                network=network, machine_buses=machine_buses, tripped_machines=change.tripped,
            )
        )  # fmt: skip
    return operators


@dataclass(frozen=True, eq=False)
class _Change:
    """What a contingency does to the grid: fault point, branches and machines that leave, changed P_m."""

    point: FaultPoint | None
    removed: tuple[int, ...]
    removal_nodes: Int  # (m,) ends of the removed branches, ascending
    tripped: tuple[int, ...]  # machines, ascending
    P_m_slope: Float  # (n,) pu
    P_m_post: Float  # (n,) pu

    @staticmethod
    def of(contingency: Contingency, reduction: Reduction) -> "_Change":
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
        return _Change(point, removed, np.unique(ends), tripped, P_m_slope, P_m_post)

    @property
    def touched(self) -> list[Int]:
        """Groups of buses whose mutual impedances the closed forms need."""
        return [self.removal_nodes] if self.point is None else [self.point.nodes, self.removal_nodes]


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


def _fault_factors(
    point: FaultPoint | None, reduction: Reduction, transfers: BusTransfers
) -> tuple[Complex, Complex, complex]:
    """w, u, z_th of Y_fault = Y_pre + c(alpha) w u^T, theory.md eqs. (9)-(10)."""
    if point is None:
        none = np.zeros(reduction.network.n_machines, dtype=complex)
        return none, none, 0j
    w = transfers.to_machines(point.nodes) @ point.weights
    z_th = complex(point.weights @ transfers.between(point.nodes) @ point.weights) + point.z_series
    return w, point.weights @ reduction.T[point.nodes], z_th


def _severity_law(point: FaultPoint | None, z_th: complex) -> tuple[complex, complex]:
    """Gain and bend of c(alpha)."""
    if point is None:
        return 0j, 0j
    if point.y is not None:
        return admittance_law(point.y, z_th)
    assert point.z_f is not None
    return impedance_law(point.z_f, z_th)


def _post_factors(change: _Change, reduction: Reduction, transfers: BusTransfers) -> tuple[Complex, Complex, Complex]:
    """W, M, U of Y_post = Y_pre + W M U^T when branches are removed, theory.md eq. (11)."""
    branches, nodes = reduction.network.branches, change.removal_nodes
    step = np.zeros((len(nodes), len(nodes)), dtype=complex)  # Y_bus after minus before, at these buses
    for k in change.removed:
        i, j = np.searchsorted(nodes, [branches.start[k], branches.end[k]])
        stamp = [branches.y_ff[k], branches.y_ft[k], branches.y_tf[k], branches.y_tt[k]]
        np.subtract.at(step, ([i, i, j, j], [i, j, i, j]), stamp)
    core = np.linalg.solve(np.eye(len(nodes)) + step @ transfers.between(nodes), step)
    return transfers.to_machines(nodes), np.asarray(core, dtype=np.complex128), reduction.T[nodes].T


def _without_machines(
    factors: tuple[Complex, Complex, Complex], reduction: Reduction, tripped: tuple[int, ...]
) -> tuple[Complex, Complex, Complex]:
    """W, M, U of the network that some machines have left as well, theory.md eq. (41)."""
    if not tripped:
        return factors
    W, M, U = factors
    gone = list(tripped)
    columns = reduction.Y_pre[:, gone] + W @ M @ U[gone].T
    rows = reduction.Y_pre[gone] + W[gone] @ M @ U.T
    core = np.zeros((len(M) + len(gone),) * 2, dtype=complex)
    core[: len(M), : len(M)] = M
    core[len(M) :, len(M) :] = -np.linalg.inv(columns[gone])
    return np.hstack([W, columns]), core, np.hstack([U, rows.T])

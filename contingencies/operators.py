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
from typing import TYPE_CHECKING, Any

import numpy as np

from contingencies.errors import Problems
from contingencies.library import Contingency
from contingencies.network import Complex, Float, Int, Network, solve_network
from contingencies.network_changes import FaultPoint, NetworkChange
from contingencies.points import OWN_POINT, Point
from contingencies.reduction import BusTransfers, Reduction, reduce_network
from contingencies.severity import admittance_law, fault_coefficient, impedance_law
from contingencies.spec import Window

if TYPE_CHECKING:
    from contingencies.operator_family import OperatorFamily


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
    point: Point = OWN_POINT  # the operating point, where the contingency has conditions
    family: "OperatorFamily | None" = None  # the same over the conditions, where a surrogate is to learn them
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


def compile_contingency(contingency: Contingency, point: Point | None = None) -> PhaseOperators:
    """Operators of the three phases; raises SpecError when the contingency does not fit its network.

    Parameters
    ----------
    contingency : Contingency
    point : Point, optional
        Operating point, see `contingencies.point_networks.point_of`; default: the case's own.
    """
    if point is None or not point.names:
        return compile_spec(contingency, reduce_network(solve_network(contingency.system)))
    from contingencies.point_networks import at_position, point_networks

    values = np.array(point.values)
    reduction = Reduction.of(point_networks(contingency).at(values))
    return replace(compile_spec(at_position(contingency, values), reduction), point=point)


def compile_spec(contingency: Contingency, reduction: Reduction) -> PhaseOperators:
    """Operators of a contingency on an already factorised network."""
    return compile_family([contingency], reduction)[0]


def compile_members(contingencies: Sequence[Contingency]) -> list[PhaseOperators]:
    """Operators of contingencies of one system for a surrogate, with their families where they have conditions."""
    if all(contingency.spec.conditions is None for contingency in contingencies):
        return compile_family(contingencies, reduce_network(solve_network(contingencies[0].system)))
    from contingencies.operator_family import operator_families

    return [replace(family.base, family=family) for family in operator_families(tuple(contingencies))]


def compile_family(contingencies: Sequence[Contingency], reduction: Reduction) -> list[PhaseOperators]:
    """Operators of contingencies of one system, sharing one solve per touched bus, in the given order.

    Every contingency is looked at before the mistakes of all of them are raised together.
    """
    network = reduction.network
    problems, changes = Problems(), list[NetworkChange]()
    for contingency in contingencies:
        with problems.gather():
            changes.append(NetworkChange.of(contingency, reduction))
    problems.raise_any()
    transfers = reduction.transfers(nodes for change in changes for nodes in change.touched)
    machine_buses = tuple(network.bus_numbers[network.machine_bus].tolist())
    operators = []
    for contingency, change in zip(contingencies, changes, strict=True):
        spec = contingency.spec
        w, u, z_th = _fault_factors(change.point, reduction, transfers)
        gain, bend = severity_law(change.point, z_th)
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


def severity_law(point: FaultPoint | None, z_th: Any) -> tuple[Any, Any]:
    """Gain and bend of c(alpha) where the network has the Thevenin impedance z_th, pu; numbers or tensors."""
    if point is None:
        return 0j, 0j
    if point.y is not None:
        return admittance_law(point.y, z_th)
    assert point.z_f is not None
    return impedance_law(point.z_f, z_th)


def _post_factors(
    change: NetworkChange, reduction: Reduction, transfers: BusTransfers
) -> tuple[Complex, Complex, Complex]:
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
    """W, M, U of the network that some machines have left as well, theory.md eq. (66)."""
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

"""The compiler: a contingency becomes the operators of its three phases, closed form in alpha.

Faults and clearing actions change the network by a matrix of rank one or two, so by the Woodbury
identity one sparse factorisation per network serves every contingency (theory.md eqs. (9)-(11)):

    Y_fault(alpha) = Y_pre + c(alpha) w u^T,   c(alpha) = alpha y / (1 + alpha y z_th)
    Y_post         = Y_pre + W M U^T

with z_th the Thevenin impedance at the fault point, u and w the transfer to and from the machines
(equal unless the network has phase shifters). The low-rank factors are what is stored; matrices
are formed on request, so that families on networks with thousands of buses stay small.
"""

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from scipy.sparse.linalg import splu

from contingencies.admittance import bus_admittance, islands, machine_admittance, with_machine_reactances
from contingencies.errors import SpecError
from contingencies.library import Contingency
from contingencies.network import Complex, Float, Int, Network, solve_network
from contingencies.spec import (
    BusFault,
    LineFault,
    MechanicalFault,
    RemoveLine,
    SetMechanical,
    TripFeeders,
    Window,
)
from contingencies.swing import electrical_power


@dataclass(frozen=True, eq=False)
class FaultPoint:
    """Where the fault shunt sits: a point whose open-circuit voltage is weights @ V[nodes]."""

    nodes: Int  # (1,) a bus, or (2,) the ends of a line
    weights: Complex
    z_series: complex  # pu, impedance of the line segments seen from the virtual node; 0 at a bus
    y: complex  # pu, shunt at severity 1


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
    fault_y: complex  # pu; 0 for a mechanical fault
    fault_z_th: complex  # pu
    post_from: Complex  # W (n, m); m = 0 when the topology is restored
    post_core: Complex  # M (m, m)
    post_to: Complex  # U (n, m)
    fault_point: FaultPoint | None  # for the full-network simulator
    removed_branches: tuple[int, ...]
    network: Network
    machine_buses: tuple[int, ...]  # printed numbers

    @property
    def n_machines(self) -> int:
        return len(self.E)

    def Y_fault(self, alpha: float | Float) -> Complex:
        """Fault-on reduced admittance, (..., n, n) for alpha (...)."""
        c = np.asarray(fault_coefficient(np.asarray(alpha, dtype=float), self.fault_y, self.fault_z_th))
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
        return post


def fault_coefficient(alpha: Any, y: complex, z_th: complex) -> Any:
    """c(alpha) of the rank-one fault, exactly 0 at alpha = 0, theory.md eq. (9); arrays or tensors."""
    return alpha * y / (1.0 + alpha * (y * z_th))


@dataclass(frozen=True, eq=False)
class Reduction:
    """One network factorised once: everything that its contingencies share."""

    network: Network
    solver: Any  # sparse LU of Y_bb
    y_g: Complex  # (n_g,)
    T: Complex  # (n_b, n_g) bus voltages per internal voltage
    Y_pre: Complex  # (n_g, n_g)
    P_m: Float  # (n_g,) electrical power at the operating point

    @staticmethod
    def of(network: Network) -> "Reduction":
        """Factorise Y_bb and reduce the pre-fault network."""
        y_g = machine_admittance(network)
        solver = splu(with_machine_reactances(bus_admittance(network), network))
        sources = np.zeros((network.n_buses, network.n_machines), dtype=complex)
        sources[network.machine_bus, np.arange(network.n_machines)] = y_g
        T = solver.solve(sources)
        Y_pre = np.diag(y_g) - y_g[:, None] * T[network.machine_bus]
        P_m = electrical_power(network.delta_0, network.E, Y_pre.real, Y_pre.imag)
        return Reduction(network, solver, y_g, T, Y_pre, P_m)

    def transfer(self, columns: Complex) -> tuple[Complex, Complex]:
        """Z @ columns (n_b, m) and its rows as seen by the machines, y_g Z[g] @ columns (n_g, m)."""
        Z = self.solver.solve(np.ascontiguousarray(columns))
        return Z, self.y_g[:, None] * Z[self.network.machine_bus]


@lru_cache(maxsize=16)
def _reduction(network: Network) -> Reduction:
    return Reduction.of(network)


def reduce_network(network: Network) -> Reduction:
    """The factorisation of a network, made once per process."""
    return _reduction(network)


def compile_contingency(contingency: Contingency) -> PhaseOperators:
    """Operators of the three phases; raises SpecError when the contingency does not fit its network."""
    return compile_spec(contingency, reduce_network(solve_network(contingency.system)))


def compile_spec(contingency: Contingency, reduction: Reduction) -> PhaseOperators:
    """Operators of a contingency on an already factorised network."""
    spec, network = contingency.spec, reduction.network
    n = network.n_machines
    P_m_slope = np.zeros(n)
    P_m_post = reduction.P_m.copy()
    fault = spec.fault
    if isinstance(fault, MechanicalFault):
        machine = network.machine(fault.generator, f"{spec.name}: fault.generator")
        P_m_slope[machine] = fault.coefficient * reduction.P_m[machine]
    if isinstance(spec.clearing, SetMechanical):
        generator = spec.clearing.generator
        if generator is None:
            assert isinstance(fault, MechanicalFault)
            generator = fault.generator
        machine = network.machine(generator, f"{spec.name}: clearing.generator")
        P_m_post[machine] = spec.clearing.factor * reduction.P_m[machine]

    point = _fault_point(contingency, network)
    removed = _removed_branches(contingency, network)
    w, u, y, z_th = _fault_factors(point, reduction)
    W, M, U = _post_factors(removed, reduction)
    return PhaseOperators(
        name=spec.name, window=spec.window, severity=spec.severity,
        max_separation=spec.stability.max_separation_rad, omega_b=network.omega_b,
        E=network.E, H=network.H, D=network.D, delta_0=network.delta_0,
        Y_pre=reduction.Y_pre, P_m_pre=reduction.P_m, P_m_slope=P_m_slope, P_m_post=P_m_post,
        fault_from=w, fault_to=u, fault_y=y, fault_z_th=z_th,
        post_from=W, post_core=M, post_to=U, fault_point=point, removed_branches=removed, network=network,
        machine_buses=tuple(network.bus_numbers[network.machine_bus].tolist()),
    )  # fmt: skip


def _fault_point(contingency: Contingency, network: Network) -> FaultPoint | None:
    fault, name = contingency.spec.fault, contingency.name
    if isinstance(fault, BusFault):
        node = network.bus(fault.bus, f"{name}: fault.bus")
        return FaultPoint(np.array([node]), np.ones(1, dtype=complex), 0j, fault.shunt_pu.admittance)
    if isinstance(fault, LineFault):
        line = network.line(fault.line, fault.circuit, f"{name}: fault.line")
        i, j = (network.bus(number, f"{name}: fault.line") for number in fault.line)
        y_line, far = complex(network.branches.y_series[line]), fault.position
        weights = np.array([1.0 - far, far], dtype=complex)
        return FaultPoint(np.array([i, j]), weights, far * (1.0 - far) / y_line, y_line)
    return None


def _removed_branches(contingency: Contingency, network: Network) -> tuple[int, ...]:
    spec = contingency.spec
    if isinstance(spec.clearing, RemoveLine):
        field = f"{spec.name}: clearing.line"
        if spec.clearing.line is not None:
            removed: tuple[int, ...] = (network.line(spec.clearing.line, spec.clearing.circuit, field),)
        else:
            assert isinstance(spec.fault, LineFault)
            removed = (network.line(spec.fault.line, spec.fault.circuit, field),)
    elif isinstance(spec.clearing, TripFeeders):
        assert isinstance(spec.fault, BusFault)
        bus = network.bus(spec.fault.bus, f"{spec.name}: fault.bus")
        branches = network.branches
        removed = tuple(np.flatnonzero(branches.is_line & ((branches.start == bus) | (branches.end == bus))).tolist())
        if not removed:
            raise SpecError(f"{spec.name}: clearing.action: bus {spec.fault.bus} has no feeder that can be tripped; use restore.")
    else:
        return ()
    problem = removal_problem(network, removed)
    if problem:
        raise SpecError(f"{spec.name}: clearing.action: {spec.clearing.action} {problem}; clear another way.")
    return removed


def removal_problem(network: Network, removed: tuple[int, ...]) -> str | None:
    """Why opening these branches leaves no solvable network, or None when it does not."""
    labels = islands(network, removed)
    if labels.max() == 0:
        return None
    main = np.bincount(labels[network.machine_bus]).argmax()
    for label in range(labels.max() + 1):
        members = np.flatnonzero(labels == label)
        numbers = network.bus_numbers[members]
        if label != main and np.isin(network.machine_bus, members).any():
            stranded = network.bus_numbers[np.intersect1d(network.machine_bus, members)]
            return f"islands the generator at bus {', '.join(map(str, stranded.tolist()))}"
        if not np.isin(network.machine_bus, members).any() and not np.any(network.y_load[members] + network.y_shunt[members]):
            return f"leaves bus {', '.join(map(str, numbers[:5].tolist()))} floating with no path to ground"
    return None


def _fault_factors(point: FaultPoint | None, reduction: Reduction) -> tuple[Complex, Complex, complex, complex]:
    if point is None:
        none = np.zeros(reduction.network.n_machines, dtype=complex)
        return none, none, 0j, 0j
    source = np.zeros((reduction.network.n_buses, 1), dtype=complex)
    source[point.nodes, 0] = point.weights
    Z, w = reduction.transfer(source)
    z_th = complex(point.weights @ Z[point.nodes, 0]) + point.z_series
    return w[:, 0], point.weights @ reduction.T[point.nodes], point.y, z_th


def _post_factors(removed: tuple[int, ...], reduction: Reduction) -> tuple[Complex, Complex, Complex]:
    """W, M, U of Y_post = Y_pre + W M U^T when branches are removed, theory.md eq. (11)."""
    n = reduction.network.n_machines
    if not removed:
        return np.zeros((n, 0), dtype=complex), np.zeros((0, 0), dtype=complex), np.zeros((n, 0), dtype=complex)
    branches = reduction.network.branches
    rows = list(removed)
    nodes = np.unique(np.concatenate([branches.start[rows], branches.end[rows]]))
    place = {int(node): k for k, node in enumerate(nodes)}
    change = np.zeros((len(nodes), len(nodes)), dtype=complex)  # Y_bus after minus before
    for k in rows:
        i, j = place[int(branches.start[k])], place[int(branches.end[k])]
        change[[i, i, j, j], [i, j, i, j]] -= [branches.y_ff[k], branches.y_ft[k], branches.y_tf[k], branches.y_tt[k]]
    selector = np.zeros((reduction.network.n_buses, len(nodes)), dtype=complex)
    selector[nodes, np.arange(len(nodes))] = 1.0
    Z, W = reduction.transfer(selector)
    core = np.linalg.solve(np.eye(len(nodes)) + change @ Z[nodes], change)
    return W, core, reduction.T[nodes].T


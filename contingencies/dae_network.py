"""The full network of one phase, as the DAE simulator needs it: current balance, loads, Jacobian.

Nothing is reduced here: the unknowns are the rotor angles and the complex voltage of every bus, and
of the virtual node while a line is faulted. The balance at each bus reads

    Y_bus V + (voltage-dependent part of the loads) = (E exp(j delta) - V) / (j x'd)   at machine buses, else 0

theory.md eqs. (5)-(8). The trapezoid's unknowns are ordered [delta (n), Re V (N), Im V (N)].
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import splu

from contingencies.admittance import (
    bordered_by_fault_current,
    bus_admittance,
    faulted_bus_admittance,
    machine_admittance,
)
from contingencies.errors import SolverError, UsageError
from contingencies.network import Complex, Float, Int
from contingencies.operators import PhaseOperators


@dataclass(frozen=True)
class ZipLoads:
    """How the power of every load depends on its voltage: constant impedance, current, power.

    With v = |V| / |V pre-fault|, a load draws S_0 (z v^2 + i v + p). Below v = `v_min` the current
    and power parts go over, continuously, to constant impedance: the usual remedy in practice
    (0.7 is a common default), without which a network near a fault has no solution at all.
    """

    z: float = 1.0
    i: float = 0.0
    p: float = 0.0
    v_min: float = 0.7  # relative to the pre-fault voltage, so that the operating point is never affected

    def __post_init__(self) -> None:
        fractions = (self.z, self.i, self.p)
        if not all(math.isfinite(f) and f >= 0 for f in fractions) or abs(sum(fractions) - 1.0) > 1e-9:
            raise UsageError(f"ZIP fractions {fractions} are not shares of one load; give z, i, p >= 0 with sum 1.")
        if not 0 < self.v_min < 1:
            raise UsageError(f"ZIP threshold v_min = {self.v_min} is not between 0 and 1 of the pre-fault voltage.")


CONSTANT_IMPEDANCE = ZipLoads()


class PhaseArrays(NamedTuple):
    """The equations of one phase as plain arrays, for compiled code; N nodes, n machines."""

    row_start: Any  # (N + 1,) Y_bus by rows
    column: Any
    Y: Any
    y_load: Any  # (N,) pu, at the pre-fault voltage
    v_load: Any  # (N,) pu, pre-fault voltage magnitude
    i: float
    p: float
    v_min: float
    machine_bus: Any  # (n,)
    y_g: Any  # (n,) pu
    E: Any
    H: Any
    D: Any
    P_m: Any
    omega_b: float
    counted: Any  # (q,) machines whose angles count in the separation


@dataclass(frozen=True, eq=False)
class PhaseNetwork:
    """One phase: its bus matrix with constant-admittance loads, its machines, its loads."""

    name: str  # for messages: contingency, severity and phase
    Y_bus: sp.csc_matrix  # (N, N), the virtual fault node last if there is one
    arrays: PhaseArrays

    @property
    def n_nodes(self) -> int:
        return int(self.Y_bus.shape[0])

    @cached_property
    def _linear(self) -> Any:
        """Sparse LU of Y_bus with the machine reactances: the network while loads are impedances."""
        p = self.arrays
        shunt = np.zeros(self.n_nodes, dtype=complex)
        np.add.at(shunt, p.machine_bus, p.y_g)
        return factorised(self.Y_bus + sp.diags(shunt), self.name)

    def impedance_voltages(self, delta: Float) -> Complex:
        """Node voltages (N,) at rotor angles (n,) if all loads were constant impedances."""
        p = self.arrays
        current = np.zeros(self.n_nodes, dtype=complex)
        np.add.at(current, p.machine_bus, p.y_g * p.E * np.exp(1j * delta))
        V: Complex = self._linear.solve(current)
        return V

    @cached_property
    def _constant_entries(self) -> tuple[Int, Int, Float]:
        """Rows, columns, values of the Jacobian that never change: the network with its machine reactances."""
        p, n, N = self.arrays, len(self.arrays.E), self.n_nodes
        Y = self.Y_bus.tocoo()
        rows, columns = np.concatenate([Y.row, p.machine_bus]), np.concatenate([Y.col, p.machine_bus])
        values = np.concatenate([Y.data, p.y_g])
        re, im = n, n + N
        return (
            np.concatenate([rows + re, rows + re, rows + im, rows + im]),
            np.concatenate([columns + re, columns + im, columns + re, columns + im]),
            np.concatenate([values.real, -values.imag, values.imag, values.real]),
        )

    def jacobian(self, delta: Float, V: Complex, step: float) -> sp.csc_matrix:
        """Derivative of the trapezoid's residual, (n + 2N, n + 2N); a step of 0 gives the network alone."""
        p, n, N = self.arrays, len(self.arrays.E), self.n_nodes
        re, im = n, n + N
        machine, node, bus = np.arange(n), np.arange(N), p.machine_bus
        source = p.E * np.exp(1j * delta)
        # F_delta = delta - ... + weight * P_e: what is left of the speed once it is eliminated.
        weight = 0.25 * step**2 * p.omega_b / (2.0 * p.H + 0.5 * step * p.D)
        back = source * np.conj(p.y_g)
        dP_delta = -(1j * back * np.conj(V[bus])).real
        dI_delta = -1j * p.y_g * source
        # Loads draw y_load (1 + g(v)) V, with g frozen below the threshold.
        magnitude = np.maximum(np.abs(V), 1e-300)
        v = np.maximum(magnitude / p.v_load, p.v_min)
        y_extra = p.y_load * (p.i * (1.0 / v - 1.0) + p.p * (1.0 / v**2 - 1.0))
        slope = np.where(magnitude > p.v_min * p.v_load, -(p.i / v + 2.0 * p.p / v**2) / magnitude, 0.0)
        radial = p.y_load * slope * V
        d_re, d_im = y_extra + radial * V.real / magnitude, 1j * y_extra + radial * V.imag / magnitude
        fixed_rows, fixed_columns, fixed_values = self._constant_entries
        rows = [machine, machine, machine, re + bus, im + bus, re + node, re + node, im + node, im + node]
        columns = [machine, re + bus, im + bus, machine, machine, re + node, im + node, re + node, im + node]
        values = [
            1.0 + weight * dP_delta, -weight * back.real, -weight * back.imag, dI_delta.real, dI_delta.imag,
            d_re.real, d_im.real, d_re.imag, d_im.imag,
        ]  # fmt: skip
        return sp.csc_matrix(
            (np.concatenate([fixed_values, *values]),
             (np.concatenate([fixed_rows, *rows]), np.concatenate([fixed_columns, *columns]))),
            shape=(n + 2 * N, n + 2 * N),
        )  # fmt: skip


def factorised(matrix: sp.spmatrix, name: str) -> Any:
    """Sparse LU; a singular matrix is a solver failure."""
    try:
        return splu(sp.csc_matrix(matrix))
    except RuntimeError as error:
        raise SolverError(
            f"{name}: the network equations are singular ({error}); check for a part of the network without a source."
        ) from None


def pre_fault_network(operators: PhaseOperators, loads: ZipLoads) -> PhaseNetwork:
    """The network before the fault."""
    return _phase(operators, "before the fault", bus_admittance(operators.network), operators.P_m_pre, loads)


def fault_network(operators: PhaseOperators, alpha: float, loads: ZipLoads) -> PhaseNetwork:
    """The network while the fault of severity alpha is on.

    A shunt on a line has a virtual node; a fault through an impedance has its current as the last unknown instead,
    because no admittance stands for a bolted fault.
    """
    network, point = operators.network, operators.fault_point
    if point is None:
        Y_bus = bus_admittance(network)
    elif point.y is not None:
        Y_bus = faulted_bus_admittance(network, point.nodes, point.weights, alpha * point.y, point.z_series)
    else:
        assert point.z_f is not None
        z_path = (operators.fault_z_th + point.z_f) + alpha * (point.z_series - operators.fault_z_th)
        Y_bus = bordered_by_fault_current(network, point.nodes, point.weights, alpha, z_path)
    return _phase(operators, f"fault of severity {alpha:g}", Y_bus, operators.P_m_fault(alpha), loads)


def post_network(operators: PhaseOperators, loads: ZipLoads) -> PhaseNetwork:
    """The network after clearing."""
    Y_bus = bus_admittance(operators.network, operators.removed_branches)
    return _phase(operators, "after clearing", Y_bus, operators.P_m_post, loads, operators.tripped_machines)


def _phase(
    operators: PhaseOperators, phase: str, Y_bus: sp.csc_matrix, P_m: Float, loads: ZipLoads,
    tripped: tuple[int, ...] = (),
) -> PhaseNetwork:  # fmt: skip
    """One phase; a tripped machine has no admittance to the network, and so neither current nor power."""
    network = operators.network
    y_g = machine_admittance(network)
    y_g[list(tripped)] = 0.0
    by_rows = sp.csr_matrix(Y_bus)
    by_rows.sum_duplicates()
    virtual = by_rows.shape[0] - network.n_buses  # the fault node carries no load
    arrays = PhaseArrays(
        row_start=by_rows.indptr.astype(np.int64), column=by_rows.indices.astype(np.int64), Y=by_rows.data.copy(),
        y_load=np.append(network.y_load, np.zeros(virtual, dtype=complex)),
        v_load=np.append(np.abs(network.V), np.ones(virtual)),
        i=float(loads.i), p=float(loads.p), v_min=float(loads.v_min),
        machine_bus=np.array(network.machine_bus, dtype=np.int64), y_g=y_g,
        E=operators.E.copy(), H=operators.H.copy(), D=operators.D.copy(), P_m=np.array(P_m, dtype=float),
        omega_b=float(operators.omega_b),
        counted=np.delete(np.arange(network.n_machines), list(tripped)),
    )  # fmt: skip
    return PhaseNetwork(f"{operators.name}, {phase}", Y_bus, arrays)

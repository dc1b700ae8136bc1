"""Newton's method for the power-flow equations in polar form, theory.md eq. (41), with its sparsity worked out once.

The pattern of the Jacobian depends on the bus matrix and on which buses hold their voltage, not on the operating
point. `Equations` keeps where each entry goes and the column order that the first factorisation chose, so that
an iteration costs a few passes over the nonzeros and one factorisation. Nothing here knows of units or limits.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import splu

from contingencies.formats.tables import Complex, Float, Int

MAX_ITERATIONS = 30  # a start that converges does so in 3 to 8; damped ones take some more
HALVINGS = 5  # of a step that makes the mismatch larger; a start that needs more leads nowhere
ROUND_OFF = 64 * np.finfo(float).eps  # mismatch per admittance: no iteration comes below


@dataclass(frozen=True, eq=False)
class Point:
    """Where an iteration ended."""

    V: Complex  # (n,) pu
    mismatch: Complex  # (n,) pu; 0 where the bus has no equation
    iterations: int
    converged: bool
    imbalance: float  # pu, taken up by the shares of a distributed slack; 0 without


class Equations:
    """The power-flow equations of one bus matrix with given PV and PQ buses.

    Parameters
    ----------
    Y : csr_matrix (n, n)
        Bus matrix, pu, with every diagonal entry stored and sorted columns.
    pv, pq : Int
        Positions of the buses that hold |V|, and of those that do not. All others hold V.
    shares : Float (n,), optional
        How the buses share the imbalance of active power; they sum to 1. With them, the buses of `slack` get an
        equation of their own.
    slack : Int
        Positions of the buses that hold V; used with `shares` only, when it is one bus.
    """

    def __init__(self, Y: sp.csr_matrix, pv: Int, pq: Int, slack: Int, shares: Float | None = None) -> None:
        n = Y.shape[0]
        self.Y_data, self.columns, self.row_start = Y.data, Y.indices, Y.indptr[:-1]
        self.rows = np.repeat(np.arange(n), np.diff(Y.indptr))
        self.diagonal = np.flatnonzero(self.rows == self.columns)
        self.floor = float(ROUND_OFF * np.abs(self.Y_data[self.diagonal]).max())
        self.angles = np.sort(np.concatenate([pv, pq]))  # buses whose angle is unknown
        self.magnitudes = np.sort(pq)
        self.shares = shares
        self.P_rows = self.angles if shares is None else np.sort(np.concatenate([self.angles, slack]))
        self._build_pattern(n)

    def _build_pattern(self, n: int) -> None:
        """Where each entry of the four blocks goes: `source` indexes them laid end to end, in column order."""
        unknowns = len(self.angles) + len(self.magnitudes)
        P_row, Q_row = _index(n, self.P_rows, 0), _index(n, self.magnitudes, len(self.P_rows))
        angle, magnitude = _index(n, self.angles, 0), _index(n, self.magnitudes, len(self.angles))
        row, column, source = [], [], []
        for block, (to_row, to_column) in enumerate(
            [(P_row, angle), (P_row, magnitude), (Q_row, angle), (Q_row, magnitude)]
        ):
            i, j = to_row[self.rows], to_column[self.columns]
            present = np.flatnonzero((i >= 0) & (j >= 0))
            row.append(i[present])
            column.append(j[present])
            source.append(present + block * len(self.rows))
        if self.shares is not None:  # the imbalance is one more unknown
            sharing = np.flatnonzero(self.shares)
            row.append(P_row[sharing])
            column.append(np.full(len(sharing), unknowns))
            source.append(sharing + 4 * len(self.rows))
            unknowns += 1
        self.size = unknowns
        self.entry_row, self.entry_column = np.concatenate(row), np.concatenate(column)
        self.entry_source = np.concatenate(source)
        self.column_order: Int | None = None
        self._sort_entries(np.arange(unknowns))

    def _sort_entries(self, place: Int) -> None:
        """Lay the entries out by columns, column c at `place[c]`."""
        column = place[self.entry_column]
        order = np.lexsort((self.entry_row, column))
        self.source = self.entry_source[order]
        self.indices = self.entry_row[order].astype(np.intc)
        self.indptr = np.searchsorted(column[order], np.arange(self.size + 1)).astype(np.intc)

    def _step(self, blocks: Float, right_side: Float) -> Float:
        """Solve J step = right_side, J from its blocks laid end to end."""
        J = sp.csc_matrix((blocks[self.source], self.indices, self.indptr), shape=(self.size, self.size))
        if self.column_order is not None:
            step = np.empty(self.size)
            step[self.column_order] = _factorise(J, "NATURAL").solve(right_side)
            return step
        factors = _factorise(J, "COLAMD")
        self.column_order = np.argsort(factors.perm_c)  # of use to every later factorisation
        self._sort_entries(factors.perm_c.astype(np.int64))
        solved: Float = factors.solve(right_side)
        return solved

    def solve(self, V: Complex, S: Complex, load: "VoltageLoad", tolerance: float) -> Point:
        """Iterate from V until every mismatch is below `tolerance` (pu) or round-off.

        Parameters
        ----------
        V : Complex (n,)
            Start, pu, with the magnitudes of PV and the voltages of slack buses set.
        S : Complex (n,)
            Power injected by units less constant-power loads, pu.
        load : VoltageLoad
            The part of the loads that depends on the voltage.
        tolerance : float
            Largest mismatch of P or Q, pu.
        """
        v, theta, imbalance = np.abs(V), np.angle(V), 0.0
        tolerance = max(tolerance, self.floor)
        flows, injected, F, worst = self._mismatch(V, v, S, load, imbalance)
        for iteration in range(MAX_ITERATIONS + 1):
            if worst <= tolerance or iteration == MAX_ITERATIONS or not np.isfinite(worst):
                break
            try:
                step = -self._step(self._blocks(flows, injected, v, load), F)
            except RuntimeError:  # singular: this start leads nowhere
                break
            for halving in range(HALVINGS + 1):
                part = step * 0.5**halving
                theta_next, v_next = theta.copy(), v.copy()
                theta_next[self.angles] += part[: len(self.angles)]
                v_next[self.magnitudes] += part[len(self.angles) : len(self.angles) + len(self.magnitudes)]
                imbalance_next = imbalance + (part[-1] if self.shares is not None else 0.0)
                V_next = v_next * np.exp(1j * theta_next)
                state = self._mismatch(V_next, v_next, S, load, imbalance_next)
                if state[3] < worst or state[3] <= tolerance:
                    break
            V, v, theta, imbalance = V_next, v_next, theta_next, float(imbalance_next)
            flows, injected, F, worst = state
        mismatch = np.zeros(len(V), dtype=complex)
        mismatch[self.P_rows] += F[: len(self.P_rows)]
        mismatch[self.magnitudes] += 1j * F[len(self.P_rows) :]
        return Point(V, mismatch, iteration, bool(worst <= tolerance), imbalance)

    def _mismatch(
        self, V: Complex, v: Float, S: Complex, load: "VoltageLoad", imbalance: float
    ) -> tuple[Complex, Complex, Float, float]:
        flows = V[self.rows] * np.conj(self.Y_data * V[self.columns])  # (nnz,) V_i conj(Y_ij V_j)
        injected = np.add.reduceat(flows, self.row_start)
        excess = injected - S + load.power(v)
        if self.shares is not None:
            excess = excess - imbalance * self.shares
        F = np.concatenate([excess.real[self.P_rows], excess.imag[self.magnitudes]])
        return flows, injected, F, float(np.abs(F).max(initial=0.0))

    def _blocks(self, flows: Complex, injected: Complex, v: Float, load: "VoltageLoad") -> Float:
        by_angle = -1j * flows
        by_angle[self.diagonal] += 1j * injected
        by_magnitude = flows / v[self.columns]
        by_magnitude[self.diagonal] += injected / v + load.slope(v)
        blocks = [by_angle.real, by_magnitude.real, by_angle.imag, by_magnitude.imag]
        return np.concatenate(blocks if self.shares is None else [*blocks, -self.shares])


@dataclass(frozen=True, eq=False)
class VoltageLoad:
    """Constant-current and constant-impedance parts of the loads: S = current v + impedance v^2, pu."""

    current: Complex  # (n,)
    impedance: Complex  # (n,)

    def power(self, v: Float) -> Complex:
        drawn: Complex = (self.current + self.impedance * v) * v
        return drawn

    def slope(self, v: Float) -> Complex:
        """Its derivative by v."""
        slope: Complex = self.current + 2 * self.impedance * v
        return slope


def _index(n: int, buses: Int, first: int) -> Int:
    """Number `buses` from `first` on; -1 for all others."""
    numbered = np.full(n, -1, dtype=np.int64)
    numbered[buses] = np.arange(first, first + len(buses))
    return numbered


def _factorise(J: sp.csc_matrix, ordering: str) -> Any:
    return splu(J, permc_spec=ordering, diag_pivot_thresh=0.1, options={"SymmetricMode": False})

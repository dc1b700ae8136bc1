"""Newton's method for the power-flow equations in polar form, theory.md eq. (41), with its sparsity worked out once.

The pattern of the Jacobian depends on the bus matrix and on which buses hold their voltage, not on the operating
point. `Equations` keeps where each entry goes in an order that leaves the factors sparse, so that an iteration
costs a few passes over the nonzeros and one factorisation, whose factors serve a second step. Nothing here knows of
units or limits.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import splu

from contingencies.formats.tables import Complex, Float, Int

MAX_ITERATIONS = 30  # a start that converges does so in 3 to 8; damped ones take some more
HALVINGS = 5  # of a step that makes the mismatch larger; a start that needs more leads nowhere
WORTH_REPEATING = 0.3  # a step that leaves less of the mismatch is followed by one with the same factors
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
        How the buses share the imbalance of active power, theory.md eq. (42); they sum to 1. With them, the bus
        `slack` gets an equation of its own.
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
        self.shares, self.extra = shares, slack if shares is not None else slack[:0]
        self._build_pattern(n)

    def _build_pattern(self, n: int) -> None:
        """Where each entry of the four blocks goes: `source` indexes them laid end to end, in column order.

        Rows are P at `angles`, Q at `magnitudes`, P at the slack bus; columns the angles, the magnitudes and the
        imbalance, so that the diagonal is a good pivot nearly everywhere.
        """
        n_angles, self.size = len(self.angles), len(self.angles) + len(self.magnitudes) + len(self.extra)
        angle, magnitude = _index(n, self.angles, 0), _index(n, self.magnitudes, n_angles)
        P_row = np.maximum(angle, _index(n, self.extra, self.size - 1))
        row, column, source = [], [], []
        for block, (to_row, to_column) in enumerate(
            [(P_row, angle), (P_row, magnitude), (magnitude, angle), (magnitude, magnitude)]
        ):
            i, j = to_row[self.rows], to_column[self.columns]
            present = np.flatnonzero((i >= 0) & (j >= 0))
            row.append(i[present])
            column.append(j[present])
            source.append(present + block * len(self.rows))
        if self.shares is not None:
            sharing = np.flatnonzero(self.shares)
            row.append(P_row[sharing])
            column.append(np.full(len(sharing), self.size - 1))
            source.append(sharing + 4 * len(self.rows))
        self.place = self._elimination_order(n)
        self._lay_out(np.concatenate(row), np.concatenate(column), np.concatenate(source))

    def _elimination_order(self, n: int) -> Int:
        """Place of each unknown: buses by minimum degree, angle and magnitude of a bus side by side.

        The graph of the buses has half the nodes of that of the Jacobian, and orders it as well.
        """
        weights = np.where(self.rows == self.columns, 2.0 * n, -1.0)
        graph = sp.csc_matrix((weights, self.columns, np.append(self.row_start, len(self.rows))), shape=(n, n))
        bus_place = _factors(graph, "MMD_AT_PLUS_A").perm_c
        at = np.concatenate([bus_place[self.angles], bus_place[self.magnitudes], np.full(len(self.extra), n)])
        place = np.empty(self.size, dtype=np.int64)
        place[np.argsort(at, kind="stable")] = np.arange(self.size)
        return place

    def _lay_out(self, row: Int, column: Int, source: Int) -> None:
        """Make the matrix with row and column k at `place[k]`."""
        row, column = self.place[row], self.place[column]
        order = np.argsort(column * self.size + row)
        self.source = source[order]
        indptr = np.searchsorted(column[order], np.arange(self.size + 1))
        entries = (np.zeros(len(order)), row[order].astype(np.intc), indptr.astype(np.intc))
        self.J = sp.csc_matrix(entries, shape=(self.size, self.size))
        self.J.has_canonical_format = True

    def _solver(self, blocks: Float) -> Callable[[Float], Float]:
        """What solves J step = right side, J from its blocks laid end to end."""
        self.J.data = blocks[self.source]
        factors = _factors(self.J, "NATURAL")

        def solve(right_side: Float) -> Float:
            ordered = np.empty(self.size)
            ordered[self.place] = right_side
            step: Float = factors.solve(ordered)[self.place]
            return step

        return solve

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
        state = self._state(np.angle(V), np.abs(V), 0.0, S, load)
        tolerance = max(tolerance, self.floor)
        for iteration in range(MAX_ITERATIONS + 1):
            if state.worst <= tolerance or iteration == MAX_ITERATIONS or not np.isfinite(state.worst):
                break
            try:
                solve = self._solver(self._blocks(state, load))
            except RuntimeError:  # singular: this start leads nowhere
                break
            before, state = state.worst, self._moved(state, -solve(state.F), S, load, tolerance)
            if tolerance < state.worst < WORTH_REPEATING * before:
                again = self._moved(state, -solve(state.F), S, load, tolerance, halvings=0)
                state = again if again.worst < state.worst else state
        return self._point(state, iteration, state.worst <= tolerance)

    def _moved(
        self, state: "_State", step: Float, S: Complex, load: "VoltageLoad", tolerance: float, halvings: int = HALVINGS
    ) -> "_State":
        """The state after a step, which is halved while it makes the mismatch larger."""
        n_angles, n_known = len(self.angles), len(self.angles) + len(self.magnitudes)
        for halving in range(halvings + 1):
            part = step if halving == 0 else step * 0.5**halving
            theta, v = state.theta.copy(), state.v.copy()
            theta[self.angles] += part[:n_angles]
            v[self.magnitudes] += part[n_angles:n_known]
            imbalance = state.imbalance + float(part[n_known:].sum())
            moved = self._state(theta, v, imbalance, S, load)
            if moved.worst < state.worst or moved.worst <= tolerance:
                break
        return moved

    def _point(self, state: "_State", iterations: int, converged: bool) -> Point:
        n_angles, n_known = len(self.angles), len(self.angles) + len(self.magnitudes)
        mismatch = np.zeros(len(state.V), dtype=complex)
        mismatch[self.angles] += state.F[:n_angles]
        mismatch[self.magnitudes] += 1j * state.F[n_angles:n_known]
        mismatch[self.extra] += state.F[n_known:]
        return Point(state.V, mismatch, iterations, bool(converged), state.imbalance)

    def _state(self, theta: Float, v: Float, imbalance: float, S: Complex, load: "VoltageLoad") -> "_State":
        V = v * np.exp(1j * theta)
        flows = V[self.rows] * np.conj(self.Y_data * V[self.columns])
        injected = np.add.reduceat(flows, self.row_start)
        excess = injected - S + load.power(v)
        if self.shares is not None:
            excess = excess - imbalance * self.shares
        P, Q = excess.real, excess.imag
        F = np.concatenate([P[self.angles], Q[self.magnitudes], P[self.extra]])
        return _State(V, theta, v, imbalance, flows, injected, F, float(np.abs(F).max(initial=0.0)))

    def _blocks(self, state: "_State", load: "VoltageLoad") -> Float:
        by_angle = -1j * state.flows
        by_angle[self.diagonal] += 1j * state.injected
        by_magnitude = state.flows / state.v[self.columns]
        by_magnitude[self.diagonal] += state.injected / state.v + load.slope(state.v)
        blocks = [by_angle.real, by_magnitude.real, by_angle.imag, by_magnitude.imag]
        return np.concatenate(blocks if self.shares is None else [*blocks, -self.shares])


class _State(NamedTuple):
    """An iterate and what was computed on the way to its mismatch."""

    V: Complex  # (n,) pu
    theta: Float  # (n,) rad
    v: Float  # (n,) pu
    imbalance: float  # pu
    flows: Complex  # (nonzeros,) V_i conj(Y_ij V_j), pu
    injected: Complex  # (n,) their sums, pu
    F: Float  # (unknowns,) mismatch in the order of the rows, pu
    worst: float  # largest of them, pu


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


def _factors(J: sp.csc_matrix, ordering: str) -> Any:
    # Power networks have next to no dense blocks: single columns are factorised a third faster than panels.
    return splu(J, permc_spec=ordering, diag_pivot_thresh=0.1, panel_size=1, relax=1)

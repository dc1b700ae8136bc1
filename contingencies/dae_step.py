"""The implicit trapezoid on the full network: Newton's method, and its compiled march over many steps.

A step solves for the new angles and all node voltages together; the speed is linear in them and is
eliminated. Steps run in compiled code as chord iterations, which reuse one sparse factorisation of
the coupled Jacobian for as long as they reach the tolerance quickly; where they do not, the step is
repeated by full Newton with a fresh factorisation each time. The accepted residual is the same
either way. What cannot be solved raises SolverError and says nothing about stability.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numba
import numpy as np

from contingencies import swing
from contingencies.dae_network import PhaseArrays, PhaseNetwork, factorised
from contingencies.errors import SolverError
from contingencies.network import Complex, Float
from contingencies.separation import spread

NEWTON_TOLERANCE = 1e-8  # largest residual: rad in the angle equations, pu current in the network's
NEWTON_ITERATIONS = 15
CHORD_ITERATIONS = 5  # a fresh factorisation costs about as much as a hundred chord iterations
SAME_INSTANT = 1e-9  # of a step: a shorter remainder is round-off, not a step

angle_rate = numba.njit(inline="always")(swing.angle_rate)
acceleration = numba.njit(inline="always")(swing.acceleration)
air_gap_power = numba.njit(inline="always")(swing.air_gap_power)


class Factors(NamedTuple):
    """A sparse LU as plain arrays, columns of L and U in order of rows: L U = A with rows and columns permuted."""

    L_start: Any
    L_row: Any
    L: Any
    U_start: Any
    U_row: Any
    U: Any
    row_place: Any
    column_place: Any


@dataclass(frozen=True, eq=False)
class Leg:
    """A stretch of one phase; row 0 is its start, with the voltages right after switching."""

    t: Float  # (k,) s since the start of the leg
    delta: Float  # (k, n)
    omega: Float  # (k, n)
    V: Complex  # (k, N)


def whole_steps(duration: float, step: float) -> int:
    """How many steps fit into a duration, round-off aside."""
    return max(0, math.floor(duration / step + SAME_INSTANT))


@numba.njit(cache=True, error_model="numpy", fastmath={"contract"})
def residual(
    p: PhaseArrays, h: float, delta_0: Float, omega_0: Float, P_e_0: Float, x: Float, F: Float, omega: Float, P_e: Float
) -> float:
    """Residual F of a step of length h at x = [delta, Re V, Im V]; returns its largest entry, or NaN.

    Also fills omega and P_e (n,) at the end of the step. A step of length 0 states the network
    equations alone, at the angles delta_0.
    """
    n, N = len(p.E), len(p.y_load)
    for i in range(N):
        I_re, I_im = 0.0, 0.0
        for k in range(p.row_start[i], p.row_start[i + 1]):
            j = p.column[k]
            g, b = p.Y[k].real, p.Y[k].imag
            I_re += g * x[n + j] - b * x[n + N + j]
            I_im += b * x[n + j] + g * x[n + N + j]
        if p.i + p.p > 0.0:
            u, w = x[n + i], x[n + N + i]
            v = max(math.sqrt(u * u + w * w) / p.v_load[i], p.v_min)
            extra = p.y_load[i] * (p.i * (1.0 / v - 1.0) + p.p * (1.0 / (v * v) - 1.0))
            I_re += extra.real * u - extra.imag * w
            I_im += extra.imag * u + extra.real * w
        F[n + i] = I_re
        F[n + N + i] = I_im
    for m in range(n):
        i = p.machine_bus[m]
        c, s = p.E[m] * math.cos(x[m]), p.E[m] * math.sin(x[m])
        u, w = c - x[n + i], s - x[n + N + i]
        I_re, I_im = p.y_g[m].real * u - p.y_g[m].imag * w, p.y_g[m].imag * u + p.y_g[m].real * w
        F[n + i] -= I_re
        F[n + N + i] -= I_im
        P_e[m] = air_gap_power(c, s, I_re, I_im)
        # omega = omega_0 + h/2 (a_0 + a) with a linear in omega: solved for omega
        a_0 = acceleration(p.P_m[m], P_e_0[m], omega_0[m], p.H[m], p.D[m])
        a = acceleration(p.P_m[m], P_e[m], 1.0, p.H[m], p.D[m])
        omega[m] = 1.0 + (omega_0[m] - 1.0 + 0.5 * h * (a_0 + a)) / (1.0 + 0.25 * h * p.D[m] / p.H[m])
        rates = angle_rate(omega_0[m], p.omega_b) + angle_rate(omega[m], p.omega_b)
        F[m] = x[m] - delta_0[m] - 0.5 * h * rates
    largest = 0.0
    for k in range(len(F)):
        if not math.isfinite(F[k]):
            return math.nan
        largest = max(largest, abs(F[k]))
    return largest


@numba.njit(cache=True, error_model="numpy", fastmath={"contract"})
def correct(f: Factors, F: Float, work: Float, x: Float) -> None:
    """x minus the solution of L U dx = F, in place."""
    size = len(x)
    for k in range(size):
        work[f.row_place[k]] = F[k]
    for j in range(size):
        value = work[j]
        if value != 0.0:
            for k in range(f.L_start[j] + 1, f.L_start[j + 1]):
                work[f.L_row[k]] -= f.L[k] * value
    for j in range(size - 1, -1, -1):
        last = f.U_start[j + 1] - 1
        value = work[j] / f.U[last]
        work[j] = value
        if value != 0.0:
            for k in range(f.U_start[j], last):
                work[f.U_row[k]] -= f.U[k] * value
    for k in range(size):
        x[k] -= work[f.column_place[k]]


@numba.njit(cache=True, error_model="numpy", fastmath={"contract"})
def march(
    p: PhaseArrays, f: Factors, t: Float, first: int, limit: float, tolerance: float, iterations: int,
    delta: Float, omega: Float, V: Complex,
) -> int:  # fmt: skip
    """Fill the rows after `first` of delta, omega (k, n) and V (k, N) at the times t (k,).

    Returns the last row filled: the last of all, the one where the separation passed `limit`, or
    an earlier one when the chord iterations were too slow for the step that follows it.
    """
    n, N = len(p.E), len(p.y_load)
    x, F, work = np.empty(n + 2 * N), np.empty(n + 2 * N), np.empty(n + 2 * N)
    P_e_0, P_e, omega_1 = np.zeros(n), np.empty(n), np.empty(n)
    x[:n] = delta[first]
    x[n : n + N] = V[first].real
    x[n + N :] = V[first].imag
    residual(p, 0.0, delta[first], omega[first], P_e_0, x, F, omega_1, P_e)
    for k in range(first, len(t) - 1):
        h = t[k + 1] - t[k]
        P_e_0[:] = P_e
        for m in range(n):
            a = acceleration(p.P_m[m], P_e_0[m], omega[k, m], p.H[m], p.D[m])
            x[m] = delta[k, m] + h * angle_rate(omega[k, m] + 0.5 * h * a, p.omega_b)
        if k > first:
            # extrapolate the voltages by a parabola, or a line as long as there are only two rows
            ratio = h / (t[k] - t[k - 1])
            bend = 0.5 * ratio * (1.0 + ratio) if k > first + 1 else 0.0
            for i in range(N):
                rise = V[k, i] - V[k - 1, i]
                guess = V[k, i] + ratio * rise
                if bend > 0.0:
                    guess += bend * (rise - (V[k - 1, i] - V[k - 2, i]))
                x[n + i] = guess.real
                x[n + N + i] = guess.imag
        size = residual(p, h, delta[k], omega[k], P_e_0, x, F, omega_1, P_e)
        for _ in range(iterations):
            if size <= tolerance:
                break
            correct(f, F, work, x)
            size = residual(p, h, delta[k], omega[k], P_e_0, x, F, omega_1, P_e)
        if not size <= tolerance:
            return k
        for m in range(n):
            delta[k + 1, m] = x[m]
            omega[k + 1, m] = omega_1[m]
        low, high = x[p.counted[0]], x[p.counted[0]]
        for m in p.counted:
            low, high = min(low, x[m]), max(high, x[m])
        for i in range(N):
            V[k + 1, i] = complex(x[n + i], x[n + N + i])
        if high - low > limit:
            return k + 1
    return len(t) - 1


class PhaseSolver:
    """Steps through one phase; holds the factorisation that its legs share."""

    def __init__(self, network: PhaseNetwork, step: float) -> None:
        self.network, self.step = network, step
        self._factors: Factors | None = None

    def leg(
        self, delta: Float, omega: Float, duration: float, limit: float = math.inf, V: Complex | None = None
    ) -> Leg:
        """States from delta, omega (n,) over a duration in s: full steps, then one shorter one to the very end.

        The leg is left early once the separation passes `limit` in rad. Without V (N,) the node
        voltages are first made to satisfy the network equations at these angles.
        """
        t = self.step * np.arange(whole_steps(duration, self.step) + 1.0)
        if duration - t[-1] > SAME_INSTANT * self.step:
            t = np.append(t, duration)
        deltas, omegas = np.empty((len(t), len(delta))), np.empty((len(t), len(delta)))
        Vs = np.empty((len(t), self.network.n_nodes), dtype=complex)
        deltas[0], omegas[0] = delta, omega
        Vs[0] = self.voltages(deltas[0]) if V is None else V
        row, last, counted = 0, len(t) - 1, self.network.arrays.counted
        while row < last and spread(deltas[row, counted]) <= limit:
            factors = self._factors or self._factorise(deltas[row], Vs[row])
            iterations = min(CHORD_ITERATIONS, NEWTON_ITERATIONS)
            reached = march(
                self.network.arrays, factors, t, row, limit, NEWTON_TOLERANCE, iterations, deltas, omegas, Vs
            )
            if reached < last and spread(deltas[reached, counted]) <= limit:  # too slow: the factors are out of date
                if reached == row:
                    reached += 1
                    deltas[reached], omegas[reached], Vs[reached] = self._newton_step(
                        deltas[row], omegas[row], Vs[row], t[row], t[reached] - t[row]
                    )
                self._factorise(deltas[reached], Vs[reached])
            row = reached
        return Leg(t[: row + 1], deltas[: row + 1], omegas[: row + 1], Vs[: row + 1])

    def voltages(self, delta: Float) -> Complex:
        """Node voltages (N,) that the network equations demand at rotor angles (n,): the correction after switching."""
        # Loads as impedances give a start on the upper branch of solutions, and the answer if they are impedances.
        start = self.network.impedance_voltages(delta)
        still = np.ones_like(delta)
        return self._newton(delta, still, np.zeros_like(delta), 0.0, 0.0, delta, start)[2]

    def _newton_step(self, delta: Float, omega: Float, V: Complex, t: float, h: float) -> tuple[Float, Float, Complex]:
        P_e = np.empty_like(delta)
        x, F = _unknowns(delta, V), np.empty(len(delta) + 2 * len(V))
        residual(self.network.arrays, 0.0, delta, omega, np.zeros_like(delta), x, F, np.empty_like(delta), P_e)
        p = self.network.arrays
        a = swing.acceleration(p.P_m, P_e, omega, p.H, p.D)
        guess = delta + h * swing.angle_rate(omega + 0.5 * h * a, p.omega_b)
        return self._newton(delta, omega, P_e, t, h, guess, V)

    def _newton(
        self, delta_0: Float, omega_0: Float, P_e_0: Float, t: float, h: float, delta: Float, V: Complex
    ) -> tuple[Float, Float, Complex]:
        """Full Newton from the guess delta, V: the end of a step of length h that starts t seconds into a leg."""
        n, N = len(delta_0), self.network.n_nodes
        x, F = _unknowns(delta, V), np.empty(n + 2 * N)
        omega, P_e = np.empty(n), np.empty(n)
        size = residual(self.network.arrays, h, delta_0, omega_0, P_e_0, x, F, omega, P_e)
        for _ in range(NEWTON_ITERATIONS):
            if size <= NEWTON_TOLERANCE or not math.isfinite(size):
                break
            J = self.network.jacobian(x[:n], x[n : n + N] + 1j * x[n + N :], h)
            x -= factorised(J, self.network.name).solve(F)
            size = residual(self.network.arrays, h, delta_0, omega_0, P_e_0, x, F, omega, P_e)
        if not size <= NEWTON_TOLERANCE:
            raise SolverError(
                f"{self.network.name}: Newton's method left a residual of {size:.1e} after {NEWTON_ITERATIONS} "
                f"iterations ({t:.4f} s into the leg), so the stability of this scenario is unknown; try a shorter "
                "step, or loads with more impedance."
            )
        return x[:n], omega, x[n : n + N] + 1j * x[n + N :]

    def _factorise(self, delta: Float, V: Complex) -> Factors:
        lu = factorised(self.network.jacobian(delta, V, self.step), self.network.name)
        L, U = lu.L.tocsc(), lu.U.tocsc()
        L.sort_indices()
        U.sort_indices()
        self._factors = Factors(
            L.indptr.astype(np.int64), L.indices.astype(np.int64), L.data,
            U.indptr.astype(np.int64), U.indices.astype(np.int64), U.data,
            lu.perm_r.astype(np.int64), lu.perm_c.astype(np.int64),
        )  # fmt: skip
        return self._factors


def _unknowns(delta: Float, V: Complex) -> Float:
    return np.concatenate([delta, V.real, V.imag])

"""What the swing equation makes of given states: compiled RK4 from any state within one phase.

`contingencies.ode` starts every trajectory at the equilibrium; here it starts anywhere, such as at the event state that
a surrogate predicts. Samples lie on the steps of the integrator, so that nothing is interpolated.
"""

import numba
import numpy as np

from contingencies.kernels import lanes_for, rk4_lanes, scratch
from contingencies.network import Complex, Float
from contingencies.ode import rk4_step
from contingencies.operators import PhaseOperators


def after_clearing(operators: PhaseOperators, x: Float, t_c: Float) -> tuple[Float, Float]:
    """What follows from states at clearing until the end of the study.

    Parameters
    ----------
    operators : PhaseOperators
    x : array (m, 2 n)
        States at clearing: angles in rad, then speeds in pu.
    t_c : array (m,)
        Clearing instants, s.

    Returns
    -------
    t (m, k + 1), states (m, k + 1, 2 n)
        From t_c to T in k equal steps of at most 10 ms; each row has steps of its own length.
    """
    span = operators.window.T - np.asarray(t_c, dtype=float)
    steps = max(1, int(np.ceil(span.max() / rk4_step(operators) - 1e-9)))
    states = _roll_out(operators, operators.Y_post, operators.P_m_post, x, span / steps, steps)
    return t_c[:, None] + span[:, None] * np.linspace(0.0, 1.0, steps + 1), states


def during_fault(operators: PhaseOperators, x: Float, alpha: Float, seconds: float) -> tuple[Float, Float]:
    """What follows from states during faults of severities alpha (m,) within so many seconds.

    Returns
    -------
    s (k + 1,), states (m, k + 1, 2 n)
        Times since the given states (m, 2 n), s, and the states then.
    """
    steps = max(1, int(np.ceil(seconds / rk4_step(operators) - 1e-9)))
    h = np.full(1, seconds / steps)
    states = np.empty((len(x), steps + 1, x.shape[1]))
    for row, severity in enumerate(alpha):  # each has an operator of its own
        Y, P_m = operators.Y_fault(float(severity)), operators.P_m_fault(float(severity))
        states[row] = _roll_out(operators, Y, P_m, x[row : row + 1], h, steps)[0]
    return np.linspace(0.0, seconds, steps + 1), states


def _roll_out(operators: PhaseOperators, Y: Complex, P_m: Float, x: Float, h: Float, steps: int) -> Float:
    """States (m, steps + 1, 2 n) after 0, 1, ..., `steps` steps of length h (m,) from x (m, 2 n)."""
    scaled = Y * np.outer(operators.E, operators.E)
    out = np.empty((len(x), steps + 1, x.shape[1]))
    roll_lanes(
        np.ascontiguousarray(x, dtype=float), np.ascontiguousarray(h, dtype=float), np.ascontiguousarray(scaled.real),
        np.ascontiguousarray(scaled.imag), np.ascontiguousarray(P_m, dtype=float), operators.H, operators.D,
        operators.omega_b, out,
    )  # fmt: skip
    return out


@numba.njit(cache=True)
def roll_lanes(x, h, G, B, P_m, H, D, omega_b, out):
    """Integrate states x (m, 2 n) by steps of h (m,), several rows at once; write every step to out (m, k + 1, 2 n)."""
    m, n = len(x), x.shape[1] // 2
    lanes = lanes_for(m)
    delta, omega, step = np.empty((n, lanes)), np.empty((n, lanes)), np.empty(lanes)
    work = scratch(n, lanes)
    for first in range(0, m, lanes):
        for l in range(lanes):
            row = min(first + l, m - 1)
            step[l] = h[row]
            for i in range(n):
                delta[i, l] = x[row, i]
                omega[i, l] = x[row, n + i]
        for k in range(out.shape[1]):
            if k > 0:
                rk4_lanes(delta, omega, step, G, B, P_m, H, D, omega_b, work)
            for l in range(min(lanes, m - first)):
                for i in range(n):
                    out[first + l, k, i] = delta[i, l]
                    out[first + l, k, n + i] = omega[i, l]

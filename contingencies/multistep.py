"""The compiled scan of clearing instants: Falkner's multistep method, one evaluation of the powers per step.

A scan asks for hundreds of trajectories. Runge and Kutta's method evaluates the electrical powers four times a step,
Falkner's once: it predicts the angles from the accelerations of the last six steps, evaluates the powers there, and
corrects angles and speeds, theory.md eq. (65). Damping is linear in the speed and solved for. The first steps
are Runge and Kutta's. At equal steps its error is smaller than theirs as long as the fastest mode turns by less than
0.2 rad per step.

Besides the peak separation it notes what the search looks at: the largest separation in each of `BINS` equal parts of
the post-clearing leg, and the instant at which the limit is passed.
"""

import numba
import numpy as np

from contingencies.kernels import (
    FLAGS,
    angle_rate,
    clear_lanes,
    lanes_for,
    power_lanes,
    rk4_lanes,
    scratch,
    separation_lanes,
    vertex,
)
from contingencies.looks import BINS

MEMORY = 6  # accelerations that a step looks back at: local error of order 8 in the angles


def falkner_coefficients(nodes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Weights of accelerations at `nodes` (k,), in steps from now, over the step from 0 to 1: for speeds and angles.

    Integrals of the Lagrange polynomials, and of these times (1 - s), over s from 0 to 1.
    """
    inverse = np.linalg.inv(np.vander(nodes, increasing=True))  # column j: coefficients of the j-th polynomial
    power = np.arange(len(nodes))
    return (1.0 / (power + 1.0)) @ inverse, (1.0 / ((power + 1.0) * (power + 2.0))) @ inverse


_PAST = -np.arange(float(MEMORY))
PREDICT = falkner_coefficients(_PAST)[1]  # angles from the past
CORRECT_SPEED, CORRECT_ANGLE = falkner_coefficients(np.append(1.0, _PAST[:-1]))  # the new one first


@numba.njit(fastmath=FLAGS)
def falkner_lanes(delta, omega, h, past, newest, G, B, P_m, H, D, omega_b, work):
    """One step of length h[l] in every lane, in place; `past` (MEMORY, n, lanes) holds accelerations in a ring."""
    n, lanes = delta.shape
    c, s, x, P_e, I = work[0], work[1], work[2], work[3], work[8]
    k0, k1, k2 = newest, (newest - 1) % MEMORY, (newest - 2) % MEMORY
    k3, k4, k5 = (newest - 3) % MEMORY, (newest - 4) % MEMORY, (newest - 5) % MEMORY
    a0, a1, a2, a3, a4, a5 = past[k0], past[k1], past[k2], past[k3], past[k4], past[k5]
    p0, p1, p2, p3, p4, p5 = PREDICT[0], PREDICT[1], PREDICT[2], PREDICT[3], PREDICT[4], PREDICT[5]
    for i in range(n):
        for l in range(lanes):
            bend = p0 * a0[i, l] + p1 * a1[i, l] + p2 * a2[i, l] + p3 * a3[i, l] + p4 * a4[i, l] + p5 * a5[i, l]
            x[i, l] = delta[i, l] + h[l] * (angle_rate(omega[i, l], omega_b) + h[l] * omega_b * bend)
    power_lanes(x, G, B, c, s, I, P_e)
    v0, v1, v2, v3, v4, v5 = (
        CORRECT_SPEED[0], CORRECT_SPEED[1], CORRECT_SPEED[2], CORRECT_SPEED[3], CORRECT_SPEED[4], CORRECT_SPEED[5]
    )  # fmt: skip
    w0, w1, w2, w3, w4, w5 = (
        CORRECT_ANGLE[0], CORRECT_ANGLE[1], CORRECT_ANGLE[2], CORRECT_ANGLE[3], CORRECT_ANGLE[4], CORRECT_ANGLE[5]
    )  # fmt: skip
    for i in range(n):
        half = 1.0 / (2.0 * H[i])
        drag = D[i] * half
        for l in range(lanes):
            push = v1 * a0[i, l] + v2 * a1[i, l] + v3 * a2[i, l] + v4 * a3[i, l] + v5 * a4[i, l]
            free = (P_m[i] - P_e[i, l]) * half  # acceleration at synchronous speed
            slip = omega[i, l] - 1.0
            after = (slip + h[l] * (v0 * free + push)) / (1.0 + h[l] * v0 * drag)
            now = free - drag * after
            bend = w0 * now + w1 * a0[i, l] + w2 * a1[i, l] + w3 * a2[i, l] + w4 * a3[i, l] + w5 * a4[i, l]
            delta[i, l] += h[l] * omega_b * (slip + h[l] * bend)
            omega[i, l] = 1.0 + after
            a5[i, l] = now  # the oldest makes room


@numba.njit(cache=True)
def accelerations(delta, omega, G, B, P_m, H, D, work, out):
    """Accelerations (n, lanes) of a state, pu/s."""
    n, lanes = delta.shape
    power_lanes(delta, G, B, work[0], work[1], work[8], work[3])
    for i in range(n):
        for l in range(lanes):
            out[i, l] = (P_m[i] - work[3, i, l] - D[i] * (omega[i, l] - 1.0)) / (2.0 * H[i])


@numba.njit(cache=True)
def cleared(t_c, t_f, step, leg_delta, leg_omega, leg_peak, G, B, P_m, H, D, omega_b):
    """States at clearing instants (m,) of one severity, and the largest separation until then.

    Returns
    -------
    states : array (m, 2 n)
        Angles, rad, then speeds, pu.
    peak : array (m,)
        Of all machines, rad.
    """
    m, n = len(t_c), leg_delta.shape[1]
    lanes = lanes_for(m)
    states, peak = np.empty((m, 2 * n)), np.empty(m)
    delta, omega = np.empty((n, lanes)), np.empty((n, lanes))
    work, h, block = scratch(n, lanes), np.empty(lanes), np.empty(lanes)
    high, low, now, everyone = np.empty(lanes), np.empty(lanes), np.empty(lanes), np.arange(n)
    for first in range(0, m, lanes):
        for l in range(lanes):
            block[l] = t_c[min(first + l, m - 1)]
        clear_lanes(block, t_f, step, leg_delta, leg_omega, delta, omega, G, B, P_m, H, D, omega_b, work, h)
        separation_lanes(delta, everyone, now, high, low)
        for l in range(min(lanes, m - first)):
            k = min(int((block[l] - t_f) / step + 1e-9), len(leg_peak) - 1)
            peak[first + l] = max(leg_peak[k], now[l])
            for i in range(n):
                states[first + l, i] = delta[i, l]
                states[first + l, n + i] = omega[i, l]
    return states, peak


@numba.njit(cache=True)
def watch(t_c, T, step, limit, counted, states, reached, G, B, P_m, H, D, omega_b):
    """Post-clearing legs from states (m, 2 n) at clearing instants (m,), and how far the counted machines spread.

    The operator after clearing is the same at every severity, so rows of several severities may stand side by side.
    `reached` (m,) is the largest separation until clearing, rad.

    Returns
    -------
    peak : array (m,)
        Largest separation, rad; of a trajectory that passes `limit` some value of at least that; NaN where it failed.
    swings : array (m, BINS)
        Largest separation in each part of the post-clearing leg, rad; NaN once the limit is passed.
    lost : array (m,)
        When the limit is passed, s; infinity where it is not.
    """
    m, n = len(t_c), states.shape[1] // 2
    lanes = lanes_for(m)
    peaks, swings, lost = np.empty(m), np.full((m, BINS), np.nan), np.full(m, np.inf)
    delta, omega, past = np.empty((n, lanes)), np.empty((n, lanes)), np.empty((MEMORY, n, lanes))
    work, h, block = scratch(n, lanes), np.empty(lanes), np.empty(lanes)
    high, low, top = np.empty(lanes), np.empty(lanes), np.empty(lanes)
    before, last, now, peak = np.empty(lanes), np.empty(lanes), np.empty(lanes), np.empty(lanes)
    for first in range(0, m, lanes):
        for l in range(lanes):
            row = min(first + l, m - 1)
            block[l], peak[l] = t_c[row], reached[row]
            for i in range(n):
                delta[i, l] = states[row, i]
                omega[i, l] = states[row, n + i]
            if peak[l] >= limit and first + l < m:
                lost[row] = block[l]
        separation_lanes(delta, counted, last, high, low)
        before[:] = last
        per_bin = max(1, int(np.ceil((T - block.min()) / step / BINS - 1e-9)))
        for l in range(lanes):
            h[l] = (T - block[l]) / (per_bin * BINS)
            top[l] = last[l]
        accelerations(delta, omega, G, B, P_m, H, D, work, past[0])
        for k in range(per_bin * BINS):
            if k < MEMORY - 1:
                rk4_lanes(delta, omega, h, G, B, P_m, H, D, omega_b, work)
                accelerations(delta, omega, G, B, P_m, H, D, work, past[k + 1])
            else:
                falkner_lanes(delta, omega, h, past, k % MEMORY, G, B, P_m, H, D, omega_b, work)
            separation_lanes(delta, counted, now, high, low)
            running = False
            for l in range(lanes):
                highest = now[l]
                if last[l] >= now[l] and last[l] > before[l]:
                    highest = vertex(before[l], last[l], now[l], 1.0, 1.0)[0]
                top[l] = max(top[l], highest)
                if peak[l] < limit <= highest and first + l < m:
                    share = min(1.0, (limit - last[l]) / max(now[l] - last[l], 1e-12))
                    lost[first + l] = block[l] + h[l] * (k + max(share, 0.0))
                peak[l] = max(peak[l], highest)
                before[l] = last[l]
                last[l] = now[l]
                running |= not peak[l] >= limit
            if (k + 1) % per_bin == 0:
                for l in range(min(lanes, m - first)):
                    if peak[l] < limit:
                        swings[first + l, (k + 1) // per_bin - 1] = top[l]
                for l in range(lanes):
                    top[l] = last[l]
            if not running:
                break
        for l in range(min(lanes, m - first)):
            peaks[first + l] = peak[l] if last[l] == last[l] else np.nan
    return peaks, swings, lost

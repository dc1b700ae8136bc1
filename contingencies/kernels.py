"""The compiled integrator: RK4 on several trajectories at once, one per vector lane.

All state arrays are (n, lanes): the innermost loops run over lanes without branches, so that the
compiler turns them into vector instructions; sine and cosine are a branch-free polynomial for the
same reason (libm's are scalar calls and dominated the cost). The number of lanes is read from the
arrays, not a constant: constant short loops are unrolled before they can be vectorised. The physics
is compiled from `contingencies.swing`; E_i E_j is folded into the admittance beforehand.
"""

import numba
import numpy as np

from contingencies import separation, swing

MAX_LANES = 32  # cost per lane: 72 ns per field at 8 lanes, 38 at 16, 34 at 32, flat above
# From here on the products are left to BLAS, which reuses what it has loaded: 0.5 instead of 1.3 microseconds per field
# and lane at 54 machines, 11 instead of 160 at 260 (one noisy run).
MANY_MACHINES = 24
FLAGS = {"contract", "nsz", "arcp", "reassoc"}  # fused multiply-add and vector sums, but NaN stays NaN

angle_rate = numba.njit(inline="always")(swing.angle_rate)
acceleration = numba.njit(inline="always")(swing.acceleration)
air_gap_power = numba.njit(inline="always")(swing.air_gap_power)
vertex = numba.njit(inline="always")(separation.vertex)

TWO_PI_HI, TWO_PI_LO = 6.283185307179586, 2.4492935982947064e-16
INVERSE_TWO_PI = 0.15915494309189535


@numba.njit(fastmath=FLAGS, inline="always")
def cos_sin_lanes(x, c, s):
    """Cosine and sine of a row of angles, about 1e-15 absolute for |x| below 1e4 rad.

    The angle is reduced to a quarter of (-pi, pi], where short Taylor polynomials are exact to
    round-off, and doubled twice.
    """
    for l in range(len(x)):
        k = np.rint(x[l] * INVERSE_TWO_PI)
        h = 0.25 * ((x[l] - k * TWO_PI_HI) - k * TWO_PI_LO)
        z = h * h
        sine = h * (
            1.0
            + z
            * (
                -1.0 / 6
                + z
                * (
                    1.0 / 120
                    + z
                    * (
                        -1.0 / 5040
                        + z
                        * (1.0 / 362880 + z * (-1.0 / 39916800 + z * (1.0 / 6227020800 + z * (-1.0 / 1307674368000))))
                    )
                )
            )
        )
        versine = z * (
            0.5
            + z
            * (
                -1.0 / 24
                + z
                * (
                    1.0 / 720
                    + z * (-1.0 / 40320 + z * (1.0 / 3628800 + z * (-1.0 / 479001600 + z * (1.0 / 87178291200))))
                )
            )
        )
        cosine = 1.0 - versine
        half_sine, half_cosine = 2.0 * sine * cosine, 1.0 - 2.0 * sine * sine
        s[l] = 2.0 * half_sine * half_cosine
        c[l] = 1.0 - 2.0 * half_sine * half_sine


@numba.njit(fastmath=FLAGS, inline="always")
def power_lanes(delta, G, B, c, s, I, P_e):
    """Electrical powers of all lanes; G and B are E_i E_j Y_ij, c, s and I are scratch."""
    n, lanes = delta.shape
    for i in range(n):
        cos_sin_lanes(delta[i], c[i], s[i])
    if n >= MANY_MACHINES:
        all_re, all_im = np.dot(G, c), np.dot(B, c)
        all_re -= np.dot(B, s)
        all_im += np.dot(G, s)
        for i in range(n):
            for l in range(lanes):
                P_e[i, l] = air_gap_power(c[i, l], s[i, l], all_re[i, l], all_im[i, l])
        return
    I_re, I_im = I[0], I[1]
    for i in range(n):
        for l in range(lanes):
            I_re[l] = 0.0
            I_im[l] = 0.0
        for j in range(n):
            g, b, c_j, s_j = G[i, j], B[i, j], c[j], s[j]
            for l in range(lanes):
                I_re[l] += g * c_j[l] - b * s_j[l]
                I_im[l] += b * c_j[l] + g * s_j[l]
        for l in range(lanes):
            P_e[i, l] = air_gap_power(c[i, l], s[i, l], I_re[l], I_im[l])


@numba.njit(fastmath=FLAGS, inline="always")
def field_lanes(delta, omega, G, B, P_m, H, D, omega_b, c, s, I, d_delta, d_omega):
    """The swing field of all lanes; arguments as for `power_lanes`."""
    n, lanes = delta.shape
    power_lanes(delta, G, B, c, s, I, d_omega)
    for i in range(n):
        for l in range(lanes):
            d_delta[i, l] = angle_rate(omega[i, l], omega_b)
            d_omega[i, l] = acceleration(P_m[i], d_omega[i, l], omega[i, l], H[i], D[i])


@numba.njit(inline="always")
def scratch(n, lanes):
    """Working memory of `rk4_lanes`; the two extra rows hold currents even for a single machine."""
    return np.empty((9, max(n, 2), lanes))


@numba.njit(inline="always")
def lanes_for(m):
    """How many lanes to use for m trajectories."""
    return min(MAX_LANES, 8 * ((m + 7) // 8))


@numba.njit(fastmath=FLAGS)
def rk4_lanes(delta, omega, h, G, B, P_m, H, D, omega_b, work):
    """One classical Runge-Kutta step of length h[l] in every lane, in place."""
    n, lanes = delta.shape
    c, s, k_delta, k_omega = work[0], work[1], work[2], work[3]
    x_delta, x_omega, sum_delta, sum_omega, I = work[4], work[5], work[6], work[7], work[8]
    field_lanes(delta, omega, G, B, P_m, H, D, omega_b, c, s, I, k_delta, k_omega)
    for i in range(n):
        for l in range(lanes):
            sum_delta[i, l] = k_delta[i, l]
            sum_omega[i, l] = k_omega[i, l]
            x_delta[i, l] = delta[i, l] + 0.5 * h[l] * k_delta[i, l]
            x_omega[i, l] = omega[i, l] + 0.5 * h[l] * k_omega[i, l]
    for stage in range(2):
        field_lanes(x_delta, x_omega, G, B, P_m, H, D, omega_b, c, s, I, k_delta, k_omega)
        part = 0.5 if stage == 0 else 1.0
        for i in range(n):
            for l in range(lanes):
                sum_delta[i, l] += 2.0 * k_delta[i, l]
                sum_omega[i, l] += 2.0 * k_omega[i, l]
                x_delta[i, l] = delta[i, l] + part * h[l] * k_delta[i, l]
                x_omega[i, l] = omega[i, l] + part * h[l] * k_omega[i, l]
    field_lanes(x_delta, x_omega, G, B, P_m, H, D, omega_b, c, s, I, k_delta, k_omega)
    for i in range(n):
        for l in range(lanes):
            delta[i, l] += h[l] / 6.0 * (sum_delta[i, l] + k_delta[i, l])
            omega[i, l] += h[l] / 6.0 * (sum_omega[i, l] + k_omega[i, l])


@numba.njit(fastmath=FLAGS)
def separation_lanes(delta, counted, d, high, low):
    """Largest pairwise angle separation of each lane among the counted machines: largest minus smallest angle."""
    lanes = delta.shape[1]
    for l in range(lanes):
        high[l] = delta[counted[0], l]
        low[l] = delta[counted[0], l]
    for i in counted[1:]:
        for l in range(lanes):
            high[l] = max(high[l], delta[i, l])
            low[l] = min(low[l], delta[i, l])
    for l in range(lanes):
        d[l] = high[l] - low[l]


@numba.njit(cache=True, nogil=True)
def fault_leg(delta_0, t_f, t_end, step, G, B, P_m, H, D, omega_b):
    """Fault-on states on the grid t_f, t_f + step, ... up to t_end, and the running peak separation.

    Returns delta (m, n), omega (m, n), peak (m,).
    """
    n = len(delta_0)
    m = int(np.ceil((t_end - t_f) / step - 1e-9)) + 1
    deltas, omegas, peaks = np.empty((m, n)), np.empty((m, n)), np.empty(m)
    delta, omega = np.empty((n, 1)), np.ones((n, 1))
    delta[:, 0] = delta_0
    work, h = scratch(n, 1), np.full(1, step)
    d, high, low, everyone = np.empty(1), np.empty(1), np.empty(1), np.arange(n)
    peak = -1.0
    for k in range(m):
        if k > 0:
            rk4_lanes(delta, omega, h, G, B, P_m, H, D, omega_b, work)
        separation_lanes(delta, everyone, d, high, low)
        peak = max(peak, d[0])
        peaks[k] = peak
        deltas[k] = delta[:, 0]
        omegas[k] = omega[:, 0]
    return deltas, omegas, peaks


@numba.njit(cache=True, nogil=True)
def clear_lanes(t_c, t_f, step, leg_delta, leg_omega, delta, omega, G, B, P_m, H, D, omega_b, work, h):
    """States at a clearing instant per lane: the last grid state before it, and one shorter step."""
    lanes = len(t_c)
    for l in range(lanes):
        k = min(int((t_c[l] - t_f) / step + 1e-9), len(leg_delta) - 1)
        h[l] = t_c[l] - (t_f + k * step)
        delta[:, l] = leg_delta[k]
        omega[:, l] = leg_omega[k]
    rk4_lanes(delta, omega, h, G, B, P_m, H, D, omega_b, work)


@numba.njit(cache=True, nogil=True)
def peak_separations(
    t_c, t_f, T, step, limit, stop, counted, leg_delta, leg_omega, leg_peak,
    G_2, B_2, P_2, G_3, B_3, P_3, H, D, omega_b,
):  # fmt: skip
    """Peak separation over the window for each clearing instant, rad (m,); after clearing of the counted machines.

    With `stop`, a trajectory is left as soon as it passes `limit`, and its answer is some value
    of at least `limit`. A peak between two steps is the vertex of the parabola through three.
    """
    m, n = len(t_c), leg_delta.shape[1]
    lanes = lanes_for(m)
    answers = np.empty(m)
    delta, omega = np.empty((n, lanes)), np.empty((n, lanes))
    work, h, block = scratch(n, lanes), np.empty(lanes), np.empty(lanes)
    high, low, everyone = np.empty(lanes), np.empty(lanes), np.arange(n)
    before, last, now, peak = np.empty(lanes), np.empty(lanes), np.empty(lanes), np.empty(lanes)
    for first in range(0, m, lanes):
        for l in range(lanes):
            block[l] = t_c[min(first + l, m - 1)]
        clear_lanes(block, t_f, step, leg_delta, leg_omega, delta, omega, G_2, B_2, P_2, H, D, omega_b, work, h)
        separation_lanes(delta, everyone, now, high, low)
        separation_lanes(delta, counted, last, high, low)
        for l in range(lanes):
            k = min(int((block[l] - t_f) / step + 1e-9), len(leg_peak) - 1)
            peak[l] = max(leg_peak[k], now[l])
            before[l] = last[l]
        steps = int(np.ceil((T - block.min()) / step - 1e-9))
        for l in range(lanes):
            h[l] = (T - block[l]) / steps
        for _ in range(steps):
            rk4_lanes(delta, omega, h, G_3, B_3, P_3, H, D, omega_b, work)
            separation_lanes(delta, counted, now, high, low)
            running = False
            for l in range(lanes):
                if last[l] >= now[l] and last[l] > before[l]:
                    peak[l] = max(peak[l], vertex(before[l], last[l], now[l], 1.0, 1.0)[0])
                peak[l] = max(peak[l], now[l])
                before[l] = last[l]
                last[l] = now[l]
                running |= peak[l] < limit
            if stop and not running:
                break
        for l in range(min(lanes, m - first)):
            answers[first + l] = peak[l] if last[l] == last[l] else np.nan
    return answers


@numba.njit(cache=True, nogil=True)
def sample_fault_on(
    t_c, t_out, t_f, step, leg_delta, leg_omega, delta_0, G, B, P_m, H, D, omega_b, out, events,
):  # fmt: skip
    """States of one severity until clearing at t_out (k,), to out (m, k, 2 n), and at clearing, to events (m, 2 n).

    Clearing instants t_c (m,) are in order. At an event the state is the same on both sides, so it does not matter
    which phase a sample on the event belongs to.
    """
    m, n, count = len(t_c), leg_delta.shape[1], len(t_out)
    lanes = lanes_for(m)
    delta, omega = np.empty((n, lanes)), np.empty((n, lanes))
    work, h, block = scratch(n, lanes), np.empty(lanes), np.empty(lanes)
    for k in range(count):
        if t_out[k] <= t_f:
            for r in range(m):
                for i in range(n):
                    out[r, k, i] = delta_0[i]
                    out[r, k, n + i] = 1.0
    first = np.searchsorted(t_out, t_f, side="right")
    last = np.searchsorted(t_out, t_c[m - 1], side="right")
    for begin in range(first, last, lanes):  # fault-on samples do not depend on t_c: one per lane
        for l in range(lanes):
            block[l] = t_out[min(begin + l, last - 1)]
        clear_lanes(block, t_f, step, leg_delta, leg_omega, delta, omega, G, B, P_m, H, D, omega_b, work, h)
        for k in range(begin, min(begin + lanes, last)):
            for r in range(m):
                if t_out[k] <= t_c[r]:
                    for i in range(n):
                        out[r, k, i] = delta[i, k - begin]
                        out[r, k, n + i] = omega[i, k - begin]
    for begin in range(0, m, lanes):
        for l in range(lanes):
            block[l] = t_c[min(begin + l, m - 1)]
        clear_lanes(block, t_f, step, leg_delta, leg_omega, delta, omega, G, B, P_m, H, D, omega_b, work, h)
        for l in range(min(lanes, m - begin)):
            for i in range(n):
                events[begin + l, i] = delta[i, l]
                events[begin + l, n + i] = omega[i, l]


@numba.njit(cache=True, nogil=True)
def sample_cleared(t_c, t_out, step, events, G, B, P_m, H, D, omega_b, out):
    """States after clearing at t_out (k,), written to out (m, k, 2 n), from states at clearing, events (m, 2 n).

    The operator after clearing is the same at every severity, so rows of several severities may stand side by side.
    """
    m, n, count = len(t_c), events.shape[1] // 2, len(t_out)
    lanes = lanes_for(m)
    delta, omega = np.empty((n, lanes)), np.empty((n, lanes))
    work, h, now = scratch(n, lanes), np.empty(lanes), np.empty(lanes)
    following = np.empty(lanes, dtype=np.int64)
    for first in range(0, m, lanes):
        for l in range(lanes):
            row = min(first + l, m - 1)
            now[l] = t_c[row]
            following[l] = np.searchsorted(t_out, t_c[row], side="right")
            for i in range(n):
                delta[i, l] = events[row, i]
                omega[i, l] = events[row, n + i]
        while following.min() < count:
            longest = 0.0
            for l in range(lanes):
                h[l] = t_out[following[l]] - now[l] if following[l] < count else 0.0
                longest = max(longest, h[l])
            parts = max(1, int(np.ceil(longest / step - 1e-9)))
            for l in range(lanes):
                h[l] /= parts
            for _ in range(parts):
                rk4_lanes(delta, omega, h, G, B, P_m, H, D, omega_b, work)
            for l in range(lanes):
                k = following[l]
                if k < count:
                    if first + l < m:
                        for i in range(n):
                            out[first + l, k, i] = delta[i, l]
                            out[first + l, k, n + i] = omega[i, l]
                    now[l] = t_out[k]
                    following[l] = k + 1

"""Trajectories of the reduced swing equation: strict (SciPy) and fast (compiled).

Strict is the paper's protocol: DOP853 at tight tolerances, restarted at every event, sampled each
millisecond, every clearing instant simulated on its own. Fast integrates the fault-on leg once per
severity, starts every clearing instant from it, and runs many post-clearing legs at a time in
compiled RK4 (`contingencies.kernels`). Both drive the swing field of `contingencies.swing`.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp

from contingencies.errors import SolverError
from contingencies.looks import Look, look_of_samples
from contingencies.network import Complex, Float
from contingencies.operators import PhaseOperators
from contingencies.stability import check_scenario
from contingencies.swing import swing_field
from contingencies.trajectories import SAMPLE_S, Trajectory, output_times

RTOL, ATOL = 1e-9, 1e-11  # the paper's tolerances
MAX_STEP_S = 1e-2  # RK4 step; moves no benchmark CCT by more than 1.4e-7 s against 1 ms steps
STEP_ANGLE_RAD = 0.2  # largest phase advance per step of the fastest conceivable swing mode


def _sample_times(operators: PhaseOperators, t_c: float) -> Float:
    """Each millisecond; also the clearing instant where a machine leaves, since its separation may peak right there."""
    t = output_times(operators, SAMPLE_S)
    return np.union1d(t, [t_c]) if operators.tripped_machines else t


# --- strict -----------------------------------------------------------------------------------


def strict_trajectory(operators: PhaseOperators, alpha: float, t_c: float, t: Float | None = None) -> Trajectory:
    """One scenario by DOP853 at the times t (default: each millisecond)."""
    check_scenario(operators, alpha, t_c)
    t = _sample_times(operators, t_c) if t is None else np.asarray(t, dtype=float)
    window, n = operators.window, operators.n_machines
    states = np.empty((len(t), 2 * n))
    x = np.concatenate([operators.delta_0, np.ones(n)])
    states[t < window.t_f] = x
    phases = (
        (window.t_f, t_c, operators.Y_fault(alpha), operators.P_m_fault(alpha)),
        (t_c, window.T, operators.Y_post, operators.P_m_post),
    )
    for start, end, Y, P_m in phases:
        inside = (t >= start) & (t < end) if end < window.T else (t >= start)
        samples, x = _leg(operators, Y, P_m, x, start, end, t[inside])
        states[inside] = samples
    return Trajectory(t, states[:, :n], states[:, n:], t_c, operators.tripped_machines)


def _leg(
    operators: PhaseOperators, Y: Complex, P_m: Float, x: Float, start: float, end: float, t: Float
) -> tuple[Float, Float]:
    """Samples at t (k,) within one phase, and the state at its end."""
    n = operators.n_machines
    G, B = np.ascontiguousarray(Y.real), np.ascontiguousarray(Y.imag)
    E, H, D, omega_b = operators.E, operators.H, operators.D, operators.omega_b

    def field(_: float, state: Float) -> Float:
        return np.concatenate(swing_field(state[:n], state[n:], P_m, E, G, B, H, D, omega_b))

    ends_on_sample = len(t) > 0 and t[-1] >= end
    times = t if ends_on_sample else np.append(t, end)
    solution = solve_ivp(field, (start, end), x, method="DOP853", rtol=RTOL, atol=ATOL, t_eval=times)
    if not solution.success or not np.isfinite(solution.y).all():
        raise SolverError(
            f"{operators.name}: the strict integrator failed between {start} and {end} s ({solution.message}); "
            "the stability of this scenario is unknown."
        )
    return solution.y.T[: len(t)], solution.y[:, -1]


def strict_look(operators: PhaseOperators, alpha: float, t_c: Float) -> Look:
    """What a search sees of clearing instants (m,), each simulated on its own; margins are those of the samples."""
    runs = [strict_trajectory(operators, alpha, float(t)) for t in t_c]
    limit, times = operators.max_separation, output_times(operators, SAMPLE_S)
    margins = np.array([run.separation.max() for run in runs]) - limit
    # A run that a machine leaves has one more sample, at its own clearing instant.
    separation = np.stack([run.separation[np.searchsorted(run.t, times)] for run in runs])
    return look_of_samples(times, separation, limit, margins)


# --- fast -------------------------------------------------------------------------------------


class FastODE:
    """One severity of one contingency, ready to answer for many clearing instants.

    Parameters
    ----------
    operators : PhaseOperators
    alpha : float
        Severity.
    step : float, optional
        Largest RK4 step, s; default short enough for the system's fastest swing mode.
    """

    def __init__(self, operators: PhaseOperators, alpha: float, step: float | None = None) -> None:
        self.operators, self.alpha = operators, alpha
        self.step = rk4_step(operators) if step is None else step
        self._leg: tuple[Float, Float, Float] | None = None
        self._leg_end = 0.0

    @cached_property
    def _phases(self) -> tuple[Any, ...]:
        ops = self.operators
        scale = np.outer(ops.E, ops.E)
        fault, post = ops.Y_fault(self.alpha) * scale, ops.Y_post * scale
        parts = (fault.real, fault.imag, ops.P_m_fault(self.alpha), post.real, post.imag, ops.P_m_post)
        return tuple(np.ascontiguousarray(part) for part in parts)

    def _leg_until(self, t_end: float) -> tuple[Float, Float, Float]:
        """The fault-on leg, integrated once as far as it is needed (at least through the clearing window)."""
        from contingencies.kernels import fault_leg

        ops, (G, B, P_m, *_) = self.operators, self._phases
        if self._leg is None or t_end > self._leg_end:
            self._leg_end = max(t_end, ops.window.t_c[1])
            t_f = ops.window.t_f
            self._leg = fault_leg(ops.delta_0, t_f, self._leg_end, self.step, G, B, P_m, ops.H, ops.D, ops.omega_b)
        return self._leg

    def margins(self, t_c: Float, stop_at_crossing: bool = False) -> Float:
        """Hard margins (m,) of ordered clearing instants (m,), rad.

        With `stop_at_crossing` unstable trajectories are left as soon as they are known to be
        unstable: the sign is right, the value of a positive margin is not.
        """
        from contingencies.kernels import peak_separations

        ops, t_c = self.operators, np.ascontiguousarray(t_c, dtype=float)
        leg = self._leg_until(float(t_c[-1]))
        peaks = peak_separations(
            t_c, ops.window.t_f, ops.window.T, self.step, ops.max_separation,
            stop_at_crossing, ops.counted_machines, *leg, *self._phases, ops.H, ops.D, ops.omega_b,
        )  # fmt: skip
        return peaks - ops.max_separation

    def look(self, t_c: Float, values: bool = False) -> Look:
        """What a search sees of clearing instants (m,) in order; the values of negative margins are always right."""
        return look_together([self], np.asarray(t_c, dtype=float)[None])[0]

    def cleared(self, t_c: Float) -> tuple[Float, Float]:
        """States (m, 2 n) at clearing instants (m,) in order, and the largest separations (m,) until then, rad."""
        from contingencies.multistep import cleared

        ops = self.operators
        leg = self._leg_until(float(t_c[-1]))
        return cleared(t_c, ops.window.t_f, self.step, *leg, *self._phases[:3], ops.H, ops.D, ops.omega_b)

    def states(self, t_c: Float, t: Float) -> Float:
        """States (m, k, 2 n) at times t (k,) for ordered clearing instants (m,): angles, then speeds."""
        t_c, t = np.ascontiguousarray(t_c, dtype=float), np.ascontiguousarray(t, dtype=float)
        out = np.empty((len(t_c), len(t), 2 * self.operators.n_machines))
        self.sample_cleared(t_c, t, self.sample_fault_on(t_c, t, out), out)
        return out

    def sample_fault_on(self, t_c: Float, t: Float, out: Float) -> Float:
        """States at clearing (m, 2 n); those until then at times t (k,) are written to out (m, k, 2 n)."""
        from contingencies.kernels import sample_fault_on

        ops = self.operators
        events = np.empty((len(t_c), 2 * ops.n_machines))
        leg = self._leg_until(float(t_c[-1]))
        sample_fault_on(
            t_c, t, ops.window.t_f, self.step, *leg[:2], ops.delta_0, *self._phases[:3], ops.H, ops.D, ops.omega_b,
            out, events,
        )  # fmt: skip
        return events

    def sample_cleared(self, t_c: Float, t: Float, events: Float, out: Float) -> None:
        """Write states after clearing in states `events` (m, 2 n) at instants t_c (m,) to out (m, k, 2 n)."""
        from contingencies.kernels import sample_cleared

        ops = self.operators
        sample_cleared(t_c, t, self.step, events, *self._phases[3:], ops.H, ops.D, ops.omega_b, out)


def look_together(odes: Sequence[FastODE], t_c: Float) -> Look:
    """What searches over several severities of one contingency see of clearing instants (s, m), in order in each row.

    What follows the clearing is integrated for all of them together, which fills the lanes.
    """
    from contingencies.multistep import watch

    ops, t_c = odes[0].operators, np.ascontiguousarray(t_c, dtype=float)
    starts = [ode.cleared(instants) for ode, instants in zip(odes, t_c, strict=True)]
    states, reached = (np.concatenate(parts) for parts in zip(*starts, strict=True))
    peaks, swings, lost = watch(
        t_c.ravel(), ops.window.T, odes[0].step, ops.max_separation, ops.counted_machines,
        states, reached, *odes[0]._phases[3:], ops.H, ops.D, ops.omega_b,
    )  # fmt: skip
    return Look(
        peaks.reshape(t_c.shape) - ops.max_separation,
        swings.reshape(*t_c.shape, -1) - ops.max_separation,
        lost.reshape(t_c.shape),
    )


def scenario_states(operators: PhaseOperators, alpha: Float, t_c: Float, t: Float) -> Float:
    """States (s, k, 2 n) at times t (k,) of scenarios (s,) of severities alpha and clearing instants t_c, any order.

    What follows the clearing is integrated for all severities together: a few scenarios of each cost no more than as
    many of one.
    """
    t = np.ascontiguousarray(t, dtype=float)
    order = np.lexsort((t_c, alpha))
    out = np.empty((len(order), len(t), 2 * operators.n_machines))
    events, odes = np.empty((len(order), out.shape[2])), []
    for value in np.unique(alpha):
        rows = order[alpha[order] == value]
        odes.append(FastODE(operators, float(value)))
        mine = np.empty((len(rows), *out.shape[1:]))
        events[rows] = odes[-1].sample_fault_on(np.ascontiguousarray(t_c[rows]), t, mine)
        out[rows] = mine
    late = np.argsort(t_c, kind="stable")[::-1]  # rows side by side end together
    cleared = out[late]
    odes[0].sample_cleared(np.ascontiguousarray(t_c[late]), t, np.ascontiguousarray(events[late]), cleared)
    out[late] = cleared
    return out


def rk4_step(operators: PhaseOperators) -> float:
    """RK4 step for the fastest swing mode the network could have (Gershgorin), s."""
    fastest = 0.0
    for Y in (operators.Y_pre, operators.Y_post):
        stiffness = np.abs(Y) * np.outer(operators.E, operators.E)
        np.fill_diagonal(stiffness, 0.0)
        fastest = max(fastest, float(np.sqrt((operators.omega_b / operators.H * stiffness.sum(axis=1)).max())))
    return min(MAX_STEP_S, STEP_ANGLE_RAD / fastest)


def fast_trajectory(operators: PhaseOperators, alpha: float, t_c: float, t: Float | None = None) -> Trajectory:
    """One scenario by the compiled integrator at the times t (default: each millisecond)."""
    check_scenario(operators, alpha, t_c)
    t = _sample_times(operators, t_c) if t is None else np.asarray(t, dtype=float)
    states = FastODE(operators, alpha).states(np.array([t_c]), t)[0]
    if not np.isfinite(states).all():
        raise SolverError(f"{operators.name}: the fast integrator failed at alpha = {alpha}; use the strict reference.")
    n = operators.n_machines
    return Trajectory(t, states[:, :n], states[:, n:], t_c, operators.tripped_machines)


def trajectory_grid(operators: PhaseOperators, alpha: Float, t_c: Float, t: Float | None = None) -> Float:
    """States (len(alpha), len(t_c), len(t), 2 n) of a whole grid of scenarios; t_c in order."""
    t = output_times(operators) if t is None else np.asarray(t, dtype=float)
    return np.stack([FastODE(operators, float(a)).states(t_c, t) for a in alpha])

"""Trajectories, margins and CCT of the full-network DAE: the external check of the reduced model.

Differential states are the angles and speeds of the classical machines, algebraic ones the voltages
of all buses; loads are constant impedances or ZIP. The implicit trapezoid has a fixed step that
starts anew at every event and ends with one shorter step, so that events lie on the step grid
wherever they are: the CCT then converges at second order, as the trapezoid does, and is a continuous
function of the clearing instant. Clearing instants of one severity share the fault-on leg.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from contingencies.dae_network import (
    CONSTANT_IMPEDANCE,
    ZipLoads,
    fault_network,
    post_network,
    pre_fault_network,
)
from contingencies.dae_step import Leg, PhaseSolver, whole_steps
from contingencies.errors import UsageError
from contingencies.looks import Look, look_of_samples
from contingencies.network import Complex, Float
from contingencies.operators import PhaseOperators
from contingencies.search import SPARING, Plan, first_crossing
from contingencies.separation import peak, separation, spread
from contingencies.stability import CCT, cct_of, check_scenario

__all__ = ["DAE", "DEFAULT_STEP_S", "DaeTrajectory", "ZipLoads", "dae_cct", "dae_margins", "simulate_dae"]

LOOK_SAMPLES = 513  # of a trajectory shown to a search: a few milliseconds apart, as smooth as it needs
DEFAULT_STEP_S = 1e-3  # within 0.1 ms of the reduced model's CCT on the benchmarks


@dataclass(frozen=True, eq=False)
class DaeTrajectory:
    """States over time, with the instants of both events among the times; V right after an event is given."""

    t: Float  # (k,) s, increasing
    delta: Float  # (k, n) rad
    omega: Float  # (k, n) pu
    V: Complex  # (k, n_b) pu
    t_c: float = math.inf  # s
    tripped: tuple[int, ...] = ()  # machines that leave at t_c

    @property
    def separation(self) -> Float:
        """Largest pairwise angle separation d(t), rad (k,)."""
        return separation(self.t, self.delta, self.t_c, self.tripped)


class DAE:
    """One severity of one contingency on its full network, ready for many clearing instants.

    Parameters
    ----------
    operators : PhaseOperators
    alpha : float
        Severity.
    step : float
        Step of the implicit trapezoid, s.
    loads : ZipLoads, optional
        Voltage dependence of the loads; default constant impedance.
    """

    def __init__(
        self, operators: PhaseOperators, alpha: float, step: float = DEFAULT_STEP_S, loads: ZipLoads | None = None
    ) -> None:
        check_scenario(operators, alpha)
        if not (math.isfinite(step) and step > 0):
            raise UsageError(f"step = {step} s is not a positive number; give one such as {DEFAULT_STEP_S}.")
        self.operators, self.alpha, self.step = operators, alpha, step
        self.loads = loads or CONSTANT_IMPEDANCE
        self._on_leg: Leg | None = None

    @cached_property
    def _before(self) -> PhaseSolver:
        return PhaseSolver(pre_fault_network(self.operators, self.loads), self.step)

    @cached_property
    def _on(self) -> PhaseSolver:
        return PhaseSolver(fault_network(self.operators, self.alpha, self.loads), self.step)

    @cached_property
    def _after(self) -> PhaseSolver:
        return PhaseSolver(post_network(self.operators, self.loads), self.step)

    def trajectory(self, t_c: float) -> DaeTrajectory:
        """The whole study with the fault cleared at t_c."""
        check_scenario(self.operators, self.alpha, t_c)
        ops, window = self.operators, self.operators.window
        delta, omega = ops.delta_0, np.ones(ops.n_machines)
        legs, starts = [], []
        for solver, start, end in (
            (self._before, 0.0, window.t_f), (self._on, window.t_f, t_c), (self._after, t_c, window.T),
        ):  # fmt: skip
            leg = solver.leg(delta, omega, end - start)
            delta, omega = leg.delta[-1], leg.omega[-1]
            legs.append(leg)
            starts.append(start)
        # The end of a leg is the start of the next, whose voltages hold from then on.
        rows = [slice(None, -1), slice(None, -1), slice(None)]
        parts = list(zip(legs, rows, strict=True))
        t = np.concatenate([start + leg.t[r] for start, (leg, r) in zip(starts, parts, strict=True)])
        t[-1] = window.T  # not one round-off beside it
        return DaeTrajectory(
            t=t,
            delta=np.concatenate([leg.delta[r] for leg, r in parts]),
            omega=np.concatenate([leg.omega[r] for leg, r in parts]),
            V=np.concatenate([leg.V[r, : ops.network.n_buses] for leg, r in parts]),
            t_c=t_c,
            tripped=ops.tripped_machines,
        )

    def margins(self, t_c: Float, stop_at_crossing: bool = False) -> Float:
        """Hard margins (m,) of clearing instants (m,) in any order, rad.

        With `stop_at_crossing` trajectories are left as soon as they are known to be unstable: the
        sign is right, the value of a positive margin is not.
        """
        times = np.asarray(t_c, dtype=float)
        for t in times:
            check_scenario(self.operators, self.alpha, float(t))
        if len(times) == 0:
            return np.empty(0)
        limit = self.operators.max_separation if stop_at_crossing else math.inf
        on = self._fault_on(float(times.max()) - self.operators.window.t_f, limit)
        return np.array([self._seen(on, float(t), limit)[2] for t in times]) - self.operators.max_separation

    def look(self, t_c: Float) -> Look:
        """What a search sees of clearing instants (m,); the values of negative margins are right.

        Trajectories are left once they are lost: beyond that a network with ZIP loads may have no solution.
        """
        times, window, limit = np.asarray(t_c, dtype=float), self.operators.window, self.operators.max_separation
        for instant in times:
            check_scenario(self.operators, self.alpha, float(instant))
        on = self._fault_on(float(times.max()) - window.t_f, limit)
        seen = [self._seen(on, float(instant), limit) for instant in times]
        t = np.linspace(window.t_f, window.T, LOOK_SAMPLES)
        sampled = np.stack([np.interp(t, its_t, its_separation) for its_t, its_separation, _ in seen])
        return look_of_samples(t, sampled, limit, np.array([top for *_, top in seen]) - limit)

    def _seen(self, on: Leg, t_c: float, limit: float) -> tuple[Float, Float, float]:
        """Times from t_f on, separations there, and their peak; until the separation passes the limit."""
        window = self.operators.window
        duration = t_c - window.t_f
        full = min(whole_steps(duration, self.step), len(on.t) - 1)
        t, d = on.t[: full + 1], spread(on.delta[: full + 1])
        if d.max() > limit:
            return window.t_f + t, d, float(d.max())
        last = self._on.leg(on.delta[full], on.omega[full], duration - on.t[full], limit, on.V[full])
        t, d = np.append(t, t[-1] + last.t[1:]), np.append(d, spread(last.delta[1:]))
        top = float(peak(d, t)[0])
        if top > limit:
            return window.t_f + t, d, top
        after = self._after.leg(last.delta[-1], last.omega[-1], window.T - t_c, limit)
        d_after = spread(after.delta[:, self.operators.counted_machines])
        return (
            np.append(window.t_f + t, t_c + after.t[1:]),
            np.append(d, d_after[1:]),
            max(top, float(peak(d_after, after.t)[0])),
        )

    def _fault_on(self, duration: float, limit: float) -> Leg:
        """The fault-on leg in full steps, as long as the duration needs or until the limit is passed."""
        leg = self._on_leg
        if leg is None:
            leg = self._on.leg(self.operators.delta_0, np.ones(self.operators.n_machines), 0.0)
        missing = whole_steps(duration, self.step) - (len(leg.t) - 1)
        if missing > 0 and spread(leg.delta[-1]) <= limit:
            more = self._on.leg(leg.delta[-1], leg.omega[-1], missing * self.step, limit, leg.V[-1])
            leg = Leg(
                t=self.step * np.arange(len(leg.t) + len(more.t) - 1.0),
                delta=np.concatenate([leg.delta, more.delta[1:]]),
                omega=np.concatenate([leg.omega, more.omega[1:]]),
                V=np.concatenate([leg.V, more.V[1:]]),
            )
        self._on_leg = leg
        return leg


def simulate_dae(
    operators: PhaseOperators, alpha: float, t_c: float, step: float = DEFAULT_STEP_S, loads: ZipLoads | None = None
) -> DaeTrajectory:
    """One scenario on the full network; raises SolverError where the equations cannot be solved."""
    return DAE(operators, alpha, step, loads).trajectory(t_c)


def dae_margins(
    operators: PhaseOperators,
    alpha: float,
    t_c: Float,
    step: float = DEFAULT_STEP_S,
    loads: ZipLoads | None = None,
    stop_at_crossing: bool = False,
) -> Float:
    """Hard margins (m,) of clearing instants (m,) of one severity, rad; see `DAE.margins`."""
    return DAE(operators, alpha, step, loads).margins(t_c, stop_at_crossing)


def dae_cct(
    operators: PhaseOperators,
    alpha: float,
    step: float = DEFAULT_STEP_S,
    loads: ZipLoads | None = None,
    plan: Plan | None = None,
) -> CCT:
    """Hard CCT of one severity on the full network."""
    dae, window = DAE(operators, alpha, step, loads), operators.window
    plan = (plan or SPARING).within(operators.max_separation)
    crossing = first_crossing(lambda t_c, values: dae.look(t_c), window.t_c, plan)
    return cct_of(crossing, alpha, window.t_f, "dae", plan.intervals)

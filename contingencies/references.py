"""The reference simulators by name: how each simulates a scenario and how its crossings are searched.

strict is the paper's SciPy protocol, fast the compiled reduced ODE, dae the full network. Adding a reference means
adding a row to `METHODS`. The simulators are imported when they are first used: numba is not wanted by those who only
need a name.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from contingencies.errors import SolverError, UsageError
from contingencies.looks import Look
from contingencies.network import Float
from contingencies.operators import PhaseOperators
from contingencies.search import SPARING, Plan, Source, Vicinity, first_crossing, run_together
from contingencies.stability import CCT, Boundary, boundary_of, cct_of, check_scenario
from contingencies.trajectories import Trajectory

Reference = Literal["strict", "fast", "dae"]
Protocol = Literal["bounded", "paper"]
NEAR_POINTS = 7  # a bookkept round costs as much as seven trajectories in full lanes
SECTION_POINTS = 23  # that many margins fill the lanes of the compiled integrator, and two rounds reach the tolerance


@dataclass(frozen=True)
class Methods:
    """What a reference can do."""

    trajectory: Callable[[PhaseOperators, float, float], Trajectory]  # severity, clearing instant
    look: Callable[[PhaseOperators, float], Source]  # severity
    plan: Plan  # how its crossings are searched


def _strict_trajectory(operators: PhaseOperators, alpha: float, t_c: float) -> Trajectory:
    from contingencies.ode import strict_trajectory

    return strict_trajectory(operators, alpha, t_c)


def _strict_source(operators: PhaseOperators, alpha: float) -> Source:
    from contingencies.ode import strict_look

    return lambda t_c, values: strict_look(operators, alpha, t_c)


def _fast_trajectory(operators: PhaseOperators, alpha: float, t_c: float) -> Trajectory:
    from contingencies.ode import fast_trajectory

    return fast_trajectory(operators, alpha, t_c)


def _fast_source(operators: PhaseOperators, alpha: float) -> Source:
    from contingencies.ode import FastODE

    return FastODE(operators, alpha).look


def _dae_trajectory(operators: PhaseOperators, alpha: float, t_c: float) -> Trajectory:
    from contingencies.dae import simulate_dae

    full = simulate_dae(operators, alpha, t_c)
    return Trajectory(full.t, full.delta, full.omega, full.t_c, full.tripped)


def _dae_source(operators: PhaseOperators, alpha: float) -> Source:
    from contingencies.dae import DAE

    dae = DAE(operators, alpha)
    return lambda t_c, values: dae.look(t_c)


METHODS: dict[Reference, Methods] = {
    "strict": Methods(_strict_trajectory, _strict_source, SPARING),
    "fast": Methods(_fast_trajectory, _fast_source, Plan(points_per_call=SECTION_POINTS)),
    "dae": Methods(_dae_trajectory, _dae_source, SPARING),
}


def methods_of(reference: Reference) -> Methods:
    """The methods of a reference, or the names there are."""
    if reference not in METHODS:
        raise UsageError(f"reference {reference!r} is not known; use one of {', '.join(METHODS)}.")
    return METHODS[reference]


def reference_trajectory(operators: PhaseOperators, alpha: float, t_c: float, reference: Reference) -> Trajectory:
    """The trajectory of one scenario, sampled each millisecond."""
    methods = methods_of(reference)
    check_scenario(operators, alpha, t_c)
    return methods.trajectory(operators, alpha, t_c)


def reference_cct(
    operators: PhaseOperators,
    alpha: float,
    reference: Reference = "fast",
    protocol: Protocol = "bounded",
    intervals: bool = False,
) -> CCT:
    """Hard CCT of one severity by a reference simulator.

    Parameters
    ----------
    operators : PhaseOperators
    alpha : float
        Severity.
    reference : "strict", "fast" or "dae"
    protocol : "bounded" or "paper"
        Look into every suspicious cell (theory.md, Search), or only where the paper's clearing grid changes.
    intervals : bool
        Find the edges of every stable interval of clearing instants as well.
    """
    methods = methods_of(reference)
    check_scenario(operators, alpha)
    plan = methods.plan if protocol == "bounded" else Plan.paper(points_per_call=methods.plan.points_per_call)
    plan = replace(plan.within(operators.max_separation), intervals=intervals)
    crossing = first_crossing(methods.look(operators, alpha), operators.window.t_c, plan)
    return cct_of(crossing, alpha, operators.window.t_f, reference, intervals)


def reference_margin(operators: PhaseOperators, alpha: float, t_c: float, reference: Reference = "fast") -> float:
    """Hard margin of one scenario, rad."""
    look = methods_of(reference).look(operators, alpha)(np.array([t_c]), True)
    if not np.isfinite(look.margin).all():
        raise SolverError(f"{operators.name}: the {reference} reference failed at alpha = {alpha}, t_c = {t_c} s.")
    return float(look.margin[0])


def reference_near(operators: PhaseOperators, alpha: Float, near: Vicinity) -> Boundary:
    """Hard CCT of the fast ODE over severities (m,), looked for where it is expected."""
    from contingencies.ode import FastODE, look_together

    odes = [FastODE(operators, float(value)) for value in alpha]

    def source(which: np.ndarray, instants: Float, values: bool) -> Look:
        return look_together([odes[k] for k in which], instants)

    crossings = run_together(near.searches(NEAR_POINTS), source)
    answers = [
        cct_of(crossing, float(value), operators.window.t_f, "fast")
        for value, crossing in zip(alpha, crossings, strict=True)
    ]
    return boundary_of(answers, "fast")


def reference_statuses(operators: PhaseOperators, alpha: Float) -> list[str]:
    """Statuses of severities (m,) by the fast ODE, for a fraction of the cost of their CCTs."""
    plan = replace(SPARING.within(operators.max_separation), status_only=True)
    looks = (METHODS["fast"].look(operators, float(value)) for value in alpha)
    return [first_crossing(look, operators.window.t_c, plan).status for look in looks]


def reference_boundary(
    operators: PhaseOperators,
    alpha: Float,
    reference: Reference = "fast",
    report: Callable[[int], None] | None = None,
    protocol: Protocol = "bounded",
) -> Boundary:
    """Hard CCT over severities (m,); `report` is told how many are done. For `protocol` see `reference_cct`."""
    answers = []
    for value in np.asarray(alpha, dtype=float).ravel():
        answers.append(reference_cct(operators, float(value), reference, protocol))
        if report:
            report(len(answers))
    return boundary_of(answers, reference)

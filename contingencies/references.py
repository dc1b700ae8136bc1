"""The reference simulators by name: how each simulates a scenario and how it finds the first crossing.

strict is the paper's SciPy protocol, fast the compiled reduced ODE, dae the full network. Adding a reference means
adding a row to `METHODS`. The simulators are imported when they are first used: numba is not wanted by those who only
need a name.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from contingencies.errors import UsageError
from contingencies.network import Float
from contingencies.operators import PhaseOperators
from contingencies.stability import CCT, Boundary, Crossing, boundary_of, candidates, check_scenario, first_crossing
from contingencies.trajectories import Trajectory

Reference = Literal["strict", "fast", "dae"]


@dataclass(frozen=True)
class Methods:
    """What a reference can do."""

    trajectory: Callable[[PhaseOperators, float, float], Trajectory]  # severity, clearing instant
    crossing: Callable[[PhaseOperators, float], Crossing]  # severity


def _strict_trajectory(operators: PhaseOperators, alpha: float, t_c: float) -> Trajectory:
    from contingencies.ode import strict_trajectory

    return strict_trajectory(operators, alpha, t_c)


def _strict_crossing(operators: PhaseOperators, alpha: float) -> Crossing:
    from contingencies.ode import strict_margins

    return first_crossing(lambda t_c: strict_margins(operators, alpha, t_c), candidates(operators))


def _fast_trajectory(operators: PhaseOperators, alpha: float, t_c: float) -> Trajectory:
    from contingencies.ode import fast_trajectory

    return fast_trajectory(operators, alpha, t_c)


def _fast_crossing(operators: PhaseOperators, alpha: float) -> Crossing:
    from contingencies.ode import FastODE

    return FastODE(operators, alpha).first_crossing(candidates(operators))


def _dae_trajectory(operators: PhaseOperators, alpha: float, t_c: float) -> Trajectory:
    from contingencies.dae import simulate_dae

    full = simulate_dae(operators, alpha, t_c)
    return Trajectory(full.t, full.delta, full.omega, full.t_c, full.tripped)


def _dae_crossing(operators: PhaseOperators, alpha: float) -> Crossing:
    from contingencies.dae import DAE

    return DAE(operators, alpha).first_crossing(candidates(operators))


METHODS: dict[Reference, Methods] = {
    "strict": Methods(_strict_trajectory, _strict_crossing),
    "fast": Methods(_fast_trajectory, _fast_crossing),
    "dae": Methods(_dae_trajectory, _dae_crossing),
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


def reference_cct(operators: PhaseOperators, alpha: float, reference: Reference = "fast") -> CCT:
    """Hard CCT of one severity by a reference simulator."""
    methods = methods_of(reference)
    check_scenario(operators, alpha)
    crossing = methods.crossing(operators, alpha)
    return CCT(alpha, crossing.status, crossing.t_c, crossing.restabilises, operators.window.t_f, reference)


def reference_boundary(
    operators: PhaseOperators,
    alpha: Float,
    reference: Reference = "fast",
    report: Callable[[int], None] | None = None,
) -> Boundary:
    """Hard CCT over severities (m,); `report` is told how many are done."""
    answers = []
    for value in np.asarray(alpha, dtype=float).ravel():
        answers.append(reference_cct(operators, float(value), reference))
        if report:
            report(len(answers))
    return boundary_of(answers, reference)

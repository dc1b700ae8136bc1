"""Training scenarios over conditions: operating points of a Sobol sequence, a shifted grid of scenarios at each.

A scenario is one (alpha, t_c) at one operating point with its complete trajectory. The operators come from the smooth
family, so no power flow is solved here. Severities and clearing instants differ from point to point, so that all of
them together fill their ranges. The sequence is stretched a little beyond the ranges and cut off there: some points
lie on faces and corners of the domain, and nobody has to extrapolate.
"""

import zlib

import numpy as np

from contingencies.errors import SolverError
from contingencies.network import Float
from contingencies.ode import scenario_states
from contingencies.operator_family import OperatorFamily
from contingencies.operators import PhaseOperators
from contingencies.points import Axis, limits_of, sample_points
from contingencies.trajectories import output_times

OPERATING_POINTS = 64
PER_AXIS = 9  # severities and clearing instants at each operating point; 5,184 scenarios in all
STRETCH = 1.08  # of the sequence about the middle of the ranges


def scenario_places(operators: PhaseOperators, family: OperatorFamily, seed: int) -> tuple[Float, Float, Float]:
    """Severities (s,), clearing instants (s,) and conditions (s, d) of all scenarios, point by point."""
    axes = (*family.axes, Axis("severity", 0.0, 1.0), Axis("clearing", 0.0, 1.0))
    drawn = sample_points(axes, OPERATING_POINTS, zlib.crc32(operators.name.encode()) + seed)
    low, high = limits_of(family.axes)
    points, shifts = drawn[:, :-2], drawn[:, -2:]
    points = np.clip(0.5 * (low + high) + STRETCH * (points - 0.5 * (low + high)), low, high)
    steps = (np.arange(PER_AXIS) + shifts[:, :, None]) / PER_AXIS  # (points, 2, PER_AXIS)
    places = np.clip(0.5 + STRETCH * (steps - 0.5), 0.0, 1.0)
    (first, last), (least, most) = operators.window.t_c, operators.severity
    alpha, t_c = least + (most - least) * places[:, 0], first + (last - first) * places[:, 1]
    grid = (OPERATING_POINTS, PER_AXIS, PER_AXIS)
    return (
        np.broadcast_to(alpha[:, :, None], grid).ravel(),
        np.broadcast_to(t_c[:, None, :], grid).ravel(),
        np.broadcast_to(points[:, None, None, :], (*grid, len(low))).reshape(-1, len(low)),
    )


def simulate_places(
    operators: PhaseOperators, family: OperatorFamily, alpha: Float, t_c: Float, conditions: Float
) -> tuple[Float, Float]:
    """Output times (k,), and states (s, k, 2 n) of scenarios (s,) at conditions (s, d), by the fast reduced ODE."""
    t = output_times(operators)
    states = np.empty((len(alpha), len(t), 2 * operators.n_machines))
    _, point = np.unique(conditions, axis=0, return_inverse=True)
    for one in np.unique(point):
        there = family.operators_at(conditions[np.flatnonzero(point == one)[0]])
        mine = point == one
        states[mine] = scenario_states(there, alpha[mine], t_c[mine], t)
    if not np.isfinite(states).all():
        raise SolverError(
            f"{operators.name}: the fast integrator failed on a training scenario; check the machine data."
        )
    return t, states

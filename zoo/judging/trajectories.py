"""Trajectory errors of a surrogate over grids of severities and clearing instants, against the fast reduced ODE."""

import numpy as np
import torch

from contingencies.network import Float
from contingencies.ode import trajectory_grid
from contingencies.trajectories import output_times
from espinn_moe.surrogate import Surrogate
from zoo.judging.metrics import TrajectoryTotals, trajectory_totals
from zoo.surrogates import datasets

BLOCK = 8  # severities simulated at once


def grid_totals(
    surrogate: Surrogate, alpha: Float, t_c: Float, member: int = 0, chosen: np.ndarray | None = None
) -> TrajectoryTotals:
    """Sums of trajectory errors on the chosen (a, c) pairs of a grid of severities (a,) and clearing instants (c,)."""
    operators = surrogate.members[member]
    chosen = np.ones((len(alpha), len(t_c)), dtype=bool) if chosen is None else chosen
    t, totals = output_times(operators), TrajectoryTotals()
    for begin in range(0, len(alpha), BLOCK):
        some, pairs = alpha[begin : begin + BLOCK], chosen[begin : begin + BLOCK]
        with torch.no_grad():
            times, severities, instants = (torch.as_tensor(x, dtype=surrogate.dtype) for x in (t, some, t_c))
            learned = surrogate.trajectories(times, severities, instants, member).double().numpy()
        totals += trajectory_totals(learned[pairs], trajectory_grid(operators, some, t_c, t)[pairs])
    return totals


def held_out_totals(surrogate: Surrogate, member: int = 0, thin: int = 1) -> TrajectoryTotals:
    """The same on the held-out pairs of every `thin`-th severity of the evaluation grid."""
    grid = datasets.evaluation_grid(surrogate.members[member])
    return grid_totals(surrogate, grid.alpha[::thin], grid.t_c, member, grid.held_out[::thin])

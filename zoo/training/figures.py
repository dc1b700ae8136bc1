"""Figures that are kept with a training: the learned boundary and one trajectory beside the reference."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from contingencies.ode import fast_trajectory
from contingencies.operators import PhaseOperators
from contingencies.stability import Boundary
from contingencies.trajectories import Trajectory, output_times
from espinn_moe.surrogate import Surrogate
from zoo.judging.figures import plot_trajectories
from zoo.plots import new_figure, save_figure

MEMBERS_SHOWN = 4  # of a family
BEYOND_S = 0.05  # the trajectory shown is cleared so much later than its CCT


def save_training_figures(
    folder: Path, surrogate: Surrogate, boundaries: Mapping[int, tuple[Boundary, Boundary]]
) -> list[Path]:
    """Write the figures of the first members and return their paths.

    Parameters
    ----------
    folder : Path
        Made if it is not there.
    surrogate : Surrogate
    boundaries : {member: (learned, reference)}
        Of those that were trained.
    """
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for member, (learned, reference) in list(boundaries.items())[:MEMBERS_SHOWN]:
        operators = surrogate.members[member]
        alpha, t_c = _shown_scenario(operators, reference)
        trajectories = learned_trajectory(surrogate, alpha, t_c, member), fast_trajectory(operators, alpha, t_c)
        swing = plot_trajectories(operators, trajectories[0], {"reduced ODE": trajectories[1]}, alpha, t_c)
        figures = {"trajectory": swing}
        if operators.family is None:  # over conditions, severities do not lie on one curve
            figures = {"boundary": plot_comparison(operators, learned, reference)} | figures
        for kind, figure in figures.items():
            paths.append(folder / f"{operators.name}-{kind}.png")
            save_figure(figure, paths[-1])
    return paths


@torch.no_grad()
def learned_trajectory(surrogate: Surrogate, alpha: float, t_c: float, member: int = 0) -> Trajectory:
    """One scenario as the surrogate sees it, on the output grid."""
    t = output_times(surrogate.members[member])
    instants, severity, clearing = (torch.as_tensor(v, dtype=surrogate.dtype) for v in (t, alpha, t_c))
    states = surrogate.states(instants, severity, clearing, member).double().numpy(force=True)
    n = surrogate.n_machines
    return Trajectory(t, states[:, :n], states[:, n:])


def plot_comparison(operators: PhaseOperators, learned: Boundary, reference: Boundary) -> Any:
    """CCT over severity, learned beside reference, and the error below."""
    figure, (top, bottom) = new_figure(2, 1, height=5.6, sharex=True)
    top.plot(reference.alpha, reference.cct, "-", color="black", lw=1.4, label="reduced ODE")
    top.plot(learned.alpha, learned.cct, "o", color="C1", ms=4, mfc="none", label="learned")
    top.set_ylabel("critical clearing instant (s)")
    top.set_title(f"{operators.name}: severities that no training set contains", fontsize=10)
    top.legend(fontsize=8)
    bottom.plot(learned.alpha, 1e3 * (learned.cct - reference.cct), "o-", color="C1", ms=3, lw=0.8)
    bottom.axhline(0.0, color="0.5", lw=0.8)
    bottom.set_ylabel("error (ms)")
    bottom.set_xlabel("severity α")
    bottom.set_xlim(*operators.severity)
    return figure


def _shown_scenario(operators: PhaseOperators, reference: Boundary) -> tuple[float, float]:
    """A scenario just beyond the boundary, at a severity well inside its finite part."""
    finite = np.flatnonzero(reference.finite)
    if not len(finite):
        return operators.severity[1], operators.window.t_c[1]
    k = finite[(3 * len(finite)) // 4]
    return float(reference.alpha[k]), min(float(reference.cct[k]) + BEYOND_S, operators.window.t_c[1])

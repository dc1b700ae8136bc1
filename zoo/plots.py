"""Plots: trajectories and stability boundaries, each function returns a figure for `save_figure`.

matplotlib is imported where it is used and never opens a window.
"""

from pathlib import Path
from typing import Any

import numpy as np

from contingencies.errors import UsageError
from contingencies.files import user_file
from contingencies.operators import PhaseOperators
from contingencies.stability import Boundary
from contingencies.trajectories import Trajectory

FORMATS = (".png", ".svg", ".pdf")
FOLDER = "figures"  # of a zoo home, with one folder for each run


def new_figure(
    rows: int = 1, columns: int = 1, width: float = 7.0, height: float = 4.2, **options: Any
) -> tuple[Any, Any]:
    """A figure and its axes, drawn without a display.

    Nothing but the caller holds it (pyplot would, until told to close it), so a report may draw as many as it likes.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(rows, columns, **options)


def save_figure(figure: Any, path: Path) -> None:
    """Write a figure whole or not at all; the format follows the file name."""
    if path.suffix.lower() not in FORMATS:
        raise UsageError(f"{path}: a figure is written as {', '.join(FORMATS)}; choose such a file name.")
    with user_file(path) as temporary:
        figure.savefig(temporary, dpi=150)


def plot_trajectory(operators: PhaseOperators, trajectory: Trajectory, alpha: float, t_c: float) -> Any:
    """Angles relative to the inertia centre and speeds of all machines; the fault is shaded."""
    figure, (top, bottom) = new_figure(2, 1, height=5.6, sharex=True)
    centre = trajectory.delta @ operators.H / operators.H.sum()
    for k, bus in enumerate(operators.machine_buses):
        top.plot(trajectory.t, trajectory.delta[:, k] - centre, label=f"bus {bus}", lw=1.2)
        bottom.plot(trajectory.t, trajectory.omega[:, k], lw=1.2)
    for axes in (top, bottom):
        axes.axvspan(operators.window.t_f, t_c, color="0.9", label="fault on" if axes is top else None)
        axes.grid(alpha=0.3)
    top.set_ylabel("angle to inertia centre (rad)")
    top.set_title(f"{operators.name}, severity {alpha:g}, cleared at {t_c:g} s", fontsize=10)
    top.legend(fontsize=7, ncol=max(1, (operators.n_machines + 1) // 8 + 1))
    bottom.set_ylabel("speed (pu)")
    bottom.set_xlabel("time (s)")
    return figure


def plot_boundary(operators: PhaseOperators, boundary: Boundary) -> Any:
    """CCT over severity with its censored ranges."""
    figure, axes = new_figure()
    axes.plot(boundary.alpha, boundary.cct, "-", color="C0", lw=1.6, label=f"CCT ({boundary.reference} reference)")
    again = boundary.restabilises & boundary.finite
    if again.any():
        axes.plot(
            boundary.alpha[again], boundary.cct[again], "o", ms=4, mfc="none", color="C3", label="stable again later"
        )
    first, last = operators.window.t_c
    levels = {
        "right-censored": (last, "stable throughout the window"),
        "left-censored": (first, "unstable throughout the window"),
    }
    for status, (level, label) in levels.items():
        censored = np.array([s == status for s in boundary.status])
        if censored.any():
            axes.plot(boundary.alpha[censored], np.full(censored.sum(), level), "_", color="0.6", label=label)
    axes.set_xlabel("severity α")
    axes.set_ylabel("critical clearing instant (s)")
    axes.set_xlim(*operators.severity)
    margin = 0.03 * (last - first)
    axes.set_ylim(first - margin, last + margin)
    duration = axes.secondary_yaxis(
        "right", functions=(lambda t: t - operators.window.t_f, lambda d: d + operators.window.t_f)
    )
    duration.set_ylabel("critical fault duration (s)")
    axes.set_title(operators.name, fontsize=10)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
    return figure

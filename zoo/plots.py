"""Plots: trajectories and stability boundaries, each function returns a figure for `save_figure`.

matplotlib is imported where it is used and never opens a window.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from contingencies.errors import UsageError
from contingencies.files import user_file
from contingencies.operators import PhaseOperators
from contingencies.severity import fault_coefficient
from contingencies.stability import Boundary
from contingencies.trajectories import Trajectory
from espinn_moe.phases import SETTLED_RAD

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
    """Angles to the inertia centre, their separation with its limit, and speeds; the fault is shaded.

    Where synchronism is lost, a second column shows what happens before the separation passes 1.5 pi: afterwards the
    machines slip by tens of radians and nothing else could be seen.
    """
    decided = trajectory.crossing(SETTLED_RAD)
    figure, panels = new_figure(
        3, 1 if decided is None else 2, width=7.0 if decided is None else 11.0, height=7.0, sharex="col", squeeze=False
    )
    crossing = trajectory.crossing(operators.max_separation)
    for column, end in enumerate((operators.window.T, decided)[: panels.shape[1]]):
        shown = trajectory.t <= (end or 0.0)
        _draw_machines(panels[:, column], operators, trajectory, shown)
        _draw_limit(panels[1, column], operators.max_separation, crossing)
        for axes in panels[:, column]:
            axes.axvspan(operators.window.t_f, min(t_c, end or t_c), color="0.9", label="fault on")
            axes.grid(alpha=0.3)
        panels[-1, column].set_xlabel("time (s)")
    panels[0, 0].set_ylabel("angle to inertia centre (rad)")
    panels[1, 0].set_ylabel("largest separation (rad)")
    panels[2, 0].set_ylabel("speed (pu)")
    if decided is not None:
        panels[0, 1].set_title("until the separation passes 1.5 π", fontsize=10)
    panels[0, 0].set_title(f"{operators.name}, severity {alpha:g}, cleared at {t_c:g} s", fontsize=10)
    panels[0, 0].legend(fontsize=7, ncol=max(1, (operators.n_machines + 1) // 8 + 1))
    panels[1, 0].legend(fontsize=7)
    return figure


def _draw_machines(column: Any, operators: PhaseOperators, trajectory: Trajectory, shown: np.ndarray) -> None:
    """Angles, separation and speeds of the samples `shown` (k,) on the three axes of a column."""
    t = trajectory.t[shown]
    centre = trajectory.delta @ operators.H / operators.H.sum()
    for k, bus in enumerate(operators.machine_buses):
        column[0].plot(t, (trajectory.delta[:, k] - centre)[shown], label=f"bus {bus}", lw=1.2)
        column[2].plot(t, trajectory.omega[shown, k], lw=1.2)
    column[1].plot(t, trajectory.separation[shown], color="black", lw=1.4, label="separation")


def _draw_limit(axes: Any, limit: float, crossing: float | None) -> None:
    """The admissible separation, and where it is first reached."""
    axes.axhline(limit, color="C3", ls="--", lw=1.2, label=f"limit {limit:.4g} rad")
    if crossing is not None:
        axes.plot([crossing], [limit], "o", color="C3", ms=5, label=f"reached at {crossing:.3f} s")


def plot_separations(operators: PhaseOperators, trajectories: Mapping[float, Trajectory], alpha: float) -> Any:
    """Separation over time of the same fault cleared at several instants (s), until it passes 1.5 pi."""
    figure, axes = new_figure()
    for t_c, trajectory in trajectories.items():
        decided = trajectory.crossing(SETTLED_RAD)
        shown = trajectory.t <= (operators.window.T if decided is None else decided)
        verdict = "stays in step" if trajectory.crossing(operators.max_separation) is None else "loses synchronism"
        lasting = 1e3 * (t_c - operators.window.t_f)
        axes.plot(
            trajectory.t[shown], trajectory.separation[shown], lw=1.4, label=f"fault lasts {lasting:.1f} ms: {verdict}"
        )
    _draw_limit(axes, operators.max_separation, None)
    axes.axvline(operators.window.t_f, color="0.6", lw=0.8, label="fault")
    axes.set_xlabel("time (s)")
    axes.set_ylabel("largest separation (rad)")
    axes.set_title(f"{operators.name}, severity {alpha:g}", fontsize=10)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
    return figure


def voltage_left(operators: PhaseOperators, alpha: np.ndarray) -> np.ndarray | None:
    """What severities (m,) leave of the voltage at the fault point, as a part of it; None without such a point."""
    if operators.fault_point is None:
        return None
    coefficient = fault_coefficient(alpha, operators.fault_gain, operators.fault_bend)
    left: np.ndarray = np.abs(1.0 - coefficient * operators.fault_z_th)
    return left


def add_voltage_scale(axes: Any, operators: PhaseOperators) -> None:
    """Above an axis of severities, what they leave of the voltage at the fault point: the same for every law."""
    alpha = np.linspace(*operators.severity, 1001)
    left = voltage_left(operators, alpha)
    if left is None or not (np.diff(left) < 0).all():
        return
    ticks: dict[int, float] = {}  # percent -> severity, each far enough from the one before to be read
    for percent in (100, 90, 80, 70, 60, 50, 40, 30, 20, 10, 5, 2, 1, 0):
        if left[-1] - 1e-9 <= percent / 100 <= left[0] + 1e-9:
            place = float(np.interp(-percent / 100, -left, alpha))
            if not ticks or place - max(ticks.values()) > 0.04 * (alpha[-1] - alpha[0]):
                ticks[percent] = place
    scale = axes.secondary_xaxis("top")
    scale.set_xticks(list(ticks.values()), [str(percent) for percent in ticks], fontsize=7)
    scale.set_xlabel("voltage left at the fault point (%)", fontsize=8)


def add_required_line(axes: Any, operators: PhaseOperators, required: float | None) -> None:
    """Across an axis of clearing instants, when protection clears at the latest; `required` is a duration, s."""
    if required is not None:
        instant = operators.window.t_f + required
        axes.axhline(instant, color="C3", lw=1.2, ls="-.", label=f"required: {1e3 * required:g} ms")


def plot_boundary(operators: PhaseOperators, boundary: Boundary, required: float | None = None) -> Any:
    """CCT over severity with its censored ranges, and the duration that protection needs, s, where it is known."""
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
    add_required_line(axes, operators, required)
    add_voltage_scale(axes, operators)
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


def draw_errors(axes: Any, alpha: np.ndarray, error: np.ndarray, bound: float | None = None, **style: Any) -> None:
    """The panel of CCT errors (m,), s, over severities (m,): drawn in ms, with the bound (s) claimed for them."""
    if np.isfinite(error).any():
        axes.plot(alpha, 1e3 * error, **({"marker": "o", "ms": 3.5, "ls": "none", "color": "C1"} | style))
    else:
        axes.annotate("no number to compare", (0.5, 0.5), xycoords="axes fraction", ha="center", color="0.4")
    axes.axhline(0.0, color="0.5", lw=0.8)
    if bound is not None:
        axes.axhspan(-1e3 * bound, 1e3 * bound, color="C0", alpha=0.15, label="95 % bound")
        axes.legend(fontsize=8)
    axes.set_ylabel("CCT error (ms)")
    axes.grid(alpha=0.3)

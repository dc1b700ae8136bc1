"""Figures over conditions: what small changes do, CCT over two conditions, CCT along one (as along a line)."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from contingencies.network import Float
from contingencies.points import Axis
from espinn_moe.condition_head import ConditionHead

GRID = 121  # points per axis of a surface
RIGHT_CENSORED = 1  # index into the statuses of a head


def plot_tornado(changes: Sequence[tuple[str, float]], title: str) -> Any:
    """Bars of what each change (words, ms) does to the CCT, largest on top."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.5, 1.0 + 0.4 * len(changes)), layout="constrained")
    axes = figure.subplots()
    values = [value for _, value in changes]
    axes.barh(range(len(changes)), values, color=["C3" if value < 0 else "C0" for value in values])
    axes.set_yticks(range(len(changes)), [words for words, _ in changes])
    axes.invert_yaxis()
    axes.axvline(0.0, color="0.3", lw=0.8)
    axes.set_xlabel("change of the CCT, ms")
    axes.set_title(title, fontsize=9)
    return figure


def plot_surface(head: ConditionHead, alpha: float, over: tuple[str, str], title: str) -> Any:
    """Critical fault duration over two conditions with iso-lines; the censored region is hatched."""
    from matplotlib.figure import Figure

    across, up = (_axis(head, name) for name in over)
    x, y = np.linspace(across.low, across.high, GRID), np.linspace(up.low, up.high, GRID)
    points = np.broadcast_to(np.array(head.own), (GRID, GRID, len(head.axes))).copy()
    points[..., _place(head, over[0])], points[..., _place(head, over[1])] = np.meshgrid(x, y)
    cct, code = head.answers(np.array(alpha), points)
    figure = Figure(figsize=(6.5, 4.8), layout="constrained")
    axes = figure.subplots()
    axes.contourf(x, y, (code == RIGHT_CENSORED).astype(float), levels=[0.5, 1.5], colors="none", hatches=["//"])
    if np.isfinite(cct).any():
        shown = axes.contourf(x, y, 1e3 * (cct - head.t_f), levels=24)
        lines = axes.contour(x, y, 1e3 * (cct - head.t_f), levels=8, colors="k", linewidths=0.6)
        axes.clabel(lines, fontsize=7)
        figure.colorbar(shown, label="critical fault duration, ms")
    axes.set_xlabel(_label(across))
    axes.set_ylabel(_label(up))
    axes.set_title(f"{title} (hatched: stable throughout the window)", fontsize=9)
    return figure


def plot_along(head: ConditionHead, alpha: float, over: str, title: str) -> Any:
    """Critical fault duration along one condition, with its bound; as along a line for the position."""
    from matplotlib.figure import Figure

    axis = _axis(head, over)
    x = np.linspace(axis.low, axis.high, 2 * GRID)
    points = np.tile(np.array(head.own), (len(x), 1))
    points[:, _place(head, over)] = x
    cct, _, bound = head.bounded_answers(np.array(alpha), points)
    duration: Float = 1e3 * (cct - head.t_f)
    figure = Figure(figsize=(6.5, 3.6), layout="constrained")
    axes = figure.subplots()
    axes.plot(x, duration)
    axes.fill_between(x, duration - 1e3 * bound, duration + 1e3 * bound, alpha=0.3)
    axes.set_xlabel(_label(axis))
    axes.set_ylabel("critical fault duration, ms")
    axes.set_title(title, fontsize=9)
    return figure


def _place(head: ConditionHead, name: str) -> int:
    return [axis.name for axis in head.axes].index(name)


def _axis(head: ConditionHead, name: str) -> Axis:
    head.values({name: 0.0})  # names the conditions there are when this is none of them
    return head.axes[_place(head, name)]


def _label(axis: Axis) -> str:
    return f"{axis.name}{f', {axis.unit}' if axis.unit else ''}"

"""Figures over conditions: what small changes do, CCT over two conditions, CCT along one (as along a line)."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from contingencies.points import Axis
from zoo.judging.surfaces import Surface
from zoo.plots import new_figure

ISO_LINES = 8
HATCHES = {"right-censored": ("//", "stable throughout the window"), "left-censored": ("xx", "unstable throughout")}
UNKNOWN = "..", "uncertain"  # what a head says so close to the edge that its own error decides


def plot_tornado(changes: Sequence[tuple[str, float]], title: str) -> Any:
    """Bars of what each change (words, ms) does to the CCT, largest on top."""
    figure, axes = new_figure(height=1.0 + 0.4 * len(changes))
    values = [value for _, value in changes]
    axes.barh(range(len(changes)), values, color=["C3" if value < 0 else "C0" for value in values])
    axes.set_yticks(range(len(changes)), [words for words, _ in changes])
    axes.invert_yaxis()
    axes.axvline(0.0, color="0.3", lw=0.8)
    axes.set_xlabel("change of the CCT, ms")
    axes.set_title(title, fontsize=9)
    return figure


def plot_surface(surface: Surface) -> Any:
    """Critical fault duration over two conditions with iso-lines; regions without a number are hatched."""
    from matplotlib.patches import Patch

    figure, axes = new_figure(height=4.8)
    (x, y), duration = surface.values, surface.duration_ms.T
    handles = []
    for status, (hatch, words) in {**HATCHES, "uncertain": UNKNOWN}.items():
        here = np.asarray(surface.status.transpose() == status)
        if here.any():  # only between points that all have this status: what lies beside them nobody has asked
            axes.contourf(x, y, here.astype(float), levels=[1.0 - 1e-6, 1.5], colors=["0.92"], hatches=[hatch])
            handles.append(Patch(facecolor="0.92", edgecolor="k", hatch=hatch, label=words))
    if handles:
        handles.append(Patch(facecolor="w", edgecolor="k", label="not known: take more points"))
    if np.isfinite(duration).sum() > 3:
        shown = axes.contourf(x, y, duration, levels=24)
        lines = axes.contour(x, y, duration, levels=ISO_LINES, colors="k", linewidths=0.6)
        axes.clabel(lines, fontsize=7)
        figure.colorbar(shown, label="critical fault duration (ms)")
    axes.set_xlim(x[0], x[-1])
    axes.set_ylim(y[0], y[-1])
    axes.set_xlabel(_label(surface.axes[0]))
    axes.set_ylabel(_label(surface.axes[1]))
    axes.set_title(_title(surface), fontsize=9)
    if handles:
        axes.legend(handles=handles, fontsize=8)
    return figure


def plot_along(surface: Surface) -> Any:
    """Critical fault duration along one condition, with its bound; along the line for the position."""
    figure, axes = new_figure(height=3.6)
    x, duration = surface.values[0], surface.duration_ms
    axes.plot(x, duration)
    if surface.bound is not None:
        axes.fill_between(x, duration - 1e3 * surface.bound, duration + 1e3 * surface.bound, alpha=0.3, label="bound")
    for status, (_, words) in HATCHES.items():
        here = np.asarray(surface.status == status)
        if here.any():
            axes.plot(x[here], np.full(here.sum(), 0.0), "_", color="0.5", transform=axes.get_xaxis_transform(),
                      clip_on=False, label=words)  # fmt: skip
    if axes.get_legend_handles_labels()[0]:
        axes.legend(fontsize=8)
    axes.set_xlim(x[0], x[-1])
    axes.set_xlabel(_label(surface.axes[0]))
    axes.set_ylabel("critical fault duration (ms)")
    axes.set_title(_title(surface), fontsize=9)
    axes.grid(alpha=0.3)
    return figure


def _title(surface: Surface) -> str:
    fixed = f", {surface.fixed}" if surface.fixed else ""
    return f"{surface.contingency}, severity {surface.alpha:g}{fixed} [{surface.source}]"


def _label(axis: Axis) -> str:
    return f"{axis.name}{f' ({axis.unit})' if axis.unit else ''}"

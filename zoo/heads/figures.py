"""A figure of a distilled head: its CCT over severity, and its error where the strict ODE was asked."""

from typing import Any

import numpy as np

from contingencies.operators import PhaseOperators
from espinn_moe.condition_head import AnyHead
from espinn_moe.head import Array
from zoo.plots import draw_errors, new_figure

POINTS = 401  # severities of the curve


def plot_head(operators: PhaseOperators, head: AnyHead, strict: Array) -> Any:
    """A head's CCT over severity above its error at strict severities and CCTs (m, 2).

    A head over conditions is drawn at the case's own operating point.
    """
    figure, (top, bottom) = new_figure(2, 1, height=5.6, sharex=True, height_ratios=(1.0, 0.5))
    alpha = np.linspace(*head.severity, POINTS)
    top.plot(alpha, head.answers(alpha)[0], "-", color="C0", lw=1.6, label="head")
    top.plot(strict[:, 0], strict[:, 1], "x", color="black", ms=6, label="strict ODE")
    top.set_ylabel("critical clearing instant (s)")
    top.set_xlim(*head.severity)
    top.set_ylim(*operators.window.t_c)
    top.set_title(operators.name, fontsize=10)
    top.grid(alpha=0.3)
    top.legend(fontsize=8)
    draw_errors(bottom, strict[:, 0], head.answers(strict[:, 0])[0] - strict[:, 1], head.error_bound_s)
    bottom.set_xlabel("severity α")
    return figure

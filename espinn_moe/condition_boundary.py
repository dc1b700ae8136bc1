"""First crossings of a surrogate at any operating point, and how they move with severity and conditions.

The search is that of `espinn_moe.boundary`; here every row has its own severity and its own conditions, and all rows
search together. Derivatives are those of theory.md eq. (23), with the conditions beside the severity: one backward pass
through chain, operators and polynomials gives them all.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from contingencies.network import Float
from contingencies.stability import Boundary
from espinn_moe.boundary import boundary_of_probe, checked_severities
from espinn_moe.chained import Chained
from espinn_moe.margins import HARD, Angles, MarginProbe, Rows
from espinn_moe.sensitivity import MIN_SLOPE_RAD_PER_S

EDGE_STRETCH = 1.2  # how far beyond the severities it was trained on a surrogate's edge is looked for
EDGE_HALVINGS = 30  # to 1e-9 of the severity


def point_angles(surrogate: Chained, alpha: Float, conditions: Float, member: int = 0) -> Angles:
    """Rotor angles of a surrogate at severities (a,) and conditions (a, d), for a `MarginProbe`."""
    device = surrogate.calibrated.device

    def angles(row: Rows, t: Float, t_c: Float, limit: float | None) -> Tensor:
        times, severities, instants, points = (
            torch.as_tensor(x, dtype=surrogate.dtype, device=device) for x in (t, alpha[row], t_c, conditions[row])
        )
        with torch.inference_mode():
            states = surrogate.trajectories(times, severities, instants, member, limit, points)
        return states[..., : surrogate.n_machines].double()

    return angles


def point_boundary(
    surrogate: Chained,
    alpha: Float,
    conditions: Float,
    member: int = 0,
    report: Callable[[int], None] | None = None,
) -> Boundary:
    """Hard CCT of rows with severities (m,) and conditions (m, d) as a surrogate's trajectories imply it."""
    operators = surrogate.members[member]
    alpha, conditions = checked_severities(operators, alpha), np.asarray(conditions, dtype=float)
    probe = MarginProbe(point_angles(surrogate, alpha, conditions, member), operators, HARD)
    return boundary_of_probe(probe, alpha, "learned-hard", report)


def learned_edges(surrogate: Chained, conditions: Float, member: int = 0) -> Float:
    """Severities (m,) at which clearing at the end of the window becomes unstable at conditions (m, d).

    Returns
    -------
    array (m,)
        inf where even severities beyond the studied ones stay stable.
    """
    operators = surrogate.members[member]
    last = np.full((len(conditions), 1), operators.window.t_c[1])
    most = operators.severity[1] * (1.0 if operators.fault_bend == 0 else EDGE_STRETCH)
    low, high = np.zeros(len(conditions)), np.full(len(conditions), most)

    def unstable(alpha: Float) -> np.ndarray:
        probe = MarginProbe(point_angles(surrogate, alpha, conditions, member), operators, HARD)
        return np.asarray(probe.signs(last)[:, 0] >= 0)

    never = ~unstable(high)
    for _ in range(EDGE_HALVINGS):
        middle = 0.5 * (low + high)
        beyond = unstable(middle)
        low, high = np.where(beyond, low, middle), np.where(beyond, middle, high)
    return np.where(never, np.inf, high)


@dataclass(frozen=True)
class PointGradient:
    """How a finite CCT moves; all None where the margin hardly depends on the clearing instant."""

    cct: float  # s
    by_alpha: float | None  # s per unit of severity
    by_condition: tuple[float, ...] | None  # s per unit of each condition


def point_gradient(surrogate: Chained, alpha: float, values: Float, cct: float, member: int = 0) -> PointGradient:
    """dCCT/dalpha and dCCT/d(condition) of a learned boundary at one point (d,), theory.md eq. (72).

    The hard margin is differentiated at its peak, whose own motion contributes nothing.
    """
    points = np.asarray(values, dtype=float)[None]
    probe = MarginProbe(point_angles(surrogate, np.array([alpha]), points, member), surrogate.members[member], HARD)
    t_peak, high, low = probe.peak_instant(cct)
    device, dtype = surrogate.calibrated.device, surrogate.dtype
    severity, instant, conditions = (
        torch.tensor(value, dtype=dtype, device=device, requires_grad=True) for value in (alpha, cct, points[0])
    )
    time = torch.tensor(t_peak, dtype=dtype, device=device)
    delta = surrogate.states(time, severity, instant, member, conditions)
    slopes = torch.autograd.grad(delta[high] - delta[low], (severity, instant, conditions))
    by_alpha, by_t_c, by_condition = (slope.double().numpy(force=True) for slope in slopes)
    if not by_t_c >= MIN_SLOPE_RAD_PER_S:
        return PointGradient(cct, None, None)
    return PointGradient(cct, float(-by_alpha / by_t_c), tuple((-by_condition / by_t_c).tolist()))

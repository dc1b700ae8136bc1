"""How steeply separation passes its limit as the fault is cleared later: the jump that a model has to draw."""

from typing import Any

import numpy as np

from contingencies.references import reference_boundary
from contingencies.sensitivity import margin_gradient
from zoo.paper.measurements import severity_grid
from zoo.paper.members import operators_of


def reference_slopes(contingency: str, severities: int) -> dict[str, Any]:
    """Derivative of the reduced ODE's hard margin by the clearing instant at its CCT, rad/s, by variational equations.

    `severities` is as in `measurements.assess`; those without a finite CCT have none.
    """
    operators = operators_of(contingency)
    boundary = reference_boundary(operators, severity_grid(operators, severities))
    slopes = [
        float(margin_gradient(operators, float(alpha), float(cct)).by_t_c) if np.isfinite(cct) else None
        for alpha, cct in zip(boundary.alpha, boundary.cct, strict=True)
    ]
    return {"slope_rad_per_s": slopes}


def median_slope(slopes: list[float | None]) -> float | None:
    """Median size of the slopes there are, rad/ms."""
    known = np.abs([slope for slope in slopes if slope is not None and np.isfinite(slope)])
    return float(1e-3 * np.median(known)) if known.size else None

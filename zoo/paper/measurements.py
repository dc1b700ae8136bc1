"""Measurements that several entries share; they take a surrogate and plain options and return plain values."""

from dataclasses import asdict
from typing import Any

import numpy as np

from contingencies.network import Float
from contingencies.operators import PhaseOperators
from contingencies.references import Reference, reference_boundary
from contingencies.stability import Boundary
from espinn_moe.boundary import margin_map
from espinn_moe.margins import SMOOTH, MarginProbe, ode_angles
from espinn_moe.surrogate import Surrogate
from zoo.judging.assessment import assess_boundary
from zoo.judging.metrics import mean_iou
from zoo.judging.trajectories import grid_totals, held_out_totals
from zoo.paper.members import operators_of
from zoo.surrogates.datasets import evaluation_grid


def held_out(surrogate: Surrogate, thin: int) -> dict[str, Any]:
    """Sums of trajectory errors on the held-out pairs of every `thin`-th severity, for every member."""
    members = range(len(surrogate.members))
    return {"members": [asdict(held_out_totals(surrogate, member, thin)) for member in members]}


def assess(surrogate: Surrogate, severities: int) -> dict[str, Any]:
    """The learned boundary beside the reduced ODE's, with sensitivities.

    `severities` is 50 for those between the points of the training grid, else the number of evenly spread ones.
    """
    assessment = assess_boundary(surrogate, severity_grid(surrogate.members[0], severities), reference="fast")
    return {"summary": assessment.summary(), "rows": assessment.rows()}


def severity_grid(operators: PhaseOperators, count: int) -> Float:
    """The 50 unseen severities, or `count` evenly spread ones."""
    return evaluation_grid(operators).unseen_alpha if count == 50 else np.linspace(*operators.severity, count)


def reference_curve(contingency: str, severities: int, reference: Reference) -> dict[str, Any]:
    """A reference's boundary."""
    operators = operators_of(contingency)
    return boundary_values(
        reference_boundary(operators, severity_grid(operators, severities), reference, protocol="paper")
    )


def boundary_values(boundary: Boundary) -> dict[str, Any]:
    """A boundary as plain values."""
    return {
        "alpha": [float(a) for a in boundary.alpha],
        "cct": [float(c) if np.isfinite(c) else None for c in boundary.cct],
        "status": list(boundary.status),
    }


def grid_errors(surrogate: Surrogate, alpha: Float, t_c: Float) -> dict[str, Any]:
    """Trajectory errors on a grid of severities (a,) and clearing instants (c,), and overlap of its stability map."""
    operators = surrogate.members[0]
    ours = margin_map(surrogate, alpha, t_c, rule=SMOOTH)
    truth = MarginProbe(ode_angles(operators, alpha), operators, SMOOTH).signs(np.tile(t_c, (len(alpha), 1)))
    return grid_totals(surrogate, alpha, t_c).errors().to_dict() | {"miou": mean_iou(ours >= 0, truth >= 0)}

"""From a source over conditions to a head with its bound and what was measured, over the whole domain.

Reconstruction is measured against the source; the bound is calibrated on rows drawn like queries against the fast
ODE; the gate is decided by the strict ODE, half of whose rows lie where the head has a number. Truth at a point is
that of the smooth family, which agrees with a solved point to 1e-9.
"""

from dataclasses import replace

import numpy as np

from contingencies.network import Float
from contingencies.operator_family import OperatorFamily
from contingencies.point_references import censoring_edge, reference_points
from contingencies.stability import Boundary
from espinn_moe.chained import Chained
from espinn_moe.condition_boundary import learned_edges, point_boundary
from espinn_moe.condition_head import ConditionHead
from espinn_moe.condition_head_fit import (
    ROOT_POINTS,
    Domain,
    PointSource,
    calibrated,
    draw_rows,
    fit_condition_head,
    point_errors,
)
from espinn_moe.head import STATUSES, UNCERTAIN
from registry.store.heads import Measured, Statuses
from zoo.work.reporting import Report, silent, within

CALIBRATION = 2000  # rows behind the bounds: about 60 to 200 for each of ten distances to the edge
RECONSTRUCTED = 200  # rows at which the head is compared with its source


def reference_points_source(family: OperatorFamily, report: Report = silent) -> PointSource:
    """Edges and CCTs of the fast ODE."""

    def edges(conditions: Float) -> Float:
        return np.array([censoring_edge(family, point) for point in conditions])

    def roots(alpha: Float, conditions: Float) -> Boundary:
        return reference_points(family, alpha, conditions, report=within(report, "asking the boundary", len(alpha)))

    return PointSource(edges, roots)


def surrogate_points_source(surrogate: Chained, member: int) -> PointSource:
    """Edges and CCTs that a surrogate implies."""
    return PointSource(
        lambda conditions: learned_edges(surrogate, conditions, member),
        lambda alpha, conditions: point_boundary(surrogate, alpha, conditions, member),
    )


def distill_points(
    source: PointSource,
    family: OperatorFamily,
    strict: int,
    seed: int = 0,
    points: int = ROOT_POINTS,
    calibration: int = CALIBRATION,
    report: Report = silent,
) -> tuple[ConditionHead, Measured, Boundary]:
    """A head over conditions, what was measured of it, and where the strict ODE was asked.

    Parameters
    ----------
    source : PointSource
        The reference's CCTs or a surrogate's.
    family : OperatorFamily
        For the truth.
    strict : int
        Rows asked of the strict ODE; 0 leaves the head unmeasured, and the gate refuses it.
    seed : int
    points, calibration : int
        CCTs asked for the fit, and for the bounds.
    report : Report
    """
    operators = family.base
    window = operators.window
    domain = Domain(operators.severity, window.t_f, window.t_c, family.axes, tuple(family.own.tolist()))
    head = fit_condition_head(source, domain, seed, points)
    alpha, conditions = draw_rows(head, RECONSTRUCTED, seed + 3)
    reconstruction = point_errors(head, conditions, source.roots(alpha, conditions))
    alpha, conditions = draw_rows(head, calibration, seed + 1)
    truth = reference_points(family, alpha, conditions, report=within(report, "asking the fast ODE", calibration))
    asked = _strict_rows(head, strict, seed + 2)
    told = within(report, "asking the strict ODE", strict)
    answers = reference_points(family, *asked, "strict", told)
    gap = _gap(answers, reference_points(family, *asked))
    head = calibrated(head, conditions, truth)
    if head.error_bound_s is not None:
        bounds = tuple(bound + gap for bound in head.bounds)
        head = replace(head, bounds=bounds, error_bound_s=head.error_bound_s + gap)
    measured = Measured(
        reconstruction, point_errors(head, conditions, truth), point_errors(head, asked[1], answers),
        _statuses(head, conditions, truth),
    )  # fmt: skip
    return head, measured, answers


def _strict_rows(head: ConditionHead, count: int, seed: int) -> tuple[Float, Float]:
    """Severities and conditions, half of them where the head has a number."""
    alpha, conditions = draw_rows(head, 200 * max(count, 1), seed)
    code = head.answers(alpha, conditions)[1]
    finite = np.flatnonzero(code == 0)[: (count + 1) // 2]
    rows = np.concatenate([finite, np.setdiff1d(np.arange(count), finite)])[:count]
    return alpha[rows], conditions[rows]


def _statuses(head: ConditionHead, conditions: Float, truth: Boundary) -> Statuses:
    code = head.answers(truth.alpha, conditions)[1]
    different = np.array(STATUSES)[code] != np.array(truth.status)
    return Statuses(
        count=len(code), numbers=int((code == 0).sum()), missed=int((truth.finite & (code != 0)).sum()),
        disagreements=int((different & (code != UNCERTAIN)).sum()),
    )  # fmt: skip


def _gap(strict: Boundary, fast: Boundary) -> float:
    difference = np.abs(strict.cct - fast.cct)
    return float(np.nanmax(difference)) if np.isfinite(difference).any() else 0.0

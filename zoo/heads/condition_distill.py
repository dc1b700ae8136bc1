"""From a source over conditions to a head with its bound and what was measured, over the whole domain.

Reconstruction is measured against the source; bounds are calibrated on rows drawn like queries against the fast
ODE, and so is the band around the edge in which the status is uncertain; the gate is decided by the strict ODE, half of
whose rows lie where the head has a number. Truth at a point is that of the smooth family, which agrees with a solved
point to 1e-9.
"""

import numpy as np

from contingencies.network import Float
from contingencies.operator_family import OperatorFamily
from contingencies.point_references import censoring_edge, confirmed_points, expected_points, reference_points
from contingencies.stability import Boundary
from espinn_moe.chained import Chained
from espinn_moe.condition_boundary import learned_edges, point_boundary
from espinn_moe.condition_bounds import (
    calibrated,
    draw_answered,
    draw_beside,
    draw_rows,
    point_errors,
    with_band,
    with_gap,
    with_spread,
)
from espinn_moe.condition_head import ConditionHead
from espinn_moe.condition_head_fit import Domain, HeadBudget, PointSource, fit_condition_head, lowest_edges
from espinn_moe.head import STATUSES, UNCERTAIN
from registry.store.heads import Measured, Statuses
from zoo.work.reporting import Report, silent, within

BUDGET = HeadBudget()
RECONSTRUCTED = 200  # rows at which the head is compared with its source, at most
RIM_STRETCH = 1.15  # of the rows that tell where errors are large: on the faces of the domain a fit is poorest
BAND_POINTS = 256  # operating points at which the edge is compared with the true one, at most


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
    source: PointSource, family: OperatorFamily, strict: int, seed: int = 0, report: Report = silent
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
    report : Report
    """
    operators, budget = family.base, BUDGET
    window = operators.window
    domain = Domain(operators.severity, window.t_f, window.t_c, family.axes, tuple(family.own.tolist()))
    head = fit_condition_head(source, domain, seed, budget)
    alpha, conditions = draw_rows(head, min(RECONSTRUCTED, budget.looks), seed + 3)
    reconstruction = point_errors(head, conditions, source.roots(alpha, conditions))
    head = _with_bounds(head, family, seed, report)
    asked = _strict_rows(head, strict, seed + 2)
    answers, fast = confirmed_points(family, *asked, within(report, "asking the strict ODE", strict))
    head = with_gap(head, _gap(answers, fast))
    alpha, conditions = draw_rows(head, budget.looks, seed + 1)
    truth = reference_points(family, alpha, conditions)
    measured = Measured(
        reconstruction, point_errors(head, conditions, truth), point_errors(head, asked[1], answers),
        _statuses(head, conditions, truth),
    )  # fmt: skip
    return head, measured, answers


def _with_bounds(head: ConditionHead, family: OperatorFamily, seed: int, report: Report) -> ConditionHead:
    """The head with its band and its local bounds, against the fast ODE."""
    budget = BUDGET
    _, conditions = draw_rows(head, min(BAND_POINTS, budget.edge_points), seed + 4)
    head = with_band(head, conditions, lowest_edges(reference_points_source(family), conditions, head.severity[1]))

    def asked(what: str, rows: tuple[Float, Float]) -> tuple[Float, Boundary]:
        """Conditions (m, d) of rows, and what the fast ODE has there."""
        alpha, conditions = rows
        told = within(report, f"asking the fast ODE {what}", len(alpha))
        return conditions, expected_points(family, alpha, conditions, head.answers(alpha, conditions)[0], told)

    even = asked("where errors are large", draw_answered(head, budget.spread_points, seed + 5, RIM_STRETCH))
    beside = asked("beside jumps", draw_beside(head, *even, budget.beside_jumps, seed + 7))
    bounded = with_spread(head, [even, beside], budget.spread_steps, seed)
    return calibrated(bounded, *asked("for the bounds", draw_answered(head, budget.calibration, seed + 6)))


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

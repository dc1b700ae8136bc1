"""The reduced ODE over operating points: CCTs of many rows, censoring edges, and how a CCT moves with conditions.

Operators come from the smooth family, so that no power flow is solved; they agree with those of a solved point to
1e-9. Derivatives are theory.md eq. (72), by centred differences of the hard margin at the critical instant.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from scipy.optimize import brentq

from contingencies.confirmation import confirmed_cct
from contingencies.network import Float
from contingencies.ode import FastODE
from contingencies.operator_family import OperatorFamily
from contingencies.references import Reference, reference_cct
from contingencies.stability import Boundary, boundary_of

CONDITION_STEP = 1e-7  # of a condition's range: margins grow by 1e4 rad/s there, and must not bend within a step
INSTANT_STEP_S = 1e-7
EDGE_TOLERANCE = 1e-10  # of the severity
AFTER_S = 2e-3  # how far beyond an expected CCT a search goes before it takes the whole window
STRETCH = 1.5  # how far beyond the severities an edge is looked for


def reference_points(
    family: OperatorFamily,
    alpha: Float,
    conditions: Float,
    reference: Reference = "fast",
    report: Callable[[int], None] | None = None,
) -> Boundary:
    """Hard CCT of rows with severities (m,) and conditions (m, d)."""
    answers = []
    for value, point in zip(alpha, conditions, strict=True):
        answers.append(reference_cct(family.operators_at(point), float(value), reference))
        if report:
            report(len(answers))
    return boundary_of(answers, reference)


def expected_points(
    family: OperatorFamily,
    alpha: Float,
    conditions: Float,
    expected: Float,
    report: Callable[[int], None] | None = None,
) -> Boundary:
    """As `reference_points` by the fast ODE, where CCTs (m,) are expected, s.

    The window is searched in full from its start until shortly after the expected CCT, so nothing earlier is missed;
    what follows is asked only where there was no crossing before.
    """
    answers = []
    for value, point, guess in zip(alpha, conditions, expected, strict=True):
        operators = family.operators_at(point)
        first, last = operators.window.t_c
        end = min(last, max(guess, first) + AFTER_S)
        shorter = replace(operators, window=operators.window.model_copy(update={"t_c": (first, end)}))
        answer = reference_cct(shorter, float(value))
        if answer.status == "right-censored" and end < last:
            answer = reference_cct(operators, float(value))
        answers.append(answer)
        if report:
            report(len(answers))
    return boundary_of(answers, "fast")


def confirmed_points(
    family: OperatorFamily, alpha: Float, conditions: Float, report: Callable[[int], None] | None = None
) -> tuple[Boundary, Boundary]:
    """The strict boundary of rows (m,), which confirms the fast one, and the fast one."""
    strict, fast = [], []
    for value, point in zip(alpha, conditions, strict=True):
        operators = family.operators_at(point)
        fast.append(reference_cct(operators, float(value)))
        strict.append(confirmed_cct(operators, fast[-1]))
        if report:
            report(len(strict))
    return boundary_of(strict, "strict"), boundary_of(fast, "fast")


def reference_gradient(family: OperatorFamily, alpha: float, values: Float, cct: float) -> tuple[float, Float]:
    """dCCT/dalpha, and dCCT/d(condition) (d,), of the fast ODE at a finite CCT; s per unit."""

    def margin(severity: float, point: Float, instant: float) -> float:
        return float(FastODE(family.operators_at(point), severity).margins(np.array([instant]))[0])

    values, span = np.asarray(values, dtype=float), np.array([axis.high - axis.low for axis in family.axes])
    by_t_c = (margin(alpha, values, cct + INSTANT_STEP_S) - margin(alpha, values, cct - INSTANT_STEP_S)) / (
        2 * INSTANT_STEP_S
    )
    step = CONDITION_STEP * (family.base.severity[1] - family.base.severity[0])
    by_alpha = (margin(alpha + step, values, cct) - margin(alpha - step, values, cct)) / (2 * step)
    by_condition = np.empty(len(values))
    for k, h in enumerate(CONDITION_STEP * span):
        moved = h * np.eye(len(values))[k]
        by_condition[k] = (margin(alpha, values + moved, cct) - margin(alpha, values - moved, cct)) / (2 * h)
    return -by_alpha / by_t_c, -by_condition / by_t_c


def censoring_edge(family: OperatorFamily, values: Float, at_start: bool = False) -> float:
    """The severity at which clearing at the last (or first) instant of the window becomes unstable.

    Returns
    -------
    float
        inf where even severities far beyond the studied ones stay stable, -inf where all of them are unstable.
    """
    operators = family.operators_at(values)
    instant = np.array([operators.window.t_c[0 if at_start else 1]])

    def margin(severity: float) -> float:
        return float(FastODE(operators, severity).margins(instant)[0])

    low, high = 0.0, STRETCH * operators.severity[1]
    if operators.fault_bend == 0:  # linear in severity: nothing lies beyond the whole fault
        high = operators.severity[1]
    if margin(low) >= 0:
        return -np.inf
    if margin(high) < 0:
        return np.inf
    return float(brentq(margin, low, high, xtol=EDGE_TOLERANCE))

"""Errors of learned boundaries over severity: how they are read off, compared between methods, and drawn."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from zoo.paper import BEYOND
from zoo.paper.common import ABLATIONS, METHODS
from zoo.paper.entry import Findings, Task
from zoo.paper.slopes import median_slope
from zoo.paper.tables import Cell, Drawing, Quantity, Row, Table, cell
from zoo.plots import new_figure

BOUNDARIES = (Quantity("CCT MAE", "ms"), Quantity("largest", "ms"), Quantity("other status", "of 50"))
STEEPNESS = Quantity("slope at the CCT, median", "rad/ms")
LABELS = {**METHODS, **ABLATIONS}
MEASURE = "es-pinn"  # whose errors those of the others are compared with


def cct_error_ms(result: dict[str, Any], truth: dict[str, Any] | None) -> np.ndarray:
    """Signed errors (m,) of an assessment against a reference curve, ms; NaN where either has no number."""
    ours = np.array([row["cct_s"] for row in result["rows"]], dtype=float)
    theirs = np.array([row["true_cct_s"] for row in result["rows"]] if truth is None else truth["cct"], dtype=float)
    return 1e3 * (ours - theirs)


def boundary_values(truth: dict[str, Any] | None) -> list[tuple[Any, float]]:
    """How mean and largest CCT error, ms, and severities of another status are read off an assessment."""

    def mae(result: dict[str, Any]) -> float | None:
        errors = np.abs(cct_error_ms(result, truth))
        return float(np.nanmean(errors)) if np.isfinite(errors).any() else None

    def largest(result: dict[str, Any]) -> float | None:
        errors = np.abs(cct_error_ms(result, truth))
        return float(np.nanmax(errors)) if np.isfinite(errors).any() else None

    def other_status(result: dict[str, Any]) -> float:
        return float(sum(row["status"] != row["true_status"] for row in result["rows"]))

    return [(mae, 1.0), (largest, 1.0), (other_status, 1.0)]


def mean_curve(results: Sequence[dict[str, Any]], truth: dict[str, Any] | None) -> np.ndarray:
    """Signed errors (m,) over severity, averaged over those seeds that have a number there, ms; NaN where none has."""
    errors = np.array([cct_error_ms(result, truth) for result in results])
    known = np.isfinite(errors)
    count = known.sum(axis=0)
    return np.where(count > 0, np.where(known, errors, 0.0).sum(axis=0) / np.maximum(count, 1), np.nan)


def steepness(findings: Findings, assessments: Sequence[Task]) -> Cell:
    """How steeply learned separations pass their limit: the median over severities, mean and spread over seeds."""
    found = findings.of(assessments)
    return cell([median_slope([row["slope_rad_per_s"] for row in result["rows"]]) for result in found])


def reference_row(findings: Findings, slopes: Task, before: int, after: int = 0) -> Row:
    """The reduced ODE's own steepness, so many empty cells from the left and from the right."""
    true = cell([median_slope(found["slope_rad_per_s"]) for found in findings.of([slopes])])
    why = findings.why([slopes], "no training involved, by its hard margin")
    return Row("reduced ODE", (*[Cell(None)] * before, true, *[Cell(None)] * after), why)


def bias_table(
    findings: Findings,
    boundaries: Mapping[str, Sequence[Task]],
    truth: dict[str, Any] | None,
    slopes: Task,
    learned: str,
    name: str,
) -> Table:
    """Whether methods err alike, and why: signed errors, how these go with ES-PINN's, and how steep the jump is drawn.

    Parameters
    ----------
    boundaries : {model: assessments, one per seed}
    truth : dict, optional
        The reference curve; None takes the truth of each assessment.
    slopes : Task
        `slopes.reference_slopes` at the same severities.
    learned : str
        How the models were trained, for the title.
    """
    curves = {model: mean_curve(found, truth) for model, of in boundaries.items() if (found := findings.of(of))}
    rows = []
    for model, of in boundaries.items():
        curve = curves.get(model)
        finite = np.array([]) if curve is None else curve[np.isfinite(curve)]
        extremes = (float(finite.mean()), float(finite.min()), float(finite.max())) if finite.size else (None,) * 3
        alike = None if curve is None or MEASURE not in curves else _correlation(curve, curves[MEASURE])
        cells = (*map(Cell, extremes), Cell(None if model == MEASURE else alike), steepness(findings, of))
        rows.append(Row(LABELS[model], cells, findings.why(of)))
    rows.append(reference_row(findings, slopes, before=4))
    quantities = (
        Quantity("mean", "ms"), Quantity("lowest", "ms"), Quantity("highest", "ms"),
        Quantity(f"correlation with {LABELS[MEASURE]}"), STEEPNESS,
    )  # fmt: skip
    title = (
        "Signed errors of the CCT over severity, averaged over seeds (below 0: too early), and how steeply separation "
        f"passes its limit there; learned: {learned}"
    )
    return Table(name, title, BEYOND, quantities, tuple(rows))


def _correlation(a: np.ndarray, b: np.ndarray) -> float | None:
    """Pearson's, over the severities that both have; None where that says nothing."""
    both = np.isfinite(a) & np.isfinite(b)
    if both.sum() < 3 or np.ptp(a[both]) == 0 or np.ptp(b[both]) == 0:
        return None
    return float(np.corrcoef(a[both], b[both])[0, 1])


def draw_errors(
    findings: Findings, boundaries: Mapping[str, Sequence[Task]], truth: dict[str, Any] | None, learned: str, name: str
) -> Drawing:
    """Size of the errors of the first seed, on a logarithmic axis."""
    figure, axes = new_figure(height=4.4)
    for model in boundaries:
        k, label = list(LABELS).index(model), LABELS[model]
        for result in findings.of(boundaries[model])[:1]:
            errors = np.abs(cct_error_ms(result, truth))
            alpha = [row["alpha"] for row in result["rows"]]
            if np.isfinite(errors).any():
                axes.plot(alpha, np.maximum(errors, 1e-4), "o-", ms=3, lw=1.0, color=f"C{k}", label=label)
    axes.set_yscale("log")
    axes.set_xlabel("severity α")
    axes.set_ylabel("CCT error (ms)")
    axes.grid(alpha=0.3, which="both")
    if axes.lines:
        figure.legend(fontsize=7, ncols=4, loc="outside upper center")  # curves fill the axes
    caption = f"CCT error over severity, first seed; learned: {learned}. Methods without a finite CCT are not drawn."
    return Drawing(name, caption, figure)

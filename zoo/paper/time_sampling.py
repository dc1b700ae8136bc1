"""How the hard CCT depends on the spacing of trajectory samples: 0.5, 1 and 2 ms on the primary benchmark."""

from typing import Any

import numpy as np

from contingencies.ode import strict_trajectory
from contingencies.references import reference_boundary
from contingencies.trajectories import output_times
from zoo.paper.common import CALIBRATED, PRIMARY
from zoo.paper.entry import Findings, Setting, Task, entry, task
from zoo.paper.measurements import severity_grid
from zoo.paper.members import operators_of
from zoo.paper.roots import refined
from zoo.paper.tables import Presentation, Published, Quantity, Row, Table, cell

SPACINGS_S = (0.5e-3, 1e-3, 2e-3)
DEFAULT_S = 1e-3
PAPER_CHANGE_MS = 1.6e-6  # "at most", over 23 rows
UNSEEN = 50


def measure(contingency: str, severities: int, spacings: tuple[float, ...]) -> dict[str, Any]:
    """Hard CCTs of the strict ODE for every spacing, refined far below the usual tolerance, in s."""
    operators = operators_of(contingency)
    boundary = reference_boundary(operators, severity_grid(operators, severities))
    alpha, near = boundary.alpha[boundary.finite], boundary.cct[boundary.finite]
    ccts = {}
    for spacing in spacings:
        t = output_times(operators, spacing)

        def margins(t_c: np.ndarray, alpha: float, t: np.ndarray = t) -> np.ndarray:
            runs = [strict_trajectory(operators, alpha, float(c), t) for c in t_c]
            return np.array([run.separation.max() for run in runs]) - operators.max_separation

        ccts[f"{1e3 * spacing:g}"] = [
            refined(lambda t_c, a=float(a): margins(t_c, a), float(c))  # type: ignore[misc]
            for a, c in zip(alpha, near, strict=True)
        ]
    return {"alpha": alpha.tolist(), "cct": ccts}


def _task() -> Task:
    return task("time_sampling:measure", contingency=PRIMARY, severities=UNSEEN, spacings=SPACINGS_S)


def tasks(setting: Setting) -> list[Task]:
    """The one measurement; nothing is trained."""
    return [_task()]


def present(setting: Setting, findings: Findings) -> Presentation:
    """Largest change of the CCT by the spacing."""
    result = findings.get(_task())
    rows = []
    for spacing in SPACINGS_S:
        largest = None
        if result is not None:
            base = np.array(result["cct"][f"{1e3 * DEFAULT_S:g}"])
            largest = float(1e3 * np.abs(np.array(result["cct"][f"{1e3 * spacing:g}"]) - base).max())
        count = None if result is None else float(len(result["alpha"]))
        paper = None if spacing == DEFAULT_S else Published(PAPER_CHANGE_MS)
        rows.append(
            Row(
                f"h_t = {1e3 * spacing:g} ms",
                (cell([largest], paper), cell([count], Published(23))),
                findings.problem([_task()])
                or f"{CALIBRATED}; deterministic; the integrator's own steps do not depend on the samples",
            )
        )
    table = Table(
        "sampling",
        "Largest change of the hard CCT against samples each millisecond",
        "Appendix, temporal sampling",
        (Quantity("largest change", "ms"), Quantity("finite rows")),
        tuple(rows),
    )
    note = "Where the margin is decided at the end of the study, which lies on every grid, the spacing changes nothing."
    return Presentation((table,), notes=(note,))


BENCHMARK = entry("time-sampling", tasks, present)

"""Appendix table: how the full-network CCT converges with the step, beside the reduced ODE."""

from typing import Any

import numpy as np

from contingencies.dae import DAE, dae_cct
from contingencies.errors import SolverError
from contingencies.ode import strict_look
from contingencies.references import reference_cct
from zoo.paper.common import CALIBRATED, FEEDERS_CASE, SYSTEMS
from zoo.paper.entry import Findings, Setting, Task, entry, task
from zoo.paper.members import operators_of
from zoo.paper.roots import refined
from zoo.paper.tables import Drawing, Presentation, Published, Quantity, Row, Table, cell
from zoo.plots import new_figure

STEPS_MS = (10.0, 5.0, 2.5, 1.0)
CASES = {"IEEE 9": 0.90, "IEEE 14": 0.90, FEEDERS_CASE: 0.70}  # the paper's severities
PAPER = {  # CCT in s at 10, 5 and 2.5 ms; largest difference to 2.5 ms in ms
    "IEEE 9": (Published(0.66021), Published(0.66509), Published(0.66754), Published(7.33)),
    "IEEE 14": (Published(1.03020), Published(1.03015), Published(1.03011), Published(0.09)),
    FEEDERS_CASE: (Published(0.68034), Published(0.68516), Published(0.68757), Published(7.23)),
}


def measure(contingency: str, alpha: float, steps_ms: tuple[float, ...]) -> dict[str, Any]:
    """CCTs of the full network for every step, and of the strict reduced ODE, in s."""
    operators = operators_of(contingency)
    fast = reference_cct(operators, alpha, "fast").cct
    if fast is None:
        raise SolverError(f"{contingency} has no finite CCT at severity {alpha}.")
    ccts: dict[str, float | None] = {}
    for step in steps_ms:
        near = dae_cct(operators, alpha, 1e-3 * step).cct
        ccts[f"{step:g}"] = None if near is None else refined(DAE(operators, alpha, 1e-3 * step).margins, near)
    return {"ode": refined(lambda t_c: strict_look(operators, alpha, t_c).margin, fast), "dae": ccts}


def _of(case: str) -> Task:
    return task("dae_convergence:measure", contingency=SYSTEMS[case], alpha=CASES[case], steps_ms=STEPS_MS)


def tasks(setting: Setting) -> list[Task]:
    """One measurement per system; nothing is trained."""
    return [_of(case) for case in CASES]


def present(setting: Setting, findings: Findings) -> Presentation:
    """CCTs by step, their differences, and the order of convergence."""
    rows = []
    for case, alpha in CASES.items():
        result, published = findings.get(_of(case)), PAPER[case]
        ccts: list[float | None] = [None if result is None else result["dae"][f"{step:g}"] for step in STEPS_MS]
        ode = None if result is None else result["ode"]
        finite = [c for c in ccts[:3] if c is not None]
        spread = 1e3 * max(abs(c - finite[-1]) for c in finite) if len(finite) == 3 else None
        theirs = (*published[:3], None)
        cells = [cell([c], paper) for c, paper in zip(ccts, theirs, strict=True)]
        cells += [cell([spread], published[3]), cell([ode]), cell([order(ccts, ode)], paper_order(case))]
        why = f"{CALIBRATED}; our step ends on every event, the paper's clearing instants lie on its step grid"
        rows.append(Row(f"{case}, α = {alpha:g}", tuple(cells), findings.problem([_of(case)]) or why))
    quantities = (
        *(Quantity(f"DAE, {step:g} ms", "s", 6) for step in STEPS_MS),
        Quantity("largest difference to 2.5 ms", "ms"),
        Quantity("strict ODE", "s", 6),
        Quantity("order"),
    )
    table = Table("steps", "Full-network CCT over the step", "Table 5", quantities, tuple(rows))
    note = (
        "The order is that of the distance to the strict reduced ODE, which the full network with constant-impedance "
        "loads must reach; the paper's is that of its own differences, about 1 for IEEE 9 and 30."
    )
    return Presentation((table,), (_drawing(findings),), (note,))


def order(ccts: list[float | None], ode: float | None) -> float | None:
    """Slope of the distance to the reduced ODE over the step, both logarithmic."""
    if ode is None or any(c is None for c in ccts):
        return None
    errors = np.abs(np.array(ccts, dtype=float) - ode)
    return float(np.polyfit(np.log(STEPS_MS), np.log(errors), 1)[0])


def paper_order(case: str) -> Published:
    """Order of the paper's differences between its steps, of which each halves the last."""
    coarse, middle, fine, _ = (number.mean for number in PAPER[case])
    return Published(round(float(np.log2(abs((coarse - middle) / (middle - fine)))), 2))


def _drawing(findings: Findings) -> Drawing:
    figure, axes = new_figure(width=5.5, height=3.8)
    for k, case in enumerate(CASES):
        result = findings.get(_of(case))
        if result is not None:
            by_step = {s: result["dae"][f"{s:g}"] for s in STEPS_MS if result["dae"][f"{s:g}"] is not None}
            errors = [1e3 * abs(cct - result["ode"]) for cct in by_step.values()]
            axes.loglog(list(by_step), errors, "o-", color=f"C{k}", label=case)
    axes.set_xlabel("step (ms)")
    axes.set_ylabel("|DAE - reduced ODE| (ms)")
    axes.grid(alpha=0.3, which="both")
    if axes.lines:
        axes.legend(fontsize=8)
    return Drawing("steps", "Distance of the full network's CCT to the strict reduced ODE's.", figure)


BENCHMARK = entry("dae-convergence", tasks, present)

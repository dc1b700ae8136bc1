"""The smooth maximum's sharpness: smoothing, surrogate and end-to-end error over beta on three systems."""

from typing import Any

import numpy as np

from contingencies.references import reference_boundary
from espinn_moe.boundary import learned_boundary, ode_boundary
from espinn_moe.margins import MarginRule
from espinn_moe.surrogate import Surrogate
from zoo.judging.metrics import error_split
from zoo.paper.common import BOTH_FORMS, CALIBRATED, METHODS, PRIMARY, PRIMARY_CASE, SYSTEMS, per_seed, trained_why
from zoo.paper.entry import Findings, Setting, Task, entry
from zoo.paper.tables import Drawing, Presentation, Published, Quantity, Row, Table, cell
from zoo.plots import new_figure
from zoo.surrogates.datasets import evaluation_grid

DEFAULT = 50.0
CASES = {  # the paper's 23 rows of case 30 are those of the primary benchmark
    **{system: SYSTEMS[system] for system in ("IEEE 9", "IEEE 14")},
    PRIMARY_CASE: PRIMARY,
}
PAPER = {  # ms at beta = 50: smoothing, end-to-end of ES-PINN
    "IEEE 9": (Published(0.771), Published(3.232)),
    "IEEE 14": (Published(0.075), Published(1.077)),
    PRIMARY_CASE: (Published(0.006), Published(0.326)),
}


def measure(surrogate: Surrogate, betas: tuple[float, ...]) -> dict[str, Any]:
    """The three discrepancies for every beta, on the unseen severities where the hard CCT is finite, in s."""
    operators = surrogate.members[0]
    unseen = evaluation_grid(operators).unseen_alpha
    alpha = unseen[reference_boundary(operators, unseen).finite]
    hard = reference_boundary(operators, alpha)
    split = {}
    for beta in betas:
        rule = MarginRule("smooth", beta=beta)
        learned, smooth = learned_boundary(surrogate, alpha, rule=rule), ode_boundary(operators, alpha, rule)
        both = smooth.finite
        smoothing = float(np.abs(smooth.cct[both] - hard.cct[both]).mean()) if both.any() else None
        split[f"{beta:g}"] = error_split(learned, smooth, hard).to_dict() | {"smoothing": smoothing}
    return {"split": split, "rows": len(alpha)}


def _of(setting: Setting, case: str, model: str) -> list[Task]:
    return per_seed(setting, "beta_sweep:measure", model, CASES[case], betas=setting.budget.betas)


def tasks(setting: Setting) -> list[Task]:
    """Every system, both forms, all seeds."""
    return [each for case in CASES for model in BOTH_FORMS for each in _of(setting, case, model)]


def present(setting: Setting, findings: Findings) -> Presentation:
    """The errors at beta = 50 beside the paper's, and all of them as a figure."""
    rows, key = [], f"{DEFAULT:g}"
    for case in CASES:
        everything = [each for model in BOTH_FORMS for each in _of(setting, case, model)]
        smoothing = [r["split"][key]["smoothing"] for r in findings.of(everything)][:1]
        none = cell([])
        rows.append(
            Row(
                f"{case}, reduced ODE",
                (cell(smoothing, PAPER[case][0], 1e3), none, none),
                f"{CALIBRATED}; no training involved",
            )
        )
        for model in BOTH_FORMS:
            wanted = _of(setting, case, model)
            splits = [r["split"][key] for r in findings.of(wanted)]
            published = PAPER[case][1] if model == "es-pinn" else None
            cells = (
                none,
                cell([s["surrogate"] for s in splits], factor=1e3),
                cell([s["end_to_end"] for s in splits], published, 1e3),
            )
            rows.append(Row(f"{case}, {METHODS[model]}", cells, findings.why(wanted, trained_why(setting, model))))
    table = Table(
        "beta",
        "CCT discrepancies at β = 50",
        "Figure 5",
        (Quantity("E_sm", "ms"), Quantity("E_sur", "ms"), Quantity("E_end", "ms")),
        tuple(rows),
    )
    note = (
        "E_sm: the reduced ODE read by the smooth margin against its hard CCTs. E_sur: the surrogate against the "
        "reduced ODE, both read by the smooth margin. E_end: the surrogate read by the smooth margin against hard CCTs."
    )
    return Presentation((table,), (_drawing(setting, findings),), (note,))


def _drawing(setting: Setting, findings: Findings) -> Drawing:
    betas = setting.budget.betas
    figure, axes = new_figure(1, len(CASES), width=11.0, height=3.4, sharey=True)
    styles = (("smoothing", "0.5", "smoothing"), ("surrogate", "C0", "surrogate"), ("end_to_end", "C3", "end to end"))
    for panel, case in zip(axes, CASES, strict=True):
        for model, line in zip(BOTH_FORMS, ("--", "-"), strict=True):
            for result in findings.of(_of(setting, case, model))[:1]:
                for name, colour, label in styles:
                    values = [result["split"][f"{beta:g}"][name] for beta in betas]
                    points = [(b, max(1e3 * v, 1e-4)) for b, v in zip(betas, values, strict=True) if v is not None]
                    if points:
                        text = label if name == "smoothing" else f"{label}, {METHODS[model]}"
                        text = "_" if name == "smoothing" and line == "-" and len(panel.lines) else text
                        panel.plot(*zip(*points, strict=True), f"{line}o", ms=3, color=colour, label=text)
        panel.axvline(DEFAULT, color="0.7", ls=":")
        panel.set_xscale("log")
        panel.set_yscale("log")
        panel.set_title(case, fontsize=9)
        panel.set_xlabel("β (1/rad)")
        panel.grid(alpha=0.3, which="both")
    axes[0].set_ylabel("CCT MAE (ms)")
    if axes[-1].get_legend_handles_labels()[0]:
        axes[-1].legend(fontsize=6)
    return Drawing("beta", "Smoothing, surrogate and end-to-end error over β, first seed.", figure)


BENCHMARK = entry("beta-sweep", tasks, present)

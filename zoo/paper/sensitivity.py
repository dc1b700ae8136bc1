"""Appendix table: how the implicit derivative of a learned boundary agrees with differences and with the ODE's."""

from functools import partial
from typing import Any

from zoo.paper.case30_accuracy import assessments
from zoo.paper.common import METHODS, method_rows, trained_why
from zoo.paper.entry import Findings, Setting, Task, entry
from zoo.paper.tables import Drawing, Presentation, Published, Quantity, Table
from zoo.plots import new_figure

PAPER = {  # implicit-FD MAE in ms per unit of severity, correlation
    "vanilla-pinn": (Published(25.67, 4.97), Published(0.988, 0.004)),
    "xpinn": (Published(23.56, 7.93), Published(0.994, 0.002)),
    "pi-deeponet": (Published(26.16, 11.71), Published(0.976, 0.005)),
    "es-pinn": (Published(15.24, 0.88), Published(0.999, 0.001)),
}


def tasks(setting: Setting) -> list[Task]:
    """The boundaries of Table 1, which carry their derivatives."""
    return [each for model in METHODS for each in assessments(setting, model)]


def present(setting: Setting, findings: Findings) -> Presentation:
    """The table, and the derivatives over severity."""

    def read(comparison: str, name: str) -> Any:
        return lambda result: result["summary"][comparison][name]

    values = [
        (read("implicit_against_centred", "mae"), 1e3),
        (read("implicit_against_centred", "correlation"), 1.0),
        (read("implicit_against_centred", "rows"), 1.0),
        (read("implicit_against_reference_ode", "mae"), 1e3),
        (read("implicit_against_reference_ode", "correlation"), 1.0),
    ]
    done = {model: assessments(setting, model) for model in METHODS}
    theirs = {model: (*numbers, Published(23.0), None, None) for model, numbers in PAPER.items()}
    table = Table(
        "sensitivity",
        "dCCT/dα: implicit against centred differences of the same boundary, and against the reduced ODE's own",
        "Table 8",
        (
            Quantity("implicit-FD MAE", "ms/α"),
            Quantity("implicit-FD correlation"),
            Quantity("valid rows"),
            Quantity("implicit-ODE MAE", "ms/α"),
            Quantity("implicit-ODE correlation"),
        ),
        tuple(method_rows(findings, done, values, theirs, METHODS, partial(trained_why, setting))),
    )
    note = (
        "Centred differences over severities 0.02 apart are themselves wrong next to the censoring edge, where CCT(α) "
        "is nearly vertical: a perfect boundary has an implicit-FD difference too. The ODE columns have no such limit."
    )
    return Presentation((table,), (_drawing(findings, done),), (note,))


def _drawing(findings: Findings, done: dict[str, list[Task]]) -> Drawing:
    figure, axes = new_figure(height=4.4)
    shown = False
    for k, (model, label) in enumerate(METHODS.items()):
        for result in findings.of(done[model])[:1]:
            rows = [row for row in result["rows"] if row["dcct_dalpha_s"] is not None]
            if not shown:
                true = [row for row in result["rows"] if row["true_dcct_dalpha_s"] is not None]
                axes.plot(
                    [row["alpha"] for row in true], [-row["true_dcct_dalpha_s"] for row in true], "k-", lw=2,
                    label="reduced ODE",
                )  # fmt: skip
                shown = True
            axes.plot(
                [row["alpha"] for row in rows], [-row["dcct_dalpha_s"] for row in rows], "o", ms=3, color=f"C{k}",
                label=label,
            )  # fmt: skip
    axes.set_yscale("log")
    axes.set_xlabel("severity α")
    axes.set_ylabel("-dCCT/dα (s)")
    axes.grid(alpha=0.3, which="both")
    if shown:
        axes.legend(fontsize=7)
    return Drawing(
        "derivatives", "Implicit derivatives of the learned boundaries (first seed) on the ODE's own.", figure
    )


BENCHMARK = entry("sensitivity", tasks, present)

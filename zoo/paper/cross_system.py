"""Figure 3 of the paper: margins, boundaries, full-network points and sensitivities on three systems."""

from typing import Any

import numpy as np

from contingencies.dae import dae_cct
from contingencies.stability import boundary_of
from espinn_moe.surrogate import Surrogate
from zoo.judging.assessment import margin_picture
from zoo.judging.figures import MARGIN_SHOWN_RAD
from zoo.paper.common import BOTH_FORMS, CALIBRATED, FEEDERS_CASE, METHODS, SYSTEMS, trained_why, training
from zoo.paper.entry import Findings, Setting, Task, entry, task
from zoo.paper.measurements import boundary_values
from zoo.paper.members import operators_of
from zoo.paper.tables import Drawing, Presentation, Published, Quantity, Row, Table, cell
from zoo.plots import new_figure
from zoo.surrogates.datasets import TRAINING_POINTS

DAE_SEVERITIES = 21  # the paper's; the boundary's severities contain them
PAPER_DAE_MAE = {  # ms against the full-network DAE: reduced ODE, ES-PINN; IEEE 14 is said to nearly coincide
    "IEEE 9": (Published(12.11), Published(13.10)),
    FEEDERS_CASE: (Published(4.51), Published(3.94)),
}
PAPER_FINITE = {"IEEE 9": Published(5), "IEEE 14": Published(4), FEEDERS_CASE: Published(12)}  # of 21


def dae_curve(contingency: str, severities: int, step: float) -> dict[str, Any]:
    """The boundary of the full network."""
    operators = operators_of(contingency)
    answers = [dae_cct(operators, float(a), step) for a in np.linspace(*operators.severity, severities)]
    return boundary_values(boundary_of(answers, "dae"))


def picture(surrogate: Surrogate) -> dict[str, Any]:
    """The learned margin over the whole domain."""
    alpha, t_c, margins = margin_picture(surrogate)
    return {"alpha": alpha.tolist(), "t_c": t_c.tolist(), "margins": np.round(margins, 3).tolist()}


def assessment(setting: Setting, system: str, model: str, seed: int) -> Task:
    """The boundary of one training."""
    count = setting.budget.per_dae_severity * (DAE_SEVERITIES - 1) + 1
    return task("measurements:assess", training(setting, model, SYSTEMS[system], seed), severities=count)


def _dae(setting: Setting, system: str) -> Task:
    step = setting.budget.dae_step
    return task("cross_system:dae_curve", contingency=SYSTEMS[system], severities=DAE_SEVERITIES, step=step)


def _picture(setting: Setting, system: str) -> Task:
    return task("cross_system:picture", training(setting, BOTH_FORMS[-1], SYSTEMS[system], setting.seeds[0]))


def tasks(setting: Setting) -> list[Task]:
    """Boundaries of both forms, margins of one, and the full network, for every system."""
    wanted = []
    for system in SYSTEMS:
        wanted += [_dae(setting, system), _picture(setting, system)]
        wanted += [assessment(setting, system, model, seed) for model in BOTH_FORMS for seed in setting.seeds]
    return wanted


def _column(result: dict[str, Any], name: str) -> np.ndarray:
    return np.array([row[name] for row in result["rows"]], dtype=float)


def _unseen(result: dict[str, Any]) -> np.ndarray:
    """Rows (m,) whose severity is not one of the training grid."""
    position = _column(result, "alpha") * (TRAINING_POINTS - 1)
    unseen: np.ndarray = np.abs(position - np.rint(position)) > 1e-6
    return unseen


def _mean_ms(difference: np.ndarray) -> float | None:
    return float(1e3 * np.nanmean(np.abs(difference))) if np.isfinite(difference).any() else None


def present(setting: Setting, findings: Findings) -> Presentation:
    """Errors of boundaries and sensitivities, and the figure."""
    rows, every = [], setting.budget.per_dae_severity
    for system in SYSTEMS:
        dae = findings.get(_dae(setting, system))
        full = None if dae is None else np.array(dae["cct"], dtype=float)
        finite = cell([None if full is None else float(np.isfinite(full).sum())], PAPER_FINITE[system])
        published = PAPER_DAE_MAE.get(system, (None, None))
        done = {m: findings.of([assessment(setting, system, m, s) for s in setting.seeds]) for m in BOTH_FORMS}
        some = next((results[0] for results in done.values() if results), None)
        against = None if full is None or some is None else _mean_ms(_column(some, "true_cct_s")[::every] - full)
        none = cell([])
        why = f"{CALIBRATED}; our trapezoid's step ends on every event, so its CCT converges at second order"
        problem = findings.problem([_dae(setting, system)])
        rows.append(
            Row(f"{system}, reduced ODE", (none, cell([against], published[0]), finite, none, none), problem or why)
        )
        for model in BOTH_FORMS:
            results = done[model]
            wanted = [assessment(setting, system, model, seed) for seed in setting.seeds]
            cct = [_mean_ms((_column(r, "cct_s") - _column(r, "true_cct_s"))[_unseen(r)]) for r in results]
            to_dae = [None if full is None else _mean_ms(_column(r, "cct_s")[::every] - full) for r in results]
            reported = published[1] if model == "es-pinn" else None
            implicit = [r["summary"]["implicit_against_centred"] for r in results]
            cells = (
                cell(cct),
                cell(to_dae, reported),
                cell([float(np.isfinite(_column(r, "cct_s")[::every]).sum()) for r in results]),
                cell([c["mae"] for c in implicit], factor=1e3),
                cell([c["correlation"] for c in implicit]),
            )
            rows.append(Row(f"{system}, {METHODS[model]}", cells, findings.why(wanted, trained_why(setting, model))))
    table = Table(
        "boundaries",
        "Boundaries on three systems, against the reduced ODE and the full network",
        "Figure 3 and its text",
        (
            Quantity("CCT MAE against the ODE", "ms"),
            Quantity("CCT MAE against the DAE", "ms"),
            Quantity("finite", "of 21"),
            Quantity("implicit-FD MAE", "ms/α"),
            Quantity("implicit-FD correlation"),
        ),
        tuple(rows),
    )
    note = (
        f"The full network is simulated at 21 severities with steps of {1e3 * setting.budget.dae_step:g} ms. CCT "
        "errors against the ODE are on the severities between those of training."
    )
    return Presentation((table,), (_drawing(setting, findings),), (note,))


def _drawing(setting: Setting, findings: Findings) -> Drawing:
    figure, axes = new_figure(2, len(SYSTEMS), width=13.0, height=7.0, sharex=True, sharey="row", squeeze=False)
    for (top, bottom), (system, name) in zip(axes.T, SYSTEMS.items(), strict=True):
        shown = findings.get(_picture(setting, system))
        if shown is not None:
            top.pcolormesh(
                shown["alpha"], shown["t_c"], np.array(shown["margins"]).T, cmap="RdBu_r", shading="nearest",
                vmin=-MARGIN_SHOWN_RAD, vmax=MARGIN_SHOWN_RAD, rasterized=True,
            )  # fmt: skip
        inset = bottom.inset_axes((0.09, 0.12, 0.28, 0.36))
        for model, colour in zip(BOTH_FORMS, ("C0", "C1"), strict=True):
            for result in findings.of([assessment(setting, system, model, setting.seeds[0])]):
                alpha = _column(result, "alpha")
                if model == BOTH_FORMS[-1]:
                    for panel in (top, bottom):
                        panel.plot(alpha, _column(result, "true_cct_s"), "k-", lw=2, label="reduced ODE, hard")
                    bottom.plot(
                        alpha, _column(result, "ode_smooth_cct_s"), ":", color="C2", label="reduced ODE, smooth"
                    )
                    top.plot(alpha, _column(result, "cct_s"), "--", color="gold", label=METHODS[model])
                    inset.plot(alpha, _column(result, "true_dcct_dalpha_s"), "k-", lw=1)
                    inset.plot(alpha, _column(result, "dcct_dalpha_s"), "o", ms=2.5, color=colour)
                    inset.plot(alpha, _column(result, "centred_difference_s"), "x", ms=3, color="C3")
                bottom.plot(alpha, _column(result, "cct_s"), "--", color=colour, label=METHODS[model])
        dae = findings.get(_dae(setting, system))
        if dae is not None:
            for panel in (top, bottom):
                panel.plot(
                    dae["alpha"], np.array(dae["cct"], dtype=float), "s", ms=4, mfc="none", color="C4", label="DAE"
                )
        inset.set_title("dCCT/dα: o implicit, x differences", fontsize=6)
        inset.tick_params(labelsize=6)
        top.set_title(f"{system}: {name}", fontsize=9)
        bottom.set_xlabel("severity α")
        bottom.grid(alpha=0.3)
        if bottom.lines:
            bottom.legend(fontsize=6, loc="upper left")
    axes[0][0].set_ylabel("learned margin over $t_c$ (s)")
    axes[1][0].set_ylabel("CCT (s)")
    caption = (
        "Margins of the chained surrogate (red unstable) with boundaries above; boundaries and sensitivities below."
    )
    return Drawing("systems", caption, figure, ".png")


BENCHMARK = entry("cross-system", tasks, present)

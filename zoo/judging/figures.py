"""Plots of what is read off a surrogate: boundary with margin map, trajectories beside the truth, certificates."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from contingencies.network import Float
from contingencies.operators import PhaseOperators
from contingencies.stability import Boundary
from contingencies.tables import severities
from contingencies.trajectories import Trajectory
from espinn_moe.certificate import CertificateRow
from zoo.judging.assessment import Assessment
from zoo.plots import add_required_line, add_voltage_scale, draw_errors, new_figure

MARGIN_SHOWN_RAD = 2.0  # margins beyond this are one colour: they grow to tens of radians within milliseconds


def plot_learned_boundary(
    assessment: Assessment, picture: tuple[Float, Float, Float] | None = None, required: float | None = None
) -> Any:
    """Margin map with boundaries, CCT curves, errors, and sensitivities where there are any, over one severity axis.

    The content of the paper's Figure 3; its inset is a panel here, since a boundary may lie anywhere in the
    clearing window and no corner is free for all. `picture` are severities (a,), clearing instants (c,) and
    learned margins (a, c); `required` is the duration that protection needs, s.
    """
    ops, learned, truth = assessment.operators, assessment.learned, assessment.truth
    sensitive = bool(assessment.sensitivity.valid.any())
    shares = (1.0, 1.0, 0.5, 0.6)[: 3 + sensitive]
    figure, (top, bottom, *below) = new_figure(
        len(shares), 1, width=7.0, height=4.1 * sum(shares), sharex=True, height_ratios=shares
    )
    if picture is not None:
        alpha, t_c, margins = picture
        mesh = top.pcolormesh(
            alpha, t_c, margins.T, cmap="RdBu_r", vmin=-MARGIN_SHOWN_RAD, vmax=MARGIN_SHOWN_RAD, shading="nearest",
            rasterized=True,
        )  # fmt: skip
        figure.colorbar(mesh, ax=top, label=f"learned {assessment.rule.kind} margin (rad)", extend="both")
    label = f"reduced ODE, hard ({truth.reference})"
    top.plot(truth.alpha, truth.cct, "-", color="black", lw=2.2, label=label)
    top.plot(learned.alpha, learned.cct, "--", color="gold", lw=1.4, label=f"surrogate, {assessment.rule.kind}")
    bottom.plot(truth.alpha, truth.cct, "-", color="black", lw=2.0, label=label)
    bottom.plot(
        truth.alpha, assessment.ode_smooth.cct, ":", color="C2", lw=1.8, label="reduced ODE, sampled smooth margin"
    )
    bottom.plot(learned.alpha, learned.cct, "--o", color="C1", ms=3, lw=1.2, label=f"surrogate, {assessment.rule.kind}")
    if assessment.dae is not None:
        for axes in (top, bottom):
            axes.plot(
                assessment.dae.alpha, assessment.dae.cct, "s", ms=5, mfc="none", color="C4", label="full-network DAE"
            )
    first, last = ops.window.t_c
    for axes in (top, bottom):
        axes.set_ylabel("clearing instant $t_c$ (s)")
        axes.set_xlim(*ops.severity)
        axes.set_ylim(first, last)
        add_required_line(axes, ops, required)
    add_voltage_scale(top, ops)
    mae = assessment.errors.mae
    said = (
        "no finite severity"
        if mae is None
        else f"MAE {1e3 * mae:.3g} ms, max {1e3 * (assessment.errors.maximum or 0):.3g} ms"
    )
    top.set_title(f"{ops.name}: {said} over {severities(assessment.errors.finite)}", fontsize=10)
    bottom.grid(alpha=0.3)
    top.legend(fontsize=8, loc="lower left")
    bottom.legend(fontsize=8, loc="lower left")
    draw_errors(below[0], learned.alpha, learned.cct - truth.cct)
    for panel in below[1:]:
        _sensitivities(panel, assessment)
    below[-1].set_xlabel("severity α")
    return figure


def plot_trained(boundaries: Mapping[str, tuple[Boundary, Boundary]]) -> Any:
    """Learned and reference boundary of each contingency by name, and below the error of each."""
    figure, (top, bottom) = new_figure(2, 1, height=5.6, sharex=True, height_ratios=(1.0, 0.5))
    for k, (name, (learned, truth)) in enumerate(boundaries.items()):
        top.plot(truth.alpha, truth.cct, "-", color="black", lw=2.0, label=None if k else f"{truth.reference} ODE")
        top.plot(learned.alpha, learned.cct, "--o", color=f"C{k}", ms=3, lw=1.2, label=name)
        draw_errors(bottom, learned.alpha, learned.cct - truth.cct, color=f"C{k}")
    top.set_ylabel("clearing instant $t_c$ (s)")
    top.grid(alpha=0.3)
    top.legend(fontsize=8)
    bottom.set_xlabel("severity α")
    return figure


def _sensitivities(axes: Any, assessment: Assessment) -> None:
    sensitivity = assessment.sensitivity
    rows = sensitivity.valid
    axes.plot(sensitivity.alpha, assessment.true_sensitivity, "-", color="black", lw=1.4, label="reduced ODE")
    axes.plot(sensitivity.alpha[rows], sensitivity.implicit[rows], "o", ms=3.5, color="C1", label="surrogate, implicit")
    axes.plot(
        sensitivity.alpha[rows],
        sensitivity.centred[rows],
        "x",
        ms=4,
        color="C0",
        label="surrogate, centred differences",
    )
    axes.set_ylabel("dCCT/dα (s)")
    axes.legend(fontsize=8)
    axes.grid(alpha=0.3)


def plot_trajectories(
    operators: PhaseOperators, learned: Trajectory, others: dict[str, Trajectory], alpha: float, t_c: float
) -> Any:
    """Angles and speeds of the critical pair (of the first reference), and all angles; learned beside references."""
    figure, (angles, speeds, everyone) = new_figure(3, 1, height=8.4, sharex=True)
    reference = next(iter(others.values()), learned)
    worst = reference.delta[int(reference.separation.argmax())]
    pair = {"leading": int(worst.argmax()), "lagging": int(worst.argmin())}
    styles = {name: style for name, style in zip(others, ("-", "-.", ":"), strict=False)}
    for colour, machine in zip(("C0", "C3"), pair.values(), strict=True):
        bus = operators.machine_buses[machine]
        for name, trajectory in others.items():
            angles.plot(
                trajectory.t,
                trajectory.delta[:, machine],
                styles[name],
                color=colour,
                lw=1.6,
                label=f"{name}, bus {bus}",
            )
            speeds.plot(trajectory.t, trajectory.omega[:, machine], styles[name], color=colour, lw=1.6)
        angles.plot(learned.t, learned.delta[:, machine], "--", color="black", lw=1.0, label=f"surrogate, bus {bus}")
        speeds.plot(learned.t, learned.omega[:, machine], "--", color="black", lw=1.0)
    for k, (name, trajectory) in enumerate(others.items()):
        lines = everyone.plot(trajectory.t, trajectory.delta, styles[name], color=f"C{k}", lw=1.4)
        lines[0].set_label(name)
    everyone.plot(learned.t, learned.delta, "--", color="black", lw=0.9)[0].set_label("surrogate")
    for axes in (angles, speeds, everyone):
        axes.axvspan(operators.window.t_f, t_c, color="0.9")
        axes.grid(alpha=0.3)
    angles.set_title(f"{operators.name}, severity {alpha:g}, cleared at {t_c:g} s (fault shaded)", fontsize=10)
    angles.set_ylabel("critical pair: angle (rad)")
    speeds.set_ylabel("critical pair: speed (pu)")
    everyone.set_ylabel("all machines: angle (rad)")
    everyone.set_xlabel("time (s)")
    angles.legend(fontsize=7)
    everyone.legend(fontsize=7)
    return figure


def plot_certificates(operators: PhaseOperators, rows: list[CertificateRow], reference: str = "strict") -> Any:
    """True error, estimate and bounds of every severity on a logarithmic axis; what does not fit is said."""
    figure, axes = new_figure(height=4.8)
    alpha = np.array([row.alpha for row in rows])

    def line(values: list[float], *style: str, **options: Any) -> None:
        axes.plot(alpha, np.maximum(np.abs(np.array(values, dtype=float)) * 1e3, 1e-5), *style, **options)

    errors = [np.nan if row.error is None else row.error for row in rows]
    if np.isfinite(errors).any():
        line(errors, "o", color="black", ms=5, label=f"true error ({reference} ODE)")
    line([row.estimate for row in rows], "x", color="C1", ms=6, label="dual-weighted estimate")
    line([row.bound for row in rows], "-", color="C0", label="its absolute-value bound")
    line([row.log_norm for row in rows], "--", color="C2", label="theorem, logarithmic norm along the trajectory")
    first, last = operators.window.t_c
    axes.axhline(1e3 * (last - first), color="0.5", lw=0.8)
    axes.annotate(
        "clearing window: bounds above say nothing", (alpha.min(), 1.1e3 * (last - first)), fontsize=7, color="0.4"
    )
    exponents = [row.paper_log10 for row in rows if np.isfinite(row.paper_log10)]
    if exponents:
        axes.plot([], [], " ", label=f"the paper's bound: 1e{min(exponents):.0f} s and more, off the axis")
    axes.set_yscale("log")
    axes.set_xlabel("severity α")
    axes.set_ylabel("CCT error (ms)")
    axes.set_title(operators.name, fontsize=10)
    axes.grid(alpha=0.3, which="both")
    axes.legend(fontsize=8)
    return figure

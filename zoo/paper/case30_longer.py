"""Beyond the paper: what more time does to its form with its own residual, where the order of methods still moves."""

from dataclasses import replace
from typing import Any

from zoo.paper.case30_accuracy import (
    ALL,
    BOUNDARIES,
    PAPER,
    STATES,
    STEPS,
    assessments,
    boundary_values,
    held_out,
    reference,
    steps_made,
)
from zoo.paper.common import trained_why
from zoo.paper.entry import Findings, Setting, Task, entry
from zoo.paper.tables import Drawing, Presentation, Row, Table, cell
from zoo.plots import new_figure

MODELS = ("es-pinn", "xpinn", "es-pinn-no-residual")
SEEDS = 3  # at most: half an hour each


def _setting(setting: Setting, minutes: float) -> Setting:
    """The same with so many minutes for each training."""
    return Setting(replace(setting.budget, one_shot=minutes), setting.seeds[:SEEDS])


def _both(setting: Setting) -> list[Setting]:
    """The budget of Table 1, and the longer one."""
    return [_setting(setting, minutes) for minutes in (setting.budget.one_shot, setting.budget.longer)]


def tasks(setting: Setting) -> list[Task]:
    """States and boundary of every model after the usual time and after the longer one, seed by seed."""
    return [reference(setting)] + [
        each
        for timed in _both(setting)
        for by_model in zip(*((*held_out(timed, m), *assessments(timed, m)) for m in MODELS), strict=True)
        for each in by_model
    ]


def present(setting: Setting, findings: Findings) -> Presentation:
    """Errors of both lengths, model by model."""
    values = boundary_values(findings.get(reference(setting)))
    rows = []
    for model in MODELS:
        for timed, longer in zip(_both(setting), ("", ", longer"), strict=True):
            states, boundaries = held_out(timed, model), assessments(timed, model)
            angles, speeds, critical = PAPER[model]
            paper = (angles, speeds, None, None, critical, None, None)
            readers = [(read, factor, states) for _, read, factor in STATES]
            readers += [(read, factor, boundaries) for read, factor in values]
            cells = tuple(
                cell([read(result) for result in findings.of(of)], theirs, factor)
                for (read, factor, of), theirs in zip(readers, paper, strict=True)
            )
            cells = (*cells, steps_made(findings, boundaries))
            rows.append(
                Row(f"{ALL[model]}{longer}", cells, findings.why([*states, *boundaries], trained_why(timed, model)))
            )
    quantities = (*(quantity for quantity, _, _ in STATES), *BOUNDARIES, STEPS)
    title = "Errors after the time of Table 1 and after a longer one; whole trajectories, pointwise residual"
    table = Table("longer", title, "Table 1", quantities, tuple(rows))
    note = (
        f"Up to {SEEDS} seeds; minutes of the processor. Severities, pairs and truth are those of case30-accuracy, "
        "whose trainings of the same length are used again."
    )
    return Presentation((table,), (_drawing(setting, findings, values[0][0]),), (note,))


def _drawing(setting: Setting, findings: Findings, mae: Any) -> Drawing:
    figure, axes = new_figure(height=3.6)
    for k, model in enumerate(MODELS):
        points = [
            (timed.budget.one_shot, error)
            for timed in _both(setting)
            for result in findings.of(assessments(timed, model))
            if (error := mae(result)) is not None
        ]
        if points:
            minutes, errors = zip(*points, strict=True)
            axes.plot(minutes, errors, "o", ms=5, alpha=0.7, color=f"C{k}", label=f"{ALL[model]}, each seed")
            mean = {m: [e for at, e in points if at == m] for m in sorted(set(minutes))}
            axes.plot(list(mean), [sum(e) / len(e) for e in mean.values()], "-", lw=1.0, color=f"C{k}")
        axes.axhline(PAPER[model][2].mean, ls=":", lw=1.0, color=f"C{k}")
    axes.set(xscale="log", yscale="log", xlabel="processor minutes", ylabel="mean CCT error (ms)")
    axes.grid(alpha=0.3, which="both")
    if axes.get_legend_handles_labels()[1]:
        axes.legend(fontsize=7)
    return Drawing("longer", "Mean CCT error over the time of training; dotted: the paper's.", figure)


BENCHMARK = entry("case30-longer", tasks, present)

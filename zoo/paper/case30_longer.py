"""Beyond the paper: what more time does to its form, with its own residual and with rollouts."""

from dataclasses import dataclass, replace
from typing import Any

from zoo.paper.case30_accuracy import PAPER, STATES, STEPS, assessments, held_out, reference, slopes, steps_made
from zoo.paper.common import AS_PUBLISHED, Protocol, trained_why
from zoo.paper.entry import Findings, Setting, Task, entry
from zoo.paper.error_curves import BOUNDARIES, LABELS, STEEPNESS, boundary_values, reference_row, steepness
from zoo.paper.tables import Drawing, Presentation, Row, Table, cell
from zoo.plots import new_figure


@dataclass(frozen=True)
class Case:
    """One way of training a model, of at most so many seeds: half an hour each."""

    model: str
    label: str
    protocol: Protocol = AS_PUBLISHED
    seeds: int = 3

    def settings(self, setting: Setting) -> list[Setting]:
        """The budget of Table 1, and the longer one."""
        return [
            Setting(replace(setting.budget, one_shot=minutes), setting.seeds[: self.seeds])
            for minutes in (setting.budget.one_shot, setting.budget.longer)
        ]

    def measured(self, timed: Setting) -> tuple[list[Task], list[Task]]:
        """Errors of the states, and boundaries."""
        return held_out(timed, self.model, self.protocol), assessments(timed, self.model, self.protocol)


CASES = (
    *(Case(model, LABELS[model]) for model in ("es-pinn", "xpinn", "es-pinn-no-residual")),
    Case("es-pinn", "ES-PINN, shooting residual", Protocol(residual="shooting"), seeds=1),
)


def tasks(setting: Setting) -> list[Task]:
    """States and boundary of every case after the usual time and after the longer one."""
    return [reference(setting), slopes()] + [
        each
        for case in CASES
        for timed in case.settings(setting)
        for measured in case.measured(timed)
        for each in measured
    ]


def present(setting: Setting, findings: Findings) -> Presentation:
    """Errors of both lengths, case by case."""
    values = boundary_values(findings.get(reference(setting)))
    rows = []
    for case in CASES:
        angles, speeds, critical = PAPER[case.model]
        paper = (angles, speeds, None, None, critical, None, None)
        for timed, longer in zip(case.settings(setting), ("", ", longer"), strict=True):
            states, boundaries = case.measured(timed)
            readers = [(read, factor, states) for _, read, factor in STATES]
            readers += [(read, factor, boundaries) for read, factor in values]
            cells = tuple(
                cell([read(result) for result in findings.of(of)], theirs, factor)
                for (read, factor, of), theirs in zip(readers, paper, strict=True)
            )
            cells = (*cells, steepness(findings, boundaries), steps_made(findings, boundaries))
            why = findings.why([*states, *boundaries], trained_why(timed, case.model, case.protocol))
            rows.append(Row(f"{case.label}{longer}", cells, why))
    measured = (*(quantity for quantity, _, _ in STATES), *BOUNDARIES)
    rows.append(reference_row(findings, slopes(), before=len(measured), after=1))
    quantities = (*measured, STEEPNESS, STEPS)
    title = "Errors after the time of Table 1 and after a longer one; whole trajectories"
    table = Table("longer", title, "Table 1", quantities, tuple(rows))
    note = (
        f"At most {CASES[0].seeds} seeds with the paper's residual, {CASES[-1].seeds} with the shooting residual, "
        "whose rollouts are information that the paper's models do not have; minutes of the processor. Severities, "
        "pairs, truth and short trainings are those of case30-accuracy. The slope is how steeply the separation passes "
        "its limit as the fault is cleared later."
    )
    return Presentation((table,), (_drawing(setting, findings, values[0][0]),), (note,))


def _drawing(setting: Setting, findings: Findings, mae: Any) -> Drawing:
    figure, axes = new_figure(height=3.6)
    for k, case in enumerate(CASES):
        points = [
            (timed.budget.one_shot, error)
            for timed in case.settings(setting)
            for result in findings.of(case.measured(timed)[1])
            if (error := mae(result)) is not None
        ]
        if points:
            minutes, errors = zip(*points, strict=True)
            axes.plot(minutes, errors, "o", ms=5, alpha=0.7, color=f"C{k}", label=f"{case.label}, each seed")
            mean = {m: [e for at, e in points if at == m] for m in sorted(set(minutes))}
            axes.plot(list(mean), [sum(e) / len(e) for e in mean.values()], "-", lw=1.0, color=f"C{k}")
        if case.protocol is AS_PUBLISHED:
            axes.axhline(PAPER[case.model][2].mean, ls=":", lw=1.0, color=f"C{k}")
    axes.set(xscale="log", yscale="log", xlabel="processor minutes", ylabel="mean CCT error (ms)")
    axes.grid(alpha=0.3, which="both")
    if axes.get_legend_handles_labels()[1]:
        axes.legend(fontsize=7)
    return Drawing("longer", "Mean CCT error over the time of training; dotted: the paper's.", figure)


BENCHMARK = entry("case30-longer", tasks, present)

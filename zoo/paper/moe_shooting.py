"""Beyond the paper: its two faults with the shooting residual, at equal time and at equal steps."""

from zoo.paper.common import thinned
from zoo.paper.entry import Findings, Setting, Task, entry
from zoo.paper.moe_low_data import PAPER
from zoo.paper.tables import Drawing, Presentation, Quantity, Row, Table, cell
from zoo.paper.two_faults import ERRORS, METHODS, WHOSE, Terms, error_cells, method_row
from zoo.studies.sweep_table import SweepRow, plot_sweep, summarise

COMPARED = ("separate", "moe")
FRACTIONS = (0.1, 0.2, 1.0)


def _terms(setting: Setting) -> dict[str, Terms]:
    """By table."""
    return {
        "time": Terms(setting.budget.shooting_family, focus=True, residual="shooting"),
        "steps": Terms(steps=setting.budget.shooting_steps, focus=True, residual="shooting"),
    }


def tasks(setting: Setting) -> list[Task]:
    """Both methods on both terms, at every fraction and seed."""
    return [
        each
        for terms in _terms(setting).values()
        for seed in setting.seeds
        for fraction in FRACTIONS
        for method in COMPARED
        for each in terms.tasks(setting, method, fraction, seed)
    ]


def present(setting: Setting, findings: Findings) -> Presentation:
    """Pooled errors over the fractions, once with the same minutes and once with the same steps."""
    titles = {"time": "the same time for either", "steps": "the same steps for every model"}
    tables, drawings = [], []
    for name, terms in _terms(setting).items():
        table, complete = _table(setting, findings, name, terms, titles[name])
        tables.append(table)
        if complete:
            figure = plot_sweep(summarise(complete), f"shooting residual, {titles[name]}")
            drawings.append(Drawing(name, f"Errors over data fraction, {titles[name]}.", figure))
    notes = (
        "Rollouts from the model's own event states are information that the paper's models do not have. "
        f"{WHOSE} A step has as many rows for a mixture as for one separate model, so that at equal steps separate "
        "models see twice as many rows of each fault, in about twice the time.",
    )
    return Presentation(tuple(tables), tuple(drawings), notes)


def _table(setting: Setting, findings: Findings, name: str, terms: Terms, title: str) -> tuple[Table, list[SweepRow]]:
    rows, complete = [], []
    for fraction in FRACTIONS:
        for method in COMPARED:
            seeds = [method_row(setting, findings, terms, method, fraction, seed) for seed in setting.seeds]
            found = [row for row in seeds if row is not None]
            complete += found
            wanted = [each for seed in setting.seeds for each in terms.tasks(setting, method, fraction, seed)]
            cells = (
                *error_cells(found, (None, None, PAPER[method, fraction][2])),
                cell([float(row.steps) for row in found]),
                cell([row.training_s for row in found], factor=1 / 60),
            )
            rows.append(Row(f"{fraction:g}, {METHODS[method]}", cells, findings.why(wanted, terms.why(method))))
    quantities = (*ERRORS, Quantity("steps of all trainings"), Quantity("training", "min"))
    heading = f"Shooting residual, {title}, pooled over both faults{thinned(setting)}"
    return Table(name, heading, "Table 3", quantities, tuple(rows)), complete


BENCHMARK = entry("moe-shooting", tasks, present)

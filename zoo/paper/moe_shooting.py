"""Beyond the paper: its two faults with the shooting residual, at equal time and at equal steps."""

from dataclasses import dataclass

from zoo.paper.common import thinned
from zoo.paper.entry import Findings, Setting, Task, entry
from zoo.paper.moe_low_data import PAPER
from zoo.paper.tables import Drawing, Presentation, Quantity, Row, Table, cell
from zoo.paper.two_faults import DECISIVE, METHODS, WHOSE, Terms, decisive_cells, method_row
from zoo.studies.sweep_table import SweepRow, plot_sweep, summarise

FRACTIONS = (0.1, 0.2, 1.0)


@dataclass(frozen=True)
class Part:
    """A table: methods on the same terms."""

    name: str
    title: str
    terms: Terms
    methods: tuple[str, ...] = ("separate", "moe")
    fractions: tuple[float, ...] = FRACTIONS


def _parts(setting: Setting) -> tuple[Part, ...]:
    """Both methods on either terms; then what more time does to the mixture, at the fraction where it needs it."""
    minutes = setting.budget.shooting_family

    def timed(minutes: float) -> Terms:
        return Terms(minutes, focus=True, residual="shooting")

    counted = Terms(steps=setting.budget.shooting_steps, focus=True, residual="shooting")
    return (
        Part("time", "the same time for either", timed(minutes)),
        Part("steps", "the same steps for every model", counted),
        Part("twice", "twice the time", timed(2 * minutes), ("moe",), (0.2,)),
    )


def tasks(setting: Setting) -> list[Task]:
    """Every method of every part, at every fraction and seed."""
    return [
        each
        for part in _parts(setting)
        for seed in setting.seeds
        for fraction in part.fractions
        for method in part.methods
        for each in part.terms.tasks(setting, method, fraction, seed)
    ]


def present(setting: Setting, findings: Findings) -> Presentation:
    """Pooled errors over the fractions, part by part."""
    tables, drawings = [], []
    for part in _parts(setting):
        table, complete = _table(setting, findings, part)
        tables.append(table)
        if complete and len(part.fractions) > 1:
            figure = plot_sweep(summarise(complete), f"shooting residual, {part.title}")
            drawings.append(Drawing(part.name, f"Errors over data fraction, {part.title}.", figure))
    notes = (
        "Rollouts from the model's own event states are information that the paper's models do not have. "
        f"{WHOSE} A step has as many rows for a mixture as for one separate model, so that at equal steps separate "
        "models see twice as many rows of each fault, in about twice the time.",
    )
    return Presentation(tuple(tables), tuple(drawings), notes)


def _table(setting: Setting, findings: Findings, part: Part) -> tuple[Table, list[SweepRow]]:
    rows, complete = [], []
    for fraction in part.fractions:
        for method in part.methods:
            seeds = [method_row(setting, findings, part.terms, method, fraction, seed) for seed in setting.seeds]
            found = [row for row in seeds if row is not None]
            complete += found
            wanted = [each for seed in setting.seeds for each in part.terms.tasks(setting, method, fraction, seed)]
            cells = (
                *decisive_cells(found, PAPER[method, fraction][2]),
                cell([float(row.steps) for row in found]),
                cell([row.training_s for row in found], factor=1 / 60),
            )
            rows.append(Row(f"{fraction:g}, {METHODS[method]}", cells, findings.why(wanted, part.terms.why(method))))
    quantities = (*DECISIVE, Quantity("steps of all trainings"), Quantity("training", "min"))
    heading = f"Shooting residual, {part.title}, pooled over both faults{thinned(setting)}"
    return Table(part.name, heading, "Table 3", quantities, tuple(rows)), complete


BENCHMARK = entry("moe-shooting", tasks, present)

"""Table 3 of the paper: two separate models or one mixture of experts, over data fractions."""

from zoo.paper.common import thinned
from zoo.paper.entry import Findings, Setting, Task, entry
from zoo.paper.tables import Cell, Drawing, Presentation, Published, Quantity, Row, Table, cell
from zoo.paper.two_faults import (
    DECISIVE,
    METHODS,
    WHOLE_WINDOW,
    WHOSE,
    Terms,
    decisive_cells,
    method_row,
    whole_window_cells,
)
from zoo.studies.sweep_table import SweepRow, plot_sweep, summarise

PAPER = {  # RMSE_delta in rad, RMSE_omega in 1e-4 pu, CCT MAE in ms
    ("separate", 0.1): (Published(0.21, 0.16), Published(10.21, 5.13), Published(7.19, 5.00)),
    ("moe", 0.1): (Published(0.15, 0.02), Published(4.01, 1.25), Published(3.92, 1.85)),
    ("separate", 0.2): (Published(0.19, 0.11), Published(9.59, 4.88), Published(4.39, 1.95)),
    ("moe", 0.2): (Published(0.16, 0.01), Published(3.97, 1.63), Published(2.36, 0.68)),
    ("separate", 0.5): (Published(0.18, 0.09), Published(8.34, 2.21), Published(1.38, 0.49)),
    ("moe", 0.5): (Published(0.16, 0.02), Published(3.79, 1.62), Published(1.79, 1.10)),
    ("separate", 1.0): (Published(0.18, 0.06), Published(8.21, 2.36), Published(0.76, 0.24)),
    ("moe", 1.0): (Published(0.15, 0.01), Published(4.34, 1.73), Published(0.97, 0.26)),
}
PAPER_FEWER_PARAMETERS = Published(50.8)  # per cent, MoE against Separate


def _terms(setting: Setting) -> Terms:
    return Terms(setting.budget.one_shot, setting.budget.chained)


def tasks(setting: Setting) -> list[Task]:
    """Every method, fraction and seed."""
    return [
        each
        for fraction in setting.budget.fractions
        for method in METHODS
        for seed in setting.seeds
        for each in _terms(setting).tasks(setting, method, fraction, seed)
    ]


def present(setting: Setting, findings: Findings) -> Presentation:
    """Pooled errors over the fractions, and parameters."""
    terms, rows, complete = _terms(setting), [], []
    for fraction in setting.budget.fractions:
        for method, label in METHODS.items():
            seeds = [method_row(setting, findings, terms, method, fraction, seed) for seed in setting.seeds]
            present_rows = [row for row in seeds if row is not None]
            complete += present_rows
            wanted = [each for seed in setting.seeds for each in terms.tasks(setting, method, fraction, seed)]
            angles, speeds, critical = PAPER.get((method, fraction), (None, None, None))
            cells = (*whole_window_cells(present_rows, angles, speeds), *decisive_cells(present_rows, critical))
            rows.append(Row(f"{fraction:g}, {label}", cells, findings.why(wanted, terms.why(method))))
    accuracy = Table(
        "fractions",
        f"Errors over data fractions, pooled over both faults{thinned(setting)}",
        "Table 3",
        (*WHOLE_WINDOW, *DECISIVE),
        tuple(rows),
    )
    drawings: tuple[Drawing, ...] = ()
    if complete:
        figure = plot_sweep(summarise(complete), "a bus fault and a line fault of IEEE 30")
        drawings = (Drawing("fractions", "Errors over data fraction.", figure),)
    note = f"Every method has the same time at a fraction: the two trainings of Separate share it. {WHOSE}"
    return Presentation((accuracy, _parameters(terms, complete)), drawings, (note,))


def _parameters(terms: Terms, complete: list[SweepRow]) -> Table:
    counts = {row.method: float(row.parameters) for row in complete}
    steps = {method: [float(row.steps) for row in complete if row.method == method] for method in METHODS}
    rows = []
    for method, label in METHODS.items():
        fewer: Cell = cell([])
        base = counts.get(method.replace("moe", "separate"))
        if method.startswith("moe"):
            saved = 100 * (1 - counts[method] / base) if base and method in counts else None
            fewer = cell([saved], PAPER_FEWER_PARAMETERS if method == "moe" else None)
        why = "widths are ours, the paper does not publish those of its MoE" if method == "moe" else terms.why(method)
        rows.append(Row(label, (cell([counts.get(method)]), fewer, cell(steps[method])), why))
    quantities = (Quantity("parameters"), Quantity("fewer than Separate", "%"), Quantity("steps of all trainings"))
    return Table("parameters", "Parameters and steps of training", "Text of Table 3", quantities, tuple(rows))


BENCHMARK = entry("moe-low-data", tasks, present)

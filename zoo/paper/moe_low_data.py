"""Table 3 of the paper: two separate models or one mixture of experts, over data fractions."""

from zoo.judging.metrics import TrajectoryTotals
from zoo.paper.common import CALIBRATED, thinned
from zoo.paper.entry import Findings, Setting, Task, Training, entry, task
from zoo.paper.tables import Cell, Drawing, Presentation, Published, Quantity, Row, Table, cell
from zoo.studies.sweep import METHODS as SWEEP_METHODS
from zoo.studies.sweep import trained_together
from zoo.studies.sweep_table import SweepRow, plot_sweep, summarise
from zoo.surrogates.catalogue import entry_of

MEMBERS = ("ieee30-bus-7-remove-4-6", "ieee30-line-3-4-remove")
METHODS = {
    "separate": "Separate",
    "moe": "MoE",
    "separate-chained": "Separate chained (ours)",
    "moe-chained": "MoE chained (ours)",
}
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


def _trainings(setting: Setting, method: str, fraction: float, seed: int) -> list[Training]:
    """The trainings of a method: all members at once, or each for its share of the same time."""
    model, groups = SWEEP_METHODS[method][0], trained_together(method, MEMBERS)
    minutes = setting.budget.minutes(entry_of(model).form)
    return [Training(model, tuple(group), minutes / len(groups), seed, fraction) for group in groups]


def _of(setting: Setting, method: str, fraction: float, seed: int) -> list[Task]:
    trainings = _trainings(setting, method, fraction, seed)
    return [task("measurements:held_out", each, thin=setting.budget.thin) for each in trainings]


def tasks(setting: Setting) -> list[Task]:
    """Every method, fraction and seed."""
    return [
        each
        for fraction in setting.budget.fractions
        for method in METHODS
        for seed in setting.seeds
        for each in _of(setting, method, fraction, seed)
    ]


def _sweep_row(setting: Setting, findings: Findings, method: str, fraction: float, seed: int) -> SweepRow | None:
    """One method at one fraction and seed; CCT errors are those that its trainings recorded."""
    pooled, trained = TrajectoryTotals(), []
    for wanted in _of(setting, method, fraction, seed):
        judged, training = findings.get(wanted), findings.get(wanted.training) if wanted.training else None
        if judged is None or training is None:
            return None
        pooled = sum((TrajectoryTotals(**member) for member in judged["members"]), pooled)
        trained.append(training)
    metrics = [training["metrics"] for training in trained]
    means = [m["cct_mae_ms"] for m in metrics if "cct_mae_ms" in m]  # of the one member with a boundary
    errors = pooled.errors()
    return SweepRow(
        method,
        fraction,
        seed,
        rmse_delta=errors.rmse_delta,
        rmse_omega=errors.rmse_omega,
        rmse_delta_decisive=errors.rmse_delta_decisive,
        rmse_omega_decisive=errors.rmse_omega_decisive,
        cct_mae_ms=means[0] if means else None,
        cct_max_ms=max((m["cct_max_ms"] for m in metrics if "cct_max_ms" in m), default=None),
        status_errors=int(sum(m["status_errors"] for m in metrics)),
        parameters=sum(training["parameters"] for training in trained),
        training_s=sum(m["train_s"] for m in metrics),
        steps=int(sum(m["steps"] for m in metrics)),
    )


def present(setting: Setting, findings: Findings) -> Presentation:
    """Pooled errors over the fractions, and parameters."""
    rows, complete = [], []
    for fraction in setting.budget.fractions:
        for method, label in METHODS.items():
            seeds = [_sweep_row(setting, findings, method, fraction, seed) for seed in setting.seeds]
            present_rows = [row for row in seeds if row is not None]
            complete += present_rows
            theirs = PAPER.get((method, fraction), (None, None, None))
            cells = (
                cell([row.rmse_delta for row in present_rows], theirs[0]),
                cell([row.rmse_omega for row in present_rows], theirs[1], 1e4),
                cell([row.rmse_delta_decisive for row in present_rows]),
                cell([row.rmse_omega_decisive for row in present_rows], factor=1e4),
                cell([row.cct_mae_ms for row in present_rows], theirs[2]),
                cell([row.cct_max_ms for row in present_rows]),
                cell([float(row.status_errors) for row in present_rows]),
            )
            wanted = [each for seed in setting.seeds for each in _of(setting, method, fraction, seed)]
            rows.append(Row(f"{fraction:g}, {label}", cells, findings.why(wanted, _why(setting, method))))
    quantities = (
        Quantity("RMSE delta", "rad"),
        Quantity("RMSE omega", "1e-4 pu"),
        Quantity("decisive RMSE delta", "rad"),
        Quantity("decisive RMSE omega", "1e-4 pu"),
        Quantity("CCT MAE", "ms"),
        Quantity("largest CCT error", "ms"),
        Quantity("other status", "of 100"),
    )
    accuracy = Table(
        "fractions",
        f"Errors over data fractions, pooled over both faults{thinned(setting)}",
        "Table 3",
        quantities,
        tuple(rows),
    )
    drawings: tuple[Drawing, ...] = ()
    if complete:
        figure = plot_sweep(summarise(complete), "a bus fault and a line fault of IEEE 30")
        drawings = (Drawing("fractions", "Errors over data fraction.", figure),)
    note = (
        "Every method has the same time at a fraction: the two trainings of Separate share it. CCT errors are those of "
        "the line fault, the bus fault has no finite CCT; 'other status' counts severities of both. 'Decisive' errors "
        "end when the separation passes 1.5 pi, where chained models stop learning."
    )
    return Presentation((accuracy, _parameters(setting, complete)), drawings, (note,))


def _parameters(setting: Setting, complete: list[SweepRow]) -> Table:
    counts = {row.method: float(row.parameters) for row in complete}
    steps = {method: [float(row.steps) for row in complete if row.method == method] for method in METHODS}
    rows = []
    for method, label in METHODS.items():
        fewer: Cell = cell([])
        base = counts.get(method.replace("moe", "separate"))
        if method.startswith("moe"):
            saved = 100 * (1 - counts[method] / base) if base and method in counts else None
            fewer = cell([saved], PAPER_FEWER_PARAMETERS if method == "moe" else None)
        why = (
            "widths are ours, the paper does not publish those of its MoE" if method == "moe" else _why(setting, method)
        )
        rows.append(Row(label, (cell([counts.get(method)]), fewer, cell(steps[method])), why))
    quantities = (Quantity("parameters"), Quantity("fewer than Separate", "%"), Quantity("steps of all trainings"))
    return Table("parameters", "Parameters and steps of training", "Text of Table 3", quantities, tuple(rows))


def _why(setting: Setting, method: str) -> str:
    form = entry_of(SWEEP_METHODS[method][0]).form
    chained = ("not in the paper; ", "what decides stability")
    beyond, learned = chained if form == "chained" else ("", "whole trajectories")
    return f"{beyond}{CALIBRATED}; {learned}, {setting.budget.minutes(form):g} min on one CPU core for both members"


BENCHMARK = entry("moe-low-data", tasks, present)

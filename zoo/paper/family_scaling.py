"""Beyond the paper: one chained mixture of experts for growing families of line faults on 39 buses."""

from typing import Any

import numpy as np

from espinn_moe.surrogate import Surrogate
from zoo.judging.unseen import unseen_errors
from zoo.paper import BEYOND
from zoo.paper.entry import Findings, Setting, Task, Training, entry, task
from zoo.paper.members import line_family
from zoo.paper.tables import Drawing, Presentation, Quantity, Row, Table, cell
from zoo.plots import new_figure

MODEL = "moe-chained"
FRACTION = 0.2
SEEDS = 1  # at most: many members tell more than several seeds, and they take an hour
FIRST, STRIDE = 2, 13  # which lines come first: neighbours in the list are neighbours in the network


def measure(surrogate: Surrogate) -> dict[str, Any]:
    """Hard-CCT errors of every member on its unseen severities."""
    errors = [unseen_errors(surrogate, member) for member in range(len(surrogate.members))]
    return {
        "members": [
            e.to_dict() | {"name": m.name, "mismatches": e.mismatches}
            for e, m in zip(errors, surrogate.members, strict=True)
        ]
    }


def _training(setting: Setting, size: int, seed: int) -> Training:
    minutes = setting.budget.chained + setting.budget.family * (size - 1)
    return Training(MODEL, _family(size), minutes, seed, FRACTION)


def _family(size: int) -> tuple[str, ...]:
    """So many line faults from all over the network; a smaller family is part of a larger one."""
    names = tuple(line_family())
    return tuple(names[(FIRST + STRIDE * k) % len(names)] for k in range(size))


def _of(setting: Setting, size: int) -> list[Task]:
    return [task("family_scaling:measure", _training(setting, size, seed)) for seed in setting.seeds[:SEEDS]]


def tasks(setting: Setting) -> list[Task]:
    """Families of growing size; a smaller one is part of a larger one."""
    return [each for size in setting.budget.family_sizes for each in _of(setting, size)]


def present(setting: Setting, findings: Findings) -> Presentation:
    """Accuracy, parameters and time over the number of members."""
    rows, points = [], []
    for size in setting.budget.family_sizes:
        wanted = _of(setting, size)
        results = findings.of(wanted)
        trained = [findings.get(each.training) for each in wanted if each.training is not None]
        finished = [each for each in trained if each is not None]
        maes = [[m["mae"] for m in r["members"] if m["mae"] is not None] for r in results]
        medians = [float(np.median(m)) if m else None for m in maes]
        parameters = [float(each["parameters"]) for each in finished]
        times = [each["metrics"]["train_s"] for each in finished]
        cells = (
            cell(medians, factor=1e3),
            cell([max(m, default=None) for m in maes], factor=1e3),
            cell([float(sum(m["mismatches"] for m in r["members"])) for r in results]),
            cell(parameters),
            cell([p / size for p in parameters]),
            cell(times),
            cell([t / size for t in times]),
        )
        why = findings.why(wanted, "not in the paper, which has two members")
        rows.append(Row(f"{size} member{'s' if size > 1 else ''}", cells, why))
        points.append((size, *(c.ours for c in cells)))
    table = Table(
        "family",
        f"{MODEL} on line faults of the 39-bus system, a fifth of the scenarios",
        BEYOND,
        (
            Quantity("median CCT MAE", "ms"),
            Quantity("worst member", "ms"),
            Quantity("other status", "severities"),
            Quantity("parameters"),
            Quantity("parameters per member"),
            Quantity("training", "s"),
            Quantity("training per member", "s"),
        ),
        tuple(rows),
    )
    note = (
        f"The first member has {setting.budget.chained:g} min, every further one {setting.budget.family:g} min more. "
        "Errors are against the fast reduced ODE on 50 unseen severities of every member; members that are stable "
        "throughout have none."
    )
    return Presentation((table,), (_drawing(points),), (note,))


def _drawing(points: list[tuple[float | None, ...]]) -> Drawing:
    figure, axes = new_figure(1, 3, width=11.0, height=3.4)
    panels = (
        (axes[0], {"median member": 1, "worst member": 2}, "CCT error (ms)"),
        (axes[1], {"parameters": 4}, "parameters"),
        (axes[2], {"training": 6}, "training time (s)"),
    )
    for panel, lines, label in panels:
        for text, column in lines.items():
            drawn = [(p[0], p[column]) for p in points if p[column] is not None]
            if drawn:
                panel.plot(*zip(*drawn, strict=True), "o-", label=text)
        panel.set_xlabel("members")
        panel.set_ylabel(label)
        panel.set_ylim(bottom=0)
        panel.grid(alpha=0.3)
    if axes[0].lines:
        axes[0].set_ylim(auto=True)
        axes[0].set_yscale("log")
        axes[0].legend(fontsize=8)
    return Drawing("family", "Accuracy, parameters and time over the number of members.", figure)


BENCHMARK = entry("family-scaling", tasks, present)

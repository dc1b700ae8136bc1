"""What entries share: the contingencies and methods of the paper, and why our numbers may differ from its."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from zoo.paper.budgets import BOTH_FORMS as BOTH_FORMS
from zoo.paper.entry import Findings, Setting, Task, Training, task
from zoo.paper.tables import Published, Row, cell
from zoo.surrogates.catalogue import entry_of

PRIMARY = "ieee30-line-3-4-restore"
SYSTEMS = {  # of the cross-system studies
    "IEEE 9": "ieee9-mech-g2-restore",
    "IEEE 14": "ieee14-line-4-5-remove",
    "IEEE 30": "ieee30-bus-3-trip",
}
METHODS = {  # the paper's names, then ours
    "vanilla-pinn": "Vanilla PINN",
    "xpinn": "Enhanced XPINN",
    "pi-deeponet": "PI-DeepONet",
    "es-pinn": "ES-PINN",
    "es-pinn-chained": "ES-PINN chained (ours)",
}
ABLATIONS = {
    "es-pinn-state-only": "State-only hard-chain",
    "es-pinn-soft-chain": "Soft-chain ES-PINN",
    "es-pinn-no-residual": "w/o residual loss",
}

CALIBRATED = "H, x'd and D are calibrated, the paper does not publish its own"


def training(
    setting: Setting, model: str, contingency: str = PRIMARY, seed: int = 0, *, focus: bool = False
) -> Training:
    """The training of one model for one contingency, the same for every entry."""
    form = entry_of(model).form
    return Training(model, (contingency,), setting.budget.minutes(form), seed, focus=focus and form != "chained")


def per_seed(
    setting: Setting, function: str, model: str, contingency: str = PRIMARY, *, focus: bool = False, **options: Any
) -> list[Task]:
    """One measurement of a model for each seed."""
    return [
        task(function, training(setting, model, contingency, seed, focus=focus), **options) for seed in setting.seeds
    ]


def thinned(setting: Setting) -> str:
    """What a title says when not all pairs are used."""
    return "" if setting.budget.thin == 1 else f", one severity in {setting.budget.thin}"


def trained_why(setting: Setting, model: str, focus: bool = False) -> str:
    """Why a trained model's numbers may differ."""
    form = entry_of(model).form
    learned = "what decides stability" if focus or form == "chained" else "whole trajectories"
    beyond = "" if model in {**METHODS, **ABLATIONS} and model != "es-pinn-chained" else "not in the paper; "
    return f"{beyond}{CALIBRATED}; {learned}, {setting.budget.minutes(form):g} min on one CPU core"


def method_rows(
    findings: Findings,
    tasks: Mapping[str, Sequence[Task]],
    values: Sequence[Any],
    published: Mapping[str, Sequence[Published | None]],
    labels: Mapping[str, str],
    why: Callable[[str], str],
) -> list[Row]:
    """One row per method over its seeds.

    Parameters
    ----------
    tasks : {model: tasks, one per seed}
    values : sequence of (callable from a result to a number or None, factor)
        One for each quantity of the table.
    published : {model: numbers of the paper, one for each quantity}
    labels : {model: name shown}
    why : callable
        Model -> why its numbers may differ from the paper's, as `trained_why` says it.
    """
    rows = []
    for model, label in labels.items():
        results = findings.of(tasks[model])
        theirs = published.get(model, [None] * len(values))
        cells = [
            cell([read(result) for result in results], paper, factor)
            for (read, factor), paper in zip(values, theirs, strict=True)
        ]
        rows.append(Row(label, tuple(cells), findings.why(tasks[model], why(model))))
    return rows

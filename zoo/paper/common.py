"""What entries share: the contingencies and methods of the paper, and why our numbers may differ from its."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from zoo.paper.budgets import BOTH_FORMS as BOTH_FORMS
from zoo.paper.entry import Findings, Setting, Task, Training, task
from zoo.paper.tables import Published, Row, cell
from zoo.surrogates.budgets import Residual
from zoo.surrogates.catalogue import entry_of

PRIMARY = "ieee30-line-3-4-restore"
PRIMARY_CASE = "IEEE 30, primary"  # how tables of several systems call the primary benchmark
FEEDERS_CASE = "IEEE 30, feeders tripped"
SYSTEMS = {  # of the cross-system studies
    "IEEE 9": "ieee9-mech-g2-restore",
    "IEEE 14": "ieee14-line-4-5-remove",
    FEEDERS_CASE: "ieee30-bus-3-trip",
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


@dataclass(frozen=True)
class Protocol:
    """How one-shot models are trained; chained ones always learn windows of what decides stability."""

    focus: bool = False  # on what decides stability only
    residual: Residual = "pointwise"

    @property
    def words(self) -> str:
        """What is learned, and with which residual where it is not the paper's."""
        learned = "what decides stability" if self.focus else "whole trajectories"
        return learned if self.residual == "pointwise" else f"{learned} with the shooting residual"

    def applies_to(self, model: str) -> bool:
        """Whether a model can be trained so."""
        return self.residual == "pointwise" or not entry_of(model).no_shooting


AS_PUBLISHED = Protocol()
CALIBRATED = "H, x'd and D are calibrated, the paper does not publish its own"


def training(
    setting: Setting, model: str, contingency: str = PRIMARY, seed: int = 0, *, protocol: Protocol = AS_PUBLISHED
) -> Training:
    """The training of one model for one contingency, the same for every entry."""
    form = entry_of(model).form
    chosen = protocol if form == "one-shot" else AS_PUBLISHED
    minutes = setting.budget.minutes(form)
    return Training(model, (contingency,), minutes, seed, focus=chosen.focus, residual=chosen.residual)


def per_seed(
    setting: Setting,
    function: str,
    model: str,
    contingency: str = PRIMARY,
    *,
    protocol: Protocol = AS_PUBLISHED,
    **options: Any,
) -> list[Task]:
    """One measurement of a model for each seed."""
    trainings = [training(setting, model, contingency, seed, protocol=protocol) for seed in setting.seeds]
    return [task(function, each, **options) for each in trainings]


def thinned(setting: Setting) -> str:
    """What a title says when not all pairs are used."""
    return "" if setting.budget.thin == 1 else f", one severity in {setting.budget.thin}"


def trained_why(setting: Setting, model: str, protocol: Protocol = AS_PUBLISHED) -> str:
    """Why a trained model's numbers may differ."""
    form = entry_of(model).form
    learned = protocol.words if form == "one-shot" else "what decides stability"
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

"""The work behind the entries as jobs: trainings, and measurements of trained surrogates.

Every function here runs in a worker and takes and returns plain values. A measurement names its training;
the checkpoint is found through the training's own result.
"""

import importlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from contingencies.errors import NotFoundError, ZooError
from espinn_moe.surrogate import Surrogate
from registry.home import Home
from registry.records import CheckpointRecord
from registry.store import runs
from zoo.paper.entry import Task, Training
from zoo.paper.members import contingency_of
from zoo.surrogates.budgets import COMPARED_BY
from zoo.surrogates.catalogue import entry_of
from zoo.surrogates.checkpoints import from_bytes
from zoo.training.request import TrainingRequest
from zoo.training.session import Session, train_however_briefly
from zoo.work.code import MEASURING, TRAINING, code_digest
from zoo.work.jobs import FOLDER, Job, Results


@dataclass(frozen=True)
class Place:
    """Where entries train and keep their results."""

    home: Path
    registry: str | None = None  # URL of another registry than the home's own
    kept: Path | None = None  # folder of results that several homes share, instead of the home's own

    @property
    def results(self) -> Results:
        """Of trainings and measurements."""
        return Results(self.kept or self.home / FOLDER)


def job_of(work: Task | Training, place: Place) -> Job:
    """The job of a training or a task; its key depends on physics, request and code alone."""
    context = {"home": str(place.home.resolve()), "registry": place.registry}
    if isinstance(work, Training):
        inputs: dict[str, Any] = {"training": _plain(work)}
        return Job("zoo.paper.jobs:train", inputs, context, code_digest(TRAINING), label_of(work))
    inputs = {"function": work.function, "options": dict(work.options)}
    if work.training is not None:
        inputs["training"] = _plain(work.training)
    context["kept"] = None if place.kept is None else str(place.kept.resolve())
    code = code_digest((*MEASURING, f"zoo.paper.{work.function.partition(':')[0]}"))
    return Job("zoo.paper.jobs:measure", inputs, context, code, label_of(work))


def label_of(work: Task | Training) -> str:
    """A training or a task in a few words."""
    if isinstance(work, Training):
        first = work.members[0] if len(work.members) == 1 else f"{len(work.members)} contingencies"
        data = "" if work.fraction == 1.0 else f", fraction {work.fraction:g}"
        residual = "" if work.residual == "pointwise" else f", {work.residual}"
        steps = "" if work.steps is None else f", {work.steps} steps"
        return f"{work.model} on {first}{data}{residual}{steps}, seed {work.seed}"
    name = work.function.replace(":", " ")
    if work.training is not None:
        return f"{name} of {label_of(work.training)}"
    options = ", ".join(f"{name} {value}" for name, value in work.options if isinstance(value, str | int | float))
    return f"{name} ({options})" if options else name


def _plain(training: Training) -> dict[str, Any]:
    plain = {
        "model": training.model,
        "members": list(training.members),
        "physics": [contingency_of(name).sha256 for name in training.members],
        "minutes": training.minutes,
        "clock": COMPARED_BY,
        "seed": training.seed,
        "fraction": training.fraction,
        "focus": training.focus,
        "residual": training.residual,
    }
    return plain if training.steps is None else plain | {"steps": training.steps}


def _training(inputs: dict[str, Any]) -> Training:
    chosen = {name: inputs[name] for name in ("model", "minutes", "seed", "fraction", "focus", "residual")}
    return Training(members=tuple(inputs["members"]), steps=inputs.get("steps"), **chosen)


def train(training: dict[str, Any], home: str, registry: str | None) -> dict[str, Any]:
    """Train one surrogate into the registry.

    One-shot models learn whole trajectories, as in the paper, unless told otherwise; chained ones what decides
    stability. A model that was trained too briefly to have any finite CCT is measured like the others.
    """
    wanted = _training(training)
    focus = wanted.focus or entry_of(wanted.model).form == "chained"
    request = TrainingRequest(
        wanted.model, wanted.fraction, wanted.seed, minutes=None if wanted.steps else wanted.minutes,
        steps=wanted.steps, clock=COMPARED_BY, focus=focus, residual=wanted.residual,
    )  # fmt: skip
    with Home.open(home, registry) as opened:
        registered = opened.register([contingency_of(name) for name in wanted.members])
        trained = train_however_briefly(Session(opened), [each.row for each in registered], request)
    checkpoint = trained.checkpoint
    return {
        "checkpoint": checkpoint.id,
        "run": checkpoint.run_id,
        "digest": checkpoint.digest,
        "parameters": checkpoint.parameters,
        "metrics": dict(checkpoint.metrics),
    }


def measure(
    function: str,
    options: dict[str, Any],
    home: str,
    registry: str | None,
    kept: str | None = None,
    training: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Do one measurement, on a trained surrogate if it is one of such."""
    place = Place(Path(home), registry, None if kept is None else Path(kept))
    module, _, name = function.partition(":")
    measurement = getattr(importlib.import_module(f"zoo.paper.{module}"), name)
    surrogate = [] if training is None else [load_surrogate(_training(training), place)]
    result: dict[str, Any] = measurement(*surrogate, **options)
    return result


def load_surrogate(training: Training, place: Place) -> Surrogate:
    """The surrogate that a training has left in the registry."""
    trained = place.results.get(job_of(training, place))
    if trained is None:
        raise ZooError(f"{label_of(training)}: its training has not finished.")
    with Home.open(place.home, place.registry, create=False) as opened:
        checkpoint = _checkpoint(opened, trained)
        if checkpoint is None:
            raise ZooError(f"{label_of(training)}: was trained in another home, and its model is not in this one.")
        content = opened.load_checkpoint(checkpoint)
    return from_bytes(content, contingency_of(training.members[0])).surrogate


def forget_training(training: Training, place: Place) -> None:
    """Forget a training and all that was measured of it: done again, even with its seed, it is another model.

    A training that ends by minutes makes now more steps and now fewer, so that measurements of the former model beside
    those of the new one would be a table of two models in one row.
    """
    plain = _plain(training)
    place.results.forget_where(lambda inputs: inputs.get("training") == plain)


def trained_elsewhere(trainings: Iterable[Training], place: Place) -> list[Training]:
    """Of finished trainings, those whose model another home has and this one does not."""
    finished = [(each, place.results.get(job_of(each, place))) for each in trainings]
    if not any(result for _, result in finished):
        return []
    with Home.open(place.home, place.registry) as opened:
        return [each for each, result in finished if result is not None and _checkpoint(opened, result) is None]


def _checkpoint(home: Home, trained: dict[str, Any]) -> CheckpointRecord | None:
    """What a training has left in the registry, if it was in this one: numbers are those of a registry."""
    try:
        found = runs.get_checkpoint(home.database, trained["checkpoint"])
    except NotFoundError:
        return None
    return found if found.digest == trained["digest"] else None

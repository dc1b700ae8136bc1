"""The work behind the entries, as jobs of the orchestrator: trainings, and measurements of trained surrogates.

Every function here runs in a worker and takes and returns plain values. A measurement names its training;
the checkpoint is found through the training's own result.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from contingencies.errors import ZooError
from contingencies.library import Contingency, load_contingency, load_system, shipped_contingencies
from contingencies.network import Float
from zoo.paper.entry import Task, Training
from zoo.surrogates.budgets import COMPARED_BY
from zoo.work.jobs import FOLDER, Job, Results

if TYPE_CHECKING:
    from contingencies.operators import PhaseOperators
    from contingencies.stability import Boundary
    from espinn_moe.surrogate import Surrogate
    from registry.home import Home
    from registry.records import CheckpointRecord
    from zoo.judging.metrics import TrajectoryTotals

FAMILY_SYSTEM = "ieee39"
BLOCK = 8  # severities simulated at once


# --- who is trained ---------------------------------------------------------------------------


@lru_cache(maxsize=1)
def line_family() -> dict[str, Contingency]:
    """All line faults of the 39-bus system cleared by opening the line, by name."""
    from contingencies.families import Recipe, generate_family

    members = generate_family(load_system(FAMILY_SYSTEM), Recipe("line", "remove-line")).members
    return {member.name: member for member in members}


@lru_cache(maxsize=128)
def contingency_of(name: str) -> Contingency:
    """A shipped contingency, or a member of the line family."""
    return load_contingency(name) if name in shipped_contingencies() else line_family()[name]


def operators_of(name: str) -> "PhaseOperators":
    """The compiled operators of a contingency of the benchmarks."""
    from contingencies.operators import compile_members

    return compile_members([contingency_of(name)])[0]


# --- jobs -------------------------------------------------------------------------------------


def job_of(work: Task | Training, home: Path, registry: str | None) -> Job:
    """The job of a training or a task; its key depends on physics, request and version alone."""
    from zoo.surrogates.checkpoints import code_version

    context = {"home": str(home.resolve()), "registry": registry}
    if isinstance(work, Training):
        return Job("zoo.paper.jobs:train", {"training": _plain(work), "version": code_version()}, context)
    inputs = {"options": dict(work.options), "version": code_version()}
    if work.training is not None:
        inputs["training"] = _plain(work.training)
    return Job("zoo.paper.jobs:measure", {"function": work.function, **inputs}, context)


def _plain(training: Training) -> dict[str, Any]:
    return {
        "model": training.model,
        "members": list(training.members),
        "physics": [contingency_of(name).sha256 for name in training.members],
        "minutes": training.minutes,
        "clock": COMPARED_BY,
        "seed": training.seed,
        "fraction": training.fraction,
        "focus": training.focus,
    }


def _training(inputs: dict[str, Any]) -> Training:
    chosen = {name: inputs[name] for name in ("model", "minutes", "seed", "fraction", "focus")}
    return Training(members=tuple(inputs["members"]), **chosen)


def train(training: dict[str, Any], version: str, home: str, registry: str | None) -> dict[str, Any]:
    """Train one surrogate into the registry.

    One-shot models learn whole trajectories, as in the paper, unless told otherwise; chained ones what decides
    stability. A model that was trained too briefly to have any finite CCT is measured like the others.
    """
    from espinn_moe.train import TrainingError
    from registry.home import Home
    from zoo.surrogates.catalogue import entry_of
    from zoo.training.session import TrainingRequest, train_surrogate

    wanted = _training(training)
    focus = wanted.focus or entry_of(wanted.model).form == "chained"
    request = TrainingRequest(
        wanted.model, wanted.fraction, wanted.seed, minutes=wanted.minutes, clock=COMPARED_BY, focus=focus
    )
    with Home.open(home, registry) as opened, _kept_checkpoints(opened) as kept:
        rows = [found.row for found in opened.register([contingency_of(name) for name in wanted.members])]
        try:
            train_surrogate(opened, rows, request)
        except TrainingError:
            if not kept:  # its loss was not finite
                raise
        checkpoint = kept[-1]
    return {
        "checkpoint": checkpoint.id,
        "run": checkpoint.run_id,
        "digest": checkpoint.digest,
        "parameters": checkpoint.parameters,
        "metrics": dict(checkpoint.metrics),
    }


@contextmanager
def _kept_checkpoints(home: "Home") -> Iterator["list[CheckpointRecord]"]:
    """Checkpoints that are stored meanwhile: a training that raises may have kept one all the same."""
    kept: list[CheckpointRecord] = []
    store = home.add_checkpoint

    def add(*content: Any, **detail: Any) -> "CheckpointRecord":
        kept.append(store(*content, **detail))
        return kept[-1]

    home.add_checkpoint = add  # type: ignore[method-assign]
    try:
        yield kept
    finally:
        home.add_checkpoint = store  # type: ignore[method-assign]


def measure(
    function: str,
    options: dict[str, Any],
    version: str,
    home: str,
    registry: str | None,
    training: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Do one measurement, on a trained surrogate if it is one of such."""
    import importlib

    module, _, name = function.partition(":")
    found = getattr(importlib.import_module(f"zoo.paper.{module}"), name)
    if training is None:
        result: dict[str, Any] = found(**options)
    else:
        result = found(load_surrogate(_training(training), Path(home), registry), **options)
    return result


def load_surrogate(training: Training, home: Path, registry: str | None) -> "Surrogate":
    """The surrogate that a training has left in the registry."""
    from registry.home import Home
    from registry.store import runs
    from zoo.surrogates.checkpoints import from_bytes

    known = Results(home / FOLDER).get(job_of(training, home, registry).key)
    if known is None:
        raise ZooError(f"{training.model}, seed {training.seed}: its training has not finished.")
    with Home.open(home, registry, create=False) as opened:
        content = opened.load_checkpoint(runs.get_checkpoint(opened.database, known["checkpoint"]))
    return from_bytes(content, contingency_of(training.members[0])).surrogate


# --- measurements that several entries share -----------------------------------------------------


def held_out(surrogate: "Surrogate", thin: int) -> dict[str, Any]:
    """Sums of trajectory errors on the held-out pairs of every `thin`-th severity, for every member."""
    from zoo.surrogates.datasets import evaluation_grid

    members = []
    for member, operators in enumerate(surrogate.members):
        grid = evaluation_grid(operators)
        totals = grid_totals(surrogate, grid.alpha[::thin], grid.t_c, member, grid.held_out[::thin])
        members.append(asdict(totals))
    return {"members": members}


def assess(surrogate: "Surrogate", severities: int) -> dict[str, Any]:
    """The learned boundary beside the reduced ODE's, with sensitivities.

    `severities` is 50 for those between the points of the training grid, else the number of evenly spread ones.
    """
    from zoo.judging.assessment import assess_boundary

    found = assess_boundary(surrogate, severity_grid(surrogate.members[0], severities), reference="fast")
    return {"summary": found.summary(), "rows": found.rows()}


def severity_grid(operators: "PhaseOperators", count: int) -> Float:
    """The 50 unseen severities, or `count` evenly spread ones."""
    from zoo.surrogates.datasets import evaluation_grid

    return evaluation_grid(operators).unseen_alpha if count == 50 else np.linspace(*operators.severity, count)


def reference_curve(contingency: str, severities: int, reference: str) -> dict[str, Any]:
    """A reference's boundary."""
    from contingencies.references import reference_boundary

    operators = operators_of(contingency)
    return boundary_values(reference_boundary(operators, severity_grid(operators, severities), reference))  # type: ignore[arg-type]


def boundary_values(boundary: "Boundary") -> dict[str, Any]:
    """A boundary as plain values."""
    return {
        "alpha": [float(a) for a in boundary.alpha],
        "cct": [float(c) if np.isfinite(c) else None for c in boundary.cct],
        "status": list(boundary.status),
    }


def grid_totals(
    surrogate: "Surrogate", alpha: Float, t_c: Float, member: int = 0, chosen: "np.ndarray | None" = None
) -> "TrajectoryTotals":
    """Sums of trajectory errors on the chosen (a, c) pairs of a grid of severities (a,) and clearing instants (c,)."""
    import torch

    from contingencies.ode import trajectory_grid
    from contingencies.trajectories import output_times
    from zoo.judging.metrics import TrajectoryTotals, trajectory_totals

    operators = surrogate.members[member]
    chosen = np.ones((len(alpha), len(t_c)), dtype=bool) if chosen is None else chosen
    t, totals = output_times(operators), TrajectoryTotals()
    for begin in range(0, len(alpha), BLOCK):
        some, pairs = alpha[begin : begin + BLOCK], chosen[begin : begin + BLOCK]
        with torch.no_grad():
            times, severities, instants = (torch.as_tensor(x, dtype=surrogate.dtype) for x in (t, some, t_c))
            learned = surrogate.trajectories(times, severities, instants, member).double().numpy()
        totals += trajectory_totals(learned[pairs], trajectory_grid(operators, some, t_c, t)[pairs])
    return totals


def grid_errors(surrogate: "Surrogate", alpha: Float, t_c: Float) -> dict[str, Any]:
    """Trajectory errors on a grid of severities (a,) and clearing instants (c,), and overlap of its stability map."""
    from espinn_moe.boundary import margin_map
    from espinn_moe.margins import SMOOTH, MarginProbe, ode_angles
    from zoo.judging.metrics import mean_iou

    operators = surrogate.members[0]
    ours = margin_map(surrogate, alpha, t_c, rule=SMOOTH)
    truth = MarginProbe(ode_angles(operators, alpha), operators, SMOOTH).signs(np.tile(t_c, (len(alpha), 1)))
    return grid_totals(surrogate, alpha, t_c).errors().to_dict() | {"miou": mean_iou(ours >= 0, truth >= 0)}

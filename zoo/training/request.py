"""What decides the result of a training, fixed before any time is spent: physics, data, model, plan and code."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from types import MappingProxyType
from typing import Any

import torch

from contingencies.errors import UsageError
from contingencies.library import Contingency
from contingencies.operators import compile_members
from espinn_moe.chained import Chained
from espinn_moe.plan import Clock, TrainingPlan
from espinn_moe.surrogate import Surrogate
from espinn_moe.train import Objective
from zoo.surrogates.budgets import Residual, plan_for
from zoo.surrogates.catalogue import create_model, entry_of, make_objective, residual_of
from zoo.surrogates.datasets import ScenarioRecord, ScenarioSet, ScenarioStream
from zoo.work.code import code_digest
from zoo.work.reporting import Report, silent, within

SIMULATING = "simulating training data"


@dataclass(frozen=True)
class TrainingRequest:
    """What is asked for; the defaults are those of the command line."""

    model: str
    fraction: float = 1.0
    seed: int = 0
    budget: str = "standard"
    minutes: float | None = None
    steps: int | None = None
    clock: Clock = "wall"
    focus: bool = True
    residual: Residual | None = None  # the model's own default
    dtype: str | None = None  # the model's own default
    settings: dict[str, Any] | None = None  # further builder arguments

    def plan(self, members: int) -> TrainingPlan:
        """The plan for a model of so many contingencies."""
        return plan_for(
            entry_of(self.model).form, members, self.budget,
            minutes=self.minutes, steps=self.steps, seed=self.seed, clock=self.clock, residual=self.chosen_residual,
        )  # fmt: skip

    @property
    def chosen_residual(self) -> Residual:
        """How the swing equation is held to; refused where it does not apply to the model."""
        return residual_of(self.model, self.residual)


@dataclass(frozen=True, eq=False)
class Parent:
    """The checkpoint that a training starts from."""

    checkpoint_id: int
    digest: str
    surrogate: Surrogate
    metrics: Mapping[str, float] = field(default_factory=dict)  # that still hold for the child


@dataclass(frozen=True, eq=False)
class Prepared:
    """A training that can begin, and all that decides its result.

    `contingencies` are the members of the model that is kept; those at the places `learned` are trained now, on
    `scenarios`, by changing `surrogate`, from which `complete` makes the model that is kept.
    """

    request: TrainingRequest
    contingencies: tuple[Contingency, ...]
    learned: tuple[int, ...]
    scenarios: tuple[ScenarioRecord, ...]  # records of the trajectories that were learned from
    surrogate: Surrogate
    objective: Objective
    plan: TrainingPlan
    config: Mapping[str, Any]
    balance: Mapping[str, Any]  # how the loss terms are scaled and weighed at the start
    parent: Parent | None = None
    complete: Callable[[Surrogate], Surrogate] = lambda surrogate: surrogate

    @property
    def subject(self) -> str:
        """SHA-256 over physics, data, model and plan."""
        return hashlib.sha256(json.dumps(dict(self.config), sort_keys=True).encode()).hexdigest()

    @property
    def identity(self) -> str:
        """What is trained, and by which code."""
        return f"{self.subject[:24]}-{code_digest()}"


def prepare(
    contingencies: Sequence[Contingency],
    request: TrainingRequest,
    parent: Parent | None = None,
    report: Report = silent,
) -> Prepared:
    """Simulate the data and build the model; every bad request is refused here, before any time is spent.

    With a `parent` of the same shape, training begins from its weights. `report` hears how many members have been
    simulated. Models that learn from windows of trajectories get one member's after another, so that the whole family's
    are never in memory together.
    """
    if not entry_of(request.model).family and len(contingencies) > 1:
        raise UsageError(
            f"{request.model} learns one contingency, not {len(contingencies)}; use train-moe for a family, "
            "or train them one by one."
        )
    plan = request.plan(len(contingencies))
    members = compile_members(contingencies)
    heard = within(report, SIMULATING, len(members))
    stream = ScenarioStream(members, request.fraction, request.seed, heard)
    settings = dict(request.settings or {})
    if request.dtype is not None:
        settings["dtype"] = request.dtype
    surrogate = create_model(request.model, members, seed=request.seed, **settings)
    scenarios: Sequence[ScenarioSet] = stream if isinstance(surrogate, Chained) else list(stream)
    surrogate.calibrate(scenarios)
    if parent is not None:
        surrogate.load_state_dict(parent.surrogate.state_dict())
    surrogate.to(torch.device("cuda" if torch.cuda.is_available() else "cpu"))
    if scenarios is not stream:
        report("preparing the objective", 0, 0)
    objective = make_objective(request.model, surrogate, scenarios, focus=request.focus, residual=request.residual)
    records = stream.records()
    config = training_config(contingencies, request, records, surrogate, plan, parent)
    learned = tuple(range(len(contingencies)))
    return Prepared(
        request, tuple(contingencies), learned, records, surrogate, objective, plan, config, balance_of(objective),
        parent,
    )  # fmt: skip


def balance_of(objective: Objective) -> dict[str, Any]:
    """How an objective scales and weighs its terms."""
    return {"weights": dict(objective.weights), "scales": dict(getattr(objective, "scales", {}))}


def training_config(
    contingencies: Sequence[Contingency],
    request: TrainingRequest,
    scenarios: Sequence[ScenarioRecord],
    surrogate: Surrogate,
    plan: TrainingPlan,
    parent: Parent | None,
) -> Mapping[str, Any]:
    """What decides a result, as plain values that nobody changes afterwards."""
    config = {
        "model": request.model,
        "settings": surrogate.settings(),
        "contingencies": [contingency.sha256 for contingency in contingencies],
        "datasets": [each.digest for each in scenarios],
        "fraction": request.fraction,
        "seed": request.seed,
        "budget": request.budget,
        "focus": request.focus,
        "residual": request.chosen_residual,
        "plan": asdict(plan),
    }
    if parent is not None:
        config["parent"] = parent.digest
    return MappingProxyType(config)

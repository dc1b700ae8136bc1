"""The data-fraction schedule: every method at every fraction and seed, judged alike, resumable.

A method is one model for all members (`moe`, `moe-chained`) or one model per member (`separate`,
`separate-chained`); all see the same scenarios at a given fraction and seed. One training is one job, in a home of the
sweep's own, so that a hurried one never becomes the default of a contingency. The members' trainings of a separate
method share the time that one model for all of them gets, so that methods are compared at equal time (of the
processor, which is that of the wall on an idle core); with a number of steps, at equal epochs. Both are in the table.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

from contingencies.errors import UsageError
from contingencies.library import Contingency, System
from contingencies.operators import compile_members
from espinn_moe.surrogate import Surrogate, check_members
from registry.home import Home
from zoo.judging.metrics import CCTErrors
from zoo.judging.trajectories import held_out_totals
from zoo.studies.sweep_table import SweepRow, sweep_row
from zoo.surrogates.budgets import COMPARED_BY, Residual, plan_for
from zoo.surrogates.catalogue import entry_of
from zoo.surrogates.datasets import chosen_scenarios
from zoo.training.request import TrainingRequest
from zoo.training.session import Session, train_however_briefly
from zoo.work.batch import Heard, run_jobs
from zoo.work.code import STUDIES, code_digest
from zoo.work.executor import Executor
from zoo.work.jobs import FOLDER, Done, Job
from zoo.work.reporting import Say, quiet

Member = TypeVar("Member")
Cell = tuple[str, float, int]  # method, fraction, seed
HOME = "home"  # of a sweep's folder

METHODS: dict[str, tuple[str, bool]] = {  # name -> model, whether one model serves all members
    "moe": ("moe", True),
    "separate": ("es-pinn", False),
    "moe-chained": ("moe-chained", True),
    "separate-chained": ("es-pinn-chained", False),
}


@dataclass(frozen=True)
class SweepPlan:
    """What is compared."""

    methods: tuple[str, ...]
    fractions: tuple[float, ...]
    seeds: tuple[int, ...]
    budget: str = "standard"
    minutes: float | None = None  # for all members together
    steps: int | None = None  # of each training
    focus: bool | None = None  # default: chained models learn what decides stability, others whole trajectories
    residual: Residual = "pointwise"  # of the paper's methods, as in the paper; chained ones know no other

    def __post_init__(self) -> None:
        for method in self.methods:
            if method not in METHODS:
                raise UsageError(f"method {method[:40]!r} is not known; use {', '.join(METHODS)}.")
        for fraction in self.fractions:
            if not 0 < fraction <= 1:
                raise UsageError(f"fraction {fraction} is not in (0, 1]; give fractions like 0.1,0.2,0.5,1.0.")
        for name, values in (("method", self.methods), ("fraction", self.fractions), ("seed", self.seeds)):
            if not values or len(set(values)) != len(values):
                raise UsageError(f"give every {name} once, and at least one.")
        if self.minutes is not None and self.steps is not None:
            raise UsageError("give either minutes (equal time) or steps (equal epochs), not both.")

    @property
    def cells(self) -> list[Cell]:
        """All combinations, in the order of methods, fractions and seeds."""
        return [(m, f, s) for m in self.methods for f in self.fractions for s in self.seeds]


def run_sweep(
    plan: SweepPlan,
    contingencies: Sequence[Contingency],
    executor: Executor,
    folder: Path,
    heard: Heard = lambda item, count, total: None,
    say: Say = quiet,
) -> tuple[list[SweepRow], list[Done]]:
    """Train and judge whatever the folder does not hold yet.

    Parameters
    ----------
    plan : SweepPlan
    contingencies : sequence of Contingency
        The members.
    executor : Executor
    folder : Path
        Results, and the sweep's home with states of unfinished trainings.
    heard : callable
        Hears of each training.
    say : callable
        Told when results of other code are not reused.

    Returns
    -------
    rows : list of SweepRow
        Complete ones only, in the order of methods, fractions and seeds.
    done : list of Done
        Every training, failed ones included.
    """
    _refuse_early(plan, contingencies)
    jobs = {cell: _jobs(plan, cell, contingencies, folder) for cell in plan.cells}
    flat = [job for cell in plan.cells for job in jobs[cell]]
    # Long ones first: a family's training must not be the last to start.
    flat.sort(key=lambda job: -len(job.inputs["members"]))
    done = run_jobs(flat, executor, folder / FOLDER, heard, say)
    results = {item.job.key: item.result for item in done}
    rows = []
    for cell in plan.cells:
        parts = [results[job.key] for job in jobs[cell]]
        if all(part is not None for part in parts):
            rows.append(sweep_row(cell, parts))
    return rows, done


def _refuse_early(plan: SweepPlan, contingencies: Sequence[Contingency]) -> None:
    """Refuse members that no model can serve, or a fraction that leaves nothing, before any time is spent."""
    check_members(compile_members(contingencies))
    for contingency in contingencies:
        chosen_scenarios(contingency.name, min(plan.fractions), seed=0)


def trained_together(method: str, members: Sequence[Member]) -> list[list[Member]]:
    """Who shares a model of a method: all members, or each has its own; the models share the method's time."""
    return [list(members)] if METHODS[method][1] else [[member] for member in members]


def _jobs(plan: SweepPlan, cell: Cell, members: Sequence[Contingency], folder: Path) -> list[Job]:
    method, fraction, seed = cell
    model, groups = METHODS[method][0], trained_together(method, members)
    form, minutes = entry_of(model).form, None
    if plan.steps is None:
        minutes = plan_for(form, len(members), plan.budget, minutes=plan.minutes).minutes
        assert minutes is not None
        minutes /= len(groups)
    focus = form == "chained" if plan.focus is None else plan.focus
    request = {
        "model": model, "fraction": fraction, "seed": seed, "minutes": minutes, "clock": COMPARED_BY,
        "steps": plan.steps, "focus": focus, "residual": plan.residual if form == "one-shot" else "pointwise",
    }  # fmt: skip
    return [_training_job(request, group, folder) for group in groups]


def _training_job(request: dict[str, Any], group: list[Contingency], folder: Path) -> Job:
    system = group[0].system
    context = {
        "specs": [member.to_json() for member in group], "system": system.to_json(), "network": system.network_file,
        "home": str((folder / HOME).resolve()),
    }  # fmt: skip
    who = group[0].name if len(group) == 1 else f"{len(group)} contingencies"
    label = f"{request['model']} of {who}, fraction {request['fraction']:g}, seed {request['seed']}"
    inputs = {"request": request, "members": [member.sha256 for member in group]}
    return Job("zoo.studies.sweep:train_and_judge", inputs, context, code_digest(STUDIES), label)


def train_and_judge(
    request: dict[str, Any], members: list[str], specs: list[str], system: str, network: bytes | None, home: str
) -> dict[str, Any]:
    """In a worker: one training and its errors.

    Parameters
    ----------
    request : dict
        Of `TrainingRequest`.
    members : list of str
        SHA-256 of the contingencies.
    specs : list of str
        The members' descriptions as JSON.
    system : str
        Their system's description as JSON; `network` is its network file, if it has one.
    home : str
        The sweep's home.
    """
    described = System.from_json(system, network)
    contingencies = [Contingency.from_json(spec, described) for spec in specs]
    assert [contingency.sha256 for contingency in contingencies] == members
    with Home.open(home) as opened:
        rows = [registered.row for registered in opened.register(contingencies)]
        trained = train_however_briefly(Session(opened), rows, TrainingRequest(**request))
    return {
        "parameters": trained.surrogate.n_parameters,
        "training_s": trained.result.used_s,
        "steps": trained.result.steps,
        "loss": trained.result.loss,
        "members": [judge(trained.surrogate, k, errors) for k, errors in enumerate(trained.errors)],
    }


def judge(surrogate: Surrogate, member: int, errors: CCTErrors) -> dict[str, Any]:
    """Errors of one member: trajectories on the held-out pairs, and its hard-CCT errors on the unseen severities."""
    cct = errors.to_dict() | {"mismatches": errors.mismatches}
    trajectories = asdict(held_out_totals(surrogate, member))
    return {"contingency": surrogate.members[member].name, "trajectories": trajectories, "cct": cct}

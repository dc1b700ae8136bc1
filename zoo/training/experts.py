"""A new expert for a trained family, and the removal of one: every other member keeps its answers, bit for bit.

The trunk and necks stay as they are. A model of the new member alone, on the frozen shared part, learns its
expert, which is then set beside the others. Before anything is stored, the answers of the other members are
compared with those of the parent.
"""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from contingencies.errors import ConflictError, IntegrityError, UsageError
from contingencies.library import Contingency
from contingencies.operators import compile_members
from espinn_moe.expert_slices import answers_equal, copy_members, member_slices, new_slices
from espinn_moe.plan import Clock, Progress, TrainingPlan
from espinn_moe.surrogate import Surrogate
from espinn_moe.train import Objective, TrainingResult, train
from registry.home import Home
from registry.records import CheckpointRecord, ContingencyRecord
from registry.store import contingencies as contingency_store
from registry.store import runs
from zoo.judging.certificates import certificate_prefix, member_certificate
from zoo.judging.metrics import CCTErrors, cct_errors
from zoo.judging.unseen import Validation, unseen_boundaries
from zoo.surrogates import checkpoints
from zoo.surrogates.budgets import plan_for
from zoo.surrogates.catalogue import create_model, entry_of, make_objective
from zoo.surrogates.datasets import ScenarioSet, training_set
from zoo.training.session import FOLDER

TIME_SHARE = 0.18  # of the time that training the enlarged family anew would take

State = dict[str, Tensor]


@dataclass(frozen=True, eq=False)
class Family:
    """A trained model of a family, as a checkpoint holds it."""

    row: CheckpointRecord
    model: str
    surrogate: Surrogate
    members: tuple[ContingencyRecord, ...]  # in the order of the experts
    contingencies: tuple[Contingency, ...]


@dataclass(frozen=True, eq=False)
class Onboarded:
    """The enlarged family."""

    run_id: int
    checkpoint_id: int
    surrogate: Surrogate
    result: TrainingResult
    errors: CCTErrors  # of the new member, on unseen severities
    members: tuple[str, ...]


def load_family(home: Home, checkpoint_id: int) -> Family:
    """The family of a checkpoint; refused when its model serves one contingency only by design."""
    row = runs.get_checkpoint(home.database, checkpoint_id)
    content = home.load_checkpoint(row)
    metadata = checkpoints.read_metadata(content)
    if not entry_of(metadata["model"]).family:
        raise UsageError(
            f"checkpoint {checkpoint_id} holds {metadata['model']!r}, a model of one contingency; "
            "experts are added to and removed from those of train-moe."
        )
    found = [contingency_store.find_sha256(home.database, member["sha256"]) for member in metadata["members"]]
    members = tuple(member for member in found if member is not None)
    if len(members) != len(found):
        raise IntegrityError(f"checkpoint {checkpoint_id} has members that are not registered; restore the registry.")
    contingencies = tuple(home.contingency(member) for member in members)
    loaded = checkpoints.from_bytes(content, contingencies[0])
    return Family(row, loaded.model, loaded.surrogate, members, contingencies)


# --- adding -----------------------------------------------------------------------------------


def add_expert(
    home: Home,
    checkpoint_id: int,
    row: ContingencyRecord,
    *,
    fraction: float = 1.0,
    seed: int = 0,
    budget: str = "standard",
    minutes: float | None = None,
    steps: int | None = None,
    clock: Clock = "wall",
    resume: bool = True,
    report: Callable[[Progress], None] | None = None,
) -> Onboarded:
    """Train an expert for a contingency on the frozen rest of a family, as a new checkpoint.

    Parameters
    ----------
    home : Home
    checkpoint_id : int
        The family; it stays as it is and becomes the parent of the new checkpoint.
    row : ContingencyRecord
        The new member.
    fraction, seed
        Of the new member's scenarios.
    budget, minutes, steps
        By default a fifth of what training the enlarged family would take at this budget.
    clock : "wall" or "processor"
        Which minutes count.
    resume : bool
        Whether an interrupted training of the same request is continued.
    report : callable, optional
        Told the progress about once a second.
    """
    family = load_family(home, checkpoint_id)
    if any(member.name == row.name for member in family.members):
        raise ConflictError(f"checkpoint {checkpoint_id} has an expert for {row.name!r} already; remove it first.")
    newcomer = home.contingency(row)
    if newcomer.system.sha256 != family.contingencies[0].system.sha256:
        raise UsageError(
            f"{row.name!r} belongs to system {newcomer.system.name!r}, the checkpoint to "
            f"{family.contingencies[0].system.name!r} or another version of it; one model serves one system."
        )
    contingencies = [*family.contingencies, newcomer]
    operators = compile_members(contingencies)
    settings = family.surrogate.settings()
    enlarged = create_model(family.model, operators, seed=seed, **settings)  # refuses other machines and windows
    scenarios = training_set(operators[-1], fraction, seed)
    plan = replace(_plan(family, len(contingencies), budget, minutes, steps, seed), clock=clock)
    newest = len(family.members)
    same = {member: member for member in range(newest)}
    copy_members(family.surrogate, enlarged, same)
    apprentice = create_model(family.model, operators[-1:], seed=seed, **settings)
    own = new_slices(enlarged, newest)
    objective = _begin(family, enlarged, apprentice, scenarios, own)
    config = {
        "parent": family.row.digest, "contingency": row.sha256, "dataset": scenarios.digest, "fraction": fraction,
        "seed": seed, "budget": budget, "plan": asdict(plan), "code_version": checkpoints.code_version(),
    }  # fmt: skip
    run = _start_run(home, family, row, scenarios, config)
    try:
        result = _train(home, apprentice, objective, plan, config, run.id, resume, report)
        copy_members(apprentice, enlarged, {0: newest})
        enlarged.eval()
        _check_unchanged(family.surrogate, enlarged, same)
        learned, reference = unseen_boundaries(enlarged, newest)
        errors = cct_errors(learned, reference)
        measured = _certificates(family, same) | member_certificate(enlarged, learned, newest) | _errors(errors, newest)
        training = {"parent": family.row.digest, "steps": result.steps, "elapsed_s": result.elapsed_s, **config}
        checkpoint = _store(home, family, enlarged, contingencies, [*family.members, row], training, measured, run.id)
    except BaseException as error:
        runs.fail_run(home.database, run.id, str(error) or type(error).__name__)
        raise
    runs.finish_run(home.database, run.id, {"train_s": result.elapsed_s, "steps": float(result.steps)})
    _state_path(home, config).unlink(missing_ok=True)
    names = tuple(member.name for member in contingencies)
    return Onboarded(run.id, checkpoint.id, enlarged, result, errors, names)


def _plan(
    family: Family, members: int, budget: str, minutes: float | None, steps: int | None, seed: int
) -> TrainingPlan:
    form = entry_of(family.model).form
    plan = plan_for(form, members, budget, minutes=minutes, steps=steps, seed=seed)
    if minutes is None and plan.minutes is not None:
        plan = replace(plan, minutes=TIME_SHARE * plan.minutes)
    return plan


def _begin(
    family: Family, enlarged: Surrogate, apprentice: Surrogate, scenarios: ScenarioSet, own: set[str]
) -> Objective:
    """The shared part, frozen, and of the trained experts the one that fits the newcomer best."""
    newest = len(family.members)
    apprentice.calibrate([scenarios])
    make_objective(family.model, apprentice, [scenarios])  # chained models measure their scales on windows
    fresh = {name: tensor.clone() for name, tensor in apprentice.state_dict().items() if name in own}
    copy_members(enlarged, apprentice, {newest: 0})  # shared tensors, and experts that the newcomer shares
    apprentice.load_state_dict({**apprentice.state_dict(), **fresh})
    objective = make_objective(family.model, apprentice, [scenarios])  # sees the inputs as the family scales them
    trainable = {name for name, _ in apprentice.named_parameters() if name in own}
    for name, parameter in apprentice.named_parameters():
        parameter.requires_grad_(name in trainable)
    slices, trained = member_slices(family.surrogate), family.surrogate.state_dict()
    candidates: list[State] = [fresh]
    for member in range(newest):
        experts = {name: trained[name][[slices[name][member]]] for name in trainable}
        candidates.append({**fresh, **experts})  # scales are the newcomer's own in any case
    batch = objective.batch(torch.Generator().manual_seed(0))

    def loss(candidate: State) -> float:
        apprentice.load_state_dict({**apprentice.state_dict(), **candidate})
        terms = objective.terms(apprentice, batch)
        return float(sum(objective.weights.get(name, 1.0) * float(value.detach()) for name, value in terms.items()))

    losses = [loss(candidate) for candidate in candidates]
    apprentice.load_state_dict({**apprentice.state_dict(), **candidates[losses.index(min(losses))]})
    return objective


def _train(
    home: Home,
    apprentice: Surrogate,
    objective: Objective,
    plan: TrainingPlan,
    config: dict[str, Any],
    run_id: int,
    resume: bool,
    report: Callable[[Progress], None] | None,
) -> TrainingResult:
    def tell(progress: Progress) -> None:
        runs.heartbeat(home.database, run_id)
        if report is not None:
            report(progress)

    result = train(
        apprentice, objective, plan,
        state_path=_state_path(home, config), resume=resume, report=tell, validate=Validation(apprentice),
        identity=_identity(config),
    )  # fmt: skip
    apprentice.eval()
    return result


def _identity(config: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(config, sort_keys=True).encode()).hexdigest()


def _state_path(home: Home, config: dict[str, Any]) -> Path:
    return home.path / FOLDER / f"expert-{_identity(config)[:24]}.safetensors"


def _start_run(
    home: Home, family: Family, row: ContingencyRecord, scenarios: ScenarioSet, config: dict[str, Any]
) -> Any:
    dataset = runs.add_dataset(
        home.database, row.id, scenarios.digest, scenarios.description, scenarios.fraction, scenarios.seed
    )
    return runs.start_run(
        home.database, "moe", family.model, [(row.id, dataset.id)], config=config, seed=scenarios.seed,
        fraction=scenarios.fraction, code_version=checkpoints.code_version(),
    )  # fmt: skip


# --- removing ---------------------------------------------------------------------------------


def remove_expert(home: Home, checkpoint_id: int, name: str) -> tuple[CheckpointRecord, tuple[str, ...]]:
    """A new checkpoint without one member; heads that came from the parent stay as they are.

    Returns
    -------
    (CheckpointRecord, names of the members that are left)
    """
    family = load_family(home, checkpoint_id)
    named = contingency_store.find(home.database, name)
    names = [member.name for member in family.members]
    if named.name not in names:
        raise UsageError(f"checkpoint {checkpoint_id} has no expert for {named.name!r}; it has {', '.join(names)}.")
    if len(names) == 1:
        raise UsageError(f"{named.name!r} is the only member of checkpoint {checkpoint_id}; a model needs one.")
    gone = names.index(named.name)
    kept = [k for k in range(len(names)) if k != gone]
    contingencies = [family.contingencies[k] for k in kept]
    operators = compile_members(contingencies)
    reduced = create_model(family.model, operators, **family.surrogate.settings())
    places = {before: after for after, before in enumerate(kept)}
    copy_members(family.surrogate, reduced, places)
    reduced.eval()
    _check_unchanged(family.surrogate, reduced, places)
    rows = [family.members[k] for k in kept]
    training = {"parent": family.row.digest, "removed": named.name}
    checkpoint = _store(home, family, reduced, contingencies, rows, training, _certificates(family, places))
    return checkpoint, tuple(row.name for row in rows)


# --- both -------------------------------------------------------------------------------------


def _certificates(family: Family, places: dict[int, int]) -> dict[str, float]:
    """The parent's certificates of members {of the parent: of the child}, whose answers are the same."""
    known: dict[str, float] = {name: value for name, value in family.row.metrics.items() if value is not None}
    return {
        certificate_prefix(after) + name.removeprefix(certificate_prefix(before)): value
        for before, after in places.items()
        for name, value in known.items()
        if name.startswith(certificate_prefix(before))
    }


def _errors(errors: CCTErrors, member: int) -> dict[str, float]:
    """The errors of the one member that was measured."""
    if errors.mae is None or errors.maximum is None:
        return {}
    return {"cct_mae_ms": 1e3 * errors.mae, "cct_max_ms": 1e3 * errors.maximum, "measured_member": float(member)}


def _check_unchanged(parent: Surrogate, child: Surrogate, members: dict[int, int]) -> None:
    """Refuse a child whose other members answer otherwise than in the parent, in any bit."""
    if not answers_equal(parent, child, members):
        raise ConflictError(
            "the answers for other members would change, because the severities of the members differ; "
            "train the family anew with train-moe."
        )


def _store(
    home: Home,
    family: Family,
    surrogate: Surrogate,
    contingencies: Sequence[Contingency],
    rows: Sequence[ContingencyRecord],
    training: dict[str, Any],
    metrics: dict[str, float],
    run_id: int | None = None,
) -> CheckpointRecord:
    return home.add_checkpoint(
        checkpoints.to_bytes(family.model, surrogate, contingencies, training),
        surrogate.n_parameters,
        checkpoints.KIND,
        {row.id: k for k, row in enumerate(rows)},
        run_id=run_id,
        parent_id=family.row.id,
        metrics=metrics,
    )

"""A new expert for a trained family, and the removal of one: every other member keeps its answers, bit for bit.

The trunk and necks stay as they are. A model of the new member alone (the apprentice), on the frozen shared part,
learns its expert, which is then set beside the others. Before anything is stored, the answers of the other members are
compared with those of the parent.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from contingencies.errors import ConflictError, IntegrityError, NotFoundError, UsageError
from contingencies.library import Contingency
from contingencies.operators import compile_members
from espinn_moe.expert_slices import answers_equal, copy_members, member_slices, new_slices
from espinn_moe.plan import TrainingPlan
from espinn_moe.surrogate import Surrogate
from espinn_moe.train import Objective
from registry.home import Home
from registry.records import CheckpointRecord, ContingencyRecord
from registry.store import contingencies as contingency_store
from registry.store import runs
from zoo.judging.certificates import certificate_prefix
from zoo.surrogates import checkpoints
from zoo.surrogates.budgets import Residual
from zoo.surrogates.catalogue import create_model, entry_of, make_objective
from zoo.surrogates.datasets import ScenarioSet, training_set
from zoo.training.outcome import Trained
from zoo.training.request import Parent, Prepared, TrainingRequest, balance_of, training_config
from zoo.training.session import Session

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

    def certificates(self, places: Mapping[int, int]) -> dict[str, float]:
        """Certificates of members {here: in a child}, whose answers are the same there."""
        metrics = {name: value for name, value in self.row.metrics.items() if value is not None}
        return {
            certificate_prefix(after) + name.removeprefix(certificate_prefix(before)): value
            for before, after in places.items()
            for name, value in metrics.items()
            if name.startswith(certificate_prefix(before))
        }

    def parent(self, places: Mapping[int, int]) -> Parent:
        """This family as the parent of one that keeps members {here: there}."""
        return Parent(self.row.id, self.row.digest, self.surrogate, self.certificates(places))


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
    rows = [contingency_store.find_sha256(home.database, member["sha256"]) for member in metadata["members"]]
    members = tuple(member for member in rows if member is not None)
    if len(members) != len(rows):
        raise IntegrityError(f"checkpoint {checkpoint_id} has members that are not registered; restore the registry.")
    contingencies = tuple(home.contingencies(members))
    loaded = checkpoints.from_bytes(content, contingencies[0])
    return Family(row, loaded.model, loaded.surrogate, members, contingencies)


# --- adding -----------------------------------------------------------------------------------


def add_expert(session: Session, family: Family, row: ContingencyRecord, request: TrainingRequest) -> Trained:
    """Train an expert for a contingency on the frozen rest of a family, as a new checkpoint.

    Parameters
    ----------
    session : Session
    family : Family
        It stays as it is and becomes the parent of the new checkpoint.
    row : ContingencyRecord
        The new member.
    request : TrainingRequest
        Of the family's model; by default it takes less than a fifth of the time of training the enlarged family.
    """
    if any(member.name == row.name for member in family.members):
        raise ConflictError(f"checkpoint {family.row.id} has an expert for {row.name!r} already; remove it first.")
    newcomer = session.home.contingency(row)
    system = family.contingencies[0].system
    if newcomer.system.sha256 != system.sha256:
        raise UsageError(
            f"{row.name!r} belongs to system {newcomer.system.name!r}, the checkpoint to {system.name!r} or another "
            "version of it; one model serves one system."
        )
    return session.run([*family.members, row], prepare_expert(family, newcomer, request))


def prepare_expert(family: Family, newcomer: Contingency, request: TrainingRequest) -> Prepared:
    """A training of the newcomer's expert alone; what is kept is the enlarged family."""
    contingencies = (*family.contingencies, newcomer)
    operators, settings = compile_members(contingencies), family.surrogate.settings()
    enlarged = create_model(family.model, operators, seed=request.seed, **settings)  # refuses other machines, windows
    scenarios = training_set(operators[-1], request.fraction, request.seed)
    plan = _plan(request, len(contingencies))
    newest = len(family.members)
    others = {member: member for member in range(newest)}
    copy_members(family.surrogate, enlarged, others)
    apprentice = create_model(family.model, operators[-1:], seed=request.seed, **settings)
    objective = _begin(family, enlarged, apprentice, scenarios, request.residual)
    parent = family.parent(others)
    record = scenarios.record
    config = training_config([newcomer], request, [record], apprentice, plan, parent)

    def complete(trained: Surrogate) -> Surrogate:
        copy_members(trained, enlarged, {0: newest})
        _check_unchanged(family.surrogate, enlarged, others)
        return enlarged

    return Prepared(
        request, contingencies, (newest,), (record,), apprentice, objective, plan, config, balance_of(objective),
        parent, complete,
    )  # fmt: skip


def _plan(request: TrainingRequest, members: int) -> TrainingPlan:
    plan = request.plan(members)
    if request.minutes is None and plan.minutes is not None:
        plan = replace(plan, minutes=TIME_SHARE * plan.minutes)
    return plan


def _begin(
    family: Family, enlarged: Surrogate, apprentice: Surrogate, scenarios: ScenarioSet, residual: Residual | None
) -> Objective:
    """Give the apprentice the shared part, frozen, and of the trained experts the one that fits it best."""
    newest = len(family.members)
    own = new_slices(enlarged, newest)
    apprentice.calibrate([scenarios])
    make_objective(family.model, apprentice, [scenarios])  # chained models measure their scales on windows
    fresh = {name: tensor.clone() for name, tensor in apprentice.state_dict().items() if name in own}
    copy_members(enlarged, apprentice, {newest: 0})  # shared tensors, and experts that the newcomer shares
    apprentice.load_state_dict({**apprentice.state_dict(), **fresh})
    # Made again, now that the inputs are scaled as the family scales them.
    objective = make_objective(family.model, apprentice, [scenarios], residual=residual)
    trainable = {name for name, _ in apprentice.named_parameters() if name in own}
    for name, parameter in apprentice.named_parameters():
        parameter.requires_grad_(name in trainable)
    slices, trained = member_slices(family.surrogate), family.surrogate.state_dict()
    candidates: list[State] = [fresh]
    for member in range(newest):
        experts = {name: trained[name][[slices[name][member]]] for name in trainable}
        candidates.append({**fresh, **experts})  # scales are the newcomer's own in any case
    _take_best(apprentice, objective, candidates)
    return objective


def _take_best(apprentice: Surrogate, objective: Objective, candidates: list[State]) -> None:
    """Load the candidate with the smallest loss on one batch."""
    batch = objective.batch(torch.Generator().manual_seed(0))

    def loss(candidate: State) -> float:
        apprentice.load_state_dict({**apprentice.state_dict(), **candidate})
        terms = objective.terms(apprentice, batch)
        return float(sum(objective.weights.get(name, 1.0) * float(value.detach()) for name, value in terms.items()))

    best = min(candidates, key=loss)
    apprentice.load_state_dict({**apprentice.state_dict(), **best})


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
        raise NotFoundError(f"checkpoint {checkpoint_id} has no expert for {named.name!r}; it has {', '.join(names)}.")
    if len(names) == 1:
        raise UsageError(f"{named.name!r} is the only member of checkpoint {checkpoint_id}; a model needs one.")
    kept = [k for k in range(len(names)) if k != names.index(named.name)]
    contingencies = [family.contingencies[k] for k in kept]
    reduced = create_model(family.model, compile_members(contingencies), **family.surrogate.settings())
    places = {before: after for after, before in enumerate(kept)}
    copy_members(family.surrogate, reduced, places)
    reduced.eval()
    _check_unchanged(family.surrogate, reduced, places)
    rows = [family.members[k] for k in kept]
    training = {"parent": family.row.digest, "removed": named.name}
    checkpoint = home.add_checkpoint(
        checkpoints.to_bytes(family.model, reduced, contingencies, training),
        reduced.n_parameters,
        checkpoints.KIND,
        {row.id: k for k, row in enumerate(rows)},
        parent_id=family.row.id,
        metrics=family.certificates(places),
    )
    return checkpoint, tuple(row.name for row in rows)


def _check_unchanged(parent: Surrogate, child: Surrogate, members: Mapping[int, int]) -> None:
    """Refuse a child whose other members answer otherwise than in the parent, in any bit."""
    if not answers_equal(parent, child, dict(members)):
        raise ConflictError(
            "the answers for other members would change, because the severities of the members differ; "
            "train the family anew with train-moe."
        )

"""The shooting residual: labels from the model's own states, one-way learning, two stages that resume exactly."""

from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.interpolate import CubicSpline

from contingencies.errors import UsageError
from contingencies.ode import FastODE
from contingencies.references import reference_boundary
from contingencies.rollouts import after_clearing
from espinn_moe import own_boundary, shooting
from espinn_moe import train as loop
from espinn_moe.losses import TrajectoryBatch, TrajectoryObjective
from espinn_moe.one_shot import ESPINN, HardRoutedMoE
from espinn_moe.phases import SETTLED_RAD
from espinn_moe.plan import Restart, TrainingPlan
from espinn_moe.shooting import ShootingBatch, ShootingObjective
from espinn_moe.surrogate import EventSurrogate, Rows
from espinn_moe.train import train
from tests.espinn_moe.test_losses import BUS, LINE, operators, trajectories
from zoo.surrogates.baselines.vanilla_pinn import VanillaPINN
from zoo.surrogates.baselines.xpinn import EnhancedXPINN

torch.set_num_threads(1)

SMALL = {"fault_width": 8, "fault_depth": 2, "post_width": 8, "post_depth": 2}
KINDS = ["hard", "soft", "state-only", "xpinn", "moe"]


def small_model(kind: str = "hard", seed: int = 0) -> EventSurrogate:
    torch.manual_seed(seed)
    if kind == "moe":
        return HardRoutedMoE([operators(BUS), operators(LINE)], dtype="float64", width=8, expert_width=8)
    if kind == "xpinn":
        return EnhancedXPINN([operators(LINE)], dtype="float64", **SMALL)
    settings = {"soft": {"chain": "soft"}, "state-only": {"event_rate": "free"}}.get(kind, {})
    return ESPINN([operators(LINE)], dtype="float64", **SMALL, **settings)


def objective_of(model: EventSurrogate, **options) -> ShootingObjective:
    small = {"rows": 32, "rollouts": 16, "segments": 8, **options}
    return ShootingObjective(model, [trajectories(m.name) for m in model.members], **small)


@pytest.fixture
def short_rounds(monkeypatch):
    for module, name, value in (
        (shooting, "REFRESH_STEPS", 3), (shooting, "MAP_STEPS", 5), (own_boundary, "MAP_POINTS", 5),
        (own_boundary, "HALVINGS", 3),
    ):  # fmt: skip
        monkeypatch.setattr(module, name, value)


def second_stage_batch(objective: ShootingObjective) -> ShootingBatch:
    objective.advance(0.0, stage=1)
    batch = objective.batch(torch.Generator().manual_seed(3))
    assert isinstance(batch, ShootingBatch)
    return batch


@pytest.mark.parametrize("kind", KINDS)
def test_forward_only_answers_are_the_answers(kind, short_rounds):
    model = small_model(kind)
    rows = second_stage_batch(objective_of(model)).data
    member = rows.member if kind == "moe" else 0
    torch.testing.assert_close(
        model.states_forward_only(rows.t, rows.alpha, rows.t_c, member),
        model.states(rows.t, rows.alpha, rows.t_c, member), rtol=0, atol=1e-12,
    )  # fmt: skip
    ours, theirs = model.extra_terms_forward_only(rows), model.extra_terms(rows)
    assert ours.keys() == theirs.keys()
    for name, value in ours.items():
        torch.testing.assert_close(value, theirs[name], rtol=1e-12, atol=0)


@pytest.mark.parametrize("kind", ["hard", "soft", "state-only", "xpinn"])
def test_nothing_after_clearing_moves_the_fault_on_network(kind, short_rounds):
    model = small_model(kind)
    rows = second_stage_batch(objective_of(model)).data
    after = rows.t >= rows.t_c
    loss = model.states_forward_only(rows.t[after], rows.alpha[after], rows.t_c[after]).square().sum()
    loss = loss + sum(v for name, v in model.extra_terms_forward_only(rows).items() if name != "interface_fault")
    fault_on = model.fault_on if kind == "xpinn" else model.fault_network
    gradients = torch.autograd.grad(loss, list(fault_on.parameters()), allow_unused=True)
    assert all(g is None or not g.any() for g in gradients)


@pytest.mark.parametrize("kind", KINDS)
def test_pointwise_terms_are_the_same_forward_only_and_leave_the_fault_on_network_alone(kind):
    model = small_model(kind)
    scenarios = [trajectories(m.name) for m in model.members]
    one_way = TrajectoryObjective(model, scenarios, rows=32, collocation_rows=32, forward_only=True)
    batch = one_way.batch(torch.Generator().manual_seed(3))
    both_ways = TrajectoryObjective(model, scenarios, rows=32, collocation_rows=32).terms(model, batch)
    terms = one_way.terms(model, batch)
    assert terms.keys() == both_ways.keys()
    for name, value in terms.items():
        torch.testing.assert_close(value, both_ways[name], rtol=1e-9, atol=0)
    if kind in ("hard", "soft", "state-only"):
        free = batch.collocation
        after = free.t >= free.t_c
        rows = Rows(free.t[after], free.alpha[after], free.t_c[after], free.member[after], free.states)
        x, rate = model.states_and_first_rates_forward_only(rows.t, rows.alpha, rows.t_c, 0, len(rows.t))
        loss = one_way.residuals(model, rows, x, rate).square().sum()
        gradients = torch.autograd.grad(loss, list(model.fault_network.parameters()), allow_unused=True)
        assert all(g is None or not g.any() for g in gradients)


def test_a_model_without_event_states_cannot_learn_forward_only():
    model = VanillaPINN([operators(LINE)], dtype="float64", width=8, depth=2)
    with pytest.raises(UsageError, match="event states"):
        TrajectoryObjective(model, [trajectories(LINE)], forward_only=True)


def test_rollouts_that_are_kept_longer_are_fewer(short_rounds):
    often, seldom = objective_of(small_model()), objective_of(small_model(), refresh_steps=6)
    for objective in (often, seldom):
        objective.advance(0.0, stage=1)
        generator = torch.Generator().manual_seed(3)
        for _ in range(12):
            objective.batch(generator)
    assert (often.rolled_out, seldom.rolled_out) == (4 * 16, 2 * 16)


@pytest.mark.parametrize("kind", KINDS)
def test_labels_after_clearing_follow_from_the_models_own_event_state(kind, short_rounds):
    model = small_model(kind)
    rows = second_stage_batch(objective_of(model)).rollouts
    after = rows.t > rows.t_c
    assert after.any() and not after.all()
    for row in after.nonzero()[:, 0][:4]:
        member = int(rows.member[row]) if kind == "moe" else 0
        t, alpha, t_c = (rows.t[row], rows.alpha[row : row + 1], rows.t_c[row : row + 1])
        event = model.fault_on_states(t_c, alpha, member).numpy(force=True)
        times, states = after_clearing(model.members[member], event, t_c.numpy())
        between_steps = CubicSpline(times[0], states[0])  # steps are those of the longest rollout of a batch
        np.testing.assert_allclose(rows.states[row], between_steps(float(t)), atol=1e-5)


def exact_events(model: EventSurrogate, monkeypatch) -> None:
    """Let the fault-on part answer with the reduced ODE."""

    def fault_on_states(t, alpha, member=0):
        states = [
            FastODE(model.members[0], float(a)).states(np.array([float(when)]), np.array([float(when)]))[0, 0]
            for when, a in zip(t, alpha, strict=True)
        ]
        return torch.tensor(np.stack(states))

    monkeypatch.setattr(model, "fault_on_states", fault_on_states)


@pytest.mark.parametrize("decisive", [True, False])
def test_labels_end_where_synchronism_is_lost_if_only_that_is_learned(decisive, monkeypatch):
    model = small_model()
    exact_events(model, monkeypatch)
    objective = objective_of(model, decisive=decisive, rollouts=64, boundary_share=0.0)
    pool = objective.roll_out(torch.Generator().manual_seed(0))
    n = objective.model.n_machines
    separation = pool.samples.states[:, :n].amax(-1) - pool.samples.states[:, :n].amin(-1)
    separation[pool.begins] = 0.0  # the state that a rollout begins with is kept in any case
    widest = separation.max()
    assert (widest <= SETTLED_RAD) == decisive
    assert int(pool.sizes.sum()) == len(pool.samples.t)


def test_with_exact_event_states_the_rollouts_have_the_true_boundary(monkeypatch):
    model = small_model()
    exact_events(model, monkeypatch)
    monkeypatch.setattr(own_boundary, "MAP_POINTS", 12)
    points = own_boundary.boundary_points(model, 0, torch.Generator().manual_seed(1)).numpy()
    assert len(points) >= 5
    cell = 1.0 / 12 / 2**own_boundary.HALVINGS
    for alpha, t_c in points[:: max(1, len(points) // 5)]:
        truth = [reference_boundary(operators(LINE), np.array([alpha + shift])).cct[0] for shift in (-cell, cell)]
        assert min(truth) - 1e-4 <= t_c <= max(truth) + 1e-4


def test_most_rollouts_begin_close_to_the_boundary_on_either_side(monkeypatch):
    model = small_model()
    objective = objective_of(model, rollouts=200)
    assert objective.pairs(0, torch.Generator())[0].shape == (200,)
    objective.restore({"age": 0, "boundary": [torch.tensor([[0.7, 0.8]], dtype=torch.float64)], "rollouts": None})
    alpha, t_c = objective.pairs(0, torch.Generator().manual_seed(0))
    near = alpha == 0.7
    assert near.sum() == 120
    offsets = t_c[near] - 0.8
    assert (offsets > 0).any() and (offsets < 0).any()
    assert (np.abs(offsets) > 1.4e-4).all() and (np.abs(offsets) < 2.01e-2).all()


def test_a_member_that_never_loses_synchronism_is_rolled_out_anywhere(short_rounds):
    model = small_model("moe")
    objective = objective_of(model)
    second_stage_batch(objective)
    alpha, t_c = objective.pairs(0, torch.Generator().manual_seed(0))
    assert len(alpha) == len(t_c) == objective.rollouts[0]


def test_the_first_stage_is_the_pointwise_objective():
    model = small_model()
    data = [trajectories(LINE)]
    staged, plain = objective_of(model), TrajectoryObjective(model, data)
    ours, theirs = (o.batch(torch.Generator().manual_seed(5)) for o in (staged, plain))
    assert isinstance(ours, TrajectoryBatch)
    assert torch.equal(ours.data.t, theirs.data.t)
    terms = staged.terms(model, ours)
    assert all(torch.equal(value, terms[name]) for name, value in plain.terms(model, theirs).items())


@pytest.mark.parametrize("kind", KINDS)
def test_the_second_stage_lowers_its_loss(kind, short_rounds):
    model = small_model(kind)
    objective = objective_of(model, rows=64, rollouts=64)
    batch = second_stage_batch(objective)
    before = objective.terms(model, batch)
    train(model, objective, TrainingPlan(steps=80, restart=Restart(0.5, 5e-3), validations=0))
    objective.advance(0.0, stage=1)
    after = objective.terms(model, batch)
    assert {"data", "shooting"} <= set(after) <= set(objective.weights)
    assert after["data"] < before["data"]


class Killed(BaseException):
    """Stands for the end of the process."""


@pytest.mark.parametrize("kill_at", [5, 11, 16])  # first stage, just after it, amid the rollouts' life
def test_a_killed_training_continues_bit_for_bit_with_its_rollouts(kill_at, short_rounds, tmp_path: Path, monkeypatch):
    plan = TrainingPlan(steps=20, restart=Restart(0.5, 2e-3), validations=0)
    uninterrupted = small_model()
    train(uninterrupted, objective_of(uninterrupted), plan)
    monkeypatch.setattr(loop, "SAVE_INTERVAL_S", 0.0)
    monkeypatch.setattr(loop, "REPORT_INTERVAL_S", 0.0)

    def die(progress: loop.Progress) -> None:
        if progress.step >= kill_at:
            raise Killed

    first = small_model()
    with pytest.raises(Killed):
        train(first, objective_of(first), plan, state_path=tmp_path / "state", report=die)
    resumed = small_model(seed=9)
    train(resumed, objective_of(resumed), plan, state_path=tmp_path / "state")
    for ours, theirs in zip(resumed.parameters(), uninterrupted.parameters(), strict=True):
        assert torch.equal(ours, theirs)

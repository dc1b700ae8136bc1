"""Families of many machines: low-rank operators, sweeps of the swing equation, bases of experts."""

from functools import cache

import numpy as np
import pytest
import torch

import espinn_moe.physics
from contingencies.library import load_contingency
from contingencies.ode import scenario_states
from contingencies.operators import PhaseOperators, compile_contingency
from contingencies.trajectories import output_times
from espinn_moe.chained_moe import ChainedMoE
from espinn_moe.expert_slices import answers_equal, copy_members
from espinn_moe.layers import routed_product
from espinn_moe.phases import FAULT_ON, POST_CLEARING
from espinn_moe.physics import Physics
from espinn_moe.plan import TrainingPlan
from espinn_moe.reduced import ReducedMoE, chained_family
from espinn_moe.reduced_losses import ReducedObjective
from espinn_moe.train import train
from espinn_moe.window_data import fitted_remainder, member_windows
from zoo.surrogates.datasets import training_set

torch.set_num_threads(1)

FAMILY = ["ieee30-bus-7-remove-4-6", "ieee30-line-3-4-remove"]
SMALL = {"components": 8, "modes": 6, "expert_width": 12}


@cache
def members() -> list[PhaseOperators]:
    return [compile_contingency(load_contingency(name)) for name in FAMILY]


@cache
def data() -> list:
    return [training_set(operators, 0.3, points=11) for operators in members()]


@pytest.fixture
def many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Six machines count as many."""
    for module in ("espinn_moe.physics", "espinn_moe.chained", "espinn_moe.reduced"):
        monkeypatch.setattr(f"{module}.MANY_MACHINES", 3)


def model(seed: int = 0, **settings) -> ReducedMoE:
    torch.manual_seed(seed)
    return ReducedMoE(members(), **{**SMALL, **settings})


def states(rows: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(1)
    x = Physics(members(), torch.float64).x_0
    return x + 0.3 * torch.randn(rows, len(x), generator=generator, dtype=torch.float64) * x.new_tensor(
        [1.0, 0.01]
    ).repeat_interleave(len(x) // 2)


def test_low_rank_operators_drive_the_machines_as_full_matrices_do(monkeypatch):
    x, alpha, member = states(5), torch.linspace(0.0, 1.0, 5, dtype=torch.float64), torch.tensor([0, 1, 1, 0, 1])
    full = Physics(members(), torch.float64)
    monkeypatch.setattr(espinn_moe.physics, "MANY_MACHINES", 3)
    thin = Physics(members(), torch.float64)
    assert thin.low_rank and not full.low_rank
    rows = x[:, None] + torch.zeros(3, 1, dtype=torch.float64)
    for one, other in (
        (full.fault_on(alpha, member), thin.fault_on(alpha, member)),
        (full.fault_on(alpha, 1), thin.fault_on(alpha, 1)),
        (full.post_clearing(member), thin.post_clearing(member)),
    ):
        torch.testing.assert_close(thin.field(other, x), full.field(one, x), rtol=1e-12, atol=1e-12)
        some = torch.tensor([3, 1])
        torch.testing.assert_close(
            thin.field(other[some], x[some]), full.field(one[some], x[some]), rtol=1e-12, atol=1e-12
        )
        together = thin.field(other.for_samples(), rows)
        torch.testing.assert_close(together, full.field(one.for_samples(), rows), rtol=1e-12, atol=1e-12)


def test_rows_meet_the_matrix_of_their_own_expert():
    rows, matrices = torch.randn(7, 4), torch.randn(3, 4, 2)
    expert = torch.tensor([2, 0, 2, 1, 1, 0, 2])
    expected = torch.stack([row @ matrices[k] for row, k in zip(rows, expert, strict=True)])
    torch.testing.assert_close(routed_product(rows, matrices, expert), expected)


@pytest.mark.parametrize("phase", [FAULT_ON, POST_CLEARING])
def test_a_sweep_tells_most_of_the_remainder_and_the_next_one_nearly_all(phase):
    surrogate = model()
    cut = member_windows(surrogate, 1, data()[1], 200, np.random.default_rng(0))[phase]
    operator = surrogate.operator(phase, cut.alpha, cut.member)
    start = surrogate.physics.expand(operator, cut.x)
    truth = fitted_remainder(surrogate, phase, cut)
    once = surrogate.sweep(operator, start)
    twice = surrogate.sweep(operator, start, once)
    size = truth.square().mean().sqrt()
    first, second = ((truth - guess).square().mean().sqrt() / size for guess in (once, twice))
    assert first < 0.1
    assert second < 0.3 * first


def test_an_untrained_expert_leaves_the_grid_continuous_and_its_start_exact():
    surrogate = model().requires_grad_(False)
    t_c = torch.tensor(0.5, dtype=torch.float64)
    for t in (surrogate.t_f, 0.5):
        instants = torch.tensor([t - 1e-12, t + 1e-12], dtype=torch.float64)
        x = surrogate.states(instants, torch.tensor(0.8, dtype=torch.float64), t_c, 1)
        torch.testing.assert_close(x[0], x[1], rtol=0.0, atol=1e-8)


def test_members_of_a_mixed_batch_are_answered_as_alone(many):
    surrogate = model()
    ReducedObjective(surrogate, data())
    surrogate.requires_grad_(False)
    t = torch.linspace(0.1, 1.5, 6, dtype=torch.float64)
    alpha, t_c = torch.full_like(t, 0.7), torch.full_like(t, 0.6)
    member = torch.tensor([0, 1, 0, 1, 1, 0])
    together = surrogate.states(t, alpha, t_c, member)
    for k in (0, 1):
        alone = surrogate.states(t[member == k], alpha[member == k], t_c[member == k], k)
        torch.testing.assert_close(together[member == k], alone, rtol=1e-10, atol=1e-10)


def test_training_brings_trajectories_closer_to_the_swing_equation(many):
    surrogate = model()
    objective = ReducedObjective(surrogate, data(), rows=128)
    for parameter in surrogate.parameters():
        parameter.data.mul_(0.1)
    t, operators = output_times(members()[1]), members()[1]
    alpha, t_c = np.array([0.45, 0.72]), np.array([0.41, 0.53])
    truth = scenario_states(operators, alpha, t_c, t)[..., : surrogate.n_machines]

    def error() -> float:
        with torch.no_grad():
            found = surrogate.states(*(torch.as_tensor(v) for v in (t, alpha[:, None], t_c[:, None])), 1)
        return float(np.abs(found[..., : surrogate.n_machines].numpy() - truth).max())

    before = error()
    train(surrogate, objective, TrainingPlan(steps=150, learning_rate=1e-2))
    assert error() < 0.5 * before


def test_windows_without_data_are_held_to_the_equation_by_a_further_sweep():
    surrogate = model()
    objective = ReducedObjective(surrogate, data(), rows=64)
    batch = objective.batch(torch.Generator().manual_seed(0))
    terms = objective.terms(surrogate, batch)
    assert set(terms) == {"data", "residual_omega"}
    assert set(ReducedObjective(surrogate, data(), residual_weight=0.0).terms(surrogate, batch)) == {"data"}
    gradient = torch.autograd.grad(terms["residual_omega"], list(surrogate.parameters()))
    assert all(torch.isfinite(part).all() for part in gradient)


def test_the_form_follows_the_machines_and_stored_settings_keep_theirs(many):
    assert isinstance(chained_family(members()), ReducedMoE)
    assert isinstance(chained_family(members(), share_topology=True), ChainedMoE)
    former = ChainedMoE(members(), width=8, expert_width=6)
    assert isinstance(chained_family(members(), **former.settings()), ChainedMoE)
    reduced = chained_family(members(), **model().settings())
    assert isinstance(reduced, ReducedMoE) and reduced.settings() == model().settings()


def test_few_machines_are_seen_as_they_are():
    assert isinstance(chained_family(members()), ChainedMoE)
    assert isinstance(chained_family(members(), **SMALL), ReducedMoE)


def test_an_expert_moves_with_its_basis():
    both = model()
    ReducedObjective(both, data())
    alone = ReducedMoE(members()[1:], **SMALL)
    copy_members(both, alone, {1: 0})
    assert answers_equal(both, alone, {1: 0})

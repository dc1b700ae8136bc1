"""What event-structured surrogates owe to their construction: exact on untrained networks, whatever the weights."""

import copy
import dataclasses
from functools import cache

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from contingencies.errors import UsageError
from contingencies.library import load_contingency
from contingencies.operators import PhaseOperators, compile_contingency
from espinn_moe.chained import Chained, ChainedESPINN
from espinn_moe.chained_moe import ChainedMoE
from espinn_moe.one_shot import ESPINN, HardRoutedMoE
from espinn_moe.physics import Physics
from espinn_moe.surrogate import Rows, Surrogate
from espinn_moe.topology import same_topology

torch.set_num_threads(1)

SINGLE = ["ieee30-line-3-4-restore", "ieee9-mech-g2-restore", "ieee14-line-4-5-remove", "ieee30-bus-3-trip"]
FAMILY = ["ieee30-bus-7-remove-4-6", "ieee30-line-3-4-remove"]
SMALL = {"fault_width": 8, "fault_depth": 2, "post_width": 8, "post_depth": 2}
KINDS = {
    "es-pinn": lambda members: ESPINN(members, dtype="float64", **SMALL),
    "es-pinn-state-only": lambda members: ESPINN(members, dtype="float64", event_rate="free", **SMALL),
    "es-pinn-soft-chain": lambda members: ESPINN(members, dtype="float64", chain="soft", **SMALL),
    "moe": lambda members: HardRoutedMoE(members, dtype="float64", width=8, expert_width=6),
    "es-pinn-chained": lambda members: ChainedESPINN(members, width=8),
    "moe-chained": lambda members: ChainedMoE(members, width=8, expert_width=6),
}
HARD_CHAINED = ["es-pinn", "es-pinn-state-only", "moe", "es-pinn-chained", "moe-chained"]
RIGHT_FROM_THE_START = ["es-pinn", "moe", "es-pinn-chained", "moe-chained"]
everywhere = settings(deadline=None, max_examples=12)
severities = st.floats(0.0, 1.0)
instants = st.floats(0.25, 1.25)
seeds = st.integers(0, 2**16)


@cache
def operators(name: str) -> PhaseOperators:
    return compile_contingency(load_contingency(name))


def surrogate(kind: str, seed: int) -> tuple[Surrogate, int]:
    """A random model on a random contingency, and one of its members."""
    random = np.random.default_rng(seed)
    family = kind.startswith("moe")
    names = FAMILY if family else [SINGLE[random.integers(len(SINGLE))]]
    torch.manual_seed(seed)
    model = KINDS[kind]([operators(name) for name in names])
    return model.requires_grad_(False), int(random.integers(len(names)))


def scalar(*values: float) -> list[torch.Tensor]:
    return [torch.tensor(value, dtype=torch.float64) for value in values]


def close(actual: torch.Tensor, expected: torch.Tensor, atol: float = 1e-12) -> None:
    torch.testing.assert_close(actual, expected, rtol=1e-12, atol=atol)


@pytest.mark.parametrize("kind", KINDS)
@everywhere
@given(seed=seeds, alpha=severities, t_c=instants, before=st.floats(0.0, 0.999))
def test_the_grid_rests_until_the_fault(kind, seed, alpha, t_c, before):
    model, member = surrogate(kind, seed)
    t, alpha, t_c = scalar(before * model.members[member].window.t_f, alpha, t_c)
    x, rate = model.states_and_rates(t, alpha, t_c, member)
    assert torch.equal(x, model.physics.x_0)
    assert torch.equal(rate, torch.zeros_like(x))


@pytest.mark.parametrize("kind", HARD_CHAINED)
@everywhere
@given(seed=seeds, alpha=severities, t_c=instants)
def test_states_are_continuous_at_both_events(kind, seed, alpha, t_c):
    model, member = surrogate(kind, seed)
    t_f = model.members[member].window.t_f
    alpha, t_c, fault = scalar(alpha, t_c, t_f)
    assert torch.equal(model.states(fault, alpha, t_c, member), model.physics.x_0)
    cleared_later = t_c + 0.1  # until t_c the fault-on part of a longer fault is the same trajectory
    close(model.states(t_c, alpha, t_c, member), model.states(t_c, alpha, cleared_later, member))


@pytest.mark.parametrize("kind", RIGHT_FROM_THE_START)
@everywhere
@given(seed=seeds, alpha=severities, t_c=instants)
def test_a_new_phase_starts_with_the_derivative_that_its_network_prescribes(kind, seed, alpha, t_c):
    model, member = surrogate(kind, seed)
    physics: Physics = model.physics
    alpha, t_c, t_f = scalar(alpha, t_c, model.members[member].window.t_f)
    _, rate = model.states_and_rates(t_f, alpha, t_c, member)
    close(rate, physics.field(physics.fault_on(alpha, member), physics.x_0), atol=1e-10)
    x, rate = model.states_and_rates(t_c, alpha, t_c, member)
    close(rate, physics.field(physics.post_clearing(member), x), atol=1e-10)


@everywhere
@given(seed=seeds, alpha=severities, t_c=instants)
def test_a_soft_chain_keeps_the_derivative_of_its_own_event_state(seed, alpha, t_c):
    model, _ = surrogate("es-pinn-soft-chain", seed)
    alpha, t_c = scalar(alpha, t_c)
    x, rate = model.states_and_rates(t_c, alpha, t_c)
    close(rate, model.physics.field(model.physics.post_clearing(0), x), atol=1e-10)


def test_a_soft_chain_pays_for_its_gap_and_a_hard_chain_for_nothing():
    rows = Rows(
        t=torch.tensor([1.0, 1.5], dtype=torch.float64),
        alpha=torch.tensor([0.3, 0.9], dtype=torch.float64),
        t_c=torch.tensor([0.5, 0.7], dtype=torch.float64),
        member=torch.zeros(2, dtype=torch.int64),
        states=torch.zeros(2, 12, dtype=torch.float64),
    )
    soft, hard = (KINDS[kind]([operators(SINGLE[0])]) for kind in ("es-pinn-soft-chain", "es-pinn"))
    assert soft.extra_terms(rows)["interface"].item() > 0
    assert hard.extra_terms(rows) == {}


@pytest.mark.parametrize("kind", KINDS)
@everywhere
@given(seed=seeds, alpha=severities, t_c=st.floats(0.5, 1.25), share=st.floats(0.0, 1.0))
def test_no_state_knows_when_the_fault_will_be_cleared(kind, seed, alpha, t_c, share):
    model, member = surrogate(kind, seed)
    t_f = model.members[member].window.t_f
    t, alpha, early, late = scalar(t_f + share * (t_c - t_f) * 0.999, alpha, t_c, 1.25)
    early = early.requires_grad_()
    x = model.states(t, alpha, early, member)
    assert torch.equal(x, model.states(t, alpha, late, member))
    if x.requires_grad:
        (slope,) = torch.autograd.grad(x.sum(), early, allow_unused=True)
        assert slope is None or float(slope) == 0.0


@pytest.mark.parametrize("kind", KINDS)
@everywhere
@given(seed=seeds, alpha=severities, t_c=instants, t=st.floats(0.2001, 2.0))
def test_rates_are_the_time_derivatives_of_the_states(kind, seed, alpha, t_c, t):
    model, member = surrogate(kind, seed)
    alpha, t_c, t = scalar(alpha, t_c, t)
    _, rates = model.states_and_rates(t, alpha, t_c, member)
    by_autograd = torch.autograd.functional.jacobian(lambda s: model.states(s, alpha, t_c, member), t)
    torch.testing.assert_close(rates, by_autograd, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
@everywhere
@given(seed=seeds)
def test_a_grid_of_trajectories_is_the_same_as_its_rows(kind, seed):
    model, member = surrogate(kind, seed)
    random = np.random.default_rng(seed)
    t = torch.tensor(np.sort(random.uniform(0.0, 2.0, 7)))
    alpha, t_c = torch.tensor(random.uniform(0, 1, 3)), torch.tensor(np.sort(random.uniform(0.25, 1.25, 4)))
    grid = model.trajectories(t, alpha, t_c, member)
    assert grid.shape == (3, 4, 7, 2 * model.n_machines)
    rows = [axis.reshape(-1) for axis in torch.broadcast_tensors(alpha[:, None, None], t_c[:, None], t)]
    by_rows = model.states(rows[2], rows[0], rows[1], member).reshape(grid.shape)
    close(by_rows, grid, atol=1e-10)
    mixed = model.states(rows[2], rows[0], rows[1], torch.full((len(rows[0]),), member))
    close(mixed.reshape(grid.shape), grid, atol=1e-10)


@pytest.mark.parametrize("kind", KINDS)
@everywhere
@given(seed=seeds)
def test_severities_that_are_followed_again_and_again_move_as_they_would_at_first(kind, seed):
    model, member = surrogate(kind, seed)
    random = np.random.default_rng(seed)
    t = torch.tensor(np.sort(random.uniform(0.0, 2.0, 7)))
    alpha, row = torch.tensor(random.uniform(0, 1, 3)), torch.tensor([2, 0, 2])
    follow = model.follow(alpha, member)
    for _ in range(2):
        t_c = torch.tensor(np.sort(random.uniform(0.25, 1.25, (3, 4))))
        close(follow(row, t, t_c, None), model.trajectories(t, alpha[row], t_c, member), atol=1e-10)


@pytest.mark.parametrize("kind", ["es-pinn-chained", "moe-chained"])
@everywhere
@given(seed=seeds, alpha=severities, shift=st.floats(-3.0, 3.0), turns=st.integers(-2, 2))
def test_a_common_shift_of_all_angles_and_a_whole_turn_of_one_change_nothing_else(kind, seed, alpha, shift, turns):
    model, member = surrogate(kind, seed)
    assert isinstance(model, Chained)
    random, n = np.random.default_rng(seed), model.n_machines
    start = torch.tensor(np.concatenate([random.uniform(-2, 2, n), random.uniform(0.97, 1.03, n)]))
    moved = start.clone()
    moved[:n] += shift
    moved[random.integers(n)] += 2 * np.pi * turns
    (severity,) = scalar(alpha)
    for phase in (0, 1):
        operator = model.operator(phase, severity, member)
        windows = [model.begin(phase, operator, x, severity, member).parts() for x in (start, moved)]
        ends = [model.at(parts, severity)[0] for parts in windows]
        close(ends[1] - ends[0], moved - start, atol=1e-10)


@everywhere
@given(seed=seeds, alpha=severities, t_c=instants, t=st.floats(0.2, 2.0))
def test_angles_of_chained_windows_move_exactly_with_their_speeds(seed, alpha, t_c, t):
    model, _ = surrogate("es-pinn-chained", seed)
    alpha, t_c, t = scalar(alpha, t_c, t)
    x, rate = model.states_and_rates(t, alpha, t_c)
    n = model.n_machines
    close(rate[:n], model.physics.omega_b * (x[n:] - 1.0), atol=1e-9)


@pytest.mark.parametrize("kind", ["moe", "moe-chained"])
def test_changing_one_expert_changes_no_other_contingency_bit_for_bit(kind):
    model, _ = surrogate(kind, 3)
    changed = copy.deepcopy(model)
    with torch.no_grad():
        for experts in changed.experts:
            for parameter in experts.parameters():
                parameter[0] += 1.0
    t, alpha, t_c = torch.linspace(0, 2, 40).double(), torch.tensor([0.8]).double(), torch.tensor([0.6]).double()
    assert torch.equal(model.trajectories(t, alpha, t_c, 1), changed.trajectories(t, alpha, t_c, 1))
    assert not torch.equal(model.trajectories(t, alpha, t_c, 0), changed.trajectories(t, alpha, t_c, 0))
    member = torch.tensor([0, 1] * 20)
    before, after = (m.states(t, alpha, t_c, member) for m in (model, changed))
    assert torch.equal(before[1::2], after[1::2])


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_rebuilt_from_its_settings_and_tensors_answers_the_same(kind):
    model, member = surrogate(kind, 5)
    torch.manual_seed(99)
    twin = type(model)(model.members, **model.settings())
    twin.load_state_dict(model.state_dict())
    t, alpha, t_c = torch.linspace(0, 2, 9).double(), torch.tensor([0.7]).double(), torch.tensor([0.5]).double()
    assert torch.equal(twin.trajectories(t, alpha, t_c, member), model.trajectories(t, alpha, t_c, member))


def test_on_six_machines_the_models_have_the_parameters_of_the_paper():
    primary, members = [operators(SINGLE[0])], [operators(name) for name in FAMILY]
    for variant in ({}, {"chain": "soft"}, {"event_rate": "free"}):
        assert ESPINN(primary, **variant).n_parameters == 118_744
    saved = 1.0 - HardRoutedMoE(members).n_parameters / (2 * 118_744)
    assert 0.505 < saved < 0.511


def test_members_with_the_same_network_after_clearing_may_share_an_expert():
    restored = operators("ieee30-line-3-4-restore")
    removed, other = (operators(name) for name in ("ieee30-line-3-4-remove", "ieee30-bus-7-remove-4-6"))
    again = dataclasses.replace(removed, name="the-same-line-again")
    members = [removed, restored, again, other]
    assert same_topology(members) == (0, 1, 0, 2)
    own, shared = (ChainedMoE(members, width=8, expert_width=6, share_topology=share) for share in (False, True))
    assert shared.n_parameters < own.n_parameters
    assert (own.parameters_saved, shared.parameters_saved) == (0, own.n_parameters - shared.n_parameters)


def test_members_of_different_systems_or_twice_the_same_are_refused():
    with pytest.raises(UsageError, match="different systems"):
        ChainedMoE([operators("ieee30-line-3-4-remove"), operators("ieee14-line-4-5-remove")])
    with pytest.raises(UsageError, match="twice"):
        ChainedMoE([operators("ieee30-line-3-4-remove")] * 2)

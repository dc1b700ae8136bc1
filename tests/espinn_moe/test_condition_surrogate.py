"""Chained surrogates over conditions, untrained: exact by construction at every operating point, and differentiable."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch

from contingencies.conditions import Conditions
from contingencies.errors import UsageError
from contingencies.library import load_contingency
from contingencies.operators import compile_members
from contingencies.points import sample_points
from espinn_moe.chained import ChainedESPINN
from espinn_moe.chained_moe import ChainedMoE
from espinn_moe.condition_boundary import point_gradient
from espinn_moe.one_shot import ESPINN

torch.set_num_threads(1)
BLOCK = {"load": (0.9, 1.1), "position": (0.2, 0.8)}


@cache
def members():
    found = []
    for how in ("restore", "remove"):
        one = load_contingency(f"ieee30-line-3-4-{how}")
        found.append(replace(one, spec=one.spec.model_copy(update={"conditions": Conditions(**BLOCK)})))
    return compile_members(found)


@cache
def model():
    torch.manual_seed(3)
    return ChainedMoE(members(), width=8, expert_width=6)


def rows(count=3):
    points = sample_points(model().axes, count, seed=2)
    return torch.linspace(0.3, 1.0, count, dtype=torch.float64), torch.tensor(points)


@pytest.mark.parametrize("member", [0, 1])
def test_operators_of_rows_are_those_of_the_family_at_their_points(member):
    alpha, points = rows()
    physics, family = model().physics, members()[member].family
    fault, post = physics.fault_on(alpha, member, points), physics.post_clearing(member, points)
    for k in range(len(alpha)):
        there = family.operators_at(points[k].numpy())
        scale = np.outer(there.E, there.E)
        np.testing.assert_allclose(fault.G[k], there.Y_fault(float(alpha[k])).real * scale, atol=1e-10)
        np.testing.assert_allclose(fault.B[k], there.Y_fault(float(alpha[k])).imag * scale, atol=1e-10)
        np.testing.assert_allclose(post.B[k], there.Y_post.imag * scale, atol=1e-10)
        np.testing.assert_allclose(fault.P_m[k], there.P_m_pre, atol=1e-12)
        np.testing.assert_allclose(physics.initial(points)[k, : there.n_machines], there.delta_0, atol=1e-12)


def test_rows_of_both_members_have_the_operators_of_their_own():
    alpha, points = rows()
    mixed = model().physics.fault_on(alpha, torch.tensor([1, 0, 1]), points)
    for member, row in ((1, 0), (0, 1), (1, 2)):
        alone = model().physics.fault_on(alpha, member, points)
        torch.testing.assert_close(mixed.G[row], alone.G[row], rtol=0, atol=1e-14)


@torch.no_grad()
def test_a_row_among_others_is_answered_as_if_it_were_alone():
    alpha, points = rows()
    t, t_c = torch.linspace(0.0, 2.0, 9, dtype=torch.float64), torch.tensor(0.6, dtype=torch.float64)
    together = model().states(t[None], alpha[:, None], t_c, 1, points[:, None])
    for k in range(len(alpha)):
        torch.testing.assert_close(model().states(t, alpha[k], t_c, 1, points[k]), together[k], rtol=0, atol=1e-10)


@torch.no_grad()
def test_before_the_fault_every_row_rests_at_its_own_point_and_states_are_continuous_at_events():
    alpha, points = rows()
    t_c, eps = torch.tensor(0.6, dtype=torch.float64), 1e-9
    t = torch.tensor([0.1, 0.2 - eps, 0.2 + eps, 0.6 - eps, 0.6 + eps], dtype=torch.float64)
    x = model().states(t[None], alpha[:, None], t_c, 0, points[:, None])
    initial = model().physics.initial(points)
    torch.testing.assert_close(x[:, 0], initial, rtol=0, atol=0)
    torch.testing.assert_close(x[:, 1], x[:, 2], rtol=0, atol=1e-6)
    torch.testing.assert_close(x[:, 3], x[:, 4], rtol=0, atol=1e-6)


@torch.no_grad()
def test_without_conditions_rows_are_at_the_cases_own_point():
    t, t_c = torch.linspace(0.0, 2.0, 5, dtype=torch.float64), torch.tensor(0.6, dtype=torch.float64)
    alpha, own = torch.tensor(0.9, dtype=torch.float64), torch.tensor([1.0, 0.5], dtype=torch.float64)
    torch.testing.assert_close(model().states(t, alpha, t_c), model().states(t, alpha, t_c, 0, own), rtol=0, atol=0)


def test_states_are_differentiable_in_the_conditions():
    t, t_c = torch.tensor(0.9, dtype=torch.float64), torch.tensor(0.5, dtype=torch.float64)
    alpha, point = torch.tensor(0.8, dtype=torch.float64), torch.tensor([1.05, 0.4], dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda p: model().states(t, alpha, t_c, 1, p), point.requires_grad_())


def test_the_gradient_of_a_cct_is_that_of_the_margin_over_the_clearing_instant():
    found = point_gradient(model(), 0.9, np.array([1.0, 0.5]), 0.6, member=1)
    assert found.by_condition is None or len(found.by_condition) == 2


def test_models_of_one_operating_point_refuse_conditions():
    with pytest.raises(UsageError, match="use es-pinn-chained or moe-chained"):
        ESPINN(members()[:1])
    assert ChainedESPINN(members()[:1], width=4).settings()["width"] == 4

"""Margins and boundaries read off a surrogate, on surrogates whose answer is known."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from contingencies.errors import UsageError
from contingencies.ode import FastODE
from contingencies.references import reference_boundary
from contingencies.search import Vicinity
from contingencies.stability import candidates
from espinn_moe.boundary import learned_boundary, learned_near, margin_map, ode_boundary
from espinn_moe.margins import HARD, SMOOTH, MarginProbe, MarginRule, hard_margin, sample_times, smooth_margin
from tests.cases import operators_of
from tests.espinn_moe.stand_ins import IntegratingSurrogate
from zoo.surrogates.catalogue import create_model

PRIMARY, NINE = "ieee30-line-3-4-restore", "ieee9-mech-g2-restore"
ROOTS_AGREE_S = 2.5e-6  # each root is known to 1e-6 s

angles = arrays(float, (7, 4), elements=st.floats(-20.0, 20.0))


@given(delta=angles, beta=st.floats(1.0, 500.0))
def test_the_smooth_margin_lies_above_the_sampled_hard_one_by_at_most_its_bias(delta, beta):
    peak = np.ptp(delta, axis=1).max() - np.pi
    smooth = float(smooth_margin(torch.tensor(delta), np.pi, beta, 1e-6))
    assert peak - 1e-9 <= smooth <= peak + 1e-6 + np.log(7 * 6) / beta + 1e-9


@given(delta=angles, shift=st.floats(-100.0, 100.0))
def test_margins_do_not_change_when_all_angles_turn_together(delta, shift):
    for margin in (smooth_margin, hard_margin):
        here, there = (margin(torch.tensor(delta + by), np.pi) for by in (0.0, shift))
        torch.testing.assert_close(there, here, rtol=0.0, atol=1e-9)


def test_angles_of_a_thousand_turns_give_a_finite_margin():
    delta = torch.tensor([[0.0, 0.0], [0.0, 6283.0]], dtype=torch.float64)
    assert float(smooth_margin(delta, np.pi)) == pytest.approx(6283.0 - np.pi, abs=1e-6)


@given(peak=st.floats(0.2, 1.8), height=st.floats(0.5, 6.0))
def test_the_hard_margin_finds_a_peak_between_two_samples(peak, height):
    t = torch.linspace(0.0, 2.0, 201, dtype=torch.float64)
    delta = torch.stack([height - 3.0 * (t - peak) ** 2, torch.zeros_like(t)], dim=-1).clamp(min=0.0)
    assert float(hard_margin(delta, np.pi)) == pytest.approx(height - np.pi, abs=1e-9)


@pytest.mark.parametrize("rule", [SMOOTH, HARD, MarginRule("smooth", beta=10.0), MarginRule("smooth", h_t=2e-3)])
@pytest.mark.parametrize("name", [PRIMARY, NINE])
def test_looking_finely_only_where_it_matters_gives_the_margin_of_the_full_grid(name, rule):
    ops, alpha = operators_of(name), (0.9, 0.2, 1.0)
    t_c = np.array([[0.3, 0.5, 0.6, 0.66, 0.67, 0.69, 0.9]] * 3) + 0.01 * np.arange(3)[:, None]
    full_grid = [FastODE(ops, a).states(its, sample_times(ops, rule.h_t)) for a, its in zip(alpha, t_c, strict=True)]
    delta = torch.from_numpy(np.stack(full_grid)[..., : ops.n_machines])

    def sampled(row: np.ndarray, t: np.ndarray, instants: np.ndarray, limit: float | None) -> torch.Tensor:
        places = [
            (k, np.searchsorted(t_c[k], its)[:, None], np.rint(times / rule.h_t).astype(int))
            for k, its, times in zip(row, instants, np.broadcast_to(t, (len(row), t.shape[-1])), strict=True)
        ]
        return torch.stack([delta[place] for place in places])

    probe = MarginProbe(sampled, ops, rule)
    if rule.kind == "smooth":
        full = smooth_margin(delta, ops.max_separation, rule.beta, rule.epsilon).numpy()
    else:
        full = hard_margin(delta, ops.max_separation).numpy()
    np.testing.assert_allclose(probe.values(t_c), full, rtol=0.0, atol=1e-6)
    np.testing.assert_array_equal(probe.signs(t_c) >= 0, full >= 0)
    some = np.array([2, 0])
    np.testing.assert_allclose(probe.values(t_c[some], some), full[some], rtol=0.0, atol=1e-6)


@pytest.mark.parametrize(
    ("name", "severities"),
    [(PRIMARY, [0.1, 0.53, 0.57, 0.8, 0.97]), (NINE, [0.5, 0.85, 0.95]), ("ieee14-line-4-5-remove", [0.3, 0.95])],
)
def test_a_perfect_surrogate_has_the_hard_cct_of_the_reference(name, severities):
    ops, alpha = operators_of(name), np.array(severities)
    learned, truth = learned_boundary(IntegratingSurrogate(ops), alpha, rule=HARD), reference_boundary(ops, alpha)
    assert learned.status == truth.status
    assert learned.reference == "learned-hard"
    np.testing.assert_allclose(learned.cct, truth.cct, rtol=0.0, atol=ROOTS_AGREE_S)
    assert truth.finite.any() and not truth.finite.all()


@pytest.mark.parametrize("beta", [20.0, 50.0, 200.0])
def test_smoothing_shortens_the_cct_and_no_further_than_its_bias_over_the_growth_of_the_margin(beta):
    ops, alpha, rule = operators_of(NINE), np.array([0.85, 0.9, 0.95]), MarginRule("smooth", beta=beta)
    smooth = learned_boundary(IntegratingSurrogate(ops), alpha, rule=rule).cct
    hard = reference_boundary(ops, alpha).cct
    assert (smooth < hard + ROOTS_AGREE_S).all()
    for value, early, late in zip(alpha, smooth, hard, strict=True):
        # At the smooth root the hard margin is short of zero by at most the bias (paper, smooth-to-hard margin error).
        before, at_root = FastODE(ops, float(value)).margins(np.array([early - 1.1e-6, early]))  # roots are upper ends
        assert before <= 0.0 and at_root >= -rule.bias(ops) - 1e-4
        assert late - early <= rule.bias(ops) / 5.0 + ROOTS_AGREE_S  # margins here grow by at least 5 rad/s


def test_the_smooth_boundary_of_a_perfect_surrogate_is_that_of_the_ode():
    ops, alpha = operators_of(PRIMARY), np.array([0.2, 0.6, 0.9])
    learned, ode = learned_boundary(IntegratingSurrogate(ops), alpha), ode_boundary(ops, alpha)
    assert learned.status == ode.status
    np.testing.assert_allclose(learned.cct, ode.cct, rtol=0.0, atol=ROOTS_AGREE_S)


def test_a_window_that_begins_too_late_is_reported_as_left_censored():
    ops = operators_of(PRIMARY)
    late = replace(ops, window=ops.window.model_copy(update={"t_c": (0.9, 1.2)}))
    boundary = learned_boundary(IntegratingSurrogate(late), np.array([0.5, 0.95]), rule=HARD)
    assert boundary.status == ("right-censored", "left-censored")
    assert np.isnan(boundary.cct).all()


def test_the_margin_map_changes_sign_at_the_boundary():
    ops, alpha = operators_of(PRIMARY), np.array([0.7, 0.9])
    surrogate, t_c = IntegratingSurrogate(ops), candidates(ops)[::5]
    margins = margin_map(surrogate, alpha, t_c, rule=HARD)
    assert margins.shape == (2, len(t_c))
    for row, cct in zip(margins, learned_boundary(surrogate, alpha, rule=HARD).cct, strict=True):
        np.testing.assert_array_equal(row >= 0, t_c >= cct)


@pytest.mark.parametrize("alpha", [-0.1, np.nan])
def test_a_severity_that_is_none_is_refused(alpha):
    with pytest.raises(UsageError, match="severity"):
        learned_boundary(IntegratingSurrogate(operators_of(NINE)), np.array([alpha]))


# --- many severities at once --------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["hard", "smooth"])
@pytest.mark.parametrize("batch", [3e3, 1e6])
def test_severities_that_search_together_find_what_each_finds_alone(kind, batch, monkeypatch):
    monkeypatch.setattr("espinn_moe.margins.BATCH_VALUES", int(batch))
    perfect, alpha = IntegratingSurrogate(operators_of(PRIMARY)), np.array([0.97, 0.1, 0.53, 0.57, 0.8, 0.57])
    counts: list[int] = []
    together = learned_boundary(perfect, alpha, rule=MarginRule(kind), report=counts.append)
    alone = [learned_boundary(perfect, alpha[k : k + 1], rule=MarginRule(kind)) for k in range(len(alpha))]
    assert together.status == tuple(one.status[0] for one in alone)
    assert {"finite", "right-censored"} <= set(together.status)
    np.testing.assert_array_equal(together.restabilises, [one.restabilises[0] for one in alone])
    np.testing.assert_allclose(together.cct, [one.cct[0] for one in alone], rtol=0.0, atol=ROOTS_AGREE_S)
    assert counts == sorted(counts) and counts[-1] == len(alpha)


@pytest.mark.parametrize("model", ["es-pinn", "es-pinn-chained", "xpinn", "pi-deeponet"])
@pytest.mark.parametrize("seed", [0, 1])
def test_untrained_models_answer_alike_together_and_alone(model, seed):
    surrogate = create_model(model, [operators_of(NINE)], seed=seed)
    alpha = np.array([0.0, 0.4, 0.83, 1.0])
    together = learned_boundary(surrogate, alpha)
    alone = [learned_boundary(surrogate, alpha[k : k + 1]) for k in range(len(alpha))]
    assert together.status == tuple(one.status[0] for one in alone)
    np.testing.assert_allclose(together.cct, [one.cct[0] for one in alone], rtol=0.0, atol=1e-5)


def test_members_of_a_family_answer_alike_together_and_alone():
    members = [operators_of("ieee30-bus-7-remove-4-6"), operators_of("ieee30-line-3-4-remove")]
    surrogate, alpha = create_model("moe-chained", members, seed=3), np.array([0.3, 0.7, 0.9])
    for member in range(2):
        together = learned_boundary(surrogate, alpha, member)
        alone = [learned_boundary(surrogate, alpha[k : k + 1], member) for k in range(len(alpha))]
        assert together.status == tuple(one.status[0] for one in alone)
        np.testing.assert_allclose(together.cct, [one.cct[0] for one in alone], rtol=0.0, atol=ROOTS_AGREE_S)


def test_a_trajectory_that_is_decided_need_not_be_followed():
    surrogate = create_model("es-pinn-chained", [operators_of(PRIMARY)], seed=0)
    t, alpha, t_c = (torch.tensor(x, dtype=torch.float64) for x in (np.linspace(0, 2, 51), [1.0, 0.5], [0.3, 0.9, 1.1]))
    with torch.no_grad():
        whole, cut = surrogate.trajectories(t, alpha, t_c), surrogate.trajectories(t, alpha, t_c, limit=4.0)
    n = surrogate.n_machines
    separation = whole[..., :n].amax(-1) - whole[..., :n].amin(-1)
    followed = separation.cummax(-1).values < 4.0
    assert not followed.all()
    torch.testing.assert_close(cut[followed], whole[followed], rtol=0.0, atol=1e-12)
    shown = cut[..., :n].amax(-1) - cut[..., :n].amin(-1)
    assert (shown.amax(-1) >= 4.0).eq(separation.amax(-1) >= 4.0).all()


def test_a_contingency_without_any_finite_severity_is_asked_nothing():
    surrogate = create_model("moe-chained", [operators_of("ieee30-bus-7-remove-4-6")], width=8, expert_width=6)
    nothing = np.empty(0)
    assert learned_near(surrogate, nothing, Vicinity(nothing, nothing, 0.02)).alpha.size == 0

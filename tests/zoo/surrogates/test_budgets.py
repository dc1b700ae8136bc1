"""Plans of budgets: what they cost, and the rates they learn at."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zoo.surrogates.budgets import FULL_RATE, PLANS, SHOOTING, plan_for

FULL = PLANS["one-shot"].learning_rate


@pytest.mark.parametrize("length", [{"minutes": 1.0}, {"minutes": 2.0}, {"steps": 2_000}])
def test_a_short_training_learns_at_the_full_rate(length):
    assert plan_for("one-shot", **length).learning_rate == FULL


@pytest.mark.parametrize("length", [{"minutes": 1.0}, {"minutes": 5.0}, {"steps": 2_000}])
def test_a_short_training_with_rollouts_learns_at_both_full_rates(length):
    plan = plan_for("one-shot", residual="shooting", **length)
    assert (plan.learning_rate, plan.restart) == (FULL, SHOOTING)


@given(minutes=st.floats(0.1, 600.0), longer=st.floats(1.0, 10.0))
def test_weights_wander_no_farther_in_a_longer_training(minutes, longer):
    """Steps are as large as the rate, so that weights wander as rate times root of steps."""

    def wandering(length):
        return plan_for("one-shot", minutes=length).learning_rate ** 2 * length

    assert wandering(longer * minutes) >= wandering(minutes) * (1 - 1e-12), "more time is never used less"
    assert wandering(minutes) <= FULL**2 * FULL_RATE[0].minutes * (1 + 1e-12)


@given(minutes=st.floats(0.1, 600.0))
def test_both_stages_are_steadied_by_their_own_length(minutes):
    plan = plan_for("one-shot", residual="shooting", minutes=minutes)
    assert plan.restart is not None
    lengths = plan.restart.at * minutes, (1.0 - plan.restart.at) * minutes
    full = (FULL, SHOOTING.learning_rate)
    rates = (plan.learning_rate, plan.restart.learning_rate)
    for length, rate, most, at_most in zip(lengths, rates, full, FULL_RATE, strict=True):
        assert rate == pytest.approx(most * min(1.0, (at_most.minutes / length) ** 0.5))


def test_minutes_and_steps_are_steadied_alike():
    first, _ = FULL_RATE
    timed = plan_for("one-shot", minutes=9 * first.minutes)
    counted = plan_for("one-shot", steps=9 * first.steps)
    assert timed.learning_rate == pytest.approx(FULL / 3) == pytest.approx(counted.learning_rate)


def test_chained_models_learn_a_smooth_map_at_one_rate():
    assert {plan_for("chained", minutes=m).learning_rate for m in (0.5, 60.0)} == {PLANS["chained"].learning_rate}

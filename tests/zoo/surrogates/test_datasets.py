"""Scenario sets: grids, fractions and their digests."""

import dataclasses

import numpy as np
import pytest

from contingencies.errors import UsageError
from contingencies.library import load_contingency
from contingencies.ode import strict_trajectory
from contingencies.operators import PhaseOperators, compile_contingency
from zoo.surrogates.datasets import ScenarioStream, chosen_scenarios, evaluation_grid, training_axes, training_set


@pytest.fixture(scope="module")
def nine() -> PhaseOperators:
    return compile_contingency(load_contingency("ieee9-mech-g2-restore"))


def test_evaluation_grid_holds_out_7600_pairs_and_50_severities_that_training_never_sees(nine):
    grid = evaluation_grid(nine)
    alpha, t_c = training_axes(nine)
    trained = np.isclose(grid.alpha[:, None], alpha).any(axis=1)[:, None] & np.isclose(grid.t_c[:, None], t_c).any(
        axis=1
    )
    assert grid.held_out.sum() == 7600
    assert not (grid.held_out & trained).any()
    assert (grid.held_out | trained).all()
    assert len(grid.unseen_alpha) == 50
    assert not np.isclose(grid.unseen_alpha[:, None], alpha).any()


@pytest.mark.parametrize(("fraction", "count"), [(0.1, 260), (0.2, 520), (0.5, 1301), (1.0, 2601)])
def test_fraction_keeps_its_share_of_complete_scenarios(fraction, count):
    assert len(chosen_scenarios("a", fraction, 0)) == count


def test_smaller_fraction_is_part_of_a_larger_one_and_depends_on_seed_and_contingency():
    small, large = (set(chosen_scenarios("a", f, 3).tolist()) for f in (0.1, 0.5))
    assert small < large
    assert small != set(chosen_scenarios("a", 0.1, 4).tolist())
    assert small != set(chosen_scenarios("b", 0.1, 3).tolist())


@pytest.mark.parametrize("fraction", [0.0, -0.1, 1.01, float("nan"), 1e-9])
def test_fraction_that_leaves_nothing_or_more_than_all_is_refused(fraction):
    with pytest.raises(UsageError, match="fraction"):
        chosen_scenarios("a", fraction, 0)


def test_scenarios_are_those_of_the_strict_reference(nine):
    scenarios = training_set(nine, fraction=0.02, seed=1, points=11)
    assert scenarios.states.shape == (2, len(scenarios.t), 6)
    for k in range(2):
        truth = strict_trajectory(nine, float(scenarios.alpha[k]), float(scenarios.t_c[k]), scenarios.t)
        np.testing.assert_allclose(scenarios.states[k, :, :3], truth.delta, atol=1e-5)
        np.testing.assert_allclose(scenarios.states[k, :, 3:], truth.omega, atol=1e-7)


def test_digest_names_the_content(nine):
    first = training_set(nine, fraction=0.1, seed=1, points=11)
    again = training_set(nine, fraction=0.1, seed=1, points=11)
    other = training_set(nine, fraction=0.1, seed=2, points=11)
    assert first.digest == again.digest != other.digest


def test_a_family_is_simulated_one_member_at_a_time_and_told_from_the_start(nine):
    twin = dataclasses.replace(nine, name="twin")
    heard = []
    stream = ScenarioStream([nine, twin], 0.002, 1, heard.append)
    assert heard == [0]
    names = [data.contingency for data in stream]
    assert (names, heard) == ([nine.name, "twin"], [0, 1, 2])
    records = stream.records()
    assert heard == [0, 1, 2], "what has been simulated is not simulated again"
    assert [record.digest for record in records] == [training_set(each, 0.002, 1).digest for each in (nine, twin)]


def test_a_fraction_that_leaves_nothing_is_refused_before_anything_is_simulated(nine):
    heard = []
    with pytest.raises(UsageError, match="fraction"):
        ScenarioStream([nine], 1e-9, 0, heard.append)
    assert not heard

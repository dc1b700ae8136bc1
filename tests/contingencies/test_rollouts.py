"""Rollouts: the swing equation from any state within a phase."""

import numpy as np
import pytest

from contingencies.library import load_contingency
from contingencies.ode import FastODE, output_times, strict_trajectory
from contingencies.operators import PhaseOperators, compile_contingency
from contingencies.rollouts import after_clearing, during_fault


@pytest.fixture(scope="module")
def operators() -> PhaseOperators:
    return compile_contingency(load_contingency("ieee30-line-3-4-restore"))


def test_a_rollout_from_the_true_event_state_is_the_trajectory(operators):
    t_c = np.array([0.31, 0.523, 0.6111, 0.95])
    for alpha in (0.3, 0.9):
        at_clearing = np.stack(
            [FastODE(operators, alpha).states(t_c[i : i + 1], t_c[i : i + 1])[0, 0] for i in range(4)]
        )
        t, states = after_clearing(operators, at_clearing, t_c)
        assert np.allclose(t[:, -1], operators.window.T)
        for row in range(4):
            truth = strict_trajectory(operators, alpha, t_c[row], t[row, ::20])
            n = operators.n_machines
            np.testing.assert_allclose(states[row, ::20, :n], truth.delta, atol=2e-4)
            np.testing.assert_allclose(states[row, ::20, n:], truth.omega, atol=1e-5)


def test_fault_on_segments_follow_one_another(operators):
    t = output_times(operators)
    alpha = np.array([0.2, 0.9, 1.0])
    whole = np.stack([FastODE(operators, a).states(np.array([1.25]), t)[0] for a in alpha])
    since, states = during_fault(operators, whole[:, 40], alpha, 0.2)
    assert (since[0], since[-1]) == (0.0, 0.2)
    np.testing.assert_allclose(states[:, 0], whole[:, 40], atol=0)
    np.testing.assert_allclose(states[:, -1], whole[:, 60], atol=1e-9)


def test_rollouts_do_not_depend_on_their_neighbours(operators):
    x = np.tile(np.concatenate([operators.delta_0, np.ones(operators.n_machines)]), (40, 1))
    x[:, 0] += np.linspace(0.0, 0.5, 40)
    together = after_clearing(operators, x, np.full(40, 0.5))[1]
    alone = np.concatenate([after_clearing(operators, x[i : i + 1], np.full(1, 0.5))[1] for i in range(40)])
    np.testing.assert_allclose(together, alone, atol=1e-12)
    equilibrium = together[0]
    np.testing.assert_allclose(equilibrium, np.broadcast_to(x[0], equilibrium.shape), atol=1e-9)

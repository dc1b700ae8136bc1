"""Where whole trajectories are learned from."""

from functools import cache

import numpy as np
import pytest
import torch

from contingencies.library import load_contingency
from contingencies.operators import PhaseOperators, compile_contingency
from espinn_moe.one_shot import ESPINN, settled
from espinn_moe.sampling import SamplePool
from zoo.surrogates.datasets import ScenarioSet, training_set

LINE, STABLE = "ieee30-line-3-4-remove", "ieee30-bus-7-remove-4-6"


@cache
def operators(name: str) -> PhaseOperators:
    return compile_contingency(load_contingency(name))


@cache
def scenarios(name: str) -> ScenarioSet:
    return training_set(operators(name), 0.1, 0)


def pool(name: str, decisive: bool) -> SamplePool:
    return SamplePool(scenarios(name), ESPINN([operators(name)], fault_width=4, post_width=4), 0, decisive)


def unstable(name: str) -> np.ndarray:
    n = operators(name).n_machines
    return (np.ptp(scenarios(name).states[..., :n], axis=-1) > operators(name).max_separation).any(axis=1)


def spacings(name: str) -> np.ndarray:
    """Severities and clearing instants (s, 2) in units of the distance of neighbours."""
    data, ops = scenarios(name), operators(name)
    ranges = np.array([np.diff(ops.severity)[0], np.diff(ops.window.t_c)[0]])
    return np.stack([data.alpha, data.t_c], axis=1) / ranges * np.sqrt(len(data.alpha))


def test_the_swing_equation_is_asked_between_scenarios_until_they_are_decided():
    rows = pool(LINE, True).collocation(2000, torch.Generator().manual_seed(0))
    ops, data = operators(LINE), scenarios(LINE)
    ranges = np.array([np.diff(ops.severity)[0], np.diff(ops.window.t_c)[0]])
    places = torch.stack([rows.alpha, rows.t_c], dim=1).double().numpy() / ranges * np.sqrt(len(data.alpha))
    far = np.abs(places[:, None] - spacings(LINE)).max(axis=-1)  # (rows, scenarios)
    assert far.min(axis=1).max() < 0.51
    assert np.median(far.min(axis=1)) > 0.05  # and not only where trajectories are stored
    lost = settled(data.states[..., : ops.n_machines])
    decided = np.where(lost.any(axis=1), data.t[lost.argmax(axis=1)], ops.window.T)
    latest = np.where(far < 0.51, decided, 0.0).max(axis=1)
    assert (rows.t.double().numpy() <= latest + 1e-6).all()


@pytest.mark.parametrize("decisive", [True, False])
@pytest.mark.parametrize("name", [LINE, STABLE])
def test_instants_stay_within_the_study(name, decisive):
    rows = pool(name, decisive).collocation(1000, torch.Generator().manual_seed(1))
    window, (low, high) = operators(name).window, operators(name).severity
    assert len(rows.t) == len(rows.alpha) == len(rows.t_c) == len(rows.member) == 1000
    slack = 1e-6  # single precision
    assert low - slack <= rows.alpha.min() and rows.alpha.max() <= high + slack
    assert window.t_c[0] - slack <= rows.t_c.min() and rows.t_c.max() <= window.t_c[1] + slack
    assert window.t_f - slack <= rows.t.min() and rows.t.max() <= window.T + slack


def test_scenarios_at_the_boundary_are_drawn_more_often_only_when_stability_is_what_counts():
    lost, places = unstable(LINE), spacings(LINE)
    far = np.linalg.norm(places[:, None] - places, axis=-1)
    to_other = np.where(lost, far[:, ~lost].min(axis=1), far[:, lost].min(axis=1))
    data = scenarios(LINE)
    near = {(float(np.float32(a)), float(np.float32(c))) for a, c in
            zip(data.alpha[to_other < 1.5], data.t_c[to_other < 1.5], strict=True)}  # fmt: skip
    shares = []
    for decisive in (True, False):
        rows = pool(LINE, decisive).draw(20_000, torch.Generator().manual_seed(2))
        drawn = zip(rows.alpha.tolist(), rows.t_c.tolist(), strict=True)
        shares.append(sum(place in near for place in drawn) / 20_000)
    assert shares[0] > 2.0 * shares[1] > 0.0


def test_the_same_generator_gives_the_same_rows():
    first, again = (pool(LINE, True).collocation(64, torch.Generator().manual_seed(3)) for _ in range(2))
    assert all(torch.equal(getattr(first, name), getattr(again, name)) for name in ("t", "alpha", "t_c"))

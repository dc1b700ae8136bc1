"""Objectives: what they learn from, and that learning from it works."""

from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pytest
import torch

from contingencies.errors import UsageError
from contingencies.library import load_contingency
from contingencies.ode import FastODE
from contingencies.operators import PhaseOperators, compile_contingency
from contingencies.trajectories import output_times
from espinn_moe.chained import ChainedESPINN
from espinn_moe.chained_moe import ChainedMoE
from espinn_moe.losses import TrajectoryBatch, TrajectoryObjective
from espinn_moe.one_shot import ESPINN, HardRoutedMoE
from espinn_moe.phases import FAULT_ON, POST_CLEARING, SETTLED_RAD, settled
from espinn_moe.plan import TrainingPlan
from espinn_moe.surrogate import Rows
from espinn_moe.train import train
from espinn_moe.window_data import calibrate, cut_windows, fitted_remainder, remainders
from espinn_moe.window_losses import WindowObjective

torch.set_num_threads(1)

LINE, BUS = "ieee30-line-3-4-remove", "ieee30-bus-7-remove-4-6"


@dataclass(frozen=True, eq=False)
class Trajectories:
    alpha: np.ndarray
    t_c: np.ndarray
    t: np.ndarray
    states: np.ndarray
    conditions: np.ndarray | None = None


@cache
def operators(name: str) -> PhaseOperators:
    return compile_contingency(load_contingency(name))


@cache
def trajectories(name: str) -> Trajectories:
    ops = operators(name)
    alpha, t_c = np.meshgrid(np.linspace(0.1, 1.0, 4), [0.41, 0.73, 0.95], indexing="ij")
    t = output_times(ops)
    states = [FastODE(ops, a).states(np.array([c]), t)[0] for a, c in zip(alpha.ravel(), t_c.ravel(), strict=True)]
    return Trajectories(alpha.ravel(), t_c.ravel(), t, np.stack(states))


def windows(model, name=LINE, count=10_000):
    return cut_windows(model, [trajectories(name)], count, np.random.default_rng(0))


def test_windows_are_pieces_of_the_given_trajectories_within_one_phase():
    data, model = trajectories(LINE), ChainedESPINN([operators(LINE)], width=8)
    for phase, found in zip((FAULT_ON, POST_CLEARING), windows(model), strict=True):
        for x, alpha, targets in zip(found.x[::37], found.alpha[::37], found.targets[::37], strict=True):
            same = (data.states == x.numpy()).all(-1) & (data.alpha[:, None] == alpha.item())
            assert same.any()
            places = [
                (scenario, sample)
                for scenario, sample in np.argwhere(same)
                if sample + 6 < len(data.t) and np.array_equal(data.states[scenario, sample + 6], targets[-1].numpy())
            ]
            begins, ends = zip(*((data.t[sample], data.t[sample + 6]) for _, sample in places), strict=True)
            cleared = [data.t_c[scenario] for scenario, _ in places]
            if phase == FAULT_ON:
                assert any(b >= 0.2 - 1e-9 and e <= c + 1e-9 for b, e, c in zip(begins, ends, cleared, strict=True))
            else:
                assert any(b >= c - 1e-9 for b, c in zip(begins, cleared, strict=True))


def test_a_severity_contributes_its_fault_on_samples_once():
    model = ChainedESPINN([operators(LINE)], width=8)
    fault_on, _ = windows(model)
    longest = 0.95 - 0.2
    assert len(fault_on.x) == 4 * (round(longest / 0.01) - 6 + 1)


def test_the_remainder_of_a_window_is_a_short_polynomial():
    model = ChainedESPINN([operators(LINE)], width=8)
    for phase, data in zip((FAULT_ON, POST_CLEARING), windows(model), strict=True):
        _, left = remainders(model, phase, data)
        phi, _, integral = (part.mT for part in model.basis(data.nodes))
        c = fitted_remainder(model, phase, data)
        fit = torch.cat([model.physics.omega_b * model.window_s * (c @ integral), c @ phi], dim=1).mT
        decisive = ~data.lost
        assert (fit - left)[decisive].square().mean().sqrt() < 1e-3 * left[decisive].square().mean().sqrt()


def test_calibration_happens_once_and_travels_with_the_model():
    model = ChainedESPINN([operators(LINE)], width=8)
    found = windows(model)
    calibrate(model, found)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    half = tuple(replace(part, x=part.x * 1.1) for part in found)
    calibrate(model, half)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert {"fault_scale", "post_scale", "fault_inputs.mean", "calibrated"} <= set(before)


@pytest.mark.parametrize("kind", [ChainedESPINN, ChainedMoE])
def test_a_chained_model_learns_its_windows_in_seconds(kind):
    names = [LINE] if kind is ChainedESPINN else [BUS, LINE]
    torch.manual_seed(0)
    model = kind([operators(name) for name in names], width=16)
    objective = WindowObjective(model, [trajectories(name) for name in names], rows=128)
    batch = objective.batch(torch.Generator().manual_seed(1))
    with torch.no_grad():
        before = objective.terms(model, batch)
    train(model, objective, TrainingPlan(steps=200, learning_rate=2e-2, validations=0))
    with torch.no_grad():
        after = objective.terms(model, batch)
    assert set(after) == set(objective.weights) == {"data", "residual_omega"}
    assert all(after[name] < 0.2 * before[name] for name in after)


@pytest.mark.parametrize("kind", [ESPINN, HardRoutedMoE])
def test_a_one_shot_model_learns_its_trajectories_in_seconds(kind):
    names = [LINE] if kind is ESPINN else [BUS, LINE]
    torch.manual_seed(0)
    model = kind([operators(name) for name in names])
    objective = TrajectoryObjective(model, [trajectories(name) for name in names], rows=128, collocation_rows=32)
    batch = objective.batch(torch.Generator().manual_seed(1))
    with torch.no_grad():
        before = objective.terms(model, batch)
    train(model, objective, TrainingPlan(steps=80, learning_rate=3e-3, validations=0))
    objective.advance(0.0)  # compare by the weights of the beginning
    with torch.no_grad():
        after = objective.terms(model, batch)
    assert set(after) == set(objective.weights) == {"data", "residual_delta", "residual_omega"}
    assert after["data"] < 0.7 * before["data"]


def test_residuals_are_what_the_states_miss_of_the_swing_equation():
    torch.manual_seed(0)
    model = ESPINN([operators(LINE)], dtype="float64", fault_width=8, post_width=8).requires_grad_(False)
    objective = TrajectoryObjective(model, [trajectories(LINE)], collocation_rows=40)
    rows = objective.batch(torch.Generator().manual_seed(2)).collocation
    states, rates = model.states_and_rates(rows.t, rows.alpha, rows.t_c)
    residual = objective.residuals(model, rows, states, rates)
    x = states.numpy()
    ahead = model.states(rows.t + 1e-6, rows.alpha, rows.t_c).numpy()
    behind = model.states(rows.t - 1e-6, rows.alpha, rows.t_c).numpy()
    n, ops = model.n_machines, operators(LINE)
    for i in range(len(x)):
        t, alpha, t_c = (float(value[i]) for value in (rows.t, rows.alpha, rows.t_c))
        Y, P_m = (ops.Y_fault(alpha), ops.P_m_fault(alpha)) if t < t_c else (ops.Y_post, ops.P_m_post)
        V = ops.E * np.exp(1j * x[i, :n])
        P_e = (V * (Y @ V).conj()).real
        omega_rate = (P_m - P_e - ops.D * (x[i, n:] - 1)) / (2 * ops.H)
        field = np.concatenate([ops.omega_b * (x[i, n:] - 1), omega_rate])
        np.testing.assert_allclose(residual[i], (ahead[i] - behind[i]) / 2e-6 - field, atol=1e-6)


def test_where_stability_is_learned_machines_that_part_count_by_their_own_spread_and_a_drift_by_its_own():
    model = ESPINN([operators(LINE)], dtype="float64", fault_width=8, post_width=8)
    n, share = model.n_machines, operators(LINE).H / operators(LINE).H.sum()
    decisive = TrajectoryObjective(model, [trajectories(LINE)], decisive=True)
    drift = torch.full((1, n), 0.3, dtype=torch.float64)
    parting = torch.tensor(np.eye(n)[:1] - share[0], dtype=torch.float64)  # of one machine; the centre stays
    at_rest, zeros = torch.zeros(1, 2 * n, dtype=torch.float64), torch.zeros(1, n, dtype=torch.float64)
    for name, place in (("delta", 0), ("omega", 1)):

        def misfit(objective, change, place=place):
            parts = [zeros, zeros]
            parts[place] = change
            return objective.misfit(torch.cat(parts, dim=-1), at_rest)

        size, apart = decisive.scales[name], decisive.scales[f"{name}_apart"]
        assert apart < size
        torch.testing.assert_close(misfit(decisive, drift), (drift / size).square())
        torch.testing.assert_close(misfit(decisive, parting), (parting / apart).square())
        both = misfit(decisive, drift + parting)
        torch.testing.assert_close(both, (drift / size).square() + (parting / apart).square())
        whole = TrajectoryObjective(model, [trajectories(LINE)])
        torch.testing.assert_close(misfit(whole, parting), (parting / whole.scales[name]).square())


def test_a_member_that_hardly_swings_gets_fewer_rows_of_whole_trajectories():
    model = HardRoutedMoE([operators(BUS), operators(LINE)])
    objective = TrajectoryObjective(model, [trajectories(BUS), trajectories(LINE)], rows=100, collocation_rows=50)
    batch = objective.batch(torch.Generator().manual_seed(0))
    for rows, number in ((batch.data, 100), (batch.collocation, 50)):
        calm, swinging = torch.bincount(rows.member).tolist()
        assert (calm, swinging) == (pytest.approx(0.2 * number, abs=1), pytest.approx(0.8 * number, abs=1))
    alike = replace(operators(LINE), name="the-same-line-again")
    twins = TrajectoryObjective(HardRoutedMoE([operators(LINE), alike]), [trajectories(LINE)] * 2, rows=100)
    assert torch.bincount(twins.batch(torch.Generator().manual_seed(0)).data.member).tolist() == [50, 50]


def misfit_of_one_row(objective: TrajectoryObjective, model: ESPINN, rows: Rows, row: int) -> float:
    """How much the data term grows when the target of a row is moved by a radian."""
    with torch.no_grad():
        moved = model.states(rows.t, rows.alpha, rows.t_c).clone()
        moved[row, : model.n_machines] += 1.0
        batch = TrajectoryBatch(replace(rows, states=moved), rows)
        return float(objective.terms(model, batch)["data"])


def test_early_samples_weigh_more_and_less_so_towards_the_end_of_a_training():
    model = ESPINN([operators(LINE)], dtype="float64", fault_width=8, post_width=8)
    objective = TrajectoryObjective(
        model, [trajectories(LINE)], residual_weight=0.0, data_decay=(6.0, 1.0), rows=256
    )  # fmt: skip
    rows = objective.batch(torch.Generator().manual_seed(3)).data
    since = (rows.t - rows.t_c).clamp(min=0.0)
    early, late = int(since.argmin()), int(since.argmax())
    gap = float(since[late] - since[early])
    for done, decay in ((0.0, 6.0), (0.5, 3.5), (1.0, 1.0)):
        objective.advance(done)
        ratio = misfit_of_one_row(objective, model, rows, late) / misfit_of_one_row(objective, model, rows, early)
        assert np.log(ratio) == pytest.approx(-decay * gap, abs=1e-9)


def test_weights_leave_the_size_of_the_misfit_as_it_was():
    model = ESPINN([operators(LINE)], dtype="float64", fault_width=8, post_width=8)
    even, falling = (
        TrajectoryObjective(model, [trajectories(LINE)], residual_weight=0.0, data_decay=decay, rows=64)
        for decay in ((0.0, 0.0), (6.0, 1.0))
    )
    rows = even.batch(torch.Generator().manual_seed(4)).data
    with torch.no_grad():
        off_by_one = replace(rows, states=model.states(rows.t, rows.alpha, rows.t_c) + 1.0)
        batch = TrajectoryBatch(off_by_one, rows)
        assert falling.terms(model, batch)["data"] == pytest.approx(float(even.terms(model, batch)["data"]))


def test_no_residual_is_computed_where_it_has_no_weight():
    model = ESPINN([operators(LINE)], fault_width=8, post_width=8)
    objective = TrajectoryObjective(model, [trajectories(LINE)], residual_weight=0.0)
    terms = objective.terms(model, objective.batch(torch.Generator().manual_seed(0)))
    assert set(terms) == set(objective.weights) == {"data"}


def test_decisive_samples_end_when_synchronism_is_lost():
    model = ESPINN([operators(LINE)], fault_width=8, post_width=8)
    n, data = model.n_machines, trajectories(LINE)
    assert settled(data.states[..., :n]).any(), "some trajectories must be unstable"
    for decisive in (True, False):
        objective = TrajectoryObjective(model, [data], decisive=decisive, rows=4096)
        rows = objective.batch(torch.Generator().manual_seed(0)).data
        widest = float((rows.states[:, :n].amax(-1) - rows.states[:, :n].amin(-1)).max())
        assert (widest <= SETTLED_RAD + 1e-5) == decisive


def test_trajectories_that_cannot_teach_are_refused():
    data = trajectories(LINE)
    with pytest.raises(UsageError, match="not whole steps"):
        WindowObjective(ChainedESPINN([operators(LINE)], window_s=0.055), [data])
    short = Trajectories(data.alpha[:1], np.array([0.23]), data.t, data.states[:1])
    with pytest.raises(UsageError, match="no complete window"):
        WindowObjective(ChainedESPINN([operators(LINE)]), [short])
    with pytest.raises(UsageError, match="give one for each"):
        WindowObjective(ChainedMoE([operators(LINE), operators(BUS)]), [data])
    none = Trajectories(data.alpha[:0], data.t_c[:0], data.t, data.states[:0])
    with pytest.raises(UsageError, match="no training scenario left"):
        TrajectoryObjective(ESPINN([operators(LINE)]), [none])

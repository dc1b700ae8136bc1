"""The reference simulators against closed forms, textbooks, and each other."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contingencies.confirmation import confirmed_cct
from contingencies.errors import UsageError
from contingencies.kernels import MANY_MACHINES, scratch
from contingencies.multistep import accelerations
from contingencies.ode import FastODE, fast_trajectory, scenario_states, strict_trajectory, trajectory_grid
from contingencies.references import reference_boundary, reference_cct
from contingencies.stability import candidates
from contingencies.swing import swing_field
from contingencies.trajectories import output_times
from tests.cases import WSCC_BUS_7, compile_text, operators_of, write_smib

BENCHMARKS = (
    "ieee30-line-3-4-restore", "ieee9-mech-g2-restore", "ieee14-line-4-5-remove", "ieee30-bus-3-trip",
    "ieee30-line-3-4-remove", "ieee30-bus-7-remove-4-6",
)  # fmt: skip
UNSEEN = np.linspace(0, 1, 101)[1::2]


# --- closed forms and textbooks -----------------------------------------------------------------


def equal_area_duration(P_m, P_post, delta_0, H, omega_b):
    """Critical duration of a bolted fault (no power during the fault) from the equal-area criterion."""
    delta_u = np.pi - np.arcsin(P_m / P_post)
    cosine = (P_m * (delta_u - delta_0) + P_post * np.cos(delta_u)) / P_post
    delta_c = np.arccos(cosine)
    return np.sqrt(4 * H * (delta_c - delta_0) / (omega_b * P_m)), delta_c


BOLTED = """name: smib-bolted
system: smib.yaml
fault: {{kind: bus, bus: 3, shunt_pu: {{b: -1.0e+9}}}}
clearing: {{action: remove-line, line: [3, 2], circuit: 2}}
window: {{t_f: 0.1, T: {T}, t_c: [0.11, 0.9]}}
"""


@pytest.mark.parametrize(("p", "H"), [(90.0, 3.5), (60.0, 3.5), (75.0, 5.0)])
def test_a_lossless_machine_against_an_infinite_bus_obeys_equal_area(tmp_path, p, H):
    write_smib(tmp_path, p=p, H=H)
    operators = compile_text(tmp_path, BOLTED.format(T=12.0))
    assert np.abs(operators.Y_pre.real).max() < 1e-9, "the case must be lossless for the closed form to hold"
    P_post = operators.E[0] * operators.E[1] * operators.Y_post.imag[0, 1]
    delta_0 = operators.delta_0[0] - operators.delta_0[1]
    duration, _ = equal_area_duration(operators.P_m_pre[0], P_post, delta_0, H, operators.omega_b)
    assert reference_cct(operators, 1.0).duration == pytest.approx(duration, abs=2e-5)


def test_kundurs_example_13_1_has_its_published_voltage_angle_and_clearing_time(tmp_path):
    write_smib(tmp_path, v_inf=0.90081)
    operators = compile_text(tmp_path, BOLTED.format(T=12.0))
    delta_0 = operators.delta_0[0] - operators.delta_0[1]
    assert operators.E[0] == pytest.approx(1.1626, abs=1e-3)
    assert np.rad2deg(delta_0) == pytest.approx(41.77, abs=0.05)
    P_post = operators.E.prod() * operators.Y_post.imag[0, 1]
    _, delta_c = equal_area_duration(operators.P_m_pre[0], P_post, delta_0, 3.5, operators.omega_b)
    assert np.rad2deg(delta_c) == pytest.approx(52.24, abs=0.1)
    assert reference_cct(operators, 1.0).duration == pytest.approx(0.0868, abs=3e-4)


def test_the_textbook_wscc_fault_at_bus_7_may_last_162_ms(tmp_path):
    operators = compile_text(tmp_path, WSCC_BUS_7.format(T=1.6))
    assert reference_cct(operators, 1.0).duration == pytest.approx(0.162, abs=1e-3)


def test_a_stable_set_with_gaps_is_cut_at_its_first_gap(tmp_path):
    operators = compile_text(tmp_path, WSCC_BUS_7.format(T=3.1))
    answer = reference_cct(operators, 1.0)
    margins = FastODE(operators, 1.0).margins(np.array([answer.cct - 2e-5, answer.cct + 2e-5, 0.1 + 0.1620]))
    assert margins[0] < 0 <= margins[1]
    assert margins[2] < 0, "the textbook case is stable again at 0.1620 s, for 0.13 ms: less than a search promises"


@pytest.mark.parametrize(
    ("name", "finite_of_21", "alpha", "published_s"),
    [
        ("ieee9-mech-g2-restore", 5, 0.90, 0.6675),
        ("ieee14-line-4-5-remove", 4, 0.90, 1.030),
        ("ieee30-bus-3-trip", 12, 0.70, 0.6876),
    ],
)
def test_published_boundaries_are_met(name, finite_of_21, alpha, published_s):
    operators = operators_of(name)
    assert reference_boundary(operators, np.linspace(0, 1, 21)).finite.sum() == finite_of_21
    assert reference_cct(operators, alpha).cct == pytest.approx(published_s, abs=3e-3)


@pytest.mark.parametrize(
    ("name", "finite"),
    [("ieee30-line-3-4-restore", 23), ("ieee30-line-3-4-remove", 23), ("ieee30-bus-7-remove-4-6", 0)],
)
def test_as_many_unseen_severities_are_finite_as_published(name, finite):
    boundary = reference_boundary(operators_of(name), UNSEEN)
    assert boundary.finite.sum() == finite
    assert set(boundary.status) <= {"finite", "right-censored"}


# --- the two integrators ------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in BENCHMARKS if name != "ieee30-bus-7-remove-4-6"])
def test_fast_and_strict_integrators_agree_on_the_boundary(name):
    operators = operators_of(name)
    boundary = reference_boundary(operators, UNSEEN)
    edge = np.flatnonzero(boundary.finite)[0]  # next to the censoring edge, where the curve is steepest
    alpha = float(UNSEEN[edge])
    if name == "ieee30-line-3-4-restore":  # one whole search takes many seconds
        strict = reference_cct(operators, alpha, "strict")
    else:
        strict = confirmed_cct(operators, reference_cct(operators, alpha))
    assert strict.reference == "strict"
    assert strict.cct == pytest.approx(boundary.cct[edge], abs=1e-5)


@given(alpha=st.floats(0.0, 1.2), t_c=st.floats(0.2001, 1.999))
@settings(max_examples=25)
def test_fast_and_strict_trajectories_agree_while_the_machines_are_in_step(alpha, t_c):
    operators = operators_of("ieee30-line-3-4-restore")
    fast, strict = fast_trajectory(operators, alpha, t_c), strict_trajectory(operators, alpha, t_c)
    together = np.maximum.accumulate(strict.separation) < 1.5 * np.pi
    # Next to the stability boundary every difference grows: a few microseconds of clearing time show how much.
    sooner, later = (fast_trajectory(operators, alpha, t_c + shift) for shift in (-3e-6, 3e-6))
    for name, rounding in (("delta", 2e-5), ("omega", 5e-7)):
        gap = np.abs(getattr(fast, name) - getattr(strict, name))[together]
        assert (gap <= rounding + np.abs(getattr(later, name) - getattr(sooner, name))[together]).all()


def test_margins_of_many_clearing_instants_equal_those_of_each_alone():
    fast = FastODE(operators_of("ieee30-bus-3-trip"), 0.8)
    t_c = np.linspace(0.26, 1.2, 41)
    alone = np.array([fast.margins(t_c[k : k + 1])[0] for k in range(len(t_c))])
    np.testing.assert_allclose(fast.margins(t_c), alone, rtol=1e-3, atol=1e-6)
    assert ((fast.margins(t_c, stop_at_crossing=True) >= 0) == (alone >= 0)).all()


def test_a_grid_of_scenarios_holds_the_single_trajectories():
    operators = operators_of("ieee14-line-4-5-remove")
    alpha, t_c, t = np.array([0.3, 0.95]), np.array([0.25, 0.613, 1.01]), output_times(operators)
    grid = trajectory_grid(operators, alpha, t_c, t)
    for i, a in enumerate(alpha):
        for j, c in enumerate(t_c):
            single = fast_trajectory(operators, a, c, t)
            np.testing.assert_allclose(grid[i, j], np.hstack([single.delta, single.omega]), atol=1e-4)


# --- invariants ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in BENCHMARKS if name.endswith("restore")])
@pytest.mark.parametrize("simulate", [fast_trajectory, strict_trajectory])
def test_without_an_event_nothing_moves(name, simulate):
    operators = operators_of(name)
    trajectory = simulate(operators, 0.0, 0.7)
    np.testing.assert_allclose(trajectory.delta, np.broadcast_to(operators.delta_0, trajectory.delta.shape), atol=1e-8)
    np.testing.assert_allclose(trajectory.omega, 1.0, atol=1e-10)


@given(alpha=st.floats(0.05, 1.0), t_c=st.floats(0.3, 1.2))
@settings(max_examples=20)
def test_states_are_continuous_at_fault_and_clearing(alpha, t_c):
    operators = operators_of("ieee30-bus-3-trip")
    gap = 1e-7
    for event in (operators.window.t_f, t_c):
        around = fast_trajectory(operators, alpha, t_c, np.array([event - gap, event + gap]))
        rate = operators.omega_b * np.abs(around.omega - 1).max() + 1.0
        assert np.abs(np.diff(around.delta, axis=0)).max() < 3 * gap * rate
        assert np.abs(np.diff(around.omega, axis=0)).max() < 3 * gap * 10


@given(alpha=st.floats(0.1, 1.0), early=st.floats(0.3, 0.7), late=st.floats(0.75, 1.2))
@settings(max_examples=15)
def test_the_fault_on_states_do_not_know_when_the_fault_will_be_cleared(alpha, early, late):
    operators = operators_of("ieee30-line-3-4-remove")
    t = np.linspace(0.0, early, 40)
    first, second = (fast_trajectory(operators, alpha, t_c, t).delta for t_c in (early, late))
    np.testing.assert_allclose(first, second, atol=1e-12)


def test_a_lossless_undamped_system_keeps_its_energy_after_clearing(tmp_path):
    write_smib(tmp_path, p=60.0)
    text = BOLTED.format(T=3.0).replace("b: -1.0e+9", "b: -3.0")
    operators = compile_text(tmp_path, text)
    t_c = 0.3
    trajectory = strict_trajectory(operators, 1.0, t_c)
    after = trajectory.t > t_c
    delta, omega = trajectory.delta[after], trajectory.omega[after]
    relative, slip = delta[:, 0] - delta[:, 1], omega[:, 0] - 1.0
    P_max = operators.E[0] * operators.E[1] * operators.Y_post.imag[0, 1]
    energy = operators.omega_b * operators.H[0] * slip**2 - operators.P_m_pre[0] * relative - P_max * np.cos(relative)
    assert np.ptp(slip) > 1e-3, "the machine must swing for its energy to mean anything"
    assert np.ptp(energy) < 1e-6 * np.abs(energy).max()


# --- many at once -----------------------------------------------------------------------------


@pytest.mark.parametrize("n", [2, MANY_MACHINES - 1, MANY_MACHINES, 40])
def test_few_and_many_machines_feel_the_powers_of_the_swing_equation(n):
    random = np.random.default_rng(n)
    delta, omega = random.normal(size=(n, 8)), 1.0 + 0.01 * random.normal(size=(n, 8))
    G, B = random.normal(size=(2, n, n))
    P_m, H, D = random.normal(size=n), 1.0 + random.random(n), random.random(n)
    found = np.empty((n, 8))
    accelerations(delta, omega, G, B, P_m, H, D, scratch.py_func(n, 8), found)
    _, truth = swing_field(delta.T, omega.T, P_m, np.ones(n), G, B, H, D, 1.0)
    np.testing.assert_allclose(found, truth.T, atol=1e-12 * n)


def test_scenarios_of_several_severities_run_side_by_side_as_they_would_alone():
    operators = operators_of("ieee30-line-3-4-remove")
    alpha = np.array([0.9, 0.2, 0.9, 0.55, 0.2])
    t_c = np.array([0.61, 0.3, 0.25, 1.234, 1.1])
    t = output_times(operators)
    together = scenario_states(operators, alpha, t_c, t)
    for k in range(len(alpha)):
        alone = FastODE(operators, float(alpha[k])).states(t_c[k : k + 1], t)[0]
        np.testing.assert_allclose(together[k], alone, rtol=0.0, atol=1e-6)


# --- what is refused --------------------------------------------------------------------------


@pytest.mark.parametrize("alpha", [float("nan"), float("inf"), -0.1])
def test_a_severity_that_means_nothing_is_refused(alpha):
    with pytest.raises(UsageError):
        reference_cct(operators_of("ieee9-mech-g2-restore"), alpha)


def test_the_benchmark_window_has_101_candidates_10_ms_apart():
    t_c = candidates(operators_of("ieee30-line-3-4-restore"))
    assert len(t_c) == 101
    np.testing.assert_allclose(np.diff(t_c), 0.01)

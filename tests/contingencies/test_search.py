"""The search over clearing instants: on margins with known crossings, and on grids against brute force."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.campaigns.crossings import brute_force, drawn_cases, missed, wrong_restabilises
from contingencies.dae import DAE
from contingencies.errors import SolverError
from contingencies.library import load_contingency
from contingencies.looks import look_of_margins, look_of_samples
from contingencies.multistep import falkner_coefficients
from contingencies.ode import FastODE, look_together
from contingencies.operators import compile_contingency
from contingencies.references import METHODS, reference_cct, reference_statuses
from contingencies.search import (
    RESOLUTION_S,
    SPARING,
    Plan,
    Vicinity,
    crossing_of_margins,
    first_crossing,
    run_together,
)
from tests.cases import compile_text

WHOLE = (0.0, 1.0)
BUS_18 = """name: ieee39-bus-18
system: ieee39
fault: {kind: bus, bus: 18, shunt_pu: {b: -1.0e+6}}
clearing: {action: remove-line, line: [17, 18]}
window: {t_f: 0.2, T: 3.2, t_c: [%s, 0.71]}
"""
LINE_16_24 = """name: ieee39-bus-16
system: ieee39
fault: {kind: bus, bus: 16, shunt_pu: {b: -1.0e+6}}
clearing: {action: remove-line, line: [16, 24]}
window: {t_f: 0.0, T: 3.0, t_c: [0.01, 0.5]}
"""


# --- margins with known crossings ---------------------------------------------------------------


@given(st.floats(0.011, 0.989), st.sampled_from([1, 16]))
def test_the_search_finds_a_single_crossing_wherever_it_is(root, points):
    crossing = crossing_of_margins(
        lambda t: np.sign(t - root) * np.abs(t - root) ** 0.5, WHOLE, Plan(points_per_call=points)
    )
    assert crossing.status == "finite"
    assert crossing.t_c == pytest.approx(root, abs=2e-6)
    assert not crossing.restabilises


@given(st.floats(0.011, 0.989), st.floats(-0.1, 0.1) | st.floats(-1e-5, 1e-5) | st.just(np.nan))
def test_a_guess_of_the_crossing_saves_rounds_and_changes_nothing_else(root, off):
    asked = []

    def source(which, instants, values):
        asked.append(instants.shape)
        return look_of_margins(np.where(instants < root, -1.0, 1.0))

    near = Vicinity(np.array([0.0]), np.array([1.0]), guess=np.array([root + off]))
    crossing = run_together(near.searches(7), source)[0]
    assert crossing.status == "finite"
    assert crossing.t_c == pytest.approx(root, abs=1e-6)
    if abs(off) < 3e-6:
        assert len(asked) == 2


@given(st.floats(0.02, 0.5), st.floats(0.0101, 0.3), st.floats(0.001, 0.1), st.sampled_from([1, 16]))
def test_the_search_reports_the_first_of_several_crossings_and_every_interval(first, gap, width, points):
    """Unstable in [first, first + gap], stable for `width`, unstable again."""
    back, again = first + gap, first + gap + width

    def margins(t):
        return np.where(t < first, -1.0, np.where(t < back, 1.0, np.where(t < again, -1.0, 1.0)))

    plan = Plan(points_per_call=points, intervals=True)
    crossing = crossing_of_margins(margins, WHOLE, plan)
    assert crossing.t_c == pytest.approx(first, abs=2e-6)
    if width > plan.spacing:  # some instant of the scan falls into it
        assert crossing.restabilises
        np.testing.assert_allclose(crossing.stable, [(0.0, first), (back, again)], atol=2e-6)


@given(st.floats(0.1, 0.9), st.floats(2.5e-4, 4e-3), st.sampled_from([Plan(), SPARING]))
def test_an_unstable_sliver_between_two_stable_instants_is_found(centre, half_width, plan):
    """A bump of the margin that rises above zero only within `half_width` of its centre."""

    def margins(t):
        away = np.abs(t - centre)
        return 2.0 * (1.0 - away / half_width) / (1.0 + 10.0 * away)

    crossing = crossing_of_margins(margins, WHOLE, plan)
    assert crossing.status == "finite"
    assert crossing.t_c == pytest.approx(centre - half_width, abs=2e-6)
    assert crossing.restabilises


def test_the_papers_protocol_asks_its_101_candidates_and_a_root():
    asked = []

    def margins(t):
        asked.append(t)
        return t - 0.305

    crossing = crossing_of_margins(margins, WHOLE, Plan.paper())
    np.testing.assert_allclose(asked[0], np.linspace(0.0, 1.0, 101), atol=1e-12)
    assert all(len(t) == 1 for t in asked[1:])
    assert crossing.t_c == pytest.approx(0.305, abs=2e-6)


def test_censoring_is_reported_not_numbered():
    assert crossing_of_margins(lambda t: -np.ones_like(t), WHOLE).status == "right-censored"
    assert crossing_of_margins(lambda t: np.ones_like(t), WHOLE).status == "left-censored"
    assert crossing_of_margins(lambda t: np.ones_like(t), WHOLE).t_c is None


def test_a_window_that_begins_unstable_and_calms_down_is_left_censored_and_restabilises():
    crossing = crossing_of_margins(lambda t: 0.4 - t, WHOLE, Plan(points_per_call=16, intervals=True))
    assert (crossing.status, crossing.restabilises) == ("left-censored", True)
    np.testing.assert_allclose(crossing.stable, [(0.4, 1.0)], atol=2e-6)


def test_a_failed_simulation_is_an_error_and_never_an_unstable_answer():
    with pytest.raises(SolverError):
        crossing_of_margins(lambda t: np.where(t > 0.5, np.nan, -1.0), WHOLE)


def test_the_resolution_is_stated_with_the_answer():
    assert reference_cct(compile_contingency(load_contingency("ieee9-mech-g2-restore")), 0.9).resolution == RESOLUTION_S


# --- what a search sees -------------------------------------------------------------------------


@pytest.mark.parametrize("degree", range(6))
def test_a_multistep_is_exact_for_polynomial_accelerations(degree):
    nodes = np.append(1.0, -np.arange(5.0))
    speed, angle = falkner_coefficients(nodes)
    assert speed @ nodes**degree == pytest.approx(1.0 / (degree + 1.0), abs=1e-9)
    assert angle @ nodes**degree == pytest.approx(1.0 / ((degree + 1.0) * (degree + 2.0)), abs=1e-9)


@pytest.mark.parametrize("name", ["ieee30-line-3-4-restore", "ieee9-mech-g2-restore"])
def test_the_scan_sees_the_margins_of_the_integrator(name):
    operators = compile_contingency(load_contingency(name))
    ode, t_c = FastODE(operators, 0.9), np.linspace(*operators.window.t_c, 40)
    look, margins = ode.look(t_c), ode.margins(t_c)
    stable = margins < 0
    np.testing.assert_array_equal(look.margin < 0, stable)
    np.testing.assert_allclose(look.margin[stable], margins[stable], atol=2e-5)
    np.testing.assert_array_equal(np.isfinite(look.lost), ~stable)
    assert (look.swings[stable].max(axis=1) <= look.margin[stable] + 1e-12).all()


def test_the_full_network_shows_a_search_what_the_reduced_one_does():
    operators = compile_contingency(load_contingency("ieee9-mech-g2-restore"))
    t_c = np.array([0.3, 0.6, 0.7])
    fast, full = FastODE(operators, 0.9).look(t_c), DAE(operators, 0.9).look(t_c)
    np.testing.assert_allclose(full.margin[:2], fast.margin[:2], atol=1e-3)
    np.testing.assert_allclose(full.lost, fast.lost, atol=0.02)


def test_a_sampled_trajectory_is_lost_when_it_passes_the_limit():
    t = np.linspace(0.0, 1.0, 101)
    look = look_of_samples(t, np.stack([4.0 * t, t]), 3.0)
    assert look.lost[0] == pytest.approx(0.75) and np.isinf(look.lost[1])
    assert np.isnan(look.swings[0]).any() and np.isfinite(look.swings[1]).all()


# --- grids against brute force ------------------------------------------------------------------


@pytest.mark.parametrize("start", [0.21, 0.2137, 0.216])
@pytest.mark.parametrize("spacing", [METHODS["fast"].plan.spacing, SPARING.spacing])
def test_an_unstable_interval_of_4_ms_is_found_wherever_the_window_starts(tmp_path, start, spacing):
    operators = compile_text(tmp_path, BUS_18 % start)
    plan = Plan(spacing=spacing, points_per_call=16).within(operators.max_separation)
    crossing = first_crossing(FastODE(operators, 1.0).look, operators.window.t_c, plan)
    assert crossing.t_c - 0.2 == pytest.approx(0.2049, abs=2e-4)
    assert crossing.restabilises


def test_stability_that_returns_for_a_millisecond_and_a_half_is_told(tmp_path):
    answer = reference_cct(compile_text(tmp_path, LINE_16_24), 1.0, intervals=True)
    assert answer.restabilises
    assert any(start == pytest.approx(0.164, abs=5e-4) and 1e-3 < end - start < 3e-3 for start, end in answer.stable)


def test_no_interval_of_half_a_millisecond_is_missed_on_drawn_contingencies():
    cases = [case for case in drawn_cases(24, seed=0) if case.operators.n_machines <= 10]
    assert len(cases) > 15
    for case in cases:
        t_c, unstable = brute_force(case)
        answer = first_crossing(
            FastODE(case.operators, case.alpha).look,
            case.operators.window.t_c,
            METHODS["fast"].plan.within(case.operators.max_separation),
        )
        assert not missed(t_c, unstable, answer), case.operators.name
        assert not wrong_restabilises(unstable, answer), case.operators.name


def test_statuses_alone_are_those_of_the_whole_search():
    operators = compile_contingency(load_contingency("ieee30-line-3-4-restore"))
    alpha = np.linspace(0.05, 1.0, 20)
    assert reference_statuses(operators, alpha) == [reference_cct(operators, each).status for each in alpha]
    assert set(reference_statuses(operators, alpha)) == {"finite", "right-censored"}


def test_severities_that_are_simulated_together_are_seen_as_each_alone():
    operators = compile_contingency(load_contingency("ieee14-line-4-5-remove"))
    odes = [FastODE(operators, alpha) for alpha in (0.3, 0.9, 1.0)]
    t_c = np.array([[0.4, 0.9, 1.1], [0.6, 1.02, 1.03], [0.5, 0.7, 1.0]])
    together = look_together(odes, t_c)
    for k, ode in enumerate(odes):
        alone = ode.look(t_c[k])
        np.testing.assert_array_equal(together.margin[k] >= 0, alone.margin >= 0)
        # Steps are as long as the earliest clearing instant of the lanes wants.
        stable = alone.margin < 0
        np.testing.assert_allclose(together.margin[k][stable], alone.margin[stable], atol=1e-6)
        np.testing.assert_allclose(together.swings[k][stable], alone.swings[stable], atol=1e-3)

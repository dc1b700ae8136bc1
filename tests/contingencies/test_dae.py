import numpy as np
import pytest
import scipy.sparse as sp

from contingencies import dae_step
from contingencies.admittance import bus_admittance, faulted_bus_admittance, machine_admittance, with_machine_reactances
from contingencies.dae import DAE, ZipLoads, dae_cct, dae_margins, simulate_dae
from contingencies.dae_network import factorised, fault_network
from contingencies.errors import SolverError, UsageError
from contingencies.library import load_contingency
from contingencies.ode import FastODE, strict_trajectory
from contingencies.operators import PhaseOperators, compile_contingency
from contingencies.swing import angle_rate

MECHANICAL, LINE, BUS = "ieee9-mech-g2-restore", "ieee14-line-4-5-remove", "ieee30-bus-3-trip"
RESTORED = "ieee30-line-3-4-restore"
MIXED = ZipLoads(0.4, 0.3, 0.3)


def operators(name: str) -> PhaseOperators:
    return compile_contingency(load_contingency(name))


@pytest.mark.parametrize("name", [MECHANICAL, LINE, BUS, RESTORED])
def test_with_impedance_loads_the_full_network_follows_the_reduced_model_at_second_order(name):
    ops, alpha, t_c = operators(name), 0.8, 0.4137  # off every step grid
    errors = []
    for step in (8e-3, 4e-3, 2e-3):
        full = simulate_dae(ops, alpha, t_c, step)
        reduced = strict_trajectory(ops, alpha, t_c, full.t)
        errors.append(np.abs(full.delta - reduced.delta).max())
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    assert errors[-1] < 2e-3
    np.testing.assert_allclose(orders, 2.0, atol=0.1)


@pytest.mark.parametrize("name", [MECHANICAL, LINE, BUS])
def test_bus_voltages_solve_the_network_of_their_phase(name):
    ops, alpha, t_c = operators(name), 0.8, 0.4137
    network, point = ops.network, ops.fault_point
    full = simulate_dae(ops, alpha, t_c, 5e-3)
    on = bus_admittance(network)
    if point is not None:
        on = faulted_bus_admittance(network, point.nodes, point.weights, alpha * point.y, point.z_series)
    post = bus_admittance(network, ops.removed_branches)
    for Y_bus, rows in (
        (bus_admittance(network), full.t < ops.window.t_f),
        (on, (full.t >= ops.window.t_f) & (full.t < t_c)),
        (post, full.t >= t_c),
    ):
        assert rows.any()
        Y_bb = with_machine_reactances(Y_bus, network).toarray()
        current = np.zeros((rows.sum(), len(Y_bb)), dtype=complex)
        current[:, network.machine_bus] = machine_admittance(network) * ops.E * np.exp(1j * full.delta[rows])
        V = np.linalg.solve(Y_bb, current.T).T[:, : network.n_buses]
        np.testing.assert_allclose(full.V[rows], V, rtol=0, atol=1e-7)


@pytest.mark.parametrize(("loads", "t_c"), [(None, 0.4137), (None, 0.3), (MIXED, 0.4137)])
def test_angles_and_speeds_are_continuous_at_events_while_voltages_jump(loads, t_c):
    ops = operators(BUS)
    full = simulate_dae(ops, 0.7, t_c, 5e-3, loads)
    assert {0.0, ops.window.t_f, t_c, ops.window.T} <= set(full.t)
    assert (np.diff(full.t) > 0).all()
    # The trapezoid joins every two rows, those at events included: a jump of the state would break it.
    rate = angle_rate(full.omega, ops.omega_b)
    steps = np.diff(full.t)[:, None] * 0.5 * (rate[1:] + rate[:-1])
    np.testing.assert_allclose(np.diff(full.delta, axis=0), steps, rtol=0, atol=2e-8)
    event = int(np.flatnonzero(full.t == ops.window.t_f)[0])
    assert np.abs(full.V[event] - full.V[event - 1]).max() > 0.1
    np.testing.assert_allclose(full.delta[event], ops.delta_0, rtol=0, atol=1e-8)


@pytest.mark.parametrize("loads", [None, MIXED, ZipLoads(0, 0, 1)])
def test_with_no_event_nothing_moves_whatever_the_loads(loads):
    ops = operators(RESTORED)
    full = simulate_dae(ops, 0.0, 0.5, 5e-3, loads)
    np.testing.assert_allclose(full.delta, np.broadcast_to(ops.delta_0, full.delta.shape), rtol=0, atol=1e-9)
    np.testing.assert_allclose(full.omega, 1.0, rtol=0, atol=1e-11)
    np.testing.assert_allclose(full.V, np.broadcast_to(ops.network.V, full.V.shape), rtol=0, atol=1e-9)


def test_zip_loads_of_impedance_alone_are_constant_impedances():
    ops = operators(BUS)
    default, zip_ = simulate_dae(ops, 0.7, 0.5, 5e-3), simulate_dae(ops, 0.7, 0.5, 5e-3, ZipLoads(1.0, 0.0, 0.0))
    np.testing.assert_array_equal(default.delta, zip_.delta)
    np.testing.assert_array_equal(default.V, zip_.V)


def test_zip_loads_draw_the_power_their_fractions_say_down_to_the_threshold():
    ops, t_c = operators(LINE), 0.4137
    network = ops.network
    full = simulate_dae(ops, 0.9, t_c, 5e-3, MIXED)
    rows = full.t >= t_c
    V, delta = full.V[rows], full.delta[rows]
    lines = bus_admittance(network, ops.removed_branches).toarray() - np.diag(network.y_load)
    drawn = -V @ lines.T
    machines = machine_admittance(network) * (ops.E * np.exp(1j * delta) - V[:, network.machine_bus])
    drawn[:, network.machine_bus] += machines
    v = np.abs(V / network.V)
    S_0 = np.conj(network.y_load) * np.abs(network.V) ** 2
    floor = np.maximum(v, MIXED.v_min)
    expected = S_0 * v**2 * (MIXED.z + MIXED.i / floor + MIXED.p / floor**2)
    np.testing.assert_allclose(V * np.conj(drawn), expected, rtol=0, atol=1e-7)
    assert v.min() < 0.95  # the voltages did move


def test_loads_that_hold_their_power_change_the_critical_clearing_time():
    ops = operators(BUS)
    assert abs(dae_cct(ops, 0.7, 1e-2, MIXED).cct - dae_cct(ops, 0.7, 1e-2).cct) > 0.01


def test_the_jacobian_is_the_derivative_of_the_residual():
    ops, step = operators(LINE), 5e-3
    network = fault_network(ops, 0.5, ZipLoads(0.2, 0.3, 0.5, v_min=0.6))
    rng = np.random.default_rng(1)
    n, N = ops.n_machines, network.n_nodes
    V = np.append(ops.network.V, 0.8 + 0.1j) * (1 + 0.05 * rng.standard_normal(N))
    V[2] *= 0.3  # one bus below the threshold
    x = np.concatenate([ops.delta_0 + 0.3 * rng.standard_normal(n), V.real, V.imag])

    def residual(x):
        F, work = np.empty(len(x)), np.empty(n)
        dae_step.residual(network.arrays, step, ops.delta_0, np.ones(n), ops.P_m_pre, x, F, work, np.empty(n))
        return F

    J = network.jacobian(x[:n], x[n : n + N] + 1j * x[n + N :], step).toarray()
    differences = np.array([(residual(x + e) - residual(x - e)) / 2e-6 for e in 1e-6 * np.eye(len(x))]).T
    np.testing.assert_allclose(J, differences, rtol=1e-6, atol=1e-6)


def test_a_network_without_a_solution_is_a_solver_failure_and_not_instability():
    ops = operators(BUS)
    stubborn = ZipLoads(0, 0, 1, v_min=0.01)  # constant power right through the fault
    with pytest.raises(SolverError, match="unknown"):
        simulate_dae(ops, 1.0, 0.5, 5e-3, stubborn)
    with pytest.raises(SolverError, match="unknown"):
        dae_margins(ops, 1.0, np.array([0.3, 0.5]), 5e-3, stubborn, stop_at_crossing=True)


def test_a_singular_network_is_a_solver_failure_and_not_instability():
    with pytest.raises(SolverError, match="singular"):
        factorised(sp.csc_matrix((3, 3)), "an empty network")


@pytest.mark.parametrize("iterations", [0, 1])
def test_too_few_newton_iterations_are_a_solver_failure_and_not_instability(monkeypatch, iterations):
    monkeypatch.setattr(dae_step, "NEWTON_ITERATIONS", iterations)
    monkeypatch.setattr(dae_step, "NEWTON_TOLERANCE", 1e-13)
    with pytest.raises(SolverError):
        dae_cct(operators(LINE), 0.9, 1e-2)


def test_steps_that_the_reused_factorisation_cannot_take_are_taken_by_full_newton(monkeypatch):
    ops = operators(BUS)
    reused = simulate_dae(ops, 0.7, 0.4137, 1e-2, MIXED)
    monkeypatch.setattr(dae_step, "CHORD_ITERATIONS", 0)
    full = simulate_dae(ops, 0.7, 0.4137, 1e-2, MIXED)
    np.testing.assert_allclose(reused.delta, full.delta, rtol=0, atol=1e-5)
    np.testing.assert_allclose(reused.V, full.V, rtol=0, atol=1e-5)


@pytest.mark.parametrize("loads", [None, MIXED])
def test_margins_do_not_depend_on_which_clearing_instants_are_asked_together(loads):
    ops = operators(RESTORED)
    t_c = np.array([0.9, 0.3, 0.5123, 1.2])
    together = dae_margins(ops, 0.93, t_c, 5e-3, loads)
    alone = [dae_margins(ops, 0.93, np.array([t]), 5e-3, loads)[0] for t in t_c]
    stopped = dae_margins(ops, 0.93, t_c, 5e-3, loads, stop_at_crossing=True)
    np.testing.assert_allclose(together, alone, rtol=0, atol=1e-4)
    np.testing.assert_array_equal(together >= 0, stopped >= 0)
    np.testing.assert_allclose(stopped[together < 0], together[together < 0], rtol=0, atol=1e-5)
    assert 0 < (together >= 0).sum() < len(t_c)


def test_margins_after_an_early_exit_are_still_those_of_the_whole_study():
    ops, t_c = operators(RESTORED), np.array([0.5, 1.0, 1.2])
    dae = DAE(ops, 1.0, 5e-3)
    dae.margins(t_c, stop_at_crossing=True)
    np.testing.assert_allclose(dae.margins(t_c), dae_margins(ops, 1.0, t_c, 5e-3), rtol=1e-6, atol=1e-4)


def test_the_margin_is_the_peak_separation_of_the_trajectory():
    ops, t_c = operators(LINE), 0.61234
    separation = simulate_dae(ops, 0.9, t_c, 1e-3).separation
    margin = dae_margins(ops, 0.9, np.array([t_c]), 1e-3)[0]
    assert margin == pytest.approx(separation.max() - ops.max_separation, abs=1e-4)


def test_the_margin_is_continuous_where_the_clearing_instant_passes_the_step_grid():
    ops, step = operators(BUS), 1e-2
    for whole in (0.5, ops.window.T - 150 * step):
        margins = dae_margins(ops, 0.7, np.array([whole - 1e-7, whole, whole + 1e-7]), step)
        assert np.ptp(margins) < 1e-4


@pytest.mark.parametrize(("name", "alpha"), [(MECHANICAL, 0.9), (LINE, 0.9), (BUS, 0.7)])
def test_the_cct_equals_that_of_the_reduced_model_within_half_a_millisecond(name, alpha):
    ops = operators(name)
    cct = dae_cct(ops, alpha, 1e-3)
    assert cct.status == "finite" and cct.reference == "dae"
    margins = FastODE(ops, alpha).margins(np.array([cct.cct - 5e-4, cct.cct + 5e-4]))
    assert margins[0] < 0 <= margins[1]


def test_a_contingency_that_stays_stable_is_right_censored():
    cct = dae_cct(operators("ieee30-bus-7-remove-4-6"), 1.0, 1e-2)
    assert cct.status == "right-censored" and cct.cct is None


@pytest.mark.parametrize(
    "fractions",
    [(0.5, 0.5, 0.5), (1.5, -0.5, 0.0), (float("nan"), 0.0, 1.0), (1.0, 0.0, 0.0, 0.0), (1.0, 0.0, 0.0, 1.0)],
)
def test_loads_that_are_no_shares_of_one_load_are_refused(fractions):
    with pytest.raises(UsageError):
        ZipLoads(*fractions)


@pytest.mark.parametrize(
    ("alpha", "t_c", "step"),
    [(-0.1, 0.5, 1e-3), (np.nan, 0.5, 1e-3), (0.5, 0.1, 1e-3), (0.5, 2.5, 1e-3), (0.5, 0.5, 0.0), (0.5, 0.5, np.inf)],
)
def test_scenarios_that_cannot_be_simulated_are_refused(alpha, t_c, step):
    with pytest.raises(UsageError):
        simulate_dae(operators(LINE), alpha, t_c, step)

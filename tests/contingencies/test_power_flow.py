"""The power flow: closed forms, residuals, limits, a distributed slack, and failures that say where."""

import copy
import subprocess
import sys
import warnings
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contingencies.errors import SpecError
from contingencies.formats.case import Case
from contingencies.formats.energised import energised
from contingencies.formats.pandapower import case_of_net
from contingencies.formats.stamps import bus_matrix
from contingencies.formats.tables import ISOLATED, PQ, PV, SLACK, Branches, Buses, Loads, Shunts, Units, table
from contingencies.power_flow import Options, PowerFlow, capacity_shares, solve_power_flow, stored_mismatch


def ring(load: complex = 0.5 + 0.2j, kinds=(SLACK, PV, PQ), **units) -> Case:
    """Three buses in a ring: a slack unit at 10, a unit at 20, a load at 30."""
    columns = {"bus": [0, 1], "P": [0.0, 0.3], "v_set": [1.02, 1.01], "mva": [200.0, 100.0], **units}
    return Case(
        name="ring",
        base_mva=100.0,
        buses=table(Buses, 3, number=[10, 20, 30], kind=list(kinds), angle=[0.1, 0.0, 0.0]),
        loads=table(Loads, 1, bus=[2], S_power=load),
        shunts=table(Shunts, 0),
        branches=table(Branches, 3, start=[0, 1, 2], end=[1, 2, 0], r=0.01, x=0.1, b=0.02),
        units=table(Units, len(columns["bus"]), **columns),
    )


def residual(case: Case, V: np.ndarray) -> np.ndarray:
    """Power into each bus by units and loads less what flows out, pu; loads at their voltage."""
    S = np.zeros(len(V), dtype=complex)
    running = case.units.in_service
    np.add.at(S, case.units.bus[running], (case.units.P + 1j * case.units.Q)[running])
    v = np.abs(V)[case.loads.bus]
    np.add.at(S, case.loads.bus, -(case.loads.S_power + case.loads.S_current * v + case.loads.S_impedance * v**2))
    return S - V * np.conj(bus_matrix(case) @ V)


def test_two_buses_follow_the_closed_form():
    x, P, Q = 0.2, 0.8, 0.3
    case = Case(
        "two", 100.0, table(Buses, 2, number=[1, 2], kind=[SLACK, PQ]), table(Loads, 1, bus=[1], S_power=P + 1j * Q),
        table(Shunts, 0), table(Branches, 1, start=[0], end=[1], x=x), table(Units, 1, bus=[0]),
    )  # fmt: skip
    a = 0.5 - Q * x  # |V|^2 solves v^4 - 2 a v^2 + x^2 (P^2 + Q^2) = 0
    v = np.sqrt(a + np.sqrt(a**2 - x**2 * (P**2 + Q**2)))
    V = solve_power_flow(case).V[1]
    assert abs(V) == pytest.approx(v, abs=1e-12)
    assert np.angle(V) == pytest.approx(-np.arcsin(P * x / v), abs=1e-12)


@settings(max_examples=40, deadline=None)
@given(
    P=st.floats(0.0, 1.5), Q=st.floats(-0.5, 0.7), current=st.floats(0.0, 0.5), impedance=st.floats(0.0, 0.5),
    base=st.sampled_from([1.0, 100.0, 250.0]),
)  # fmt: skip
def test_what_is_solved_balances_every_bus_on_every_base(P, Q, current, impedance, base):
    case = ring(P + 1j * Q)
    case = replace(
        case, loads=replace(case.loads, S_current=np.array([current + 0j]), S_impedance=np.array([impedance * 1j]))
    )
    solution, other = solve_power_flow(case), solve_power_flow(case.on_base(base))
    left = residual(case, solution.V)
    assert abs(left[2]) < 1e-9 and abs(left[1].real) < 1e-9
    np.testing.assert_allclose(np.abs(solution.V[:2]), [1.02, 1.01], atol=1e-13)
    assert np.angle(solution.V[0]) == pytest.approx(0.1, abs=1e-13)
    np.testing.assert_allclose(other.V, solution.V, atol=1e-9)
    np.testing.assert_allclose(other.S_units * base, solution.S_units * 100.0, atol=1e-6)


@pytest.mark.parametrize("name", ["case9", "case14", "case_ieee30", "case39", "case118", "case1354pegase"])
def test_pandapower_solves_its_cases_to_the_same_voltages(name):
    import pandapower
    import pandapower.networks

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        net = getattr(pandapower.networks, name)()
        pandapower.runpp(net, trafo_model="pi", init="dc", tolerance_mva=1e-9, numba=False)
        case = case_of_net(copy.deepcopy(net), "index", name)
    V = net.res_bus.vm_pu.to_numpy() * np.exp(1j * np.deg2rad(net.res_bus.va_degree.to_numpy()))
    np.testing.assert_allclose(
        solve_power_flow(case).V, V[np.searchsorted(net.bus.index, case.buses.number)], atol=1e-9
    )


# --- units ------------------------------------------------------------------------------------


def test_several_units_of_a_bus_act_as_their_sum():
    one = solve_power_flow(ring())
    two = solve_power_flow(ring(bus=[0, 1, 1], P=[0.0, 0.1, 0.2], v_set=[1.02, 0.9, 1.01], mva=100.0))
    np.testing.assert_allclose(two.V, one.V, atol=1e-12)  # and the last set point counts


def test_a_unit_out_of_service_neither_feeds_nor_holds():
    columns = {"bus": [0, 1, 1], "P": [0.0, 0.7, 0.3], "v_set": [1.02, 1.2, 1.01], "mva": 100.0}
    some = ring(in_service=[True, False, True], **columns)
    np.testing.assert_allclose(solve_power_flow(some).V, solve_power_flow(ring()).V, atol=1e-12)
    none = ring(in_service=[True, False, False], **columns)
    assert abs(residual(none, solve_power_flow(none).V)[1]) < 1e-9  # a PV bus without units is a PQ bus


def test_a_unit_at_a_pq_bus_injects_what_it_says():
    case = ring(kinds=(SLACK, PQ, PQ), Q=[0.0, 0.15])
    assert np.abs(residual(case, solve_power_flow(case).V)[1:]).max() < 1e-9


def test_without_a_slack_bus_the_first_pv_bus_becomes_it():
    case = ring(kinds=(PQ, PV, PQ))
    assert energised(case).buses.kind.tolist() == [PQ, SLACK, PQ]
    with pytest.raises(SpecError, match="slack"):
        solve_power_flow(ring(kinds=(PQ, PQ, PQ)))


def test_parts_without_a_slack_bus_are_dead():
    case = ring(kinds=(SLACK, PV, ISOLATED))
    solution = solve_power_flow(case)
    assert solution.V[2] == 0 and abs(solution.V[1]) == pytest.approx(1.01)
    assert energised(case).buses.number.tolist() == [10, 20]


def test_reactive_limits_are_off_by_default_and_hold_when_asked_for():
    case = ring(0.9 + 0.6j, q_max=[np.inf, 0.1], q_min=[-np.inf, -0.1])
    free = solve_power_flow(case)
    assert free.S_units[1].imag > 0.1 and len(free.limited) == 0
    held = solve_power_flow(case, Options(reactive_limits=True))
    assert held.S_units[1].imag == pytest.approx(0.1, abs=1e-9)
    assert held.limited.tolist() == [1] and abs(held.V[1]) < 1.01
    wide = replace(case, units=replace(case.units, q_max=np.array([np.inf, 2.0]), q_min=np.array([-np.inf, -2.0])))
    np.testing.assert_allclose(solve_power_flow(wide, Options(reactive_limits=True)).V, free.V, atol=1e-12)


def test_a_distributed_slack_shares_the_imbalance():
    case = ring(0.9 + 0.2j)
    single = solve_power_flow(case)
    solution = solve_power_flow(case, Options(slack_shares=capacity_shares(case)))
    taken = solution.S_units.real - np.array([0.0, 0.3, 0.0])
    assert taken[0] == pytest.approx(2 * taken[1], rel=1e-9)  # 200 and 100 MVA
    assert taken.sum() == pytest.approx(0.6, abs=0.02) and single.S_units[1].real == pytest.approx(0.3)
    alone = solve_power_flow(case, Options(slack_shares=np.array([1.0, 0.0])))
    np.testing.assert_allclose(alone.V, single.V, atol=1e-10)
    with pytest.raises(SpecError, match="shares"):
        solve_power_flow(case, Options(slack_shares=np.array([-1.0, 0.0])))


# --- starts and failures ----------------------------------------------------------------------


def test_the_stored_state_is_a_start_and_a_check():
    case = ring()
    solution = solve_power_flow(case)
    stored = replace(case, buses=replace(case.buses, v=np.abs(solution.V), angle=np.angle(solution.V)))
    assert solve_power_flow(stored).iterations == 0
    assert stored_mismatch(stored)[0] < 1e-6
    mismatch, bus = stored_mismatch(case)
    assert mismatch > 10 and bus in (20, 30)


@pytest.mark.parametrize("v", [0.0, 1.7])
def test_a_useless_stored_state_does_no_harm(v):
    case = ring()
    spoilt = replace(case, buses=replace(case.buses, v=np.full(3, v), angle=np.array([0.1, 2.0, -2.5])))
    np.testing.assert_allclose(solve_power_flow(spoilt).V, solve_power_flow(case).V, atol=1e-9)


def test_a_power_flow_without_solution_names_mismatch_and_bus():
    with pytest.raises(SpecError) as caught:
        solve_power_flow(ring(40.0 + 20j))
    text = str(caught.value)
    assert "does not converge" in text and "MVA at bus 30" in text and text.endswith(".")


def test_many_operating_points_reuse_one_network():
    case = energised(ring())
    flow = PowerFlow(case)
    V = flow.solve().V
    for factor in (0.9, 1.0, 1.1):
        point = replace(case, loads=replace(case.loads, S_power=factor * case.loads.S_power))
        solution = flow.solve(point, V)
        np.testing.assert_allclose(solution.V, solve_power_flow(point).V, atol=1e-10)
        assert solution.iterations <= 3
    with pytest.raises(ValueError, match="new PowerFlow"):
        flow.solve(replace(case, branches=case.branches.taken(np.array([0, 1]))))


def test_importing_the_power_flow_loads_neither_pandapower_nor_numba():
    code = (
        "import sys, contingencies.power_flow, contingencies.formats.matpower, contingencies.operating_point\n"
        "print([name for name in ('pandapower', 'numba', 'pandas', 'torch') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"

"""Operators at operating points: solved exactly, interpolated smoothly, and refused with one sentence."""

from dataclasses import replace

import numpy as np
import pytest

from contingencies.conditions import Conditions
from contingencies.errors import SpecError, UsageError
from contingencies.library import load_contingency
from contingencies.operator_family import operator_families, operator_family
from contingencies.operators import compile_contingency, compile_members
from contingencies.point_networks import axes_of, point_networks, point_of
from contingencies.points import Point, sample_points
from contingencies.references import reference_cct
from contingencies.smooth_fit import fit_smooth, total_degree
from contingencies.swing import electrical_power


def varied(name="ieee30-line-3-4-remove", **block):
    """A shipped contingency with conditions."""
    contingency = load_contingency(name)
    return replace(contingency, spec=contingency.spec.model_copy(update={"conditions": Conditions(**block)}))


LOAD_AND_DISPATCH = {"load": (0.8, 1.2), "generation": {"2": (10.0, 70.0)}, "position": (0.05, 0.95)}


def exact(contingency, values):
    return compile_contingency(contingency, Point(tuple(a.name for a in axes_of(contingency)), tuple(values)))


def test_the_cases_own_point_gives_the_operators_of_the_case():
    contingency = varied(**LOAD_AND_DISPATCH)
    plain, point = compile_contingency(contingency), point_of(contingency, {})
    assert point.to_dict() == pytest.approx({"load": 1.0, "generation.2": 40.0, "position": 0.5})
    there = compile_contingency(contingency, point)
    for name in ("E", "delta_0", "P_m_pre", "Y_pre", "Y_post"):
        np.testing.assert_allclose(getattr(there, name), getattr(plain, name), rtol=0, atol=1e-9)
    np.testing.assert_allclose(there.Y_fault(0.7), plain.Y_fault(0.7), rtol=0, atol=1e-9)


def test_every_operating_point_is_an_equilibrium_whose_dispatch_is_as_asked():
    contingency = varied(**LOAD_AND_DISPATCH)
    for values in sample_points(axes_of(contingency), 3, seed=7):
        there = exact(contingency, values)
        P_e = electrical_power(there.delta_0, there.E, there.Y_pre.real, there.Y_pre.imag)
        np.testing.assert_allclose(P_e, there.P_m_pre, rtol=0, atol=1e-9)
        assert there.P_m_pre[1] == pytest.approx(values[1] / 100.0, abs=1e-7)  # bus 2, whose machine sees its unit only


def test_more_load_is_balanced_by_the_slack():
    contingency = varied(load=(0.8, 1.2))
    light, heavy = (exact(contingency, [factor]).P_m_pre for factor in (0.9, 1.1))
    np.testing.assert_allclose(light[1:], heavy[1:], atol=1e-8)
    assert heavy[0] - light[0] > 0.2 * 2.834  # 20 % of the 283.4 MW of load, and the losses


def test_a_group_of_loads_that_holds_all_of_them_is_the_same_as_all_loads():
    network = point_networks(varied(load=(0.8, 1.2))).live
    buses = tuple(int(number) for number in np.unique(network.buses.number[network.loads.bus]))
    grouped = varied(loads={"all": {"buses": buses, "factor": (0.8, 1.2)}})
    np.testing.assert_allclose(exact(grouped, [1.1]).Y_pre, exact(varied(load=(0.8, 1.2)), [1.1]).Y_pre, atol=1e-10)


@pytest.mark.parametrize("name", ["ieee30-line-3-4-remove", "ieee30-line-3-4-restore"])
def test_the_smooth_family_gives_the_operators_of_solved_points(name):
    contingency = varied(name, **LOAD_AND_DISPATCH)
    family = operator_family(contingency)
    assert family.fit.error < 1e-9
    for values in sample_points(family.axes, 4, seed=11):
        smooth, solved = family.operators_at(values), exact(contingency, values)
        for quantity in ("E", "delta_0", "P_m_pre", "P_m_post", "Y_pre", "Y_post"):
            there = getattr(solved, quantity)
            np.testing.assert_allclose(getattr(smooth, quantity), there, rtol=0, atol=1e-9 * np.abs(there).max())
        np.testing.assert_allclose(smooth.Y_fault(0.8), solved.Y_fault(0.8), rtol=0, atol=1e-8)


def test_position_alone_needs_one_power_flow_and_is_exact():
    contingency = varied(position=(0.05, 0.95))
    family = operator_family(contingency)
    assert family.fit.points == 1
    np.testing.assert_allclose(
        family.operators_at(np.array([0.2])).Y_fault(1.0), exact(contingency, [0.2]).Y_fault(1.0), atol=1e-12
    )


def test_a_cct_from_the_smooth_family_is_that_of_the_solved_point():
    contingency = varied("ieee30-line-3-4-restore", load=(0.8, 1.2), generation={"2": (10.0, 70.0)})
    values = np.array([1.05, 55.0])
    smooth, solved = operator_family(contingency).operators_at(values), exact(contingency, values)
    assert reference_cct(smooth, 0.9).cct == pytest.approx(reference_cct(solved, 0.9).cct, abs=2e-6)


def test_members_of_one_family_share_their_power_flows_and_keep_their_own_positions():
    first, second = (varied(f"ieee30-line-3-4-{how}", **LOAD_AND_DISPATCH) for how in ("restore", "remove"))
    families = operator_families((first, second))
    assert families[0].fit.points == families[1].fit.points
    assert [members.family is not None for members in compile_members([first, second])] == [True, True]
    with pytest.raises(UsageError, match="different conditions"):
        operator_families((first, varied(load=(0.8, 1.2))))


@pytest.mark.parametrize(
    ("block", "words"),
    [
        ({"generation": {"1": (0.0, 50.0)}}, "bus 1 is the slack"),
        ({"generation": {"99": (0.0, 50.0)}}, "bus 99 does not exist"),
        ({"generation": {"3": (0.0, 50.0)}}, "no generator at bus 3"),
        ({"loads": {"a": {"buses": (98,), "factor": (0.9, 1.1)}}}, "bus 98 does not exist"),
        ({"loads": {"a": {"buses": (6,), "factor": (0.9, 1.1)}}}, "no load in these buses"),
        ({"loads": {"a": {"area": 77, "factor": (0.9, 1.1)}}}, "no load in area 77"),
    ],
)
def test_conditions_that_mean_nothing_in_the_network_get_one_sentence(block, words):
    with pytest.raises(SpecError, match=words) as caught:
        point_networks(varied(**block))
    assert "\n" not in str(caught.value)


def test_a_range_without_a_power_flow_says_where_the_solution_was_lost():
    with pytest.raises(SpecError, match=r"no solution at load=9; .* lost after load=[1-8]"):
        exact(varied(load=(0.8, 9.0)), [9.0])
    with pytest.raises(SpecError, match="narrow the ranges"):
        operator_family(varied(load=(0.8, 9.0)))


def test_polynomials_of_the_right_degree_are_found_and_are_exact():
    def solve(x):
        return {"f": x[:, 0] ** 3 * x[:, 1] - x[:, 1] ** 2, "g": np.stack([x[:, 0], x[:, 1] ** 4], axis=-1)}

    fit = fit_smooth(solve, 2)
    assert len(fit.degrees) == len(total_degree(2, 4)) == 15
    at = np.array([[0.3, -0.7]])
    np.testing.assert_allclose(fit(at)["f"], solve(at)["f"], atol=1e-12)
    np.testing.assert_allclose(fit(at)["g"], solve(at)["g"], atol=1e-12)

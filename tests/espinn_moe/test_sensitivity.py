"""Derivatives of a learned boundary, against the variational equations of the same physics."""

from dataclasses import replace

import numpy as np
import pytest

from contingencies.sensitivity import reference_sensitivity
from contingencies.stability import Boundary
from espinn_moe.boundary import learned_boundary
from espinn_moe.margins import HARD, SMOOTH, MarginProbe, MarginRule, surrogate_angles
from espinn_moe.sensitivity import learned_sensitivity, margin_derivatives
from tests.cases import operators_of
from tests.espinn_moe.stand_ins import IntegratingSurrogate

NINE, PRIMARY = "ieee9-mech-g2-restore", "ieee30-line-3-4-restore"


@pytest.mark.parametrize(("name", "alpha"), [(NINE, [0.85, 0.92]), (PRIMARY, [0.6, 0.93])])
def test_the_implicit_sensitivity_of_a_perfect_surrogate_is_that_of_the_variational_equations(name, alpha):
    ops, alpha = operators_of(name), np.array(alpha)
    found = learned_sensitivity(IntegratingSurrogate(ops), alpha, rule=HARD, difference_step=1e-3)
    np.testing.assert_allclose(found.implicit, reference_sensitivity(ops, alpha, found.cct), rtol=1e-4)
    np.testing.assert_allclose(found.implicit, found.centred, rtol=5e-3)
    assert found.valid.all()


def test_the_smooth_margin_has_the_derivatives_that_its_differences_show():
    ops, alpha, h = operators_of(NINE), 0.9, 1e-6
    surrogate = IntegratingSurrogate(ops)
    t_c = float(learned_boundary(surrogate, np.array([alpha])).cct[0]) + 3e-4

    def margin(a: float, t: float) -> float:
        probe = MarginProbe(surrogate_angles(surrogate, np.array([a])), ops, SMOOTH)
        return float(probe.values(np.array([[t]]))[0, 0])

    by_alpha, by_t_c = margin_derivatives(surrogate, alpha, t_c)
    assert by_alpha == pytest.approx((margin(alpha + h, t_c) - margin(alpha - h, t_c)) / (2 * h), rel=1e-3)
    assert by_t_c == pytest.approx((margin(alpha, t_c + h) - margin(alpha, t_c - h)) / (2 * h), rel=1e-3)


def boundary_with(cct: list[float], alpha: list[float]) -> Boundary:
    status = tuple("finite" if np.isfinite(t) else "right-censored" for t in cct)
    return Boundary(np.array(alpha), np.array(cct), status, np.zeros(len(cct), dtype=bool), "learned-smooth")


def test_every_row_that_is_left_out_says_why():
    ops, nan = operators_of(NINE), float("nan")
    surrogate = IntegratingSurrogate(ops)
    alpha = [0.7, 0.8, 0.85, 0.9, 0.95]
    cct = [nan, *learned_boundary(surrogate, np.array(alpha[1:])).cct]
    cct[3] = 0.6650000004  # a clearing instant on the millisecond grid
    found = learned_sensitivity(surrogate, np.array(alpha), boundary=boundary_with(cct, alpha))
    assert found.excluded == ("censored", "censored-neighbour", None, "event-on-grid", "end-of-range")
    assert np.isnan(found.implicit[0]) and np.isfinite(found.implicit[1:]).all()


def test_a_margin_that_clearing_hardly_moves_is_ill_conditioned():
    ops = operators_of(NINE)
    calm = IntegratingSurrogate(ops, replace(ops, P_m_slope=0.0 * ops.P_m_slope))  # nothing happens, ever
    boundary = boundary_with([0.5004, 0.5104, 0.5204], [0.5, 0.6, 0.7])
    found = learned_sensitivity(calm, boundary.alpha, boundary=boundary, rule=MarginRule(h_t=1e-2))
    assert found.excluded == ("ill-conditioned",) * 3
    assert np.isnan(found.implicit).all()

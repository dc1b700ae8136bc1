"""The reference CCT's own derivative: variational equations against differences and a closed form."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import brentq

from contingencies.references import reference_cct
from contingencies.sensitivity import (
    fault_field_by_alpha,
    field_jacobian,
    margin_gradient,
    phase_field,
    reference_sensitivity,
)
from tests.cases import compile_text, operators_of, write_smib

NAMES = ["ieee9-mech-g2-restore", "ieee14-line-4-5-remove", "ieee30-line-3-4-restore"]


@pytest.mark.parametrize("name", NAMES)
def test_the_jacobian_is_the_derivative_of_the_swing_field(name):
    ops, random = operators_of(name), np.random.default_rng(1)
    n = ops.n_machines
    x = np.concatenate([random.uniform(-2, 2, n), 1.0 + 0.01 * random.standard_normal(n)])
    Y, P_m = ops.Y_fault(0.7), ops.P_m_fault(0.7)
    J, h = field_jacobian(ops, x[:n], Y), 1e-6
    for k, unit in enumerate(np.eye(2 * n)):
        difference = phase_field(ops, x + h * unit, Y, P_m) - phase_field(ops, x - h * unit, Y, P_m)
        np.testing.assert_allclose(J[:, k], difference / (2 * h), atol=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_severity_enters_the_field_as_its_derivative_says(name):
    ops, random, h = operators_of(name), np.random.default_rng(2), 1e-5
    n = ops.n_machines
    x = np.concatenate([random.uniform(-2, 2, n), np.ones(n)])
    up, down = (phase_field(ops, x, ops.Y_fault(a), ops.P_m_fault(a)) for a in (0.6 + h, 0.6 - h))
    np.testing.assert_allclose(fault_field_by_alpha(ops, x[:n], 0.6), (up - down) / (2 * h), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize(("name", "alpha"), [(NAMES[0], 0.9), (NAMES[1], 0.9), (NAMES[2], 0.6), (NAMES[2], 0.93)])
def test_the_sensitivity_matches_differences_of_the_reference_cct(name, alpha):
    ops, h = operators_of(name), 2e-3
    cct, up, down = (reference_cct(ops, a).cct for a in (alpha, alpha + h, alpha - h))
    sensitivity = reference_sensitivity(ops, np.array([alpha]), np.array([cct]))[0]
    assert sensitivity == pytest.approx((up - down) / (2 * h), rel=2e-3)


def test_a_censored_severity_has_no_sensitivity():
    ops = operators_of("ieee30-line-3-4-restore")
    assert np.isnan(reference_sensitivity(ops, np.array([0.1]), np.array([np.nan]))[0])


def test_more_mechanical_power_on_a_lossless_machine_shortens_the_cct_as_equal_area_says(tmp_path):
    """Dead short at the machine's terminal side: constant acceleration, so the critical instant has a closed form."""
    write_smib(tmp_path)
    ops = compile_text(
        tmp_path,
        """name: smib-short
system: smib.yaml
fault: {kind: bus, bus: 3, shunt_pu: {b: -1.0e+9}}
clearing: {action: restore}
window: {t_f: 0.0, T: 6.0, t_c: [0.02, 0.8]}
""",
    )
    push = 0.4  # severity now adds mechanical power during a short that is the same at every severity
    ops = replace(ops, P_m_slope=push * ops.P_m_pre, fault_gain=ops.fault_gain * 1e3, fault_bend=ops.fault_bend * 1e3)
    P_m, P_max = float(ops.P_m_pre[0]), float(abs(ops.Y_post[0, 1]) * ops.E[0] * ops.E[1])
    start = float(np.arcsin(P_m / P_max))
    end, M = np.pi - start, 2.0 * ops.H[0] / ops.omega_b

    def equal_area(alpha: float) -> float:
        driving = P_m * (1.0 + push * alpha)
        critical = brentq(
            lambda d: driving * (d - start) - P_max * (np.cos(d) - np.cos(end)) + P_m * (end - d), start, end
        )
        return float(np.sqrt(2.0 * M * (critical - start) / driving))

    alpha, h = 0.5, 1e-5
    cct = reference_cct(ops, alpha).cct
    assert cct == pytest.approx(equal_area(alpha), abs=2e-5)
    exact = (equal_area(alpha + h) - equal_area(alpha - h)) / (2 * h)
    assert margin_gradient(ops, alpha, cct).cct_by_alpha == pytest.approx(exact, rel=1e-3)

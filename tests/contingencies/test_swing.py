"""Invariants of the swing equation."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from contingencies.swing import (
    electrical_power,
    electrical_power_rate,
    swing_field,
    taylor_coefficients,
)
from tests.cases import operators_of

THREE = operators_of("ieee9-mech-g2-restore")
SIX = operators_of("ieee30-line-3-4-restore")


def angles(n):
    return arrays(float, n, elements=st.floats(-6.0, 6.0))


def lossless(operators):
    return np.zeros_like(operators.Y_pre.real), operators.Y_pre.imag


@given(delta=angles(THREE.n_machines), shift=st.floats(-30.0, 30.0))
def test_electrical_power_depends_only_on_angle_differences(delta, shift):
    Y = THREE.Y_pre
    before = electrical_power(delta, THREE.E, Y.real, Y.imag)
    after = electrical_power(delta + shift, THREE.E, Y.real, Y.imag)
    np.testing.assert_allclose(after, before, rtol=0, atol=1e-10)


@given(delta=angles(SIX.n_machines))
def test_electrical_power_is_the_double_sum_over_machine_pairs(delta):
    Y, E = SIX.Y_fault(0.7), SIX.E
    angle = delta[:, None] - delta[None, :] - np.angle(Y)
    expected = (E[:, None] * E[None, :] * np.abs(Y) * np.cos(angle)).sum(axis=1)
    np.testing.assert_allclose(electrical_power(delta, E, Y.real, Y.imag), expected, atol=1e-12)


@given(delta=angles(SIX.n_machines))
def test_a_lossless_network_passes_on_all_power_it_receives(delta):
    assert abs(electrical_power(delta, SIX.E, *lossless(SIX)).sum()) < 1e-10


@pytest.mark.parametrize("operators", [THREE, SIX], ids=["three machines", "six machines"])
def test_the_solved_operating_point_is_an_equilibrium(operators):
    Y, n = operators.Y_pre, operators.n_machines
    rates = swing_field(
        operators.delta_0, np.ones(n), operators.P_m_pre, operators.E, Y.real, Y.imag,
        operators.H, operators.D, operators.omega_b,
    )  # fmt: skip
    assert max(np.abs(rate).max() for rate in rates) < 1e-14


@given(delta=angles(SIX.n_machines), omega=arrays(float, 6, elements=st.floats(0.95, 1.05)))
@settings(max_examples=30)
def test_taylor_coefficients_are_the_time_derivatives_of_the_field(delta, omega):
    Y = SIX.Y_fault(0.9)
    arguments = (SIX.P_m_pre, SIX.E, Y.real, Y.imag, SIX.H, SIX.D, SIX.omega_b)
    v, a, b = taylor_coefficients(delta, omega, *arguments)
    h = 1e-5
    ahead = swing_field(delta + h * v, omega + h * a, *arguments)[1]
    behind = swing_field(delta - h * v, omega - h * a, *arguments)[1]
    np.testing.assert_allclose(b, (ahead - behind) / (2 * h), rtol=1e-5, atol=1e-5)


@given(delta=angles(SIX.n_machines), rate=angles(SIX.n_machines))
@settings(max_examples=30)
def test_power_rate_is_the_directional_derivative_of_power(delta, rate):
    Y = SIX.Y_post
    tensors = [torch.tensor(value) for value in (delta, rate, SIX.E, Y.real.copy(), Y.imag.copy())]
    _, expected = torch.func.jvp(lambda d: electrical_power(d, *tensors[2:]), (tensors[0],), (tensors[1],))
    np.testing.assert_allclose(electrical_power_rate(delta, rate, SIX.E, Y.real, Y.imag), expected.numpy(), atol=1e-10)


@given(delta=angles(SIX.n_machines))
@settings(max_examples=20)
def test_arrays_and_tensors_and_batches_of_matrices_get_the_same_power(delta):
    Y = SIX.Y_fault(np.array([0.2, 0.8]))
    one_by_one = np.stack([electrical_power(delta, SIX.E, y.real, y.imag) for y in Y])
    batched = electrical_power(np.stack([delta, delta]), SIX.E, Y.real, Y.imag)
    tensors = electrical_power(
        torch.tensor(np.stack([delta, delta])), torch.tensor(SIX.E), torch.tensor(Y.real), torch.tensor(Y.imag)
    )
    np.testing.assert_allclose(batched, one_by_one, atol=1e-12)
    np.testing.assert_allclose(tensors.numpy(), one_by_one, atol=1e-12)

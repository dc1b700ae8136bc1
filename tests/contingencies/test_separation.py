"""Spread of angles, loss of synchronism and peaks: the same for arrays and tensors, exact for parabolas."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from contingencies.separation import lost, peak, spread, vertex


@given(top=st.floats(-2.0, 2.0), at=st.floats(-0.5, 0.5), bend=st.floats(0.1, 50.0), ratio=st.floats(0.2, 5.0))
def test_the_vertex_of_a_parabola_is_found_exactly_with_uneven_steps_too(top, at, bend, ratio):
    x = np.array([-ratio, 0.0, 1.0])
    y = top - bend * (x - at * min(1.0, ratio)) ** 2
    height, past = vertex(*y, ratio, 1.0)
    if y[1] >= max(y[0], y[2]):
        assert height == pytest.approx(top, abs=1e-9)
        assert past == pytest.approx(at * min(1.0, ratio), abs=1e-9)


def test_three_equal_samples_have_their_own_height():
    assert vertex(1.0, 1.0, 1.0) == (1.0, 0.0)


def test_arrays_and_tensors_agree():
    delta = np.random.default_rng(0).normal(size=(4, 5, 30, 3))
    tensor = torch.from_numpy(delta)
    np.testing.assert_array_equal(spread(tensor).numpy(), spread(delta))
    np.testing.assert_array_equal(lost(tensor, 3.0).numpy(), lost(delta, 3.0))
    for ours, theirs in zip(peak(spread(tensor)), peak(spread(delta)), strict=True):
        np.testing.assert_allclose(ours.numpy(), theirs, rtol=0.0, atol=1e-12)


def test_synchronism_once_lost_stays_lost():
    delta = np.array([[0.0, 1.0], [0.0, 4.0], [0.0, 1.0]])
    assert lost(delta, np.pi).tolist() == [False, True, True]


@pytest.mark.parametrize("samples", [[3.0, 1.0, 0.0], [0.0, 1.0, 3.0], [1.0], [1.0, 2.0]])
def test_a_peak_at_the_end_is_not_refined(samples):
    height, at = peak(np.array(samples))
    assert (height, at) == (max(samples), samples.index(max(samples)))


def test_a_swing_between_samples_peaks_where_the_sine_does():
    t = np.linspace(0.0, 3.0, 301)
    height, at = peak(np.sin(t), t)
    assert height == pytest.approx(1.0, abs=1e-6)
    assert at == pytest.approx(np.pi / 2, abs=1e-4)

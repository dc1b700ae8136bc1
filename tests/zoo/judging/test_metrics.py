"""Errors as pure functions: identities, invariants and small cases worked out by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from contingencies.stability import Boundary
from zoo.judging.metrics import (
    TrajectoryTotals,
    cct_errors,
    consistency,
    decisive_part,
    error_split,
    mean_iou,
    separation,
    trajectory_errors,
    trajectory_totals,
)

SCENARIOS, TIMES, MACHINES = 5, 9, 3
numbers = st.floats(-10.0, 10.0)
states = arrays(float, (SCENARIOS, TIMES, 2 * MACHINES), elements=numbers)
labels = arrays(bool, (6, 7))
instants = arrays(float, 8, elements=st.one_of(st.just(np.nan), st.floats(0.25, 1.25)))


def boundary(cct, status=None) -> Boundary:
    cct = np.asarray(cct, dtype=float)
    status = status or tuple("finite" if np.isfinite(t) else "right-censored" for t in cct)
    return Boundary(np.linspace(0, 1, len(cct)), cct, tuple(status), np.zeros(len(cct), dtype=bool), "test")


@given(reference=states, angle=numbers, speed=numbers)
def test_a_constant_offset_is_the_rmse_and_moves_no_separation(reference, angle, speed):
    offset = np.repeat([angle, speed], MACHINES)
    errors = trajectory_errors(reference + offset, reference)
    assert errors.rmse_delta == pytest.approx(abs(angle), abs=1e-9)
    assert errors.rmse_omega == pytest.approx(abs(speed), abs=1e-9)
    assert errors.separation_mae == pytest.approx(0.0, abs=1e-9)
    assert errors.scenarios == SCENARIOS


@given(predicted=states, reference=states, cut=st.integers(0, SCENARIOS))
def test_errors_of_all_scenarios_follow_from_the_totals_of_blocks(predicted, reference, cut):
    whole = trajectory_errors(predicted, reference).to_dict()
    blocks = TrajectoryTotals()
    for rows in (slice(0, cut), slice(cut, None)):
        blocks = blocks + trajectory_totals(predicted[rows], reference[rows])
    assert blocks.errors().to_dict() == pytest.approx(whole)


@given(predicted=states, reference=states)
def test_separation_errors_stay_below_twice_the_largest_angle_error(predicted, reference):
    largest = np.abs(predicted - reference)[..., :MACHINES].max()
    assert np.abs(separation(predicted) - separation(reference)).max() <= 2 * largest + 1e-12


def test_the_decisive_part_ends_where_separation_first_passes_its_limit_for_good():
    delta = np.array([0.0, 2.0, 5.0, 1.0])  # beyond 1.5 pi once, then back
    reference = np.stack([delta, 0 * delta, 1 + 0 * delta, 1 + 0 * delta], axis=-1)[None]
    assert decisive_part(reference)[0].tolist() == [True, True, False, False]
    predicted = reference.copy()
    predicted[0, 3, 0] += 100.0
    errors = trajectory_errors(predicted, reference)
    assert errors.rmse_delta_decisive == 0.0 and errors.rmse_delta > 10.0


@given(ours=labels, theirs=labels)
def test_overlap_is_symmetric_between_zero_and_one_and_full_only_on_agreement(ours, theirs):
    score = mean_iou(ours, theirs)
    assert 0.0 <= score <= 1.0
    assert score == mean_iou(theirs, ours)
    assert (score == 1.0) == bool((ours == theirs).all())


def test_overlap_of_a_map_worked_out_by_hand():
    ours, theirs = np.array([0, 0, 1, 1], bool), np.array([0, 1, 1, 1], bool)
    assert mean_iou(ours, theirs) == pytest.approx((1 / 2 + 2 / 3) / 2)


@given(ours=instants, theirs=instants)
def test_cct_errors_are_ordered_and_count_every_severity_once(ours, theirs):
    errors = cct_errors(boundary(ours), boundary(theirs))
    assert errors.finite + errors.missed == errors.reference_finite == np.isfinite(theirs).sum()
    assert errors.mismatches == (np.isfinite(ours) != np.isfinite(theirs)).sum()
    if errors.finite:
        assert abs(errors.bias) - 1e-12 <= errors.mae <= errors.maximum + 1e-12
        assert errors.p95 <= errors.maximum + 1e-12
    else:
        assert errors.mae is errors.p95 is errors.maximum is None


def test_boundaries_censored_on_opposite_sides_disagree():
    nothing = [np.nan, np.nan]
    ours = boundary(nothing, ("left-censored", "right-censored"))
    theirs = boundary(nothing, ("right-censored", "right-censored"))
    assert cct_errors(ours, theirs).wrong_side == cct_errors(ours, theirs).mismatches == 1


def test_boundaries_at_different_severities_are_not_compared():
    with pytest.raises(ValueError, match="same severities"):
        cct_errors(boundary([0.5, 0.6]), boundary([0.5, 0.6, 0.7]))


@given(learned=instants, smooth=instants, hard=instants)
def test_the_end_to_end_error_is_at_most_the_sum_of_its_parts(learned, smooth, hard):
    split = error_split(boundary(learned), boundary(smooth), boundary(hard))
    assert split.rows == (np.isfinite(learned) & np.isfinite(smooth) & np.isfinite(hard)).sum()
    if split.rows:
        assert split.end_to_end <= split.smoothing + split.surrogate + 1e-12
    else:
        assert split.end_to_end is None


@given(x=arrays(float, 6, elements=st.floats(-5, 5).map(lambda v: round(v, 3))), scale=st.floats(0.1, 10))
def test_derivatives_that_differ_by_a_factor_correlate_fully(x, scale):
    found = consistency(scale * x, x)
    assert found.mae == pytest.approx(abs(scale - 1) * np.abs(x).mean())
    if np.ptp(x) > 0:
        assert found.correlation == pytest.approx(1.0)
    else:
        assert found.correlation is None


def test_rows_that_are_excluded_or_missing_take_no_part():
    ours, theirs = np.array([1.0, 2.0, np.nan, 9.0]), np.array([1.5, 2.5, 3.0, 0.0])
    found = consistency(ours, theirs, np.array([True, True, True, False]))
    assert found.rows == 2 and found.mae == pytest.approx(0.5)

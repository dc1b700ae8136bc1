"""Certificates on surrogates that are wrong by a known amount."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from contingencies.references import reference_boundary
from espinn_moe.certificate import certify
from espinn_moe.chained import ChainedESPINN
from tests.cases import operators_of
from tests.espinn_moe.stand_ins import IntegratingSurrogate

NINE, PRIMARY = "ieee9-mech-g2-restore", "ieee30-line-3-4-restore"
ROOTS_S = 2.5e-6


def rows_of(name: str, alpha: list[float], size: float):
    """Certificates of a surrogate whose post-clearing power, damping and fault are off by `size`."""
    ops = operators_of(name)
    wrong = replace(
        ops,
        P_m_post=ops.P_m_post * (1.0 + size),
        D=ops.D * (1.0 + 10.0 * size),
        P_m_slope=ops.P_m_slope * (1.0 - size),
        fault_gain=ops.fault_gain * (1.0 - 3.0 * size),
        fault_bend=ops.fault_bend * (1.0 - 3.0 * size),
    )
    return certify(IntegratingSurrogate(ops, wrong), np.array(alpha), truth=reference_boundary(ops, np.array(alpha)))


@pytest.mark.parametrize("size", [-1e-3, 1e-4, 2e-3])
@pytest.mark.parametrize(("name", "alpha"), [(NINE, [0.85, 0.95]), (PRIMARY, [0.57, 0.9])])
def test_the_estimate_predicts_the_error_and_the_bound_covers_it(name, alpha, size):
    rows = rows_of(name, alpha, size)
    assert len(rows) == 2
    for row in rows:
        assert row.estimate == pytest.approx(row.error, rel=0.02, abs=ROOTS_S)
        assert abs(row.error) <= row.bound
        assert row.corrected == pytest.approx(row.true_cct, abs=ROOTS_S + 0.02 * abs(row.error))


def test_the_second_pass_takes_away_most_of_what_linearising_leaves():
    row = rows_of(NINE, [0.85], 3e-3)[0]
    assert abs(row.error) > 5e-3
    assert abs(row.estimate - row.error) < 0.2 * abs(row.first_pass - row.error)


def test_a_perfect_surrogate_is_certified_to_the_tolerance_of_its_root():
    for row in rows_of(PRIMARY, [0.6], 0.0):
        assert row.bound < 5e-6
        assert abs(row.estimate) < 1e-6
        assert abs(row.error) <= row.bound


def test_the_bounds_are_ordered_and_the_paper_s_is_vacuous_on_a_good_surrogate():
    for row in rows_of(PRIMARY, [0.57, 0.9], 1e-4):
        assert abs(row.estimate) <= row.bound <= row.log_norm
        assert row.paper_log10 > 100.0  # more than 1e100 s for an error below a millisecond
        assert abs(row.error) < 1e-3


def test_censored_severities_have_no_certificate():
    assert [row.alpha for row in rows_of(PRIMARY, [0.1, 0.6], 1e-4)] == [0.6]


def test_a_certificate_becomes_plain_values():
    row = rows_of(NINE, [0.9], 1e-4)[0]
    plain = row.to_dict()
    assert plain["error"] == row.cct - row.true_cct
    assert all(value is None or isinstance(value, float) for value in plain.values())


@pytest.mark.parametrize("window_s", [0.04, 0.03])
def test_a_chain_of_untrained_windows_is_judged_right_although_its_residual_jumps_between_them(window_s):
    torch.manual_seed(1)
    ops, alpha = operators_of(NINE), np.array([0.82, 0.9, 0.98])
    chained = ChainedESPINN([ops], window_s=window_s)
    rows = certify(chained, alpha, truth=reference_boundary(ops, alpha))
    assert max(abs(row.error) for row in rows) > 2e-5
    for row in rows:
        assert row.estimate == pytest.approx(row.error, rel=0.05, abs=ROOTS_S)
        assert abs(row.error) <= row.bound

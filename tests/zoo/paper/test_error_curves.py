"""Curves of CCT errors over severity: what two methods have in common is told from what they do not."""

import numpy as np
import pytest

from contingencies.references import reference_boundary, reference_margin
from zoo.paper.entry import Findings, Task
from zoo.paper.error_curves import bias_table, cct_error_ms, mean_curve
from zoo.paper.measurements import severity_grid
from zoo.paper.members import operators_of
from zoo.paper.slopes import reference_slopes

TRUTH = np.linspace(0.5, 0.9, 9)


def assessment(errors_ms):
    """An assessment whose CCTs are off by so many milliseconds; None has no CCT."""
    rows = [
        {
            "cct_s": None if error is None else true + 1e-3 * error,
            "true_cct_s": true,
            "slope_rad_per_s": None if error is None else -2e3,
        }
        for true, error in zip(TRUTH, errors_ms, strict=True)
    ]
    return {"rows": rows}


def table_of(**errors):
    boundaries = {model.replace("_", "-"): [Task(f"of:{model}")] for model in errors}
    results = {Task(f"of:{model}"): assessment(each) for model, each in errors.items()}
    slopes = Task("slopes:reference_slopes")
    results[slopes] = {"slope_rad_per_s": [None, 1e3, 4e4, 9e4]}
    return bias_table(Findings(results, {}), boundaries, None, slopes, "whole trajectories", "bias")


def test_errors_are_signed_and_missing_where_either_has_no_number():
    assert cct_error_ms(assessment([-2.0, None, *[0.0] * 7]), None)[:3] == pytest.approx(
        [-2.0, np.nan, 0.0], nan_ok=True
    )


def test_a_seed_without_a_number_leaves_the_mean_of_the_others():
    curve = mean_curve([assessment([1.0, None, None, *[0.0] * 6]), assessment([3.0, 5.0, None, *[0.0] * 6])], None)
    assert curve[:3] == pytest.approx([2.0, 5.0, np.nan], nan_ok=True)


def test_a_shifted_and_stretched_bias_is_the_same_and_a_mirrored_one_the_opposite():
    bias = np.sin(np.arange(9.0))
    table = table_of(es_pinn=list(bias), xpinn=list(3.0 * bias - 1.0), vanilla_pinn=list(-bias))
    ours, xpinn, vanilla, _ = table.rows
    assert ours.cells[3].ours is None, "the method that others are compared with"
    assert xpinn.cells[3].ours == pytest.approx(1.0)
    assert vanilla.cells[3].ours == pytest.approx(-1.0)
    assert [each.ours for each in xpinn.cells[:3]] == pytest.approx(
        [3.0 * bias.mean() - 1.0, 3.0 * bias.min() - 1.0, 3.0 * bias.max() - 1.0]
    )


def test_a_method_without_any_cct_has_a_row_without_numbers():
    table = table_of(es_pinn=[1.0] * 9, xpinn=[None] * 9)
    assert [each.ours for each in table.rows[1].cells] == [None] * 5
    assert table.rows[0].cells[0].ours == pytest.approx(1.0)


def test_slopes_are_medians_of_sizes_beside_that_of_the_reduced_ode():
    table = table_of(es_pinn=[1.0] * 9)
    model, ode = (row.cells[-1].ours for row in table.rows)
    assert (model, ode) == (pytest.approx(2.0), pytest.approx(40.0))
    assert table.rows[-1].label == "reduced ODE"


def test_the_slope_of_the_ode_is_that_of_its_own_margin_beside_the_cct():
    name = "ieee14-line-4-5-remove"
    operators = operators_of(name)
    alpha = severity_grid(operators, 5)
    boundary = reference_boundary(operators, alpha)
    slopes = reference_slopes(name, 5)["slope_rad_per_s"]
    assert [slope is not None for slope in slopes] == list(boundary.finite) and boundary.finite.any()
    step = 1e-6  # s
    for a, cct, slope in zip(alpha, boundary.cct, slopes, strict=True):
        if slope is not None:
            after, before = (reference_margin(operators, a, cct + sign * step, "strict") for sign in (1, -1))
            assert slope == pytest.approx((after - before) / (2 * step), rel=0.02)

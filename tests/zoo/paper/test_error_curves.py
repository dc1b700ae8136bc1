"""Curves of CCT errors over severity: what two methods have in common is told from what they do not."""

import numpy as np
import pytest

from zoo.paper.entry import Findings, Task
from zoo.paper.error_curves import bias_table, cct_error_ms, mean_curve

TRUTH = np.linspace(0.5, 0.9, 9)


def assessment(errors_ms):
    """An assessment whose CCTs are off by so many milliseconds; None has no CCT."""
    rows = [
        {"cct_s": None if error is None else true + 1e-3 * error, "true_cct_s": true}
        for true, error in zip(TRUTH, errors_ms, strict=True)
    ]
    return {"rows": rows}


def table_of(**errors):
    boundaries = {model.replace("_", "-"): [Task(f"of:{model}")] for model in errors}
    results = {Task(f"of:{model}"): assessment(each) for model, each in errors.items()}
    return bias_table(Findings(results, {}), boundaries, None, "whole trajectories", "bias")


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
    ours, xpinn, vanilla = table.rows
    assert ours.cells[-1].ours is None, "the method that others are compared with"
    assert xpinn.cells[-1].ours == pytest.approx(1.0)
    assert vanilla.cells[-1].ours == pytest.approx(-1.0)
    assert [each.ours for each in xpinn.cells[:3]] == pytest.approx(
        [3.0 * bias.mean() - 1.0, 3.0 * bias.min() - 1.0, 3.0 * bias.max() - 1.0]
    )


def test_a_method_without_any_cct_has_a_row_without_numbers():
    table = table_of(es_pinn=[1.0] * 9, xpinn=[None] * 9)
    assert [each.ours for each in table.rows[1].cells] == [None] * 4
    assert table.rows[0].cells[0].ours == pytest.approx(1.0)

"""Looks at a surrogate during training: where they look, and what they hold for the truth."""

import pytest

from contingencies.library import load_contingency
from contingencies.operators import compile_contingency
from contingencies.references import reference_cct
from zoo.judging.unseen import _severities
from zoo.surrogates.datasets import training_axes


def test_a_look_searches_where_synchronism_can_be_lost():
    operators = compile_contingency(load_contingency("ieee30-line-3-4-restore"))
    alpha, truth = _severities(operators, 3)
    assert len(alpha) == 3
    assert set(alpha) <= set(training_axes(operators)[0])
    for severity, instant in zip(alpha, truth, strict=True):
        answer = reference_cct(operators, float(severity))
        assert answer.status == "finite"
        assert instant == pytest.approx(answer.cct, abs=1e-6)


def test_a_look_at_a_fault_that_is_never_lost_takes_the_end_of_the_window_for_the_truth():
    operators = compile_contingency(load_contingency("ieee30-bus-7-remove-4-6"))
    _, truth = _severities(operators, 2)
    assert list(truth) == [operators.window.t_c[1]] * 2

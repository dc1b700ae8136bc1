"""Heads over conditions: closed forms are learned, domains kept, bounds honest, bytes stable."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch

from contingencies.errors import IntegrityError, UsageError
from contingencies.points import Axis
from contingencies.stability import Boundary
from espinn_moe import condition_head_fit as fitting
from espinn_moe.condition_head import ConditionHead, Readout, read_head
from espinn_moe.condition_head_fit import Domain, PointSource, calibrated, draw_rows, edges_of, fit_condition_head

torch.set_num_threads(1)
AXES = (Axis("load", 0.8, 1.2), Axis("generation.2", 10.0, 70.0, "MW"))
DOMAIN = Domain((0.0, 1.0), 0.2, (0.25, 1.25), AXES, (1.0, 40.0))


def edge(conditions):
    """A censoring severity in closed form; heavy loads have none within the severities."""
    return 1.3 - 0.8 * (conditions[:, 0] - 0.8) / 0.4 - 0.004 * (conditions[:, 1] - 40.0)


def roots(alpha, conditions):
    """A boundary with a square root at its edge."""
    alpha_e = edge(conditions)
    cct = np.where(alpha >= alpha_e, 1.25 - 0.5 * np.sqrt(np.maximum(alpha - alpha_e, 0.0)) * conditions[:, 0], np.nan)
    status = tuple("finite" if np.isfinite(value) else "right-censored" for value in cct)
    return Boundary(alpha, cct, status, np.zeros(len(alpha), dtype=bool), "closed form")


@cache
def head() -> ConditionHead:
    steps = fitting.EDGE_STEPS, fitting.ROOT_STEPS
    fitting.EDGE_STEPS, fitting.ROOT_STEPS = 300, 400
    try:
        return fit_condition_head(PointSource(edge, roots), DOMAIN, seed=1, points=600)
    finally:
        fitting.EDGE_STEPS, fitting.ROOT_STEPS = steps


def test_a_boundary_with_a_moving_edge_is_learned_to_a_millisecond():
    alpha, conditions = draw_rows(head(), 500, seed=5)
    truth = roots(alpha, conditions)
    cct, code = head().answers(alpha, conditions)
    both = truth.finite & (code == 0)
    assert both.sum() > 50 and np.abs(cct - truth.cct)[both].mean() < 1e-3
    clear = np.abs(alpha - edge(conditions)) > 0.02
    assert ((code == 0) == truth.finite)[clear].all()


def test_one_question_has_the_answer_of_many():
    alpha, conditions = draw_rows(head(), 60, seed=6)
    cct, code = head().answers(alpha, conditions)
    for k in range(60):
        one, status = head().answer(float(alpha[k]), conditions[k])
        assert (one is None) == (code[k] != 0)
        assert one is None or one == pytest.approx(cct[k], abs=1e-12)
        assert (status == "finite") == (code[k] == 0)


@pytest.mark.parametrize(("alpha", "values"), [(1.1, (1.0, 40.0)), (0.9, (1.3, 40.0)), (0.9, (1.0, 9.0)), (-0.1, None)])
def test_outside_its_domain_a_head_has_no_number(alpha, values):
    assert head().answer(alpha, values) == (None, "out-of-domain")
    cct, code = head().answers(np.array([alpha]), None if values is None else np.array([values]))
    assert np.isnan(cct[0]) and code[0] == 3


def test_what_is_not_a_number_is_refused():
    with pytest.raises(UsageError, match="finite"):
        head().answer(float("nan"))
    with pytest.raises(UsageError, match="finite"):
        head().answers(np.array([0.9]), np.array([[np.inf, 40.0]]))


def test_conditions_left_out_are_the_cases_own_where_these_lie_in_the_range():
    assert head().values({"load": 1.1}) == [1.1, 40.0]
    with pytest.raises(UsageError, match=r"no condition 'wind'; it has load, generation\.2"):
        head().values({"wind": 1.0})
    with pytest.raises(UsageError, match=r"own value 90 is not in generation\.2 10 to 70 MW"):
        replace(head(), own=(1.0, 90.0)).values({})


def test_the_bound_of_every_distance_to_the_edge_covers_rows_that_it_has_not_seen():
    alpha, conditions = draw_rows(head(), 6000, seed=8)
    bounded = calibrated(head(), conditions, roots(alpha, conditions))
    alpha, conditions = draw_rows(head(), 20_000, seed=9)
    cct, code, bound = bounded.bounded_answers(alpha, conditions)
    truth = roots(alpha, conditions).cct
    answered = (code == 0) & np.isfinite(truth)
    covered, distance = (np.abs(cct - truth) <= bound)[answered], (alpha - edges_of(head(), conditions))[answered]
    assert len(bounded.bounds) == 10 and 0.94 < covered.mean() < 0.99
    tenth = np.searchsorted(np.quantile(distance, np.linspace(0.1, 0.9, 9)), distance)
    assert all(covered[tenth == k].mean() > 0.92 for k in range(1, 10))


def test_a_head_reads_back_from_its_bytes_and_damage_is_noticed():
    bounded = replace(head(), distances=(0.1,), bounds=(2e-4, 1e-4), error_bound_s=1.5e-4, contingency_sha256="ab")
    content = bounded.to_bytes()
    again = read_head(content)
    assert isinstance(again, ConditionHead) and again.to_bytes() == content
    assert again.bounded(0.9, (1.1, 30.0)) == bounded.bounded(0.9, (1.1, 30.0))
    for wrong in (
        content[:-40],
        content.replace(b'"own":[1.0,', b'"own":["x",'),
        content.replace(b"head/1", b"head/9"),
    ):
        with pytest.raises(IntegrityError):
            read_head(wrong)


def test_intervals_are_those_of_the_cases_own_point():
    intervals = head().intervals
    assert intervals[0][0] == 0.0 and intervals[-1][1] == 1.0
    assert [status for _, _, status in intervals] == ["right-censored", "finite"]
    assert intervals[0][1] == pytest.approx(0.9, abs=0.02)
    edge_here = intervals[0][1]
    assert head().answer(edge_here)[1] == "finite"
    assert head().answer(float(np.nextafter(edge_here, 0.0)))[1] == "right-censored"


def test_where_nothing_is_ever_unstable_there_is_no_head():
    never = PointSource(lambda conditions: np.full(len(conditions), np.inf), roots)
    with pytest.raises(UsageError, match="no operating point has a finite CCT"):
        fit_condition_head(never, DOMAIN)
    assert Readout((np.zeros((2, 1)),), (np.array([2.0]),))(np.zeros((3, 2))).tolist() == [2.0, 2.0, 2.0]

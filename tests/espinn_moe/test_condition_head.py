"""Heads over conditions: closed forms are learned, domains kept, bounds honest, bytes stable."""

from dataclasses import replace
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
import torch

from contingencies.errors import IntegrityError, UsageError
from contingencies.points import Axis
from contingencies.stability import Boundary
from espinn_moe.condition_bounds import (
    calibrated,
    draw_answered,
    draw_beside,
    draw_rows,
    with_band,
    with_gap,
    with_spread,
)
from espinn_moe.condition_head import ConditionHead, read_head
from espinn_moe.condition_head_fit import Domain, HeadBudget, PointSource, fit_condition_head, lowest_edges
from espinn_moe.readout import Readout, row_function

torch.set_num_threads(1)
AXES = (Axis("load", 0.8, 1.2), Axis("generation.2", 10.0, 70.0, "MW"))
QUICK = HeadBudget(edge_points=200, edge_steps=300, root_points=600, root_steps=400)
DOMAIN = Domain((0.0, 1.0), 0.2, (0.25, 1.25), AXES, (1.0, 40.0))


def edge(conditions):
    """A censoring severity in closed form; heavy loads have none within the severities."""
    return 1.3 - 0.8 * (conditions[:, 0] - 0.8) / 0.4 - 0.004 * (conditions[:, 1] - 40.0)


def roots(alpha, conditions):
    """A boundary with a square root at its edge."""
    alpha_e = edge(conditions)
    cct = np.where(alpha >= alpha_e, 1.25 - 0.5 * np.sqrt(np.maximum(alpha - alpha_e, 0.0)) * conditions[:, 0], np.nan)
    return boundary_from(alpha, cct)


def boundary_from(alpha, cct):
    """CCTs before the window are left-censored; those that are not numbers right-censored."""
    early = cct <= DOMAIN.window[0]
    status = np.where(early, "left-censored", np.where(np.isfinite(cct), "finite", "right-censored"))
    return Boundary(
        alpha, np.where(early, np.nan, cct), tuple(status.tolist()), np.zeros(len(alpha), bool), "closed form"
    )


@cache
def head() -> ConditionHead:
    return fit_condition_head(PointSource(edge, roots), DOMAIN, seed=1, budget=QUICK)


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
    covered, distance = (np.abs(cct - truth) <= bound)[answered], head().inputs(alpha, conditions)[1][answered]
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


def test_where_nothing_is_ever_unstable_the_head_says_so_and_has_no_number():
    never = PointSource(
        lambda conditions: np.full(len(conditions), np.inf),
        lambda alpha, conditions: boundary_from(alpha, np.full(len(alpha), np.nan)),
    )
    learned = fit_condition_head(never, DOMAIN, budget=QUICK)
    alpha, conditions = draw_rows(learned, 100, seed=1)
    assert set(learned.answers(alpha, conditions)[1].tolist()) == {1}
    assert draw_answered(learned, 10, seed=1)[0].size == 0
    assert calibrated(learned, conditions, never.roots(alpha, conditions)).error_bound_s is None


def test_an_island_of_instability_below_the_edge_of_the_last_instant_is_not_called_stable():
    """The last clearing instant is stable up to a severity of 0.8, others are lost from 0.5 on."""
    source = PointSource(
        lambda conditions: np.full(len(conditions), 0.8),
        lambda alpha, conditions: boundary_from(alpha, np.where(alpha >= 0.5, 0.9 - 0.1 * (alpha - 0.5), np.nan)),
    )
    conditions = np.array([[0.9, 20.0], [1.1, 60.0]])
    np.testing.assert_allclose(lowest_edges(source, conditions, 1.0), 0.5, atol=1e-4)
    honest = PointSource(source.edges, lambda alpha, _: boundary_from(alpha, np.where(alpha >= 0.8, 1.0, np.nan)))
    assert lowest_edges(honest, conditions, 1.0).tolist() == [0.8, 0.8]


def test_faults_that_may_not_even_last_until_the_first_instant_have_no_number():
    def steep(alpha, conditions):
        return boundary_from(alpha, 0.6 - 0.9 * (conditions[:, 0] - 0.8) - 0.3 * np.sqrt(alpha))

    source = PointSource(lambda conditions: np.zeros(len(conditions)), steep)
    learned = fit_condition_head(source, DOMAIN, seed=2, budget=QUICK)
    alpha, conditions = draw_rows(learned, 2000, seed=3)
    truth, code = steep(alpha, conditions), learned.answers(alpha, conditions)[1]
    early = np.array(truth.status) == "left-censored"
    assert 200 < early.sum() < 1800
    assert ((code == 2) != early).mean() < 0.02


def jumping(alpha, conditions):
    """As `roots`, and 0.2 s shorter as soon as another machine is the first to be lost."""
    plain = roots(alpha, conditions)
    return boundary_from(alpha, plain.cct - np.where(conditions[:, 1] > 50.0, 0.2, 0.0))


def test_where_the_first_crossing_jumps_the_bound_is_wide_and_elsewhere_it_is_not():
    budget = replace(QUICK, root_points=1200, root_steps=1500)
    learned = fit_condition_head(PointSource(edge, jumping), DOMAIN, seed=1, budget=budget)
    alpha, conditions = draw_answered(learned, 3000, seed=11)
    even = conditions, jumping(alpha, conditions)
    alpha, conditions = draw_beside(learned, *even, 400, seed=14)
    assert np.median(np.abs(conditions[:, 1] - 50.0)) < 3.0
    learned = with_spread(learned, [even, (conditions, jumping(alpha, conditions))], steps=1000)
    alpha, conditions = draw_answered(learned, 5000, seed=12)
    learned = calibrated(learned, conditions, jumping(alpha, conditions))
    alpha, conditions = draw_answered(learned, 5000, seed=13)
    cct, _, bound = learned.bounded_answers(alpha, conditions)
    covered = np.abs(cct - jumping(alpha, conditions).cct) <= bound
    near = np.abs(conditions[:, 1] - 50.0) < 1.0
    assert 0.94 < covered.mean() < 0.99
    assert covered[near].mean() > 0.8  # 0.72 without the rows beside the jump
    assert np.median(bound[near]) > 5 * np.median(bound[np.abs(conditions[:, 1] - 50.0) > 15.0])
    one = learned.bounded(float(alpha[0]), conditions[0])
    assert one[0] == pytest.approx(cct[0]) and one[2] == pytest.approx(bound[0])


def test_so_close_to_the_edge_that_its_own_error_decides_a_head_is_uncertain():
    conditions = draw_rows(head(), 400, seed=21)[1]
    banded = with_band(head(), conditions, edge(conditions))
    assert 0.0 < banded.band < 0.05
    at_edge = float(head().edge(np.array([[0.5, 0.0]]))[0])
    assert banded.answer(at_edge, (1.1, 40.0)) == (None, "uncertain")
    assert banded.answers(np.array([at_edge]), np.array([[1.1, 40.0]]))[1][0] == 4
    alpha, conditions = draw_rows(head(), 5000, seed=22)
    code = banded.answers(alpha, conditions)[1]
    wrong = ((code == 0) != roots(alpha, conditions).finite) & (code != 4)
    assert wrong.mean() < 0.002


def test_the_gap_between_references_widens_every_bound_by_as_much():
    alpha, conditions = draw_answered(head(), 800, seed=31)
    plain = calibrated(head(), conditions, roots(alpha, conditions))
    spread = calibrated(
        with_spread(head(), [(conditions, roots(alpha, conditions))], 50), conditions, roots(alpha, conditions)
    )
    for bounded in (plain, spread):
        narrow, wide = bounded, with_gap(bounded, 1e-3)
        difference = wide.bounded_answers(alpha, conditions)[2] - narrow.bounded_answers(alpha, conditions)[2]
        np.testing.assert_allclose(difference, 1e-3, rtol=1e-9)
        again = read_head(wide.to_bytes())
        assert isinstance(again, ConditionHead) and again.to_bytes() == wide.to_bytes()
        assert again.bounded(0.95, (1.15, 30.0)) == wide.bounded(0.95, (1.15, 30.0))


@pytest.mark.parametrize("depths", [(1,), (2,), (2, 2), (2, 3, 1)])
def test_networks_answer_a_single_row_as_they_answer_many(depths):
    random = np.random.default_rng(sum(depths))

    def network(depth):
        sizes = [4, *random.integers(2, 9, depth), 1]
        weights = tuple(random.normal(size=pair) for pair in pairwise(sizes))
        return Readout(weights, tuple(random.normal(size=size) for size in sizes[1:]))

    networks, rows = [network(depth) for depth in depths], random.normal(size=(20, 4))
    together = row_function(networks)
    many = np.stack([each(rows) for each in networks], axis=1)
    np.testing.assert_allclose([together(row.tolist()) for row in rows], many, atol=1e-12)

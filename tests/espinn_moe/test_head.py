"""Heads: they reproduce boundaries they were not shown, also where these are vertical or jump."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contingencies.errors import IntegrityError, UsageError
from contingencies.stability import Boundary
from espinn_moe.head import BLOCK, STATUSES, Head, Segment, Series, clenshaw
from espinn_moe.head_errors import conformal_bound, draw_severities, errors_against
from espinn_moe.head_fit import fit_head
from espinn_moe.head_samples import Samples

T_C = (0.25, 1.25)
EDGE = 0.531234


def boundary_of(cct, scatter=0.0):
    """A boundary from a formula: censored where the formula leaves the clearing window."""
    noise = np.random.default_rng(3)

    def boundary(alpha):
        exact = cct(alpha)
        status = np.where(exact > T_C[1], "right-censored", np.where(exact < T_C[0], "left-censored", "finite"))
        value = np.where(status == "finite", exact + scatter * noise.uniform(-1, 1, alpha.size), np.nan)
        return Boundary(alpha, value, tuple(status.tolist()), np.zeros(alpha.size, bool), "formula")

    return boundary


def vertical(alpha):
    """Vertical at its censoring edge, as where an unstable window opens."""
    above = np.maximum(alpha - EDGE, 0)
    return np.where(alpha < EDGE, 9.0, 0.95 - 0.6 * np.sqrt(above) + 0.1 * above**2 * np.sin(5 * alpha))


def nearly_vertical(alpha):
    """The singularity lies a little outside the finite interval."""
    return np.where(alpha < EDGE + 2e-4, 9.0, 0.95 - 0.6 * np.sqrt(np.maximum(alpha - EDGE, 0)))


def vertical_from_above(alpha):
    return np.where(alpha > 0.6, 9.0, 0.5 + 0.4 * np.sqrt(np.maximum(0.6 - alpha, 0)))


def both_sides(alpha):
    """Right-censored, finite, left-censored."""
    return 0.3 / (alpha + 1e-3) - 0.15


def jump(alpha):
    first = 1.1 - 0.3 * alpha
    return np.where(alpha < 0.3, 9.0, np.where(alpha < 0.71, first, 0.6 - 0.2 * np.sqrt(np.maximum(alpha - 0.7, 0))))


def kink(alpha):
    return np.where(alpha < 0.3, 9.0, np.minimum(1.1 - 0.3 * alpha, 1.3 - 0.6 * alpha))


def island(alpha):
    """Censored for six thousandths of the range, in the middle."""
    return np.where((alpha > 0.701) & (alpha < 0.707), 9.0, 1.2 - 0.5 * alpha)


SHAPES = [vertical, nearly_vertical, vertical_from_above, both_sides, jump, kink, island]


@pytest.mark.parametrize("shape", SHAPES)
def test_a_head_reproduces_a_boundary_at_severities_it_was_not_fitted_to(shape) -> None:
    fit = fit_head(boundary_of(shape), (0.0, 1.0), 0.2)
    drawn = draw_severities(fit.head, 300, seed=11)
    assert not np.isin(drawn, fit.asked).any()
    errors = errors_against(fit.head, boundary_of(shape)(drawn))
    assert errors.finite == 300 and errors.disagreements == 0
    assert errors.mae_s < 1e-6 and errors.max_s < 2e-5


@pytest.mark.parametrize("shape", [vertical, nearly_vertical, vertical_from_above])
def test_one_short_series_in_the_edge_coordinate_suffices_at_a_vertical_edge(shape) -> None:
    head = fit_head(boundary_of(shape), (0.0, 1.0), 0.2).head
    assert len(head.segments) == 2 and head.parameters <= 27
    assert {s.series.coordinate for s in head.segments if s.series} <= {"above-edge", "below-edge"}


@pytest.mark.parametrize("shape", SHAPES)
def test_the_status_changes_exactly_where_the_boundary_does(shape) -> None:
    head = fit_head(boundary_of(shape), (0.0, 1.0), 0.2).head
    alpha = np.random.default_rng(4).uniform(0, 1, 500)
    near = np.concatenate([[start - 1e-9, start + 1e-9] for start, _, _ in head.intervals[1:]] or [[0.5]])
    alpha = np.concatenate([alpha, near])
    found = [STATUSES[code] for code in head.answers(alpha)[1]]
    assert found == list(boundary_of(shape)(alpha).status)


def test_a_boundary_that_scatters_is_smoothed_not_followed() -> None:
    fit = fit_head(boundary_of(vertical, scatter=5e-6), (0.0, 1.0), 0.2)
    assert len(fit.head.segments) == 2 and fit.evaluations < 400
    drawn = draw_severities(fit.head, 200, seed=1)
    assert errors_against(fit.head, boundary_of(vertical)(drawn)).max_s < 2e-5


def test_a_contingency_that_is_stable_at_every_severity_gets_a_head_without_numbers() -> None:
    head = fit_head(boundary_of(lambda alpha: 9.0 + 0 * alpha), (0.0, 1.0), 0.2).head
    assert head.answer(0.4) == (None, "right-censored")
    assert head.intervals == [(0.0, 1.0, "right-censored")]
    assert draw_severities(head, 5, 0).size == 0


def test_a_status_that_flickers_does_not_stop_the_fit() -> None:
    def flicker(alpha):
        return np.where((alpha < 0.5) | ((alpha < 0.505) & (np.sin(3e4 * alpha) > 0)), 9.0, 1.2 - 0.5 * alpha)

    head = fit_head(boundary_of(flicker), (0.0, 1.0), 0.2).head
    drawn = np.random.default_rng(0).uniform(0.51, 1.0, 100)
    assert errors_against(head, boundary_of(flicker)(drawn)).max_s < 1e-9


def jumpy(alpha):
    """Smooth below 0.4; above it jumps ever more often; smooth again from 0.7."""
    inside = (alpha > 0.4) & (alpha < 0.7)
    return 1.0 - 0.3 * alpha + np.where(inside, 0.02 * np.floor(8.0 * np.sin(9e3 * alpha**2)), 0.0)


def test_a_boundary_that_jumps_too_often_is_uncertain_where_it_does_and_the_fit_ends() -> None:
    fit = fit_head(boundary_of(jumpy), (0.0, 1.0), 0.2)
    assert fit.evaluations <= 600
    assert fit.head.answer(0.55) == (None, "uncertain")
    truth = boundary_of(jumpy)(np.random.default_rng(3).uniform(0.0, 1.0, 400))
    errors = errors_against(fit.head, truth)
    assert errors.finite > 150, "the smooth parts keep their numbers"
    assert errors.max_s < 1e-3
    again = Head.from_bytes(fit.head.to_bytes())
    assert again.answer(0.55) == (None, "uncertain")


def test_a_few_jumps_are_found_by_bisection_and_leave_nothing_uncertain() -> None:
    fit = fit_head(boundary_of(lambda a: 1.0 - 0.3 * a - 0.05 * (a > 0.31) - 0.02 * (a > 0.77)), (0.0, 1.0), 0.2)
    assert {status for *_, status in fit.head.intervals} == {"finite"}
    drawn = draw_severities(fit.head, 200, 5)
    truth = boundary_of(lambda a: 1.0 - 0.3 * a - 0.05 * (a > 0.31) - 0.02 * (a > 0.77))(drawn)
    assert errors_against(fit.head, truth).max_s < 1e-6


def test_the_network_head_of_the_paper_answers_without_torch_and_is_less_exact() -> None:
    from espinn_moe.head_network import train

    head = fit_head(boundary_of(vertical), (0.0, 1.0), 0.2, network=lambda a, t: train(a, t, steps=400)).head
    errors = errors_against(head, boundary_of(vertical)(draw_severities(head, 100, 1)))
    assert head.kind == "network" and 1e-6 < errors.mae_s < 2e-2
    again = Head.from_bytes(head.to_bytes())
    assert again.to_bytes() == head.to_bytes()
    assert again.answer(0.8) == head.answer(0.8)
    cct, _ = again.answers(np.array([0.8]))
    assert cct[0] == pytest.approx(again.answer(0.8)[0], abs=1e-14)


# --- bounds -----------------------------------------------------------------------------------


def test_the_conformal_bound_covers_new_severities_as_often_as_it_promises() -> None:
    def wavy(alpha):
        return 0.7 + 0.01 * np.sin(40 * alpha) * alpha**3

    plain = Head((0.0, 1.0), 0.2, (Segment(0.0, 1.0, "finite", Series("plain", 0.0, (0.0, 1.0), (0.7,))),))
    covered = []
    for seed in range(200):
        bound = errors_against(plain, boundary_of(wavy)(draw_severities(plain, 39, seed))).bound_s
        fresh = draw_severities(plain, 50, 10_000 + seed)
        covered.append(np.mean(np.abs(wavy(fresh) - 0.7) <= bound))
    # Exactly 38/40 on average; the average of 200 repetitions scatters by less than 0.003.
    assert np.mean(covered) == pytest.approx(0.95, abs=0.012)


def test_a_bound_needs_nineteen_calibration_severities() -> None:
    assert conformal_bound(np.ones(18)) is None
    assert conformal_bound(np.arange(19.0)) == 18.0
    assert conformal_bound(np.arange(99.0)) == 94.0


def test_numbers_where_the_reference_has_none_cost_the_bound() -> None:
    head = Head((0.0, 1.0), 0.2, (Segment(0.0, 1.0, "finite", Series("plain", 0.0, (0.0, 1.0), (0.7,))),))
    errors = errors_against(head, boundary_of(vertical)(np.linspace(0.0, 1.0, 50)))
    assert errors.bound_s is None and errors.disagreements == np.sum(np.linspace(0, 1, 50) < EDGE)


def test_severities_are_drawn_evenly_from_all_finite_intervals() -> None:
    head = fit_head(boundary_of(island), (0.0, 1.0), 0.2).head
    drawn = draw_severities(head, 4000, 5)
    assert not ((drawn > 0.701) & (drawn < 0.707)).any()
    assert np.mean(drawn < 0.701) == pytest.approx(0.701 / 0.994, abs=0.03)


# --- answers ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def head() -> Head:
    return fit_head(boundary_of(both_sides), (0.0, 1.0), 0.2).head


def test_one_severity_and_many_give_the_same_answers(head: Head) -> None:
    alpha = np.random.default_rng(2).uniform(-0.2, 1.2, 2 * BLOCK + 7)
    cct, code = head.answers(alpha)
    for value, many, status in zip(alpha[::37], cct[::37], code[::37], strict=True):
        one, said = head.answer(float(value))
        assert said == STATUSES[status]
        assert (one is None and math.isnan(many)) or one == pytest.approx(many, abs=1e-13)


def test_answers_keep_the_shape_of_the_severities(head: Head) -> None:
    cct, code = head.answers(np.full((3, 2, 1), 0.9))
    assert cct.shape == code.shape == (3, 2, 1)
    assert head.answers(np.empty(0))[0].shape == (0,)


def test_both_ends_of_the_domain_belong_to_it_and_nothing_beyond_does(head: Head) -> None:
    assert head.answer(0.0)[1] == "right-censored" and head.answer(1.0)[1] == "left-censored"
    for alpha in (-1e-12, 1.0000001, -5.0, 1e300):
        assert head.answer(alpha) == (None, "out-of-domain")
    codes = head.answers(np.array([0.0, 1.0, -1e-12, 2.0]))[1]
    assert [STATUSES[c] for c in codes] == ["right-censored", "left-censored", "out-of-domain", "out-of-domain"]


@pytest.mark.parametrize("alpha", [math.nan, math.inf, -math.inf])
def test_a_severity_that_is_no_number_is_an_error(head: Head, alpha: float) -> None:
    with pytest.raises(UsageError):
        head.answer(alpha)
    with pytest.raises(UsageError):
        head.answers(np.array([0.5, alpha]))


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=20), st.floats(-1, 1))
def test_clenshaw_is_the_chebyshev_series(coefficients: list[float], x: float) -> None:
    expected = np.polynomial.chebyshev.chebval(x, coefficients)
    assert clenshaw(tuple(coefficients), np.array([x]))[0] == pytest.approx(expected, abs=1e-12)


# --- bytes ------------------------------------------------------------------------------------


def test_a_saved_head_loads_back_equal_and_gives_the_same_bytes(head: Head) -> None:
    again = Head.from_bytes(head.to_bytes())
    assert again.to_bytes() == head.to_bytes()
    assert again.segments == head.segments and again.severity == head.severity


def _damage(card: dict, path: str, value: object) -> bytes:
    *parents, last = path.split(".")
    here = card
    for step in parents:
        here = here[int(step)] if step.isdigit() else here[step]
    if value is ...:
        del here[last]
    else:
        here[last] = value
    return json.dumps(card).encode()


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("format", "cct-head/2"),
        ("kind", "network"),
        ("severity", [1.0, 0.0]),
        ("severity", [0.0, 2.0]),
        ("severity", "0..1"),
        ("t_f", None),
        ("segments", []),
        ("segments.1.start", 0.3),
        ("segments.1.status", "fine"),
        ("segments.1.series", ...),
        ("segments.1.series.coefficients", []),
        ("segments.1.series.coefficients", ["x"]),
        ("segments.1.series.u_range", [1.0, 1.0]),
        ("segments.1.series.coordinate", "sideways"),
        ("error_bound_s", -1.0),
    ],
)
def test_a_head_file_that_makes_no_sense_is_refused(head: Head, path: str, value: object) -> None:
    with pytest.raises(IntegrityError):
        Head.from_bytes(_damage(json.loads(head.to_bytes()), path, value))


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"\x80\x04K\x01.", b"\xff" * 100, b"{" + b" " * 5_000_000])
def test_bytes_that_are_no_head_are_refused(data: bytes) -> None:
    with pytest.raises(IntegrityError):
        Head.from_bytes(data)


@given(st.binary(max_size=200))
def test_no_bytes_whatsoever_do_more_than_raise_an_integrity_error(data: bytes) -> None:
    with pytest.raises(IntegrityError):
        Head.from_bytes(data)


def test_severities_that_differ_by_a_rounding_error_are_asked_once():
    asked = []

    def boundary(alpha):
        asked.extend(alpha.tolist())
        return Boundary(alpha, 1.0 - alpha, ("finite",) * len(alpha), np.zeros(len(alpha), bool), "closed form")

    samples = Samples(boundary, lambda count: None)
    samples.ask(np.array([0.0, 0.3, np.nextafter(0.3, 1.0), 1.0]))
    samples.ask(np.array([np.nextafter(0.3, 0.0), 0.3 + 1e-12, 0.5]))
    assert asked == [0.0, 0.3, 1.0, 0.3 + 1e-12, 0.5]

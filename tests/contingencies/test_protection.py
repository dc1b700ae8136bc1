"""Required times: what finite and censored answers say about them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contingencies.library import load_contingency
from contingencies.protection import Verdict, judge, required_time, tally
from contingencies.spec import ContingencySpec, Protection, Window

WINDOW = Window(t_f=0.2, T=2.0, t_c=(0.25, 1.25))


@given(duration=st.floats(0.05, 1.05), required=st.floats(0.001, 2.0))
def test_a_finite_duration_passes_when_it_is_long_enough(duration, required):
    verdict = judge("finite", duration, WINDOW, required)
    assert verdict.outcome == ("pass" if duration >= required else "fail")
    assert verdict.margin == pytest.approx(duration - required)


@pytest.mark.parametrize(
    ("status", "required", "outcome"),
    [
        ("right-censored", 0.5, "pass"),
        ("right-censored", 1.05, "pass"),
        ("right-censored", 1.2, "open"),
        ("left-censored", 0.1, "fail"),
        ("left-censored", 0.03, "open"),
        ("failed", 0.1, "open"),
        ("uncertain", 0.1, "open"),
    ],
)
def test_a_censored_answer_decides_only_what_was_studied(status, required, outcome):
    verdict = judge(status, None, WINDOW, required)
    assert verdict.outcome == outcome
    assert (verdict.margin is None) == (outcome == "open")
    assert (">=" in verdict.words()) == (outcome == "pass")


def test_a_pass_stands_even_if_the_duration_is_off_by_its_bound():
    near = judge("finite", 0.2018, WINDOW, 0.2, bound=0.0061)
    assert near.outcome == "fail" and near.margin == pytest.approx(-0.0043)
    assert judge("finite", 0.2018, WINDOW, 0.2, bound=0.0015).outcome == "pass"


def test_a_description_may_state_its_protection_time_and_a_given_one_counts_first():
    plain = load_contingency("ieee30-line-3-4-restore").spec
    stated = plain.model_copy(update={"protection": Protection(required_ms=120.0)})
    assert required_time(plain) is None and required_time(plain, 80.0) == pytest.approx(0.08)
    assert required_time(stated) == pytest.approx(0.12) and required_time(stated, 80.0) == pytest.approx(0.08)
    assert ContingencySpec.model_validate_json(stated.model_dump_json()) == stated
    assert "protection" not in plain.model_dump_json()  # identities of older descriptions stay as they were


def test_verdicts_are_counted_in_one_line():
    verdicts = [Verdict(0.1, outcome, None) for outcome in ("fail", "pass", "pass", "open")]
    assert tally(verdicts, "the required 100 ms") == (
        "1 of 4 fail the required 100 ms, 2 pass, 1 undecided by the studied window"
    )

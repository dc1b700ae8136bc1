"""Required times: what finite and censored answers say about them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contingencies.protection import judge
from contingencies.spec import Window

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

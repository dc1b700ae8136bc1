import numpy as np
import pytest

from contingencies.confirmation import confirmed_boundaries, confirmed_cct
from contingencies.references import reference_cct, reference_near
from contingencies.search import Vicinity
from contingencies.stability import CCT
from tests.cases import narrowed, operators_of


@pytest.fixture(scope="module")
def operators():
    return narrowed(operators_of("ieee9-mech-g2-restore"), 0.664, 0.67)


def test_two_simulations_beside_the_fast_root_find_the_strict_one(operators):
    fast = reference_cct(operators, 0.9, "fast")
    assert confirmed_cct(operators, fast).cct == pytest.approx(reference_cct(operators, 0.9, "strict").cct, abs=2e-6)


@pytest.mark.parametrize("status, cct", [("finite", 0.665), ("right-censored", None)])
def test_a_wrong_answer_is_not_confirmed_but_put_right(operators, status, cct):
    wrong = CCT(0.9, status, cct, False, operators.window.t_f, "fast")
    right = confirmed_cct(operators, wrong)
    assert right.status == "finite"
    assert right.cct == pytest.approx(reference_cct(operators, 0.9, "fast").cct, abs=1e-5)


def test_a_fault_that_is_always_survived_is_confirmed_as_such(operators):
    strict, fast = confirmed_boundaries(operators, np.array([0.1]))
    assert strict.status == fast.status == ("right-censored",)


def test_a_crossing_is_found_within_given_instants_and_nowhere_else(operators):
    cct = reference_cct(operators, 0.9, "fast").cct
    first, last = np.array([cct - 5e-3, cct - 9e-3]), np.array([cct + 7e-3, cct - 1e-3])
    near = reference_near(operators, np.array([0.9, 0.9]), Vicinity(first, last))
    assert near.status == ("finite", "right-censored")
    assert near.cct[0] == pytest.approx(cct, abs=2e-6)

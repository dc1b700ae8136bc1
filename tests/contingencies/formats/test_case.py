"""The plain network: its stamps are the definition's, its base is a unit, and what is wrong is said in a sentence."""

from dataclasses import replace

import numpy as np
import pytest

from contingencies.errors import SpecError
from contingencies.formats.case import Case
from contingencies.formats.stamps import bus_matrix, two_ports
from contingencies.formats.tables import PV, SLACK, Branches, Buses, Loads, Shunts, Units, table


def two_bus_case(**branch) -> Case:
    """A unit at bus 7 feeds a load at bus 3 through one branch."""
    columns = {"start": [0], "end": [1], "x": 0.1, **branch}
    return Case(
        name="two buses",
        base_mva=100.0,
        buses=table(Buses, 2, number=[7, 3], kind=[SLACK, 1], base_kv=[230.0, 0.0]),
        loads=table(Loads, 1, bus=[1], S_power=0.5 + 0.1j),
        shunts=table(Shunts, 1, bus=[1], y=0.2j),
        branches=table(Branches, 1, **columns),
        units=table(Units, 1, bus=[0], P=0.5),
    )


def test_a_branch_at_no_load_shows_its_ratio_and_shift():
    case = two_bus_case(tap=1.05, shift=0.3)
    ports = two_ports(case.branches)
    V_start = 1.0
    V_end = -ports.y_tf / ports.y_tt * V_start  # no current at the end
    np.testing.assert_allclose(V_start / V_end, 1.05 * np.exp(0.3j), rtol=1e-14)


def test_shunts_of_a_branch_stand_at_the_side_that_is_named():
    plain, dressed = two_bus_case(tap=0.9), two_bus_case(tap=0.9, y_start=0.3j, y_end=0.7j, g=0.2, b=0.4)
    difference = (bus_matrix(dressed) - bus_matrix(plain)).toarray()
    expected = np.diag([0.3j + (0.1 + 0.2j) / 0.81, 0.7j + 0.1 + 0.2j])
    np.testing.assert_allclose(difference, expected, atol=1e-13)


def test_a_branch_out_of_service_is_not_in_the_bus_matrix():
    Y = bus_matrix(two_bus_case(in_service=False, b=0.1))
    np.testing.assert_array_equal(Y.toarray(), np.diag([0, 0.2j]))


def test_another_base_is_only_another_unit():
    case = two_bus_case(tap=1.05, g=0.01, b=0.2, y_start=0.1j)
    doubled = case.on_base(200.0)
    np.testing.assert_allclose(bus_matrix(doubled).toarray(), bus_matrix(case).toarray() / 2, rtol=1e-14)
    np.testing.assert_allclose(doubled.loads.S_power * 200.0, case.loads.S_power * 100.0, rtol=1e-14)
    assert np.isinf(doubled.units.q_max).all()


def test_printed_numbers_become_positions():
    buses = two_bus_case().buses
    assert buses.position([3, 7, 3]).tolist() == [1, 0, 1]
    with pytest.raises(SpecError, match="load 1 names bus 9"):
        buses.position([3, 9], lambda row, number: f"load {row} names bus {number}.")


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"base_mva": 0.0}, "base"),
        ({"buses": table(Buses, 2, number=[3, 3])}, "number 3"),
        ({"buses": table(Buses, 2, number=[3, -4])}, "renumber"),
        ({"buses": table(Buses, 2, number=[3, 4], kind=9)}, "type"),
        ({"buses": table(Buses, 2, number=[3, 4], v=[1.0, np.nan])}, "bus 4"),
        ({"branches": table(Branches, 1, start=[0], end=[0], x=0.1)}, "same bus"),
        ({"branches": table(Branches, 1, start=[0], end=[1])}, "branch 7-3 has no impedance"),
        ({"branches": table(Branches, 1, start=[0], end=[1], x=0.1, tap=0.0)}, "tap"),
        ({"branches": table(Branches, 1, start=[0], end=[5], x=0.1)}, "position"),
        ({"loads": table(Loads, 1, bus=[1], S_power=np.inf)}, "load at bus 3"),
        ({"units": table(Units, 1, bus=[0], v_set=-1.0)}, "unit at bus 7"),
        ({"merged": ((7, 1),)}, "number 7"),
    ],
)
def test_a_wrong_network_is_one_sentence(wrong, said):
    with pytest.raises(SpecError) as caught:
        replace(two_bus_case(), **wrong)
    assert said in str(caught.value) and str(caught.value).endswith(".") and "\n" not in str(caught.value)


def test_a_set_point_of_a_unit_that_stands_still_does_not_matter():
    units = table(Units, 2, bus=[0, 0], v_set=[1.0, 0.0], in_service=[True, False])
    buses = replace(two_bus_case().buses, kind=np.array([SLACK, PV]))
    assert len(replace(two_bus_case(), units=units, buses=buses).units) == 2

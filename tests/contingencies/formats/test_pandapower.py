"""pandapower's cases and files: its own arrays, wrong cases refused, and a JSON door closed to foreign classes."""

import json
import warnings

import numpy as np
import pytest

from contingencies.errors import SpecError
from contingencies.formats.known_cases import KNOWN, check_known_case, sums_of
from contingencies.formats.matpower import read_matpower
from contingencies.formats.pandapower import read_pandapower_case, read_pandapower_json
from contingencies.formats.stamps import bus_matrix
from contingencies.power_flow import solve_power_flow
from tests.contingencies.formats.edits import TEXT
from tests.contingencies.networks import solved_case


def written(net) -> dict:
    import pandapower

    return json.loads(pandapower.to_json(net))


def read(content: dict | str, rule: str = "index"):
    text = content if isinstance(content, str) else json.dumps(content)
    return read_pandapower_json(text.encode(), rule, "grid")


@pytest.fixture(scope="module")
def grid():
    """Switches, a three-winding transformer, wards, static generation, a ZIP load and a DC line in one net."""
    import pandapower as pp
    import pandapower.networks

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        net = pandapower.networks.example_multivoltage()
        pp.runpp(net, trafo_model="pi", numba=False, tolerance_mva=1e-9)
    return net


def test_a_net_with_many_elements_is_solved_as_pandapower_solves_it(grid):
    case = read(written(grid))
    solution = solve_power_flow(case)
    places = {int(number): k for k, number in enumerate(case.buses.number)} | dict(case.merged)
    V = grid.res_bus.vm_pu * np.exp(1j * np.deg2rad(grid.res_bus.va_degree))
    for index, voltage in V.dropna().items():
        assert solution.V[places[index]] == pytest.approx(voltage, abs=1e-8)
    dead = [places[index] for index in grid.res_bus.index[grid.res_bus.vm_pu.isna()]]
    assert not solution.V[dead].any()
    assert len(case.merged) > 0  # buses that a closed switch joins


def test_places_of_buses_are_read_from_newer_and_older_files():
    import pandapower.networks

    net = pandapower.networks.case9()
    newer = written(net)
    case = read(newer)
    places = [json.loads(text)["coordinates"] for text in net.bus.geo]
    np.testing.assert_array_equal(np.column_stack([case.buses.east, case.buses.north]), places)
    older = written(net)
    table = json.loads(older["_object"]["bus"]["_object"])
    at = table["columns"].index("geo")
    table["columns"].pop(at)
    for row in table["data"]:
        row.pop(at)
    older["_object"]["bus"]["_object"] = json.dumps(table)
    older["_object"]["bus"]["dtype"].pop("geo", None)
    where = {"columns": ["x", "y", "coords"], "index": list(net.bus.index)}
    for data, is_read in (([[*place, None] for place in places], True), ([["here", "there", None]] * 9, False)):
        older["_object"]["bus_geodata"] = {
            "_module": "pandas.core.frame", "_class": "DataFrame", "_object": json.dumps(where | {"data": data}),
        }  # fmt: skip
        east = read(older).buses.east
        assert np.array_equal(east, case.buses.east) if is_read else np.isnan(east).all()


def test_a_copy_in_json_is_the_shipped_case():
    ours, shipped = read(written(solved_case("case39")), "name"), read_pandapower_case("case39", "name", "grid")
    np.testing.assert_array_equal(bus_matrix(ours).toarray(), bus_matrix(shipped).toarray())
    assert ours.buses.number.tolist() == shipped.buses.number.tolist()


# --- cases that pandapower ships --------------------------------------------------------------


@pytest.mark.parametrize("name", ["case9", "case14", "case30", "case_ieee30", "case39", "case118", "case2869pegase"])
def test_right_cases_are_read(name):
    assert len(read_pandapower_case(name, "index", name).buses) > 0


@pytest.mark.parametrize("name", ["case5", "case24_ieee_rts", "case57", "case145", "case300"])
def test_cases_that_are_not_what_they_are_named_after_are_refused(name):
    with pytest.raises(SpecError, match=rf"{name}\.m"):
        read_pandapower_case(name, "index", name)


def test_a_case_is_known_by_sums_that_do_not_depend_on_its_order():
    case = read_matpower(TEXT.encode(), ".m", "wscc9")
    turned = TEXT.replace("\t1\t4\t0\t0.0576", "\t4\t1\t0\t0.0576")  # a transformer without ratio, named backwards
    other = read_matpower(turned.encode(), ".m", "wscc9")
    np.testing.assert_allclose(sums_of(case)[1:], sums_of(other)[1:], rtol=1e-12)
    with pytest.raises(SpecError, match="case39"):
        check_known_case("case39", case)
    assert "case39" in KNOWN


# --- the door of the JSON ---------------------------------------------------------------------


class ReachedError(Exception):
    """Something that the file named was used."""


@pytest.fixture
def alarmed(monkeypatch):
    """Make pandapower's own reader, which imports what a file names, raise."""
    import pandapower.io_utils

    solved_case("case9")  # pandapower reads its own cases by the same way

    def refuse(*_, **__):
        raise ReachedError

    monkeypatch.setattr(pandapower.io_utils, "pp_hook", refuse)


FOREIGN = {"_module": "subprocess", "_class": "Popen", "_object": '["touch", "reached"]'}


@pytest.mark.parametrize("spelled", ["_module", "_\\u006dodule", "\\u005fmodule"])
def test_a_foreign_class_in_place_of_the_net_is_refused_however_it_is_spelled(spelled, alarmed):
    text = json.dumps(FOREIGN).replace("_module", spelled)
    with pytest.raises(SpecError, match="subprocess"):
        read(text)


@pytest.mark.parametrize("spelled", ["_module", "_\\u006dodule"])
def test_a_foreign_class_in_place_of_a_table_is_refused(spelled, alarmed):
    content = written(solved_case("case9"))
    content["_object"]["load"] = FOREIGN
    with pytest.raises(SpecError, match=r"load.*subprocess"):
        read(json.dumps(content).replace("_module", spelled))


def test_a_foreign_class_inside_a_table_is_refused(alarmed):
    content = written(solved_case("case9"))
    table = json.loads(content["_object"]["bus"]["_object"])
    table["data"][0][0] = FOREIGN
    content["_object"]["bus"]["_object"] = json.dumps(table)
    with pytest.raises(SpecError, match="table bus"):
        read(content)


def test_foreign_classes_elsewhere_are_left_alone(alarmed):
    content = written(solved_case("case9"))
    content["_object"]["controller"] = FOREIGN
    content["_object"]["anything"] = {"nested": [FOREIGN, json.dumps(FOREIGN)]}
    assert len(read(content).buses) == 9


def test_text_in_a_cell_stays_text(alarmed):
    content = written(solved_case("case9"))
    table = json.loads(content["_object"]["load"]["_object"])
    table["data"][0][table["columns"].index("name")] = json.dumps(FOREIGN)
    content["_object"]["load"]["_object"] = json.dumps(table)
    assert len(read(content).buses) == 9


@pytest.mark.parametrize(
    "damage",
    [
        lambda tables: tables.pop("bus"),
        lambda tables: tables.update(bus=3),
        lambda tables: tables.update(sn_mva="much"),
        lambda tables: tables["bus"].update(_object="[1, 2"),
        lambda tables: tables["bus"].update(_object={"columns": [], "index": [], "data": []}),
        lambda tables: tables["bus"].update(_object='{"columns": ["a"], "index": ["x"], "data": [[1]]}'),
    ],
)
def test_a_damaged_file_is_refused(damage, alarmed):
    content = written(solved_case("case9"))
    damage(content["_object"])
    with pytest.raises((SpecError, ValueError, KeyError, AttributeError)):  # the caller makes one sentence of each
        read(content)

"""The compiler's closed forms equal the plain constructions they replace, and misfits are refused by name."""

from functools import lru_cache

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from contingencies.admittance import (
    bus_admittance,
    faulted_bus_admittance,
    islands,
    kron_reduction,
    machine_admittance,
    with_machine_reactances,
)
from contingencies.connectivity import bridge_problem, connectivity, removal_problem
from contingencies.errors import SpecError
from contingencies.library import Contingency, load_system
from contingencies.network import solve_network
from contingencies.operators import compile_contingency, compile_family, compile_spec
from contingencies.reduction import reduce_network
from contingencies.spec import ContingencySpec
from tests.contingencies.networks import matpower_tables, matpower_text, meshed_case_with_shifter, write_system

GRIDS = ("ieee9", "ieee14", "ieee30", "ieee39", "ieee118", "shifter")
severities = st.floats(0.0, 5.0)
positions = st.floats(0.01, 0.99)


@lru_cache
def system_of(grid: str):
    if grid != "shifter":
        return load_system(grid)
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as folder:
        return meshed_case_with_shifter(Path(folder))


def network_of(grid: str):
    return solve_network(system_of(grid))


def compiled(grid: str, fault: dict, clearing: dict):
    spec = ContingencySpec.model_validate({"name": "c", "system": grid, "fault": fault, "clearing": clearing})
    return compile_contingency(Contingency(spec, system_of(grid)))


def line_of(network, k: int) -> dict:
    """Branch k as a spec names it."""
    ends = (int(network.branches.start[k]), int(network.branches.end[k]))
    pair = (min(ends), max(ends))
    parallel = network.lines_between[pair]
    named = {"line": tuple(network.bus_numbers[list(ends)].tolist())}
    return named if len(parallel) == 1 else named | {"circuit": parallel.index(k) + 1}


def relative_error(Y, direct) -> float:
    return float(np.abs(Y - direct).max() / np.abs(direct).max())


@st.composite
def grid_and_line(draw):
    grid = draw(st.sampled_from(GRIDS))
    network = network_of(grid)
    return grid, network, draw(st.sampled_from(np.flatnonzero(network.branches.is_line).tolist()))


# --- fault-on ---------------------------------------------------------------------------------


@settings(max_examples=30)
@given(place=grid_and_line(), position=positions, alpha=severities)
def test_a_line_fault_equals_the_network_with_an_explicit_fault_node(place, position, alpha):
    grid, network, k = place
    operators = compiled(grid, {"kind": "line", "position": position, **line_of(network, k)}, {"action": "restore"})
    i, j = network.branches.start[k], network.branches.end[k]
    y = network.branches.y_series[k]
    direct = faulted_bus_admittance(
        network, np.array([i, j]), np.array([1 - position, position], dtype=complex), alpha * y,
        position * (1 - position) / y,
    )  # fmt: skip
    assert relative_error(operators.Y_fault(alpha), kron_reduction(direct, network)) < 1e-12


@settings(max_examples=30)
@given(
    data=st.data(),
    grid=st.sampled_from(GRIDS),
    g=st.just(0.0) | st.floats(1e-6, 10),
    b=st.floats(-500, -0.1),
    alpha=severities,
)
def test_a_bus_fault_equals_the_network_with_the_shunt_added(data, grid, g, b, alpha):
    network = network_of(grid)
    number = data.draw(st.sampled_from(network.bus_numbers.tolist()))
    fault = {"kind": "bus", "bus": number, "shunt_pu": {"g": g, "b": b}}
    operators = compiled(grid, fault, {"action": "restore"})
    Y_bus = bus_admittance(network).tolil()
    node = network.position[number]
    Y_bus[node, node] += alpha * complex(g, b)
    assert relative_error(operators.Y_fault(alpha), kron_reduction(Y_bus.tocsc(), network)) < 1e-12


@settings(max_examples=30)
@given(place=grid_and_line(), position=positions)
def test_severity_zero_is_the_pre_fault_operator_exactly(place, position):
    grid, network, k = place
    operators = compiled(grid, {"kind": "line", "position": position, **line_of(network, k)}, {"action": "restore"})
    assert np.array_equal(operators.Y_fault(0.0), operators.Y_pre)
    assert np.array_equal(operators.Y_post, operators.Y_pre)
    assert np.array_equal(operators.P_m_fault(0.0), operators.P_m_pre)


@settings(max_examples=30)
@given(place=grid_and_line(), position=positions, alpha=severities)
def test_a_position_counted_from_the_other_end_is_the_same_fault(place, position, alpha):
    grid, network, k = place
    line = line_of(network, k)
    backwards = line | {"line": line["line"][::-1]}
    one = compiled(grid, {"kind": "line", "position": position, **line}, {"action": "restore"})
    other = compiled(grid, {"kind": "line", "position": 1 - position, **backwards}, {"action": "restore"})
    np.testing.assert_allclose(other.Y_fault(alpha), one.Y_fault(alpha), rtol=1e-12, atol=1e-12)


def test_a_bolted_fault_is_a_network_whose_bus_is_grounded():
    network = network_of("ieee9")
    node = network.position[7]
    bolted = compiled("ieee9", {"kind": "bus", "bus": 7, "impedance_pu": {}}, {"action": "restore"})
    kept = np.delete(np.arange(network.n_buses), node)
    y_g = machine_admittance(network)
    Y_bb = with_machine_reactances(bus_admittance(network), network).toarray()[np.ix_(kept, kept)]
    Y_bg = np.zeros((network.n_buses, network.n_machines), dtype=complex)
    Y_bg[network.machine_bus, np.arange(network.n_machines)] = -y_g
    grounded = np.diag(y_g) - Y_bg[kept].T @ np.linalg.solve(Y_bb, Y_bg[kept])
    assert relative_error(bolted.Y_fault(1.0), grounded) < 1e-8


def test_many_severities_at_once_are_the_single_ones_stacked():
    operators = compiled("ieee30", {"kind": "line", "line": (3, 4)}, {"action": "restore"})
    alphas = np.linspace(0, 1, 7).reshape(7, 1)
    stacked = operators.Y_fault(alphas)
    assert stacked.shape == (7, 1, 6, 6)
    for row, alpha in zip(stacked[:, 0], alphas[:, 0], strict=True):
        np.testing.assert_allclose(row, operators.Y_fault(alpha), rtol=1e-15)


# --- post-clearing ----------------------------------------------------------------------------


@settings(max_examples=30)
@given(place=grid_and_line())
def test_removing_a_line_equals_assembling_the_network_without_it(place):
    grid, network, k = place
    assume(bridge_problem(network, k) is None)
    operators = compiled(grid, {"kind": "line", **line_of(network, k)}, {"action": "remove-line"})
    assert operators.removed_branches == (k,)
    direct = kron_reduction(bus_admittance(network, [k]), network)
    assert relative_error(operators.Y_post, direct) < 1e-12


@settings(max_examples=40)
@given(data=st.data(), grid=st.sampled_from(GRIDS))
def test_tripping_feeders_equals_assembling_the_network_without_them(data, grid):
    network = network_of(grid)
    number = data.draw(st.sampled_from(network.bus_numbers.tolist()))
    node, branches = network.position[number], network.branches
    feeders = np.flatnonzero(branches.is_line & ((branches.start == node) | (branches.end == node)))
    assume(len(feeders) > 0 and removal_problem(network, tuple(feeders.tolist())) is None)
    fault = {"kind": "bus", "bus": number, "shunt_pu": {"b": -20.0}}
    operators = compiled(grid, fault, {"action": "trip-feeders"})
    assert operators.removed_branches == tuple(feeders.tolist())
    direct = kron_reduction(bus_admittance(network, feeders), network)
    # A small load left alone at the bus is the difference of two large numbers: allow for its digits.
    assert relative_error(operators.Y_post, direct) < 1e-11


@pytest.mark.parametrize("action", ["restore-mechanical", "set-mechanical"])
def test_mechanical_power_changes_only_where_it_is_told_to(action):
    clearing = {"action": action} | ({"factor": 0.8} if action == "set-mechanical" else {})
    operators = compiled("ieee9", {"kind": "mechanical", "generator": 2, "coefficient": 1.25}, clearing)
    P_m, expected = operators.P_m_pre, operators.P_m_pre.copy()
    expected[1] *= 1 + 1.25 * 0.4
    np.testing.assert_allclose(operators.P_m_fault(0.4), expected, rtol=1e-15)
    assert np.array_equal(operators.Y_fault(0.4), operators.Y_pre)
    np.testing.assert_allclose(operators.P_m_post / P_m, [1, 0.8 if action == "set-mechanical" else 1, 1], rtol=1e-15)


def test_a_shunt_fault_may_end_with_another_machines_power_changed():
    fault = {"kind": "bus", "bus": 5, "shunt_pu": {"b": -10.0}}
    operators = compiled("ieee9", fault, {"action": "set-mechanical", "generator": 3, "factor": 0.5})
    np.testing.assert_allclose(operators.P_m_post / operators.P_m_pre, [1, 1, 0.5], rtol=1e-15)
    assert np.array_equal(operators.Y_post, operators.Y_pre)


def test_circuits_in_parallel_are_different_lines_and_neither_is_a_bridge():
    network = network_of("shifter")
    first, second = (network.line((5, 4), circuit, "line") for circuit in (1, 2))
    assert first != second
    assert abs(network.branches.y_series[first]) > abs(network.branches.y_series[second])
    faults = [{"kind": "line", "line": (4, 5), "circuit": circuit} for circuit in (1, 2)]
    one, two = (compiled("shifter", fault, {"action": "remove-line"}) for fault in faults)
    assert not np.allclose(one.Y_post, two.Y_post)


def test_a_phase_shifter_makes_the_reduced_network_unsymmetric():
    operators = compiled("shifter", {"kind": "line", "line": (1, 2)}, {"action": "restore"})
    assert np.abs(operators.Y_pre - operators.Y_pre.T).max() > 1e-3
    assert np.abs(operators.fault_from - operators.fault_to).max() > 1e-3


# --- families share work, not results ---------------------------------------------------------


@pytest.mark.parametrize("grid", ["ieee39", "shifter"])
def test_a_family_compiled_together_equals_its_members_compiled_alone(grid):
    network = network_of(grid)
    reduction = reduce_network(network)
    contingencies = []
    for k in np.flatnonzero(network.branches.is_line):
        bridge = bridge_problem(network, int(k))
        spec = {
            "name": f"c{k}",
            "system": grid,
            "fault": {"kind": "line", **line_of(network, int(k)), "position": 0.3},
            "clearing": {"action": "restore" if bridge else "remove-line"},
        }
        contingencies.append(Contingency(ContingencySpec.model_validate(spec), system_of(grid)))
    together = compile_family(contingencies, reduction)
    assert [operators.name for operators in together] == [contingency.name for contingency in contingencies]
    for contingency, operators in zip(contingencies, together, strict=True):
        alone = compile_spec(contingency, reduction)
        np.testing.assert_allclose(operators.Y_fault(0.7), alone.Y_fault(0.7), rtol=1e-13, atol=1e-13)
        np.testing.assert_allclose(operators.Y_post, alone.Y_post, rtol=1e-13, atol=1e-13)


def test_an_empty_family_compiles_to_nothing():
    assert compile_family([], reduce_network(network_of("ieee9"))) == []


@pytest.mark.parametrize("grid", GRIDS)
def test_bridges_are_the_branches_whose_removal_splits_the_network(grid):
    network = network_of(grid)
    graph = connectivity(network)
    assert graph.connected
    for k in range(len(network.branches.start)):
        labels = islands(network, [k])
        assert (k in graph.bridges) == (labels.max() > 0)
        if k in graph.bridges:
            far = graph.order[graph.bridges[k]]
            sides = [set(np.flatnonzero(labels == label).tolist()) for label in (0, 1)]
            assert set(far.tolist()) in sides


# --- complaints -------------------------------------------------------------------------------

LINE, BUS, MECHANICAL = (
    {"kind": "line"},
    {"kind": "bus", "shunt_pu": {"b": -5.0}},
    {"kind": "mechanical", "coefficient": 1.0},
)

RESTORE, TRIP = {"action": "restore"}, {"action": "trip-feeders"}
REMOVE = {"action": "remove-line"}
RESTORE_MECHANICAL = {"action": "restore-mechanical"}

MISFITS = {
    "unknown bus": ("ieee14", BUS | {"bus": 77}, RESTORE, ["fault.bus", "bus 77", "it has 1, 2"]),
    "unknown end of a line": ("ieee14", LINE | {"line": (1, 77)}, RESTORE, ["fault.line", "bus 77"]),
    "no such line": ("ieee14", LINE | {"line": (1, 14)}, RESTORE, ["fault.line", "no line 1-14", "name two buses"]),
    "transformer": ("ieee14", LINE | {"line": (4, 7)}, RESTORE, ["fault.line", "4-7", "transformer", "name a line"]),
    "no such circuit": ("ieee14", LINE | {"line": (4, 5), "circuit": 3}, RESTORE, ["circuit 3", "it has 1"]),
    "which circuit": ("shifter", LINE | {"line": (4, 5)}, RESTORE, ["2 circuits", "add circuit: 1 to 2"]),
    "unknown generator": (
        "ieee14",
        MECHANICAL | {"generator": 4},
        RESTORE_MECHANICAL,
        ["fault.generator", "bus 4", "it has 1, 2, 3"],
    ),
    "unknown bus of a generator": (
        "ieee14",
        MECHANICAL | {"generator": 44},
        RESTORE_MECHANICAL,
        ["fault.generator", "bus 44"],
    ),
    "unknown generator to set": (
        "ieee14",
        BUS | {"bus": 4},
        {"action": "set-mechanical", "generator": 4, "factor": 1.0},
        ["clearing.generator", "bus 4"],
    ),
    "unknown line to open": (
        "ieee14",
        BUS | {"bus": 4},
        {"action": "remove-line", "line": (1, 14)},
        ["clearing.line", "no line 1-14"],
    ),
    "transformer to open": (
        "ieee14",
        BUS | {"bus": 4},
        {"action": "remove-line", "line": (4, 9)},
        ["clearing.line", "transformer"],
    ),
    "islands generators": (
        "ieee39",
        LINE | {"line": (16, 19)},
        REMOVE,
        ["clearing.action", "islands the generator at bus 33, 34", "clear another way"],
    ),
    "trips a generator's feeders": (
        "ieee30",
        BUS | {"bus": 5},
        TRIP,
        ["clearing.action", "islands the generator at bus 5"],
    ),
    "floating bus": (
        "ieee30",
        BUS | {"bus": 22},
        TRIP,
        ["clearing.action", "leaves bus 22 floating", "clear another way"],
    ),
    "no feeders": ("ieee30", BUS | {"bus": 9}, TRIP, ["bus 9 has no feeder", "use restore"]),
}


@pytest.mark.parametrize("misfit", MISFITS)
def test_a_contingency_that_does_not_fit_its_network_is_refused_in_one_sentence(misfit):
    grid, fault, clearing, expected = MISFITS[misfit]
    with pytest.raises(SpecError) as caught:
        compiled(grid, fault, clearing)
    text = str(caught.value)
    assert text.startswith("c: ") and text.endswith(".") and "\n" not in text
    for words in expected:
        assert words in text


def test_a_cut_off_load_is_lost_but_the_rest_stays_solvable():
    operators = compiled("ieee30", {"kind": "line", "line": (25, 26)}, {"action": "remove-line"})
    direct = kron_reduction(bus_admittance(operators.network, operators.removed_branches), operators.network)
    assert relative_error(operators.Y_post, direct) < 1e-12


def test_out_of_service_branches_are_no_lines(tmp_path):
    tables = matpower_tables("case14")
    ends = tables["branch"][:, :2].astype(int).tolist()
    tables["branch"][ends.index([2, 4]), 10] = 0
    system = write_system(tmp_path, "grid.m", matpower_text(tables))
    with pytest.raises(SpecError, match="no line 2-4"):
        solve_network(system).line((2, 4), None, "fault.line")

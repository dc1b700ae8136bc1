"""Shipped systems and users' own networks become solved operating points, or one sentence of complaint."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contingencies.errors import SpecError
from contingencies.library import Contingency, System, load_system, shipped_systems
from contingencies.network import solve_network
from contingencies.operators import compile_contingency
from contingencies.reduction import reduce_network
from contingencies.spec import ContingencySpec
from contingencies.swing import swing_field
from contingencies.system_specs import Machine, Machines, NetworkFile, PandapowerCase, SystemSpec
from tests.contingencies.networks import (
    MACHINES_14,
    matpower_tables,
    matpower_text,
    solved_case,
    write_system,
)

SHIPPED = ("ieee9", "wscc9", "ieee14", "ieee30", "ieee39", "ieee118")
MACHINES = {
    "ieee9": (1, 2, 3),
    "wscc9": (1, 2, 3),
    "ieee14": MACHINES_14,
    "ieee30": (1, 2, 5, 8, 11, 13),
    "ieee39": tuple(range(30, 40)),
}


def machine_numbers(network):
    return tuple(network.bus_numbers[network.machine_bus].tolist())


def swing_modes(system: str) -> np.ndarray:
    """Eigenvalues of the swing equation linearised at the operating point, by central differences."""
    network = solve_network(load_system(system))
    reduction = reduce_network(network)
    G, B = reduction.Y_pre.real, reduction.Y_pre.imag
    n = network.n_machines

    def field(x):
        rates = swing_field(
            x[:n], x[n:], reduction.P_m, network.E, G, B, network.H, network.D, network.omega_b
        )  # fmt: skip
        return np.concatenate(rates)

    x_0, step = np.concatenate([network.delta_0, np.ones(n)]), 1e-5
    columns = [(field(x_0 + step * e) - field(x_0 - step * e)) / (2 * step) for e in np.eye(2 * n)]
    return np.linalg.eigvals(np.array(columns).T)


# --- shipped ----------------------------------------------------------------------------------


def test_every_promised_system_is_shipped():
    assert set(shipped_systems()) == set(SHIPPED)


@pytest.mark.parametrize("name", SHIPPED)
def test_every_shipped_system_rests_at_its_operating_point(name):
    network = solve_network(load_system(name))
    reduction = reduce_network(network)
    rates = swing_field(
        network.delta_0, np.ones(network.n_machines), reduction.P_m, network.E,
        reduction.Y_pre.real, reduction.Y_pre.imag, network.H, network.D, network.omega_b,
    )  # fmt: skip
    assert max(np.abs(rate).max() for rate in rates) == 0.0
    # P_m, which the reduced network defines, is also what the power flow dispatched.
    V, current = network.V, (network.E * np.exp(1j * network.delta_0) - network.V[network.machine_bus])
    dispatched = (V[network.machine_bus] * np.conj(current / (1j * network.x_d))).real
    np.testing.assert_allclose(reduction.P_m, dispatched, atol=1e-10)


@pytest.mark.parametrize("name", SHIPPED)
def test_every_shipped_system_says_where_its_numbers_come_from(name):
    system = load_system(name)
    assert system.name == name
    assert len(system.spec.provenance) > 40


@pytest.mark.parametrize("name", MACHINES)
def test_machines_stand_at_the_printed_bus_numbers(name):
    assert machine_numbers(solve_network(load_system(name))) == MACHINES[name]


def test_ieee118_has_54_machines_in_ascending_order():
    numbers = machine_numbers(solve_network(load_system("ieee118")))
    assert len(numbers) == 54
    assert list(numbers) == sorted(numbers)
    assert {1, 10, 69, 89, 116} < set(numbers)


def test_bus_numbers_of_ieee30_are_the_ieee_ones():
    network = solve_network(load_system("ieee30"))
    assert sorted(network.bus_numbers.tolist()) == list(range(1, 31))
    assert network.line((3, 4), None, "line") >= 0
    load_bus_30 = network.y_load[network.bus(30, "bus")]
    assert load_bus_30.real * abs(network.V[network.bus(30, "bus")]) ** 2 == pytest.approx(0.106, abs=1e-9)


def test_wscc9_has_the_textbook_internal_voltages():
    network = solve_network(load_system("wscc9"))
    np.testing.assert_allclose(network.E, [1.0566, 1.0502, 1.0170], atol=5e-5)
    np.testing.assert_allclose(np.rad2deg(network.delta_0), [2.272, 19.732, 13.17], atol=6e-3)


@pytest.mark.parametrize("name", SHIPPED)
def test_every_shipped_operating_point_is_a_stable_equilibrium(name):
    modes = swing_modes(name)
    assert modes.real.max() < 1e-4  # the common angle may drift, nothing may grow


def test_swing_modes_of_ieee118_are_those_of_a_real_system():
    frequencies = np.abs(swing_modes("ieee118").imag) / (2 * np.pi)
    frequencies = frequencies[frequencies > 1e-3]
    assert len(frequencies) == 2 * 53
    assert 0.3 < frequencies.min() < frequencies.max() < 2.5


def test_machine_data_of_ieee118_follow_their_stated_rule():
    system = load_system("ieee118")
    network = solve_network(system)
    voltage = network.V[network.machine_bus]
    current = (network.E * np.exp(1j * network.delta_0) - voltage) / (1j * network.x_d)
    power = 100.0 * voltage * np.conj(current)  # MVA at the terminals
    for unit, S in zip(system.spec.machines.units, power, strict=True):
        assert unit.mva == max(50, 10 * np.ceil(1.1 * abs(S) / 10))
        generator = S.real > 1e-3
        assert ((4.0 if unit.mva >= 100 else 3.0) if generator else 2.2) == unit.H
        assert unit.x_d == (0.45 if generator else 0.5)
        assert unit.D == unit.H / 2


# --- users' networks --------------------------------------------------------------------------


def as_m(folder):
    return write_system(folder, "grid.m", matpower_text(matpower_tables("case14")))


def as_mat(folder):
    from scipy.io import savemat

    tables = matpower_tables("case14")
    savemat(folder / "grid.mat", {"mpc": {"version": "2", "baseMVA": 100.0, **tables}})
    return write_system(folder, "grid.mat", (folder / "grid.mat").read_bytes())


def as_json(folder):
    import pandapower

    return write_system(folder, "grid.json", pandapower.to_json(solved_case("case14")))


def operators_of(system: System):
    spec = ContingencySpec.model_validate(
        {
            "name": "grid-line-4-5",
            "system": "grid",
            "fault": {"kind": "line", "line": (4, 5), "position": 0.5},
            "clearing": {"action": "remove-line"},
        }
    )
    return compile_contingency(Contingency(spec, system))


@pytest.mark.parametrize("copy", [as_m, as_mat, as_json])
def test_a_users_copy_of_a_case_gives_the_operators_of_the_shipped_case(copy, tmp_path):
    mine, shipped = operators_of(copy(tmp_path)), operators_of(load_system("ieee14"))
    assert mine.machine_buses == shipped.machine_buses
    for name in ("E", "H", "D", "P_m_pre", "Y_pre", "Y_post"):
        np.testing.assert_allclose(getattr(mine, name), getattr(shipped, name), rtol=1e-9, atol=1e-9, err_msg=name)
    np.testing.assert_allclose(mine.delta_0, shipped.delta_0, atol=1e-8)
    np.testing.assert_allclose(mine.Y_fault(0.8), shipped.Y_fault(0.8), rtol=1e-9, atol=1e-9)


def test_machine_base_and_system_base_describe_the_same_machine(tmp_path):
    text = matpower_text(matpower_tables("case14"))
    system = write_system(tmp_path, "grid.m", text, machine="H: 8.0, x_d: 0.2, D: 2.0")
    machine = write_system(tmp_path, "grid.m", text, machine="H: 3.2, x_d: 0.5, D: 0.8, mva: 250", base="machine")
    one, other = operators_of(system), operators_of(machine)
    for name in ("E", "H", "D", "delta_0", "Y_pre", "Y_post", "P_m_pre"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-13, atol=1e-13, err_msg=name)


def test_a_system_base_other_than_the_networks_only_changes_the_unit(tmp_path):
    text = matpower_text(matpower_tables("case14"))
    usual = write_system(tmp_path, "grid.m", text, machine="H: 3.2, x_d: 0.5, mva: 250", base="machine")
    doubled = System(usual.spec.model_copy(update={"base_mva": 200.0}), usual.network_file)
    one, other = solve_network(usual), solve_network(doubled)
    np.testing.assert_allclose(other.E, one.E, rtol=1e-12)
    np.testing.assert_allclose(other.H, one.H / 2, rtol=1e-12)
    np.testing.assert_allclose(reduce_network(other).Y_pre, reduce_network(one).Y_pre / 2, rtol=1e-10, atol=1e-12)


def test_a_changed_network_file_is_another_system(tmp_path):
    tables = matpower_tables("case14")
    one = write_system(tmp_path, "grid.m", matpower_text(tables))
    tables["branch"][0, 3] *= 1.01
    other = write_system(tmp_path, "grid.m", matpower_text(tables))
    assert one.sha256 != other.sha256


# --- complaints -------------------------------------------------------------------------------


def complaint(system: System) -> str:
    with pytest.raises(SpecError) as caught:
        solve_network(system)
    text = str(caught.value)
    assert "\n" not in text and text.endswith("."), text
    return text


def small_system(network=None, buses=MACHINES_14) -> System:
    units = tuple(Machine(bus=bus, H=8.25, x_d=0.205) for bus in buses)
    network = network or PandapowerCase(pandapower="case14")
    return System(
        SystemSpec(name="grid", network=network, machines=Machines(base="system", units=units), provenance="-")
    )


def test_a_generator_without_machine_data_is_named():
    text = complaint(small_system(buses=(1, 2, 3, 6)))
    assert "machines.units" in text and "missing for the generator at bus 8" in text and "add H and x_d" in text


@pytest.mark.parametrize("bus", [4, 99])
def test_machine_data_without_a_generator_are_refused(bus):
    text = complaint(small_system(buses=(*MACHINES_14, bus)))
    assert f"no generator at bus {bus}" in text and "1, 2, 3, 6, 8" in text


def test_a_power_flow_that_does_not_converge_is_said_to(tmp_path):
    tables = matpower_tables("case14")
    tables["bus"][:, 2:4] *= 50
    assert "does not converge" in complaint(write_system(tmp_path, "grid.m", matpower_text(tables)))


@pytest.mark.parametrize("case", ["case_that_nobody_wrote", "create_kerber_net", "os"])
def test_an_unknown_pandapower_case_is_refused(case):
    text = complaint(small_system(PandapowerCase(pandapower=case)))
    assert "network.pandapower" in text and "case39" in text


def test_buses_named_by_words_need_another_numbering(tmp_path):
    import copy

    import pandapower

    net = copy.deepcopy(solved_case("case14"))
    net.bus["name"] = [f"station {k}" for k in net.bus.index]
    text = complaint(write_system(tmp_path, "grid.json", pandapower.to_json(net)))
    assert "not by a number" in text and "bus_numbers" in text


def test_a_network_file_cannot_name_foreign_classes(tmp_path):
    text = '{"_module": "subprocess", "_class": "Popen", "_object": "{}"}'
    assert "subprocess" in complaint(write_system(tmp_path, "grid.json", text))


def file_system(suffix: str, content: bytes) -> System:
    plain = small_system(NetworkFile(file=f"grid{suffix}"))
    return System(plain.spec, content)


MALFORMED = {
    ".m": ["", "function mpc = grid\n", "mpc.bus = [1 2 3", "function mpc = grid\nmpc.bus = [\n1 x;\n];\n", "\x00\x01"],
    ".json": [
        "",
        "{",
        "[]",
        "3",
        '{"bus": 3}',
        '{"_module": "pandapower.auxiliary", "_class": "pandapowerNet"}',
        "null",
    ],
    ".mat": ["", "MATLAB 5.0 MAT-file", "\x00" * 200],
}


@pytest.mark.parametrize(("suffix", "content"), [(s, c) for s, contents in MALFORMED.items() for c in contents])
def test_a_malformed_network_file_is_one_sentence(suffix, content):
    complaint(file_system(suffix, content.encode()))


@settings(max_examples=15, deadline=None)
@given(content=st.binary(max_size=300), suffix=st.sampled_from([".m", ".mat", ".json"]))
def test_arbitrary_bytes_are_never_more_than_a_complaint(content, suffix):
    complaint(file_system(suffix, content))


@settings(max_examples=15, deadline=None)
@given(data=st.data(), suffix=st.sampled_from([".m", ".json"]))
def test_a_cut_off_network_file_is_a_complaint_or_a_network(data, suffix):
    import pandapower

    whole = matpower_text(matpower_tables("case14")) if suffix == ".m" else pandapower.to_json(solved_case("case14"))
    cut = data.draw(st.integers(0, len(whole) - 1))
    try:
        solve_network(file_system(suffix, whole[:cut].encode()))
    except SpecError as error:
        assert "\n" not in str(error)

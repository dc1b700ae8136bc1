"""MATPOWER files give the network of MATPOWER's own definition; whatever else is in them is said, never run."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contingencies.errors import SpecError
from contingencies.formats.matpower import read_matpower
from contingencies.formats.stamps import bus_matrix
from contingencies.network import solve_network
from contingencies.power_flow import solve_power_flow
from tests.contingencies.formats.edits import TEXT, branch_row, changed, critical_duration, with_branch, wscc9_of
from tests.contingencies.networks import matpower_text

TRIP_57 = {"action": "remove-line", "line": (5, 7)}
TRIP_78 = {"action": "remove-line", "line": (7, 8)}
ROW_2, ROW_3 = (re.search(rf"^\t{bus}\t.*\t0;$", TEXT.split("mpc.gen")[1], re.M).group() for bus in (2, 3))


def read(text: str):
    return read_matpower(text.encode(), ".m", "grid")


def definition(text: str) -> tuple[np.ndarray, np.ndarray]:
    """Y_bus and scheduled injections by MATPOWER's manual, dense, one branch at a time, without our reader."""
    tables = {}
    for name in ("bus", "gen", "branch"):
        body = re.search(rf"mpc\.{name} = \[(.*?)\];", text, re.S).group(1)
        tables[name] = np.array([[float(x) for x in row.split()] for row in body.split(";") if row.strip()])
    base = float(re.search(r"baseMVA = (\S+);", text).group(1))
    bus, place = tables["bus"], {number: k for k, number in enumerate(tables["bus"][:, 0])}
    Y = np.diag((bus[:, 4] + 1j * bus[:, 5]) / base)
    for f, t, r, x, b, *_, ratio, angle, status in tables["branch"][:, :11]:
        if status == 0:
            continue
        y, tap = 1 / (r + 1j * x), (ratio or 1.0) * np.exp(1j * np.deg2rad(angle))
        i, j = place[f], place[t]
        Y[i, i] += (y + 0.5j * b) / abs(tap) ** 2
        Y[j, j] += y + 0.5j * b
        Y[i, j] -= y / np.conj(tap)
        Y[j, i] -= y / tap
    S = -(bus[:, 2] + 1j * bus[:, 3]) / base
    for number, P, Q, *_, status in tables["gen"][:, [0, 1, 2, 3, 4, 5, 6, 7]]:
        S[place[number]] += status * (P + 1j * Q) / base
    return Y, S


EDITS = {
    "as it is": TEXT,
    "ratios from LV to HV": with_branch(2, 7, with_branch(1, 4, c8="1.05"), c8="0.97"),
    "a phase shifter with charging": with_branch(5, 7, c9="4"),
    "two units at a bus": TEXT.replace(ROW_2, changed(ROW_2, c1="100") + "\n" + changed(ROW_2, c1="63")),
    "a transformer out of service": TEXT.replace(
        branch_row(1, 4), branch_row(1, 4) + "\n" + changed(branch_row(1, 4), c10="0")
    ),
    "a shift from LV to HV": with_branch(2, 7, c9="30"),
    "no base voltages": re.sub(r"\t(16\.5|18|13\.8|230)\t1\t1\.1", "\t0\t1\t1.1", TEXT),
    "a first unit out of service": TEXT.replace(ROW_2, changed(ROW_2, c1="70", c7="0") + "\n" + ROW_2),
    "a generator at a PQ bus": TEXT.replace("\t3\t2\t0\t0\t0\t0\t1\t1.025", "\t3\t1\t0\t0\t0\t0\t1\t1.025"),
}


@pytest.mark.parametrize("name", EDITS)
def test_the_bus_matrix_and_the_solved_state_are_those_of_the_definition(name):
    Y, S = definition(EDITS[name])
    case = read(EDITS[name])
    np.testing.assert_allclose(bus_matrix(case).toarray(), Y, rtol=0, atol=1e-12)
    V = solve_power_flow(case).V
    mismatch = V * np.conj(Y @ V) - S
    kind = case.buses.kind
    assert np.abs(mismatch.real[kind != 3]).max() < 1e-9
    assert np.abs(mismatch.imag[kind == 1]).max() < 1e-9


@pytest.mark.parametrize(
    ("name", "clearing", "right"),
    [
        ("as it is", TRIP_57, 0.1612),
        ("ratios from LV to HV", TRIP_57, 0.1672),
        ("a phase shifter with charging", TRIP_78, 0.1805),
        ("two units at a bus", TRIP_57, 0.1612),
        ("a transformer out of service", TRIP_57, 0.1612),
        ("a shift from LV to HV", TRIP_57, 0.16116),
        ("no base voltages", TRIP_57, 0.1612),
        ("a first unit out of service", TRIP_57, 0.1612),
    ],
)
def test_the_critical_duration_is_that_of_an_independent_reader(name, clearing, right):
    assert critical_duration(wscc9_of(EDITS[name]), clearing) == pytest.approx(right, abs=5.1e-5)


def test_units_that_share_a_bus_are_one_machine_with_their_sum():
    one, two = solve_network(wscc9_of(TEXT)), solve_network(wscc9_of(EDITS["two units at a bus"]))
    np.testing.assert_allclose(two.E, one.E, atol=1e-9)
    np.testing.assert_allclose(two.y_load, one.y_load, atol=1e-9)


def test_a_generator_at_a_pq_bus_may_be_a_machine_or_a_load():
    system = wscc9_of(EDITS["a generator at a PQ bus"])
    assert solve_network(system).n_machines == 3
    units = tuple(unit for unit in system.spec.machines.units if unit.bus != 3)
    machines = system.spec.machines.model_copy(update={"units": units})
    system = type(system)(system.spec.model_copy(update={"machines": machines}), system.network_file)
    network = solve_network(system)
    at_3 = network.y_load[network.bus(3, "bus")] * abs(network.V[network.bus(3, "bus")]) ** 2
    assert network.n_machines == 2
    assert np.conj(at_3) == pytest.approx(-0.85 + 0.109j, abs=1e-9)


# --- the text of a file -----------------------------------------------------------------------


def test_comments_commas_continuations_and_names_are_read():
    rows = "\n".join(line.replace("\t", ", ").strip(", ") for line in TEXT.split("mpc.branch = [")[1].splitlines())
    text = TEXT.split("mpc.branch = [")[0] + "mpc.branch = [" + rows.replace("0.161,", "0.161, ... a remark\n")
    text += "\nmpc.bus_name = {\n" + "\n".join(f"\t'Bus {k} 100%';" for k in range(9)) + "\n};\n"
    ours, plain = read(text), read(TEXT)
    np.testing.assert_array_equal(bus_matrix(ours).toarray(), bus_matrix(plain).toarray())
    assert ours.buses.name[3] == "Bus 3 100%"


def test_bare_matrices_of_the_first_case_format_are_read():
    text = TEXT.replace("function mpc = wscc9", "function [baseMVA, bus, gen, branch] = wscc9").replace("mpc.", "")
    np.testing.assert_array_equal(bus_matrix(read(text)).toarray(), bus_matrix(read(TEXT)).toarray())


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("mpc.baseMVA = 100;", "", ["mpc.baseMVA", "savecase"]),
        ("mpc.baseMVA = 100;", "mpc.baseMVA = system('id');", ["line 4", "not a number"]),
        ("mpc.baseMVA = 100;", "mpc.baseMVA = 0;", ["baseMVA", "above 0"]),
        ("\t5\t1\t125", "\t5\t1\t125\t7", ["line 12", "14 columns", "13"]),
        ("\t5\t1\t125", "\t5\t1\teval(x)", ["line 12", "'eval(x)'", "not a number"]),
        ("\t5\t1\t125", "\t5\t1\tNaN", ["line 12", "column 3", "finite"]),
        ("\t5\t1\t125", "\t5.5\t1\t125", ["line 12", "5.5", "integer"]),
        ("\t5\t1\t125", "\t4\t1\t125", ["line 12", "number 4"]),
        ("\t5\t1\t125", "\t5\t7\t125", ["bus 5", "type"]),
        ("\t1\t4\t0\t0.0576", "\t1\t44\t0\t0.0576", ["line 28", "bus 44", "mpc.bus"]),
        ("\t1\t4\t0\t0.0576", "\t1\t4\t0\t0", ["line 28", "no impedance"]),
        ("\t1\t4\t0\t0.0576", "\t1\t1\t0\t0.0576", ["same bus"]),
        ("\t2\t163", "\t12\t163", ["line 22", "bus 12"]),
        ("mpc.branch = [", "mpc.branch = [\n", []),
        ("\t1\t3\t0\t0\t0\t0\t1\t1.04", "\t1\t1\t0\t0\t0\t0\t1\t1.04", []),
    ],
)
def test_a_mistake_in_a_file_is_told_with_its_line(old, new, said):
    assert old in TEXT
    text = TEXT.replace(old, new, 1)
    if not said:
        solve_power_flow(read(text))
        return
    with pytest.raises(SpecError) as caught:
        read(text)
    assert all(word in str(caught.value) for word in said), caught.value
    assert "\n" not in str(caught.value) and str(caught.value).endswith(".")


@pytest.mark.parametrize(
    "statement",
    ["mpc.branch(:, 3) = mpc.branch(:, 3) * 2;", "mpc.bus(1, 3) = 5;", "mpc.branch = zeros(3);", "mpc.gen = [1 2]';"],
)
def test_a_statement_that_would_change_the_tables_is_refused(statement):
    with pytest.raises(SpecError, match=r"line \d+"):
        read(TEXT + statement + "\n")


def test_nothing_in_a_file_is_run(tmp_path):
    mark = tmp_path / "ran"
    hostile = f"system('touch {mark}');\n!touch {mark}\nimport os; os.system('touch {mark}')\neval('mpc.bus = 1');\n"
    read(TEXT + hostile)
    assert not mark.exists()


def test_no_file_is_read_beyond_its_limits(monkeypatch):
    monkeypatch.setattr("contingencies.formats.matpower.MAX_BYTES", 1000)
    with pytest.raises(SpecError, match="1000"):
        read(TEXT)
    monkeypatch.undo()
    monkeypatch.setattr("contingencies.formats.matpower_text.MAX_ROWS", 5)
    with pytest.raises(SpecError, match="more than 5 rows"):
        read(TEXT)


@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_a_damaged_file_is_a_complaint_or_a_network(data):
    cut = data.draw(st.integers(0, len(TEXT)))
    noise = data.draw(st.text(alphabet="0123456789.;[]{}'=\n\t eE+-%mpcbusNaInf", max_size=30))
    text = TEXT[:cut] + noise + TEXT[data.draw(st.integers(cut, len(TEXT))) :]
    try:
        read(text)
    except SpecError as error:
        assert "\n" not in str(error)


# --- properties -------------------------------------------------------------------------------


@st.composite
def tables(draw):
    """A connected network of up to 8 buses with parallel branches, ratios, shifts and branches out of service."""
    n = draw(st.integers(2, 8))
    real = lambda low, high: st.floats(low, high, allow_nan=False)  # noqa: E731
    numbers = draw(st.lists(st.integers(1, 10**6), min_size=n, max_size=n, unique=True))
    ends = [(k, draw(st.integers(0, k - 1))) for k in range(1, n)]
    ends += [draw(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1))) for _ in range(draw(st.integers(0, 4)))]
    rows = []
    for k, (i, j) in enumerate(pair for pair in ends if pair[0] != pair[1]):
        ratio, angle = draw(st.sampled_from([0, 1, 0.9, 1.1])), draw(st.sampled_from([0, 5, -30]))
        status = 1 if k < n - 1 else draw(st.integers(0, 1))
        r, x, b = draw(real(0, 0.02)), draw(real(0.02, 0.2)), draw(real(0, 0.1))
        rows.append([numbers[i], numbers[j], r, x, b, 0, 0, 0, ratio, angle, status, 0, 0])
    bus = [
        [number, 3 if k == 0 else 1, draw(real(0, 20)), draw(real(-5, 10)), 0, draw(real(0, 10)), 1, 1, 0, 100, 1, 2, 0]
        for k, number in enumerate(numbers)
    ]
    gen = [[numbers[0], 0, 0, 0, 0, 1.02, 100, 1] + [0] * 13]
    return {"bus": np.array(bus, float), "gen": np.array(gen, float), "branch": np.array(rows, float)}


@settings(max_examples=40, deadline=None)
@given(tables=tables())
def test_every_network_has_the_bus_matrix_of_the_definition(tables):
    text = matpower_text(tables)
    np.testing.assert_allclose(bus_matrix(read(text)).toarray(), definition(text)[0], rtol=1e-12, atol=1e-12)


@settings(max_examples=40, deadline=None)
@given(tables=tables(), seed=st.integers(0, 2**31))
def test_numbers_and_order_of_buses_and_branches_do_not_matter(tables, seed):
    plain = read(matpower_text(tables))
    rng = np.random.default_rng(seed)
    fresh = dict(zip(tables["bus"][:, 0], rng.permutation(10**6)[: len(tables["bus"])], strict=True))
    other = {name: rng.permutation(table) for name, table in tables.items()}
    for name, columns in (("bus", [0]), ("gen", [0]), ("branch", [0, 1])):
        for column in columns:
            other[name][:, column] = [fresh[number] for number in other[name][:, column]]
    mixed = read(matpower_text(other))
    place = mixed.buses.position([fresh[number] for number in plain.buses.number])
    V, V_mixed = solve_power_flow(plain).V, solve_power_flow(mixed).V
    np.testing.assert_allclose(V_mixed[place], V, rtol=0, atol=1e-9)

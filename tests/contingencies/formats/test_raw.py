"""PSS/E RAW files: what they say becomes the plain network, in every version and with every unit code."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contingencies.errors import SpecError
from contingencies.formats.case import Case
from contingencies.formats.raw import read_raw
from contingencies.formats.raw_devices import stored_surplus
from contingencies.formats.stamps import bus_matrix
from contingencies.formats.tables import Branches, Buses, Loads, Shunts, Units, table
from tests.contingencies.formats.raw_text import (
    bus_row,
    line_row,
    load_row,
    raw_text,
    text_of,
    three_winding_rows,
    two_winding_rows,
    unit_row,
)

VERSIONS = (32, 33, 34, 35)
KV = (345.0, 138.0, 13.8)


def read(text: str):
    return read_raw(text.encode(), "case.raw")


def small(version=33, buses=3, **sections) -> str:
    """Buses 1 to 3 on 345, 138 and 13.8 kV, a unit at bus 1."""
    rows = {
        "bus": [bus_row(k + 1, 3 if k == 0 else 1, kv=KV[k]) for k in range(buses)],
        "generator": [unit_row(version, 1)],
    }
    return raw_text(version, **(rows | sections))


# --- transformers -----------------------------------------------------------------------------


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(("t_1", "t_2"), [(1.05, 1.0), (1.0, 0.95), (1.1, 0.9)])
def test_a_tap_on_either_side_gives_the_two_port_of_its_definition(version, t_1, t_2):
    rows = two_winding_rows(version, 1, 2, z=(0.01, 0.1), windings=((t_1, 0.0, 30.0), (t_2, 0.0)))
    Y = bus_matrix(read(small(version, 2, transformer=rows)).case).toarray()
    y, shift = 1 / (0.01 + 0.1j), np.exp(1j * np.pi / 6)
    expected = [[y / t_1**2, -y / (t_1 * t_2 * np.conj(shift))], [-y / (t_1 * t_2 * shift), y / t_2**2]]
    np.testing.assert_allclose(Y, expected, rtol=1e-13)


@pytest.mark.parametrize(
    ("cw", "windings"),
    [
        (1, ((1.05, 0.0, 0.0), (0.98, 0.0))),
        (2, ((1.05 * 345.0, 0.0, 0.0), (0.98 * 138.0, 0.0))),
        (3, ((1.05 * 345.0 / 330.0, 330.0, 0.0), (0.98 * 138.0 / 132.0, 132.0))),
        (3, ((1.05, 0.0, 0.0), (0.98, 0.0))),
    ],
)
def test_every_code_of_winding_voltages_says_the_same_ratio(cw, windings):
    Y = bus_matrix(read(small(33, 2, transformer=two_winding_rows(33, 1, 2, codes=(cw, 1, 1), windings=windings))).case)
    plain = two_winding_rows(33, 1, 2, windings=((1.05, 0.0, 0.0), (0.98, 0.0)))
    np.testing.assert_allclose(
        Y.toarray(), bus_matrix(read(small(33, 2, transformer=plain)).case).toarray(), rtol=1e-13
    )


@pytest.mark.parametrize(
    ("cz", "z", "mva"),
    [
        (1, (0.004, 0.08), 100.0),
        (2, (0.01, 0.2), 250.0),
        (3, (0.01 * 250e6, float(np.hypot(0.01, 0.2))), 250.0),  # load losses in W, |z| in pu
    ],
)
def test_every_code_of_impedances_says_the_same_impedance(cz, z, mva):
    case = read(small(33, 2, transformer=two_winding_rows(33, 1, 2, z=z, codes=(1, cz, 1), mva=mva))).case
    assert case.branches.r[0] + 1j * case.branches.x[0] == pytest.approx(0.004 + 0.08j, rel=1e-12)


@pytest.mark.parametrize(
    ("cm", "magnetising"),
    [(1, (0.002, -0.01)), (2, (0.002 * 100e6, float(np.hypot(0.002, 0.01)) * 100.0 / 250.0))],
)
def test_every_code_of_the_magnetising_admittance_puts_the_same_shunt_at_the_first_winding(cm, magnetising):
    rows = two_winding_rows(
        33, 1, 2, magnetising=magnetising, codes=(1, 1, cm), mva=250.0, windings=((1.1, 0.0, 0.0), (1.0, 0.0))
    )
    case = read(small(33, 2, transformer=rows)).case
    Y = bus_matrix(case).toarray()
    assert Y[0, 0] == pytest.approx(1 / 0.1j / 1.1**2 + 0.002 - 0.01j, rel=1e-12)
    assert Y[1, 1] == pytest.approx(1 / 0.1j, rel=1e-12)


@pytest.mark.parametrize("version", VERSIONS)
def test_between_two_of_three_windings_there_is_their_own_impedance(version):
    z = (0.01 + 0.1j, 0.02 + 0.15j, 0.015 + 0.12j)
    case = read(small(version, transformer=three_winding_rows(version, (1, 2, 3), z))).case
    assert case.buses.number.tolist() == [1, 2, 3, 4]
    Y = bus_matrix(case).toarray()
    for (i, j), expected in zip(((0, 1), (1, 2), (2, 0)), z, strict=True):
        free = [k for k in range(4) if k != j]  # bus j is grounded, a current of 1 flows in at bus i
        Z = np.linalg.inv(Y[np.ix_(free, free)])
        assert Z[free.index(i), free.index(i)] == pytest.approx(expected, rel=1e-10)


def test_three_windings_with_ratios_and_a_shift_balance_their_star_bus():
    rows = three_winding_rows(33, (1, 2, 3), (0.1j, 0.15j, 0.12j), (1.05, 0.95, 1.0), (0.0, 0.0, -30.0))
    case = read(small(33, transformer=rows)).case
    np.testing.assert_allclose(case.branches.tap, [1.05, 0.95, 1.0])
    np.testing.assert_allclose(case.branches.shift, np.deg2rad([0.0, 0.0, -30.0]))
    assert abs(stored_surplus(case)[3]) < 1e-12


@pytest.mark.parametrize(("status", "running"), [(0, ""), (1, "123"), (2, "13"), (3, "12"), (4, "23")])
def test_a_status_takes_one_winding_out_of_three(status, running):
    case = read(small(transformer=three_winding_rows(33, (1, 2, 3), (0.1j, 0.15j, 0.12j), status=status))).case
    assert case.buses.number[case.branches.start[case.branches.in_service]].tolist() == [int(bus) for bus in running]


def test_a_star_whose_leg_has_no_impedance_can_still_be_solved():
    case = read(small(transformer=three_winding_rows(33, (1, 2, 3), (0.1j, 0.2j, 0.1j)))).case
    assert np.abs(case.branches.r + 1j * case.branches.x).min() > 0


# --- everything else --------------------------------------------------------------------------


@pytest.mark.parametrize("version", VERSIONS)
def test_loads_shunts_units_and_lines_are_read_in_every_version(version):
    shunt_columns = "'1',1,0,1" if version >= 35 else "1,0,1"
    binit = "0,0,100.0,'',-20.0" if version >= 35 else "0,100.0,'',-20.0"
    text = small(
        version,
        bus=[bus_row(1, 3, kv=345.0, area=7, zone=8, v=1.02, angle=-3.0), bus_row(2), bus_row(3, 2)],
        load=[load_row(2, 100.0, 50.0, 10.0, 5.0, 20.0, -8.0), load_row(3, 1.0, status=0)],
        fixed_shunt=["2,'1',1,1.0,30.0", "3,'1',0,1.0,30.0"],
        generator=[
            unit_row(version, 1, "G1", 80.0, 12.0, 1.02, 250.0, 0.01 + 0.3j, 0.002 + 0.1j),
            unit_row(version, 3, "2", 5.0, status=0),
        ],
        branch=[
            line_row(version, 1, 2, "A", 0.01 + 0.1j, 0.2, 400.0, 0.001 + 0.002j, 0.003 + 0.004j),
            line_row(version, 2, -3, status=0),
        ],
        switched_shunt=[f"2,{shunt_columns},1.1,0.9,{binit},1,-20.0"],
    )
    raw = read(text)
    case = raw.case
    assert (raw.version, raw.frequency_hz, case.base_mva) == (version, 60.0, 100.0)
    assert (case.buses.area[0], case.buses.zone[0], case.buses.v[0]) == (7, 8, 1.02)
    assert case.buses.angle[0] == pytest.approx(np.deg2rad(-3.0))
    assert (case.loads.S_power[0], case.loads.S_current[0], case.loads.S_impedance[0]) == (
        1 + 0.5j,
        0.1 + 0.05j,
        0.2 + 0.08j,
    )
    assert case.shunts.y.tolist() == [0.01 + 0.3j, -0.2j]
    units = case.units
    assert (units.id[0], units.P[0], units.Q[0], units.mva[0]) == ("G1", 0.8, 0.12, 250.0)
    assert units.z_source[0] == 0.01 + 0.3j
    assert units.in_service.tolist() == [True, False]
    assert raw.step_up[0] == 0.002 + 0.1j
    line = case.branches.taken(np.array([0]))
    assert (line.circuit[0], line.b[0], line.rating[0]) == ("A", 0.2, 400.0)
    assert (line.y_start[0], line.y_end[0]) == (0.001 + 0.002j, 0.003 + 0.004j)
    assert case.branches.in_service.tolist() == [True, False]


def test_generation_behind_a_load_is_subtracted_where_it_runs():
    extra = ",1,0,{P},{Q},{mode},0"
    rows = [load_row(2, 10.0, 4.0) + extra.format(P=3.0, Q=1.0, mode=mode) for mode in (0, 1)]
    case = read(small(34, 2, load=rows, branch=[line_row(34, 1, 2)])).case
    np.testing.assert_allclose(case.loads.S_power, [0.1 + 0.04j, 0.07 + 0.03j])


def test_lines_without_impedance_and_closed_switches_join_their_buses():
    switch = "2,3,'1',0.0001," + ",".join(["0.0"] * 12) + ",1,1,1,2,'a switch'"
    text = small(
        34,
        bus=[bus_row(10), bus_row(2, 3), bus_row(3, 2), bus_row(40)],
        load=[load_row(3, 50.0)],
        generator=[unit_row(34, 2), unit_row(34, 3, P=20.0)],
        branch=[line_row(34, 10, 2), line_row(34, 3, 40, z=0j), line_row(34, 2, 40, "2", z=0.2j)],
        system_switching_device=[switch, switch.replace(",1,1,1,2,", ",0,1,1,2,").replace("2,3", "10,40")],
    )
    raw = read(text)
    case = raw.case
    assert case.buses.number.tolist() == [10, 2]
    assert dict(case.merged) == {3: 1, 40: 1}
    assert case.buses.number[case.loads.bus].tolist() == [2]
    assert case.units.bus.tolist() == [1, 1]
    assert raw.unit_bus.tolist() == [2, 3]
    assert len(case.branches) == 1  # what runs between joined buses does nothing


def test_a_unit_at_its_limit_or_regulating_another_bus_holds_the_stored_voltage():
    text = small(
        bus=[bus_row(1, 3, v=1.03), bus_row(2, 2, v=0.98), bus_row(3, 2, v=0.97)],
        generator=[
            unit_row(33, 1, v=1.03),
            unit_row(33, 2, Q=50.0, q=50.0, v=1.05),
            unit_row(33, 3, v=1.05, ireg=1),
        ],
        branch=[line_row(33, 1, 2), line_row(33, 2, 3)],
    )
    raw = read(text)
    assert raw.case.units.v_set.tolist() == [1.03, 0.98, 0.97]
    assert len(raw.notes) == 2


def test_a_dc_line_becomes_the_power_that_balances_the_stored_state():
    text = small(
        bus=[bus_row(1, 3), bus_row(2, angle=-4.0), bus_row(3, angle=-2.0)],
        branch=[line_row(33, 1, 2), line_row(33, 1, 3)],
        two_terminal_dc=["'DC',1,5.0,100.0,500.0", "2,1,20.0,5.0", "3,1,20.0,5.0"],
    )
    raw = read(text)
    assert np.abs(stored_surplus(raw.case)[1:]).max() < 1e-12
    assert any("DC line" in note for note in raw.notes)


def test_blanks_quotes_comments_and_empty_fields_are_free():
    text = small(branch=[line_row(33, 1, 2), line_row(33, 2, 3)])
    blanks = text.replace("1,2,'1',0.0,0.1,0.0", "  1 2 '1'\t0.0 1.0D-01 , 0.0").replace(
        "2,3,'1',0.0,0.1,0.0", "2,3,,0.0,.1,"
    )
    commented = blanks.replace("title one", "title / one")
    for variant in (blanks, commented, text.replace("\n", "\r\n")):
        case = read(variant).case
        assert case.branches.x.tolist() == [0.1, 0.1]
        assert case.branches.circuit.tolist() == ["1", "1"]


def test_a_section_is_the_one_its_comment_announces():
    text = small(load=[load_row(2, 10.0)], branch=[line_row(33, 1, 2), line_row(33, 2, 3)])
    skipping = text.replace(
        "0 / END OF LOAD DATA\n0 / END OF FIXED SHUNT DATA", "0 / END OF LOAD DATA, BEGIN GENERATOR DATA"
    )
    assert len(read(skipping).case.units) == 1


@st.composite
def cases(draw):
    n = draw(st.integers(2, 5))
    numbers = draw(st.lists(st.integers(1, 99_999), min_size=n, max_size=n, unique=True))
    some = st.floats(-2.0, 2.0).map(lambda x: round(x, 6))
    positive = st.floats(0.01, 2.0).map(lambda x: round(x, 6))
    m = draw(st.integers(1, 6))
    ends = [draw(st.permutations(range(n)))[:2] for _ in range(m)]
    transformer = draw(st.lists(st.booleans(), min_size=m, max_size=m))
    real = lambda count, of=some: np.array(draw(st.lists(of, min_size=count, max_size=count)))  # noqa: E731
    return Case(
        "case.raw",
        draw(st.sampled_from([50.0, 100.0, 1000.0])),
        table(
            Buses, n, number=numbers, kind=[3, *[1] * (n - 1)], base_kv=real(n, positive), v=real(n, positive),
            angle=real(n), area=2, zone=3, name="BUS",
        ),
        table(Loads, n, bus=range(n), S_power=real(n) + 1j * real(n), S_current=real(n), S_impedance=1j * real(n)),
        table(Shunts, 1, bus=[n - 1], y=real(1) + 1j * real(1)),
        table(
            Branches, m, start=[e[0] for e in ends], end=[e[1] for e in ends],
            circuit=[str(k) for k in range(m)], r=real(m), x=real(m, positive), b=np.where(transformer, 0.0, real(m)),
            y_start=1j * real(m), y_end=np.where(transformer, 0.0, 1j * real(m)),
            tap=np.where(transformer, real(m, positive), 1.0), shift=np.where(transformer, real(m), 0.0),
            rating=real(m, positive), in_service=draw(st.lists(st.booleans(), min_size=m, max_size=m)),
            is_transformer=transformer,
        ),
        table(Units, 1, bus=[0], id="1", P=real(1), Q=real(1), mva=real(1, positive), z_source=1j * real(1, positive)),
    )  # fmt: skip


@settings(max_examples=40, deadline=None)
@given(case=cases(), version=st.sampled_from(VERSIONS))
def test_a_network_written_as_raw_reads_back_equal(case, version):
    back = read(text_of(case, version)).case
    lines_first = np.argsort(case.branches.is_transformer, kind="stable")
    for name, rows in (("buses", ...), ("loads", ...), ("shunts", ...), ("branches", lines_first), ("units", ...)):
        for column, values in vars(getattr(case, name)).items():
            if column.startswith("_") or (name, column) in {("units", "q_min"), ("units", "q_max"), ("units", "v_set")}:
                continue
            read_back = getattr(getattr(back, name), column)
            if values.dtype.kind in "fc":
                np.testing.assert_allclose(read_back, values[rows], rtol=1e-12, atol=1e-12, err_msg=column)
            else:
                np.testing.assert_array_equal(read_back, values[rows], err_msg=column)


# --- what is wrong ----------------------------------------------------------------------------

GOOD = small(
    load=[load_row(2, 10.0)], branch=[line_row(33, 1, 2), line_row(33, 2, 3)], transformer=two_winding_rows(33, 1, 3)
)


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("0, 100.0, 33", "0, 100.0, 30", "identification record: REV is 30; versions 32 to 35 are read"),
        ("0, 100.0, 33", "1, 100.0, 33", "IC is 1"),
        ("0, 100.0, 33", "0, 0.0, 33", "SBASE and BASFRQ must be above 0"),
        ("0, 100.0, 33", "hello, 100.0, 33", "a RAW file starts with 0"),
        ("2,'1 ',1,1,1,10.0", "2,'1 ',1,1,1,ten", r"case.raw:8: load record: field 6 \(PL\) is 'ten'; give"),
        ("2,'1 ',1,1,1,10.0", "9,'1 ',1,1,1,10.0", "load record: bus 9 does not exist; add it"),
        ("2,'1 ',1,1,1,10.0", "2.5,'1 ',1,1,1,10.0", "give a whole number"),
        ("2,3,'1',0.0,0.1", "2,3,'1',0.0,", r"branch record: field 5 \(X\) is missing"),
        ("2,3,'1',0.0,0.1", "2,2,'1',0.0,0.1", "branch record: it starts and ends at bus 2"),
        ("2,3,'1',0.0,0.1", "2,3,'1',0.0,1e999", "give a finite number"),
        ("1,3,0,'1',1,1,1", "1,3,0,'1',4,1,1", "transformer record: CW is 4; it is a code from 1 to 3"),
        ("1,3,0,'1',1,1,1", "1,3,2,'1',1,1,1", "the transformer ends after 4 of its 5 lines"),
        ("1.0,0.0,0.0,0.0,0.0,0.0,0,0", "-1.0,0.0,0.0,0.0,0.0,0.0,0,0", "ratio above 0"),
        ("3,'BUS         '", "1,'BUS         '", "bus record: bus 1 stands twice"),
        ("138.0, 1, 1, 1", "138.0, 9, 1, 1", "IDE is 9"),
        ("title two\n", "", "bus record|whole RAW file|does not exist"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_record_is_said_with_line_and_remedy(old, new, sentence):
    assert old in GOOD
    with pytest.raises(SpecError, match=sentence) as error:
        read(GOOD.replace(old, new, 1))
    assert str(error.value).startswith("case.raw")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("content", [b"", b"\0\0\0", b"0, 100.0, 33", b"0,100,33\n\n\n0/\nQ", b"\xff\xfe\x00\x01"])
def test_what_is_no_raw_file_is_refused_in_one_sentence(content):
    with pytest.raises(SpecError, match=r"case\.raw"):
        read_raw(content, "case.raw")


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_damaged_bytes_are_read_or_refused_but_never_crash(data):
    content = bytearray(GOOD.encode())
    for _ in range(data.draw(st.integers(1, 12))):
        place = data.draw(st.integers(0, len(content) - 1))
        action = data.draw(st.sampled_from(["change", "delete", "insert", "cut"]))
        if action == "change":
            content[place] = data.draw(st.integers(0, 255))
        elif action == "delete":
            del content[place : place + data.draw(st.integers(1, 30))]
        elif action == "insert":
            content[place:place] = data.draw(
                st.binary(max_size=6) | st.sampled_from([b"1e308", b"-1", b"0 /\n", b"'", b","])
            )
        else:
            del content[place:]
        content = content or bytearray(b"0")
    try:
        read_raw(bytes(content), "case.raw")
    except SpecError as error:
        assert "case.raw" in str(error)

"""PSS/E DYR files: machines on their own base, one per bus, and what the classical machine has no place for."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contingencies.errors import SpecError
from contingencies.formats.dyr import read_dyr
from contingencies.formats.dyr_machines import machines_of
from contingencies.formats.raw import read_raw
from tests.contingencies.formats.raw_text import bus_row, line_row, raw_text, unit_row

ROUND = "6.5 0.06 0.2 0.05 {H} {D} 1.8 1.75 {x} 0.8 0.23 0.15 0.09 0.38"
SALIENT = "6.5 0.06 0.2 {H} {D} 1.8 1.75 {x} 0.23 0.15 0.09 0.38"
TRANSIENT = "6.5 {H} {D} 1.8 1.75 {x} 0.15 0.09 0.38"
DYR = """
/ machines of a small grid
 1 'GENROU' 1   6.5 0.06 0.2 0.05
   4.0  1.0  1.8 1.75 0.3 0.8 0.23 0.15 0.09 0.38 /
 1 'EXST1' 1 0.01 10.0 / an exciter
 2,'GENCLS','A ', 3.0, 2.0 /
 2 'GENSAL' 'B' 5.0 0.05 0.06 5.0 0.0 1.0 0.6 0.25 0.2 0.1 0.11 0.5 /
 3 'USRMDL' 1 'REGCA1' 101 1 1 14 3 4 0 0.02 10 /
"""


def network(**changes):
    units = {
        "one": unit_row(33, 1, mva=500.0, z=0.9j),
        "a": unit_row(33, 2, "A", mva=200.0, z=0.25j, step_up=0.05j),
        "b": unit_row(33, 2, "B", mva=300.0),
        "wind": unit_row(33, 3, "1", P=30.0, Q=4.0),
    } | changes
    return raw_text(
        bus=[bus_row(1, 3), bus_row(2, 2), bus_row(3, 2)],
        generator=[row for row in units.values() if row],
        branch=[line_row(33, 1, 2), line_row(33, 2, 3)],
    )


def machines(dyr=DYR, **changes):
    return machines_of(read_raw(network(**changes).encode(), "case.raw"), read_dyr(dyr.encode(), "case.dyr"))


@pytest.mark.parametrize(
    ("model", "parameters"),
    [
        ("GENROU", ROUND), ("GENROE", ROUND), ("GENTPJ1", ROUND), ("GENSAL", SALIENT), ("GENSAE", SALIENT),
        ("GENTRA", TRANSIENT),
    ],
)  # fmt: skip
def test_every_machine_model_gives_inertia_damping_and_transient_reactance(model, parameters):
    text = f"1 '{model}' 1 {parameters.format(H=4.25, D=1.5, x=0.31)} /"
    machine = read_dyr(text.encode(), "case.dyr").machines[0]
    assert (machine.bus, machine.id, machine.H, machine.D, machine.x_d) == (1, "1", 4.25, 1.5, 0.31)


def test_machines_of_a_bus_are_added_up_on_the_sum_of_their_bases():
    table = machines()
    one, two = table.machines
    assert (one.bus, one.H, one.x_d, one.D, one.mva) == (1, 4.0, 0.3, 1.0, 500.0)
    # GENCLS takes ZX and the unit's own step-up transformer; reactances are in parallel in MVA.
    x = 500.0 / (200.0 / (0.25 + 0.05) + 300.0 / 0.25)
    assert (two.bus, two.mva) == (2, 500.0)
    assert pytest.approx((3.0 * 200.0 + 5.0 * 300.0) / 500.0) == two.H
    assert pytest.approx(2.0 * 200.0 / 500.0) == two.D
    assert two.x_d == pytest.approx(x)


def test_units_without_a_model_are_static_and_other_models_are_counted():
    table = machines()
    assert table.static == ((3, "1"),)
    assert read_dyr(DYR.encode(), "case.dyr").ignored == {"EXST1": 1, "REGCA1": 1}
    said = " | ".join(table.notes)
    assert "1 units without a machine model (3/1)" in said
    assert "1 EXST1, 1 REGCA1" in said
    assert not table.warnings


def test_units_out_of_service_have_no_machine_and_models_without_a_unit_are_told():
    table = machines(b=unit_row(33, 2, "B", mva=300.0, status=0), wind="", one=unit_row(33, 1, "9", mva=500.0))
    assert [machine.bus for machine in table.machines] == [2]
    assert table.machines[0].H == 3.0
    assert table.static == ((1, "9"),)
    assert any("machine models without a unit (1/1)" in note for note in table.notes)


def test_a_classical_machine_without_inertia_is_an_infinite_bus():
    table = machines(DYR.replace("'A ', 3.0", "'A ', 0.0"))
    assert table.machines[1].H > 1e5
    assert any("infinite bus" in note for note in table.notes)


@pytest.mark.parametrize(("old", "new", "sentence"), [
    ("4.0  1.0", "400.0  1.0", "H = 400 s on the machine base is implausible"),
    ("1.8 1.75 0.3", "1.8 1.75 3.0", "x'd = 3 pu on the machine base is implausible"),
])  # fmt: skip
def test_implausible_machine_data_are_warned_about(old, new, sentence):
    warnings = machines(DYR.replace(old, new)).warnings
    assert len(warnings) == 1
    assert warnings[0].startswith("case.dyr:3: GENROU of unit 1 at bus 1: ")
    assert sentence in warnings[0]


@pytest.mark.parametrize(("old", "new", "sentence"), [
    ("0.09 0.38 /\n 1 'EXST1'", "0.09 0.38\n 1 'EXST1'", "already|GENROU"),
    (" 3.0, 2.0 /", " 3.0, 2.0", "GENCLS record|already|GENSAL"),
    ("4.0  1.0", "four  1.0", r"case.dyr:3: GENROU record: field 8 \(H\) is 'four'; give a finite number"),
    ("4.0  1.0", "-4.0  1.0", "H is -4 s; give an inertia constant above 0"),
    ("4.0  1.0", "4.0  -1.0", "D is -1; give a damping of at least 0"),
    ("1.8 1.75 0.3", "1.8 1.75 0.0", "X'd is 0 pu"),
    ("'GENSAL' 'B'", "'GENSAL' 'A'", "machine A at bus 2 has a GENCLS in line 6 already"),
    ("3 4 0 0.02 10 /", "3 4 0 0.02 10", "the last record does not end; end it with a slash"),
])  # fmt: skip
def test_what_is_wrong_with_a_model_is_said_with_line_and_remedy(old, new, sentence):
    assert old in DYR
    if sentence.endswith(("GENROU", "GENSAL")):  # a lost slash glues two records together: harmless or told
        try:
            machines(DYR.replace(old, new, 1))
        except SpecError as error:
            assert str(error).startswith("case.dyr")
        return
    with pytest.raises(SpecError, match=sentence) as error:
        machines(DYR.replace(old, new, 1))
    assert str(error.value).startswith("case.dyr")


def test_a_file_without_a_machine_of_the_network_is_refused():
    with pytest.raises(SpecError, match="no machine model; give records of GENCLS"):
        read_dyr(b"1 'EXST1' 1 0.1 /", "case.dyr")
    with pytest.raises(SpecError, match="no machine model belongs to a unit in service"):
        machines("99 'GENCLS' 1 3.0 0.0 /")


@settings(max_examples=100, deadline=None)
@given(place=st.integers(0, len(DYR) - 1), junk=st.binary(max_size=8), length=st.integers(0, 40))
def test_damaged_bytes_are_read_or_refused_but_never_crash(place, junk, length):
    content = DYR.encode()
    damaged = content[:place] + junk + content[place + length :]
    raw = read_raw(network().encode(), "case.raw")
    try:
        table = machines_of(raw, read_dyr(damaged, "case.dyr"))
    except SpecError as error:
        assert "case.dyr" in str(error)
    else:
        assert all(np.isfinite([m.H, m.x_d, m.D, m.mva]).all() for m in table.machines)

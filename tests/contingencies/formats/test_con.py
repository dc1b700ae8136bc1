"""PSS/E contingency lists: which statements are understood, and what happens to the others."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contingencies.errors import SpecError
from contingencies.formats.con import FaultBus, FaultLine, OpenLine, TripUnit, read_con


def action(statement: str):
    case = read_con(f"CONTINGENCY X\n{statement}\nEND\nEND\n".encode(), "list.con").cases[0]
    return case.actions[0] if case.actions else None


@pytest.mark.parametrize("statement", [
    "OPEN LINE FROM BUS 16 TO BUS 17 CIRCUIT 2",
    "TRIP BRANCH FROM BUS 16 TO BUS 17 CKT 2",
    "disconnect branch from bus 16 to bus 17 circuit 2",
    "REMOVE LINE FROM BUS   16   TO   17 CKT '2 ' / a comment",
    "SET STATUS OPEN BRANCH FROM BUS 16 TO BUS 17 CKT 2",
    "OPEN BRANCH FROM BUS 16 [NORTH 345] TO BUS 17 [SOUTH 345] CIRCUIT 2",
])  # fmt: skip
def test_a_line_opens_however_it_is_said(statement):
    assert action(statement) == OpenLine((16, 17), "2")


@pytest.mark.parametrize("statement", [
    "REMOVE UNIT 1 FROM BUS 30",
    "REMOVE MACHINE '1 ' FROM BUS 30",
    "TRIP MACHINE 1 AT BUS 30",
    "DISCONNECT UNIT 1 FROM BUS 30",
    "SET STATUS OPEN MACHINE 1 AT BUS 30",
])  # fmt: skip
def test_a_unit_leaves_however_it_is_said(statement):
    assert action(statement) == TripUnit(30, "1")


def test_faults_and_statements_without_circuit_or_identifier():
    for statement in ("FAULT AT BUS 7", "APPLY FAULT AT BUS 7", "SET FAULT BUS 7", "BUS FAULT AT BUS 7", "FAULT 7"):
        assert action(statement) == FaultBus(7)
    assert action("FAULT LINE FROM BUS 3 TO BUS 4 CKT 1") == FaultLine((3, 4), "1")
    assert action("OPEN LINE FROM BUS 3 TO BUS 4") == OpenLine((3, 4), None)
    assert action("REMOVE UNIT FROM BUS 3") == TripUnit(3, None)


def test_other_statements_and_families_over_subsystems_are_kept_with_their_line():
    text = (
        "/ a list\n\nCONTINGENCY 'A B'\nOPEN LINE FROM BUS 1 TO BUS 2\nSET PLOAD AT BUS 3 TO 5.0\nEND\n"
        "SINGLE BRANCH IN SUBSYSTEM 'WEST'\nCONTINGENCY C\nREMOVE UNIT 1 FROM BUS 3\nEND\nEND\n"
    )
    con = read_con(text.encode(), "list.con")
    assert [(case.name, case.line) for case in con.cases] == [("A B", 3), ("C", 8)]
    assert con.cases[0].unknown == ("line 5: SET PLOAD AT BUS 3 TO 5.0",)
    assert con.outside == ("line 7: SINGLE BRANCH IN SUBSYSTEM 'WEST'",)


@pytest.mark.parametrize(("text", "sentence"), [
    ("", "list.con: the file has no contingency; write CONTINGENCY"),
    ("CONTINGENCY A\nOPEN LINE FROM BUS 1 TO BUS 2\n", "list.con:1: the contingency does not end; add a line END"),
    ("CONTINGENCY A\nCONTINGENCY B\nEND\n", "list.con:2: CONTINGENCY stands before the END of that in line 1"),
    ("CONTINGENCY A\n" + "x" * 3000, "list.con:2: the line has 3000 characters"),
    ("\0", "not text"),
])  # fmt: skip
def test_what_is_wrong_with_a_list_is_said_in_one_sentence(text, sentence):
    with pytest.raises(SpecError, match=sentence.replace(".", r"\.")):
        read_con(text.encode(), "list.con")


@settings(max_examples=100, deadline=None)
@given(content=st.binary(max_size=200) | st.text("CONTIGEYPLFRMBUSD 0123'\n/", max_size=300).map(str.encode))
def test_any_bytes_are_read_or_refused_but_never_crash(content):
    try:
        read_con(content, "list.con")
    except SpecError as error:
        assert "list.con" in str(error)

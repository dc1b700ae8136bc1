"""PSS/E contingency files (.con): named lists of outages, and of faults where a file has them.

A case runs from CONTINGENCY 'NAME' to END. Understood are lines opened (OPEN, TRIP, DISCONNECT or REMOVE a LINE or
BRANCH), units removed (REMOVE, TRIP or DISCONNECT a UNIT or MACHINE) and faults (FAULT AT BUS n, FAULT LINE FROM BUS i
TO BUS j, also with APPLY or SET before). Statements outside cases make families over subsystems; they and every other
statement are kept with their line, for a list of what was left out.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from contingencies.errors import SpecError
from contingencies.formats.psse_text import decoded

MAX_CASES = 100_000  # far above any study; a longer list is not one that people read
MAX_LINE = 2_000
BUS = r"(?:BUS\s+)?(\d{1,9})(?:\s*\[[^\]]*\])?"  # a bus may carry its name in brackets
CIRCUIT = r"(?:\s+(?:CIRCUIT|CKT|ID)\s*=?\s*('[^']*'|\"[^\"]*\"|\S+))?"
LINE = re.compile(
    r"(?:SET\s+STATUS\s+)?(?:OPEN|TRIP|DISCONNECT|REMOVE)\s+(?:LINE|BRANCH|TRANSFORMER)\s+FROM\s+"
    rf"{BUS}\s+TO\s+{BUS}{CIRCUIT}\s*",
    re.IGNORECASE,
)
UNIT = re.compile(
    r"(?:SET\s+STATUS\s+OPEN|REMOVE|TRIP|DISCONNECT|OPEN)\s+(?:UNIT|MACHINE|GENERATOR)\s+"
    rf"(?:('[^']*'|\"[^\"]*\"|\S+)\s+)?(?:FROM|AT)\s+{BUS}\s*",
    re.IGNORECASE,
)
BUS_FAULT = re.compile(
    rf"(?:(?:APPLY|SET|PLACE)\s+)?(?:THREE\s*-?\s*PHASE\s+|3PH\s+|BUS\s+)?FAULT\s+(?:(?:AT|ON)\s+)?{BUS}\s*",
    re.IGNORECASE,
)
LINE_FAULT = re.compile(
    r"(?:(?:APPLY|SET|PLACE)\s+)?(?:THREE\s*-?\s*PHASE\s+|3PH\s+)?(?:LINE\s+)?FAULT\s+(?:ON\s+)?(?:LINE\s+|BRANCH\s+)?"
    rf"FROM\s+{BUS}\s+TO\s+{BUS}{CIRCUIT}\s*",
    re.IGNORECASE,
)
CASE = re.compile(r"CONTINGENCY\s+('[^']*'|\"[^\"]*\"|\S.*)", re.IGNORECASE)


@dataclass(frozen=True)
class OpenLine:
    """A line that opens; the circuit as printed, None when the file does not say."""

    buses: tuple[int, int]
    circuit: str | None


@dataclass(frozen=True)
class TripUnit:
    """A unit that leaves; the identifier as printed, None when the file does not say."""

    bus: int
    id: str | None


@dataclass(frozen=True)
class FaultBus:
    """A fault at a bus."""

    bus: int


@dataclass(frozen=True)
class FaultLine:
    """A fault in the middle of a line."""

    buses: tuple[int, int]
    circuit: str | None


Action = OpenLine | TripUnit | FaultBus | FaultLine


@dataclass(frozen=True)
class ConCase:
    """One named contingency, and the statements of it that are not understood, each with its line."""

    name: str
    line: int
    actions: tuple[Action, ...]
    unknown: tuple[str, ...]


@dataclass(frozen=True)
class ConFile:
    """The cases of a file, and statements outside of cases, each with its line."""

    cases: tuple[ConCase, ...]
    outside: tuple[str, ...]


def read_con(content: bytes, name: str) -> ConFile:
    """The contingencies of a .con file; `name` is what complaints call the file."""
    cases: list[ConCase] = []
    outside: list[str] = []
    title, start = "", 0
    actions: list[Action] = []
    unknown: list[str] = []
    for number, text in _statements(decoded(content, name), name):
        begin = CASE.fullmatch(text)
        if begin:
            if start:
                raise SpecError(f"{name}:{number}: CONTINGENCY stands before the END of that in line {start}; add END.")
            title, start, actions, unknown = _unquoted(begin.group(1)), number, [], []
        elif text.upper() == "END":
            if start:
                cases.append(ConCase(title, start, tuple(actions), tuple(unknown)))
            start = 0
        elif not start:
            outside.append(f"line {number}: {text[:80]}")
        else:
            action = _action(text)
            if action is None:
                unknown.append(f"line {number}: {text[:80]}")
            else:
                actions.append(action)
        if len(cases) > MAX_CASES:
            raise SpecError(f"{name}:{number}: the file has more than {MAX_CASES} contingencies; split it.")
    if start:
        raise SpecError(f"{name}:{start}: the contingency does not end; add a line END.")
    if not cases and not outside:
        raise SpecError(f"{name}: the file has no contingency; write CONTINGENCY NAME, its statements, END.")
    return ConFile(tuple(cases), tuple(outside))


def _statements(text: str, name: str) -> Iterator[tuple[int, str]]:
    """Lines without comments, which start with a slash or an exclamation mark, and without blank ones."""
    for number, line in enumerate(text.splitlines(), 1):
        if len(line) > MAX_LINE:
            raise SpecError(f"{name}:{number}: the line has {len(line)} characters; write one statement per line.")
        statement = re.sub(r"\s+", " ", line.partition("/")[0]).strip()
        if statement and not statement.startswith(("!", "@!")) and not statement.upper().startswith("COM "):
            yield number, statement


def _action(text: str) -> Action | None:
    if match := LINE.fullmatch(text):
        return OpenLine((int(match[1]), int(match[2])), _unquoted(match[3]) if match[3] else None)
    if match := UNIT.fullmatch(text):
        return TripUnit(int(match[2]), _unquoted(match[1]) if match[1] else None)
    if match := LINE_FAULT.fullmatch(text):
        return FaultLine((int(match[1]), int(match[2])), _unquoted(match[3]) if match[3] else None)
    if match := BUS_FAULT.fullmatch(text):
        return FaultBus(int(match[1]))
    return None


def _unquoted(text: str) -> str:
    return text.strip().strip("'\"").strip()

"""The matrices of a MATPOWER `.m` file, read as text: nothing in the file is ever run.

A case file is a MATLAB function that assigns numbers to fields of a struct. Read are assignments of a number, of
a matrix of numbers and of a cell array of strings; other statements are passed over, except those that would
change what was read, because leaving them out would give another network.
"""

import re
from dataclasses import dataclass

import numpy as np

from contingencies.errors import SpecError
from contingencies.formats.tables import MAX_ROWS, Float, Int

TABLES = ("bus", "gen", "branch")
MAX_COLUMNS = 100  # the widest table of MATPOWER has 25
_HEADER = re.compile(r"^\s*function\s+(?:\[[^\]]*\]|(\w+))\s*=")
_ASSIGNMENT = re.compile(r"^\s*(\w+(?:\.\w+)*)\s*(\([^=]*\))?\s*=(?!=)\s*(.*)$", re.DOTALL)


@dataclass(frozen=True, eq=False)
class Rows:
    """A matrix of a file and the line of each row; lines are empty where the format has none."""

    name: str
    values: Float  # (n, columns)
    lines: Int  # (n,) or (0,)

    def where(self, row: int) -> str:
        """How a complaint about a row begins."""
        if len(self.lines):
            return f"line {self.lines[row]}, mpc.{self.name}"
        return f"row {row + 1} of mpc.{self.name}"


@dataclass(frozen=True)
class MatpowerFile:
    """What a case file assigns."""

    base_mva: float
    tables: dict[str, Rows]
    bus_names: tuple[str, ...] = ()


def parse_matpower(text: str) -> MatpowerFile:
    """The tables of a `.m` case; complaints name the line."""
    lines = [_without_comment(line) for line in text.splitlines()]
    struct = next((found.group(1) for line in lines if (found := _HEADER.match(line))), "mpc")
    base: float | None = None
    tables: dict[str, Rows] = {}
    names: tuple[str, ...] = ()
    k = 0
    while k < len(lines):
        assignment = _ASSIGNMENT.match(lines[k])
        if assignment is None or _HEADER.match(lines[k]):
            k += 1
            continue
        target, index, value = assignment.groups()
        field = target.removeprefix(f"{struct}.") if struct and target.startswith(f"{struct}.") else target
        if field in (*TABLES, "baseMVA") and index is not None:
            raise SpecError(
                f"line {k + 1} changes mpc.{field} by a statement, which is not run; load the case in MATPOWER "
                "and write it with savecase."
            )
        if field == "baseMVA":
            base = _number(value.split(";")[0].strip(), f"line {k + 1}, mpc.baseMVA")
            k += 1
        elif field in TABLES or field == "bus_name":
            body, after = _bracketed(lines, k, value, f"mpc.{field}")
            if field == "bus_name":
                names = tuple(re.findall(r"'((?:[^']|'')*)'", "\n".join(part for _, part in body)))
            else:
                tables[field] = _matrix(field, body)
            k = after
        else:
            k = _bracketed(lines, k, value, f"mpc.{field}")[1] if value[:1] in ("[", "{") else k + 1
    missing = [f"mpc.{name}" for name in TABLES if name not in tables] + (["mpc.baseMVA"] if base is None else [])
    if missing:
        raise SpecError(
            f"it assigns no {', '.join(missing)}, so it is no MATPOWER case; export it again with savecase."
        )
    assert base is not None
    return MatpowerFile(base, tables, names)


def _without_comment(line: str) -> str:
    """A line up to its comment; a percent sign inside quotes is text."""
    if "%" not in line:
        return line
    if "'" not in line:
        return line.split("%", 1)[0]
    quoted = False
    for k, character in enumerate(line):
        if character == "'":
            quoted = not quoted
        elif character == "%" and not quoted:
            return line[:k]
    return line


def _bracketed(lines: list[str], first: int, value: str, name: str) -> tuple[list[tuple[int, str]], int]:
    """What stands between the brackets that open in line `first`: (line number, text) parts, and the line after."""
    closing = {"[": "]", "{": "}"}.get(value[:1])
    if closing is None:
        raise SpecError(f"line {first + 1}: {name} is not written as a table of numbers; write [ ... ].")
    parts, text, k = [], value[1:], first
    while True:
        end = _end(text, closing)
        if end is not None:
            parts.append((k + 1, text[:end]))
            rest = text[end + 1 :].strip()
            if rest.strip(";, "):
                raise SpecError(f"line {k + 1}: {rest[:40]!r} after {name} is not run; write the numbers themselves.")
            return parts, k + 1
        parts.append((k + 1, text))
        k += 1
        if k == len(lines):
            raise SpecError(f"line {first + 1}: {name} is not closed; the file is cut off, export it again.")
        text = lines[k]


def _end(text: str, closing: str) -> int | None:
    """Where the closing bracket stands, outside quotes."""
    if closing == "]":
        found = text.find("]")
        return None if found < 0 else found
    quoted = False
    for k, character in enumerate(text):
        if character == "'":
            quoted = not quoted
        elif character == closing and not quoted:
            return k
    return None


def _matrix(name: str, parts: list[tuple[int, str]]) -> Rows:
    """Rows end at semicolons and line ends, unless three dots continue the line."""
    rows: list[list[float]] = []
    lines: list[int] = []
    begun = ""
    for number, text in parts:
        if "..." in text:
            begun += text.split("...", 1)[0] + " "
            continue
        for piece in (begun + text).split(";"):
            tokens = piece.replace(",", " ").split()
            if not tokens:
                continue
            rows.append(_numbers(tokens, f"line {number}, mpc.{name}"))
            lines.append(number)
            if len(rows[-1]) != len(rows[0]):
                raise SpecError(
                    f"line {number}: this row of mpc.{name} has {len(rows[-1])} columns, the first has {len(rows[0])}; "
                    "give every row the same columns."
                )
        if len(rows) > MAX_ROWS:
            raise SpecError(f"mpc.{name} has more than {MAX_ROWS} rows, which no network has; export it again.")
        begun = ""
    width = len(rows[0]) if rows else 0
    if width > MAX_COLUMNS:
        raise SpecError(f"line {lines[0]}: mpc.{name} has {width} columns, which no case has; export it again.")
    return Rows(name, np.array(rows, dtype=float).reshape(len(rows), width), np.array(lines, dtype=np.int64))


def _numbers(tokens: list[str], where: str) -> list[float]:
    try:
        return [float(token) for token in tokens]
    except ValueError:
        return [_number(token, where) for token in tokens]  # names the one that is no number


def _number(token: str, where: str) -> float:
    """A number, or a quotient of two (some files say baseMVA = 50/3)."""
    above, _, below = token.partition("/")
    try:
        return float(above) / float(below or 1.0)
    except (ValueError, ZeroDivisionError):
        raise SpecError(f"{where}: {token[:40]!r} is not a number; write the number itself.") from None

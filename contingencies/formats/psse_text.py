"""Records of PSS/E text files: free-format fields, and complaints that name file, line, record and field.

Fields are separated by commas or blanks, text stands in single or double quotes, an empty field means its default,
and a slash outside quotes ends a record. Nothing is evaluated: a file is only ever text.
"""

import re
from dataclasses import dataclass
from math import isfinite

from contingencies.errors import SpecError

MAX_BYTES = 200_000_000  # the largest public cases (100,000 buses) have 40 MB
MAX_SHOWN = 30  # characters of a wrong field that are repeated in a complaint
TOKEN = re.compile(r"'([^']*)'?|\"([^\"]*)\"?|([^,\s'\"/]+)|(,)|(/)")


def decoded(content: bytes, name: str) -> str:
    """The text of a file; names of places may be in any 8-bit code."""
    if len(content) > MAX_BYTES:
        raise SpecError(f"{name}: the file has {len(content)} bytes; at most {MAX_BYTES} are read, so split it.")
    if b"\0" in content:
        raise SpecError(f"{name}: the file is not text; export it again as a text file, not as a saved case.")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("latin-1")


def split_fields(text: str) -> list[str]:
    """The fields of one record; an empty field is an empty string."""
    if "'" not in text and '"' not in text:
        text = text.partition("/")[0]
        if "," not in text:
            return text.split()
        parts = [part.strip() for part in text.split(",")]
        if not any(" " in part or "\t" in part for part in parts):
            return parts
    fields: list[str] = []
    waiting = True  # for a field: two commas in a row have an empty one between them
    for single, double, bare, comma, slash in (match.groups() for match in TOKEN.finditer(text)):
        if slash:
            break
        if comma:
            if waiting:
                fields.append("")
            waiting = True
        else:
            fields.append((single if single is not None else double if double is not None else bare).strip())
            waiting = False
    return fields


@dataclass(frozen=True)
class Record:
    """One record, or one line of a record that has several."""

    name: str  # of the file
    line: int
    kind: str  # as people call it: bus, generator, ...
    fields: list[str]

    def error(self, problem: str) -> SpecError:
        """A complaint about this record; `problem` says what is wrong and what would be right."""
        return SpecError(f"{self.name}:{self.line}: {self.kind} record: {problem}.")

    def text(self, index: int, default: str = "") -> str:
        """A field as text."""
        return self.fields[index] if index < len(self.fields) and self.fields[index] else default

    def real(self, index: int, field: str, default: float | None = None) -> float:
        """A field as a finite number; without a default it must be there."""
        text = self.text(index)
        if not text:
            if default is None:
                raise self.error(f"field {index + 1} ({field}) is missing; give a number")
            return default
        try:
            value = float(text)
        except ValueError:
            value = _fortran(text)
        if not isfinite(value):
            raise self.error(f"field {index + 1} ({field}) is {text[:MAX_SHOWN]!r}; give a finite number")
        return value

    def integer(self, index: int, field: str, default: int | None = None) -> int:
        """A field as a whole number."""
        text = self.text(index)
        if text.isdecimal() and len(text) < 16:
            return int(text)
        value = self.real(index, field, default)
        if value != int(value) or abs(value) > 1e15:
            raise self.error(f"field {index + 1} ({field}) is {text[:MAX_SHOWN]!r}; give a whole number")
        return int(value)


def _fortran(text: str) -> float:
    """A number with Fortran's exponent (1.5D+02), else NaN."""
    try:
        return float(text.upper().replace("D", "E"))
    except ValueError:
        return float("nan")

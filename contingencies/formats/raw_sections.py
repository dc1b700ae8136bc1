"""A PSS/E RAW file cut into its sections, versions 32 to 35.

A section ends with a record that is a lone 0; the next one is the one that its comment announces ("BEGIN LOAD DATA"),
else the one that follows in the order of the version. `Q` ends the file, and lines that start with `@!` are comments.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from contingencies.errors import SpecError
from contingencies.formats.psse_text import Record, decoded, split_fields
from contingencies.formats.tables import MAX_ROWS

VERSIONS = (32, 33, 34, 35)
BEFORE_34 = (
    "bus", "load", "fixed shunt", "generator", "branch", "transformer", "area", "two-terminal dc", "vsc dc line",
    "impedance correction", "multi-terminal dc", "multi-section line", "zone", "inter-area transfer", "owner",
    "facts device", "switched shunt", "gne device", "induction machine",
)  # fmt: skip
FROM_34 = ("system-wide", *BEFORE_34[:5], "system switching device", *BEFORE_34[5:], "substation")
NAMES = {  # as comments call a section, where that differs
    "voltage source converter": "vsc dc line", "vsc dc": "vsc dc line", "facts control device": "facts device",
    "facts": "facts device", "gne": "gne device", "non-transformer branch": "branch", "area interchange": "area",
    "transformer impedance correction": "impedance correction", "system wide": "system-wide",
    "multi-section line grouping": "multi-section line", "switching device": "system switching device",
    "inter-area": "inter-area transfer", "interarea transfer": "inter-area transfer", "generator unit": "generator",
    "two-terminal dc line": "two-terminal dc", "multi-terminal dc line": "multi-terminal dc",
}  # fmt: skip
END = re.compile(r"\s*['\"]?0['\"]?\s*,?\s*(?:/|$|END\b|BEGIN\b)", re.IGNORECASE)
BEGIN = re.compile(r"BEGIN\s+(.+?)\s+DATA", re.IGNORECASE)
MAX_LINE = 20_000  # characters; the longest real records have a few hundred


@dataclass(frozen=True)
class RawSections:
    """The records of a RAW file, by section; those of several lines are not put together yet."""

    name: str  # of the file
    version: int
    base_mva: float
    frequency_hz: float
    records: dict[str, list[Record]] = field(default_factory=dict)

    def of(self, section: str) -> list[Record]:
        """The records of a section, none when the file does not have it."""
        return self.records.get(section, [])


def split_sections(content: bytes, name: str) -> RawSections:
    """Cut a RAW file into sections."""
    lines = _lines(decoded(content, name), name)
    try:
        head = Record(name, *_at(next(lines), "identification"))
        next(lines), next(lines)  # two lines of title
    except StopIteration:
        raise SpecError(f"{name}: the file ends within its three heading lines; give a whole RAW file.") from None
    sections = _heading(head)
    order = FROM_34 if sections.version >= 34 else BEFORE_34
    place = 0
    for number, text in lines:
        if place == len(order):
            break
        if END.match(text):
            place = _next(order, place, text)
            continue
        fields = split_fields(text)
        if fields and fields[0].upper() == "Q" and len(fields) == 1:
            break
        if place == 0 and order is FROM_34 and fields and fields[0].isdecimal():
            place = 1  # written by a program that leaves the system-wide section out
        if fields:
            rows = sections.records.setdefault(order[place], [])
            rows.append(Record(name, number, order[place], fields))
            if len(rows) > 5 * MAX_ROWS:
                raise rows[-1].error(f"the section has more than {5 * MAX_ROWS} lines; give a smaller network")
    return sections


def _lines(text: str, name: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("@!"):
            continue
        if len(line) > MAX_LINE:
            raise SpecError(
                f"{name}:{number}: the line has {len(line)} characters; give a RAW file as PSS/E writes it."
            )
        yield number, line


def _at(line: tuple[int, str], kind: str) -> tuple[int, str, list[str]]:
    return line[0], kind, split_fields(line[1])


def _heading(head: Record) -> RawSections:
    """Base, version and frequency; a file that is no RAW file is refused here."""
    if head.text(0) == "" or head.text(0) not in ("0", "1"):
        raise head.error(f"it starts with {head.text(0)[:20]!r}; a RAW file starts with 0, SBASE, REV, ...")
    if head.integer(0, "IC") != 0:
        raise head.error("IC is 1, data to be added to another case; give the whole case (IC = 0)")
    version = head.integer(2, "REV", 0)
    if version not in VERSIONS:
        raise head.error(f"REV is {version}; versions {VERSIONS[0]} to {VERSIONS[-1]} are read, so export one of them")
    base = head.real(1, "SBASE", 100.0)
    frequency = head.real(5, "BASFRQ", 60.0) or 60.0
    if base <= 0 or frequency <= 0:
        raise head.error("SBASE and BASFRQ must be above 0; give the system base in MVA and the frequency in Hz")
    return RawSections(head.name, version, base, frequency)


def _next(order: tuple[str, ...], place: int, text: str) -> int:
    """The section that follows: the one announced, else the next in order."""
    announced = BEGIN.search(text)
    if announced:
        named = announced.group(1).lower()
        named = NAMES.get(named, named)
        if named in order:
            return order.index(named)
    return place + 1

"""Lines and transformers of a RAW file as one branch table, and which buses are joined."""

from collections import Counter
from collections.abc import Callable
from operator import attrgetter

import numpy as np

from contingencies.formats.joined import Joined
from contingencies.formats.psse_text import Record
from contingencies.formats.raw_sections import RawSections
from contingencies.formats.raw_transformers import (
    TAB,
    Branch,
    Star,
    read_transformers,
    star_branches,
    two_winding_branch,
)
from contingencies.formats.tables import Branches, table

ZERO_IMPEDANCE = 1e-4  # pu, PSS/E's own threshold (THRSHZ) below which a line joins its buses
SWITCH_STATUS = 16  # field of a switching device: I, J, CKT, X, 12 ratings, STAT

Lookup = Callable[[Record, int], int]  # the position of the bus that a record names by its number


def read_lines(sections: RawSections) -> list[Branch]:
    """The lines of the branch section."""
    rating, shunts, status = (7, 19, 23) if sections.version >= 34 else (6, 9, 13)
    lines = []
    for record in sections.of("branch"):
        start, end = record.integer(0, "I"), abs(record.integer(1, "J"))  # a minus marks the metered end
        y_start, y_end = (complex(record.real(k, "G", 0.0), record.real(k + 1, "B", 0.0)) for k in (shunts, shunts + 2))
        lines.append(
            Branch(
                record, start, end, record.text(2, "1"), complex(record.real(3, "R", 0.0), record.real(4, "X")),
                y_start=y_start, y_end=y_end, b=record.real(5, "B", 0.0), rating=record.real(rating, "RATE", 0.0),
                in_service=record.integer(status, "ST", 1) != 0, is_transformer=False,
            )
        )  # fmt: skip
    return lines


def transformer_branches(
    sections: RawSections, bus: Lookup, fresh: int, notes: Counter[str]
) -> tuple[list[Branch], list[Star]]:
    """Transformers as branches, and the star buses of those with three windings, numbered from `fresh` on."""
    buses = sections.of("bus")

    def base_kv(record: Record, number: int) -> float:
        return buses[bus(record, number)].real(2, "BASKV", 0.0)

    def voltage(record: Record, number: int) -> complex:
        row = buses[bus(record, number)]
        return complex(row.real(7, "VM", 1.0) * np.exp(1j * np.deg2rad(row.real(8, "VA", 0.0))))

    branches: list[Branch] = []
    stars: list[Star] = []
    for transformer in read_transformers(sections.of("transformer"), sections.base_mva, base_kv):
        if any(winding.record.integer(TAB[sections.version], "TAB", 0) for winding in transformer.windings):
            notes["a transformer has an impedance correction table: not applied"] += 1
        if len(transformer.windings) == 2:
            branches.append(two_winding_branch(transformer))
            continue
        star, legs = star_branches(transformer, fresh + len(stars), voltage)
        stars.append(star)
        branches += legs
    if stars:
        first, last = stars[0].number, stars[-1].number
        notes[f"{len(stars)} transformers of three windings: star buses {first} to {last} are added"] += 1
    return branches, stars


def jumpers(sections: RawSections, lines: list[Branch], bus: Lookup, notes: Counter[str]) -> list[tuple[int, int]]:
    """Pairs of positions that are one bus: closed lines without impedance, closed switching devices."""
    ends = [
        (line.record, line.start, line.end)
        for line in lines
        if line.in_service and line.z.real == 0 and abs(line.z.imag) <= ZERO_IMPEDANCE
    ]
    ends += [
        (record, record.integer(0, "I"), abs(record.integer(1, "J")))
        for record in sections.of("system switching device")
        if record.integer(SWITCH_STATUS, "STAT", 1) == 1
    ]
    if ends:
        notes[f"{len(ends)} closed switches or lines without impedance: their buses are joined"] += 1
    return [(bus(record, start), bus(record, end)) for record, start, end in ends]


def branch_table(branches: list[Branch], bus: Lookup, joined: Joined) -> Branches:
    """All branches that connect two different buses once some are joined."""
    ends = [(bus(branch.record, branch.start), bus(branch.record, branch.end)) for branch in branches]
    for branch, (i, j) in zip(branches, ends, strict=True):
        if i == j:
            raise branch.record.error(f"it starts and ends at bus {branch.start}; name two buses")
    places = joined.place[np.array(ends, dtype=np.int64).reshape(-1, 2)]
    kept = [branch for branch, (i, j) in zip(branches, places, strict=True) if i != j]
    start, end = places[places[:, 0] != places[:, 1]].T
    z = np.array([branch.z or 1j * ZERO_IMPEDANCE for branch in kept], dtype=complex)  # 0 only out of service
    columns = ("circuit", "b", "y_start", "y_end", "tap", "shift", "rating", "in_service", "is_transformer")
    return table(
        Branches, len(kept), start=start, end=end, r=z.real, x=z.imag,
        **{column: list(map(attrgetter(column), kept)) for column in columns},
    )  # fmt: skip

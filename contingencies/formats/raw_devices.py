"""Devices of a RAW file that the plain network has no table for: DC lines, FACTS devices, induction machines.

The stored state tells what such a device exchanges with its bus: whatever is missing there to balance it. That power
becomes a constant load, and so, like all loads, a constant impedance in the study.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from contingencies.formats.case import Case
from contingencies.formats.psse_text import Record
from contingencies.formats.raw_sections import RawSections
from contingencies.formats.stamps import bus_matrix
from contingencies.formats.tables import Complex, Int, Loads, table

BALANCED = "its power is what balances the stored state at its bus"


def device_buses(sections: RawSections, notes: Counter[str]) -> Iterator[tuple[Record, int]]:
    """Every bus at which a device in service stands, with the record that says so; `notes` learns of the devices."""
    two_terminal = sections.of("two-terminal dc")
    for head, *ends in _groups(two_terminal, 3):
        if head.integer(1, "MDC", 0) != 0:
            notes[f"a two-terminal DC line: {BALANCED}"] += 1
            yield from ((end, end.integer(0, "IP", 0)) for end in ends)
    for head, *ends in _groups(sections.of("vsc dc line"), 3):
        if head.integer(1, "MDC", 1) != 0:
            notes[f"a VSC DC line: {BALANCED}"] += 1
            yield from ((end, end.integer(0, "IBUS", 0)) for end in ends if end.integer(1, "TYPE", 1) != 0)
    for record in sections.of("facts device"):
        if record.integer(3, "MODE", 1) != 0:
            notes[f"a FACTS device: {BALANCED}"] += 1
            yield from ((record, bus) for bus in (record.integer(1, "I", 0), record.integer(2, "J", 0)) if bus)
    for record in sections.of("induction machine"):
        if record.integer(2, "STAT", 1) != 0:
            notes[f"an induction machine: {BALANCED}"] += 1
            yield record, record.integer(0, "I")


def _groups(records: list[Record], size: int) -> Iterator[list[Record]]:
    for first in range(0, len(records), size):
        group = records[first : first + size]
        if len(group) < size:
            raise group[0].error(f"it ends after {len(group)} of its {size} lines; add the others")
        yield group


def stored_surplus(case: Case) -> Complex:
    """What units and loads bring to each bus beyond what the network takes at the stored state, (n,) pu."""
    buses, loads, units = case.buses, case.loads, case.units
    V = buses.v * np.exp(1j * buses.angle)
    surplus: Complex = -V * np.conj(bus_matrix(case) @ V)
    v = buses.v[loads.bus]
    np.subtract.at(surplus, loads.bus, loads.S_power + loads.S_current * v + loads.S_impedance * v**2)
    running = units.in_service
    np.add.at(surplus, units.bus[running], (units.P + 1j * units.Q)[running])
    return surplus


def balanced_loads(case: Case, positions: Int) -> Case:
    """The case with constant-power loads that balance the stored state at some buses."""
    if len(positions) == 0:
        return case
    old, n = case.loads, len(case.loads) + len(positions)
    added = stored_surplus(case)[positions]
    none = np.zeros(len(positions), dtype=complex)
    return replace(
        case,
        loads=table(
            Loads, n, bus=np.append(old.bus, positions), S_power=np.append(old.S_power, added),
            S_current=np.append(old.S_current, none), S_impedance=np.append(old.S_impedance, none),
        ),
    )  # fmt: skip

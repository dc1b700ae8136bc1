"""What every network must satisfy, whichever file it came from; a complaint names bus or branch and the remedy.

Readers check what only they can say better (file, line, record) first; these checks are the last line.
"""

from dataclasses import fields
from typing import TYPE_CHECKING

import numpy as np

from contingencies.errors import SpecError
from contingencies.formats.tables import ISOLATED, MAX_BUS_NUMBER, MAX_BUSES, MAX_ROWS, PQ, Bool, Int, Table

if TYPE_CHECKING:
    from contingencies.formats.case import Case

LARGEST = 1e9  # of any number in a network, per unit or kV: far beyond any grid, far from overflow
SMALLEST_Z = 1e-12  # pu, of a branch in service: jumpers in files go down to 1e-9
LARGEST_RATIO = 100.0  # of a tap, either way: more is a slip of the voltage levels
UNLIMITED = ("q_min", "q_max")  # the only columns that may be infinite


def check_case(case: "Case") -> None:
    """Raise a SpecError in one sentence for the first thing that is wrong with a network."""
    if not (np.isfinite(case.base_mva) and case.base_mva > 0):
        raise SpecError(f"the base is {case.base_mva} MVA; give a base above 0, usually 100.")
    _check_sizes(case)
    _check_buses(case)
    for name in ("loads", "shunts", "branches", "units"):
        _check_table(case, name)
    _check_branches(case)
    units = case.units
    wrong = units.in_service & (case.buses.kind[units.bus] > PQ) & (case.buses.kind[units.bus] < ISOLATED)
    wrong &= ~((units.v_set > 0) & (units.v_set < 10))
    if wrong.any():
        k = int(np.flatnonzero(wrong)[0])
        number = case.buses.number[units.bus[k]]
        raise SpecError(f"a unit at bus {number} holds {units.v_set[k]:g} pu; give a set point near 1 pu.")


def _check_sizes(case: "Case") -> None:
    if len(case.buses) == 0:
        raise SpecError("the network has no buses; give at least one.")
    if len(case.buses) > MAX_BUSES:
        raise SpecError(f"the network has {len(case.buses)} buses; at most {MAX_BUSES} are read.")
    for name in ("loads", "shunts", "branches", "units"):
        if len(getattr(case, name)) > MAX_ROWS:
            raise SpecError(f"the network has {len(getattr(case, name))} {name}; at most {MAX_ROWS} are read.")


def _check_buses(case: "Case") -> None:
    buses = case.buses
    for column in ("base_kv", "v", "angle"):
        values = getattr(buses, column)
        _refuse(~np.isfinite(values), buses.number, f"{column} is not a number; give a finite value")
        _refuse(np.abs(values) > LARGEST, buses.number, f"{column} is more than any grid has; give a smaller value")
    outside = (buses.number < 0) | (buses.number > MAX_BUS_NUMBER)
    _refuse(outside, buses.number, f"bus numbers lie between 0 and {MAX_BUS_NUMBER}; renumber it")
    numbers = np.append(buses.number, np.array([number for number, _ in case.merged], dtype=np.int64))
    unique, counts = np.unique(numbers, return_counts=True)
    if len(unique) < len(numbers):
        raise SpecError(f"two buses have the number {unique[counts > 1][0]}; give each bus a number of its own.")
    _refuse((buses.kind < PQ) | (buses.kind > ISOLATED), buses.number, "its type is none of 1, 2, 3 and 4; give one")


def _check_table(case: "Case", name: str) -> None:
    rows: Table = getattr(case, name)
    kind = {"branches": "branch"}.get(name, name.rstrip("s"))
    ends = [column for column in ("bus", "start", "end") if hasattr(rows, column)]
    for end in ends:
        positions = getattr(rows, end)
        if len(positions) and (positions.min() < 0 or positions.max() >= len(case.buses)):
            raise SpecError(f"a {kind} names a bus position that does not exist; use positions of the bus table.")
    at = case.buses.number[getattr(rows, ends[0])]
    for field in fields(rows):
        column = getattr(rows, field.name)
        if column.dtype.kind in "fc":
            wrong = np.isnan(column) if field.name in UNLIMITED else ~np.isfinite(column)
            if wrong.any():
                said = f"a {kind} at bus {at[wrong][0]} has {field.name} = {column[wrong][0]}"
                raise SpecError(f"{said}; give a finite value.")
            wrong = np.abs(column) > LARGEST
            if wrong.any() and field.name not in UNLIMITED:
                said = f"a {kind} at bus {at[wrong][0]} has {field.name} = {column[wrong][0]:g}"
                raise SpecError(f"{said}, which no grid has; give a smaller value.")


def _check_branches(case: "Case") -> None:
    branches, number = case.branches, case.buses.number

    def refuse(wrong: Bool, reason: str) -> None:
        if wrong.any():
            k = int(np.flatnonzero(wrong)[0])
            ends = f"{number[branches.start[k]]}-{number[branches.end[k]]}"
            raise SpecError(f"branch {ends} {reason}.")

    refuse(branches.start == branches.end, "starts and ends at the same bus; name two buses or remove it")
    zero = branches.in_service & (branches.r == 0) & (branches.x == 0)
    refuse(zero, "has no impedance (r = x = 0); give it a small x such as 1e-4, or join its buses")
    tiny = branches.in_service & (np.hypot(branches.r, branches.x) < SMALLEST_Z)
    refuse(tiny, f"has an impedance below {SMALLEST_Z:g} pu; give it a small x such as 1e-4, or join its buses")
    refuse(~(branches.tap > 0), "has a tap ratio that is not above 0; give a ratio near 1")
    far = (branches.tap > LARGEST_RATIO) | (branches.tap < 1 / LARGEST_RATIO)
    refuse(far, f"has a tap ratio beyond 1 : {LARGEST_RATIO:g}; give a ratio near 1")


def _refuse(wrong: Bool, numbers: Int, reason: str) -> None:
    if wrong.any():
        raise SpecError(f"bus {numbers[wrong][0]}: {reason}.")

"""The tables of a plain network: buses, loads, shunts, branches and units, a column an array.

Per unit on the base of the network, angles in rad. A bus has a printed number; everything else names its bus
by *position* in the bus table (`Buses.position` turns numbers into positions). The convention of a branch is
MATPOWER's, theory.md eq. (40).
"""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from contingencies.errors import SpecError

Bool = NDArray[np.bool_]
Complex = NDArray[np.complex128]
Float = NDArray[np.float64]
Int = NDArray[np.int64]
Text = NDArray[np.str_]

PQ, PV, SLACK, ISOLATED = 1, 2, 3, 4  # kinds of a bus, numbered as in MATPOWER and PSS/E
MAX_BUSES = 200_000  # the largest public cases have 193,000 buses; more is a damaged or hostile file
MAX_ROWS = 1_000_000  # rows of any other table
MAX_BUS_NUMBER = 10**9  # as in system files


@dataclass(frozen=True, eq=False)
class Table:
    """Arrays of one length, one per column; `table` makes one and gives every column its type."""

    def __len__(self) -> int:
        return len(getattr(self, fields(self)[0].name))

    def taken(self, rows: Bool | Int) -> Self:
        """The same table with some rows only (a mask or positions)."""
        return replace(self, **{field.name: getattr(self, field.name)[rows] for field in fields(self)})


@dataclass(frozen=True, eq=False)
class Buses(Table):
    """Buses; the stored state is where a power flow starts, and what an import is checked against."""

    number: Int  # (n,) as printed, unique, not negative
    kind: Int  # (n,) PQ, PV, SLACK or ISOLATED
    base_kv: Float  # (n,) kV; 0 where the file does not say
    v: Float  # (n,) stored voltage magnitude, pu
    angle: Float  # (n,) stored voltage angle, rad
    area: Int  # (n,)
    zone: Int  # (n,)
    name: Text  # (n,) may be empty
    east: Float  # (n,) where the bus is drawn, in any unit; NaN where the file does not say
    north: Float  # (n,)

    @cached_property
    def _order(self) -> Int:
        return np.argsort(self.number, kind="stable")

    def position(self, numbers: Any, complain: Callable[[int, int], str] | None = None) -> Int:
        """Positions (k,) of printed bus numbers (k,).

        `complain(row, number)` words the error for a number that no bus has; a reader names file, line and record.
        """
        wanted = np.atleast_1d(np.asarray(numbers)).astype(np.int64)
        found = np.minimum(np.searchsorted(self.number, wanted, sorter=self._order), len(self) - 1)
        positions: Int = self._order[found]
        wrong = np.flatnonzero(self.number[positions] != wanted)
        if len(wrong):
            row = int(wrong[0])
            number = int(wanted[row])
            raise SpecError(complain(row, number) if complain else f"bus {number} does not exist; add it or mend it.")
        return positions


@dataclass(frozen=True, eq=False)
class Loads(Table):
    """Loads in service: S = S_power + S_current |V| + S_impedance |V|^2, pu, V in pu."""

    bus: Int  # (n,) position
    S_power: Complex  # (n,)
    S_current: Complex  # (n,)
    S_impedance: Complex  # (n,)


@dataclass(frozen=True, eq=False)
class Shunts(Table):
    """Fixed shunts in service, and switched shunts at their stored step."""

    bus: Int  # (n,) position
    y: Complex  # (n,) g + jb, pu; a capacitor has b > 0


@dataclass(frozen=True, eq=False)
class Branches(Table):
    """Lines and two-winding transformers, in service or not; an ideal ratio tap exp(j shift) stands at the start."""

    start: Int  # (n,) position of the from bus, where the tap is
    end: Int  # (n,) position of the to bus
    circuit: Text  # (n,) circuit identifier as printed; may be empty
    r: Float  # (n,) series resistance, pu
    x: Float  # (n,) series reactance, pu, not 0 where r is 0
    g: Float  # (n,) charging conductance, both halves together, behind the tap, pu
    b: Float  # (n,) charging susceptance, both halves together, behind the tap, pu
    y_start: Complex  # (n,) shunt at the start, on the bus side of the tap (line shunt, magnetising admittance), pu
    y_end: Complex  # (n,) shunt at the end, pu
    tap: Float  # (n,) ratio |V_start| : |V_end| at no load, > 0
    shift: Float  # (n,) rad; the start leads by this at no load
    rating: Float  # (n,) MVA, 0 where the file does not say
    in_service: Bool  # (n,)
    is_transformer: Bool  # (n,) not removable as a line


@dataclass(frozen=True, eq=False)
class Units(Table):
    """Generating units, in service or not; several may stand at a bus."""

    bus: Int  # (n,) position
    id: Text  # (n,) machine identifier as printed; may be empty
    P: Float  # (n,) scheduled active power, pu
    Q: Float  # (n,) stored reactive power, pu; an injection at a PQ bus
    v_set: Float  # (n,) voltage set point of a PV or slack bus, pu
    q_min: Float  # (n,) pu, -inf without a limit
    q_max: Float  # (n,) pu, inf without a limit
    mva: Float  # (n,) machine base, MVA; 0 where the file does not say
    z_source: Complex  # (n,) source impedance ZR + jZX on the machine base, pu; 0 where the format has none
    in_service: Bool  # (n,)
    is_machine: Bool  # (n,) false for a converter, motor or equivalent, which is never a synchronous machine


AnyTable = TypeVar("AnyTable", bound=Table)
DTYPES: dict[Any, Any] = {Bool: np.bool_, Complex: np.complex128, Float: np.float64, Int: np.int64, Text: np.str_}
FILLED: dict[str, Any] = {  # what a column holds where a format says nothing
    "kind": PQ, "v": 1.0, "v_set": 1.0, "tap": 1.0, "in_service": True, "is_machine": True, "q_min": -np.inf,
    "q_max": np.inf, "area": 1, "zone": 1, "name": "", "circuit": "", "id": "",
    "east": np.nan, "north": np.nan,
}  # fmt: skip


def table(kind: type[AnyTable], n: int, /, **columns: Any) -> AnyTable:
    """A table of n rows from columns or scalars; those left out hold what FILLED says, else 0.

    `table(Shunts, 2, bus=[0, 3], y=0.1j)` are two shunts of 0.1j pu.
    """
    types = {field.name: DTYPES[field.type] for field in fields(kind)}
    unknown = sorted(set(columns) - set(types))
    if unknown:
        raise TypeError(f"{kind.__name__} has no column {', '.join(unknown)}")
    arrays = {
        name: np.array(np.broadcast_to(np.asarray(columns.get(name, FILLED.get(name, 0)), dtype=dtype), (n,)))
        for name, dtype in types.items()
    }
    return kind(**arrays)


def sum_at(n: int, positions: Int, values: Complex | Float) -> Complex:
    """Sum of the values at each of n positions, (n,)."""
    total = np.zeros(n, dtype=np.complex128)
    total.real = np.bincount(positions, weights=values.real, minlength=n)
    if np.iscomplexobj(values):
        total.imag = np.bincount(positions, weights=values.imag, minlength=n)
    return total

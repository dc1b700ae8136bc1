"""Transformers of a RAW file as branches of the plain network: unit codes, two windings, three windings.

In PSS/E a winding k has an ideal ratio t_k exp(j ANG_k) on its bus, and the impedance lies between the ratios; the
magnetising admittance stands at the bus of winding 1. With two windings the second ratio is moved to the first
(impedance times t_2^2, ratio t_1 / t_2). With three, each winding is a branch to a star bus, and

    z_1 = (z_12 + z_31 - z_23) / 2,  z_2 = (z_12 + z_23 - z_31) / 2,  z_3 = (z_23 + z_31 - z_12) / 2.

The codes: CW 1 ratios in pu of the bus voltage, 2 in kV, 3 in pu of the nominal winding voltage; CZ 1 impedances on the
system base, 2 on the winding base, 3 load losses in W and |z| on the winding base; CM 1 admittance on the system base,
2 losses in W and exciting current.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from contingencies.formats.psse_text import Record

MIN_X = 1e-6  # pu, of a winding without impedance, which a star may have; far below any that matters
TAB = {32: 13, 33: 13, 34: 22, 35: 23}  # field of a winding record that names its impedance correction table
OPEN_WINDING = {2: 1, 3: 2, 4: 0}  # STAT of a three-winding transformer -> the winding that is out


@dataclass(frozen=True)
class Branch:
    """One row of the branch table, buses by number."""

    record: Record
    start: int
    end: int
    circuit: str
    z: complex
    tap: float = 1.0
    shift: float = 0.0  # rad
    y_start: complex = 0j
    y_end: complex = 0j
    b: float = 0.0
    rating: float = 0.0  # MVA
    in_service: bool = True
    is_transformer: bool = True


@dataclass(frozen=True)
class Star:
    """A star bus: its voltage, and the bus whose area and zone it shares."""

    number: int
    v: float
    angle: float  # rad
    beside: int


@dataclass(frozen=True)
class Winding:
    """One winding: its record and the base voltage of its bus."""

    record: Record
    bus: int
    base_kv: float

    @property
    def nominal_kv(self) -> float:
        return self.record.real(1, "NOMV", 0.0) or self.base_kv

    def ratio(self, code: int) -> float:
        """The ratio in pu of the bus voltage."""
        default = self.base_kv if code == 2 else 1.0
        windv = self.record.real(0, "WINDV", default)
        if code == 2:
            windv /= self._base("WINDV is in kV (CW = 2)")
        elif code == 3 and self.nominal_kv != self.base_kv:
            windv *= self.nominal_kv / self._base("WINDV is in pu of NOMV (CW = 3)")
        if windv <= 0:
            raise self.record.error(f"WINDV gives the ratio {windv:g}; give a ratio above 0, near 1")
        return windv

    def _base(self, why: str) -> float:
        if self.base_kv <= 0:
            raise self.record.error(f"{why}, but bus {self.bus} has no base voltage; give its BASKV")
        return self.base_kv

    @property
    def angle(self) -> float:
        return float(np.deg2rad(self.record.real(2, "ANG", 0.0)))

    @property
    def rating(self) -> float:
        return self.record.real(3, "RATA", 0.0)


@dataclass(frozen=True)
class Transformer:
    """The records of one transformer."""

    head: Record
    impedances: Record
    windings: tuple[Winding, ...]
    base_mva: float

    @property
    def circuit(self) -> str:
        return self.head.text(3, "1")

    def code(self, index: int, field: str, highest: int) -> int:
        """A unit code."""
        value = self.head.integer(index, field, 1)
        if not 1 <= value <= highest:
            raise self.head.error(f"{field} is {value}; it is a code from 1 to {highest}")
        return value

    def impedance(self, pair: int) -> complex:
        """Impedance between two windings (0: 1-2, 1: 2-3, 2: 3-1), pu on the system base."""
        r, x = self.impedances.real(3 * pair, "R", 0.0), self.impedances.real(3 * pair + 1, "X")
        code = self.code(5, "CZ", 3)
        if code == 1:
            return complex(r, x)
        winding_mva = self._winding_mva(pair)
        if code == 3:
            r /= 1e6 * winding_mva
            if abs(x) < abs(r):
                raise self.impedances.error(f"|z| = {x:g} is below its resistance {r:g} pu; give losses in W (CZ = 3)")
            x = float(np.sqrt(x * x - r * r))
        return complex(r, x) * self.base_mva / winding_mva

    @property
    def magnetising(self) -> complex:
        """Admittance at the bus of winding 1, pu on the system base."""
        first, second = self.head.real(7, "MAG1", 0.0), self.head.real(8, "MAG2", 0.0)
        if self.code(6, "CM", 2) == 1:
            return complex(first, second)
        winding = self.windings[0]
        off_nominal = (winding.base_kv / winding.nominal_kv) ** 2 if winding.base_kv > 0 else 1.0
        g = first / (1e6 * self.base_mva) * off_nominal
        size = second * self._winding_mva(0) / self.base_mva * off_nominal
        return complex(g, -float(np.sqrt(max(size * size - g * g, 0.0))))

    def _winding_mva(self, pair: int) -> float:
        mva = self.impedances.real(3 * pair + 2, "SBASE", self.base_mva)
        if mva <= 0:
            raise self.impedances.error(f"SBASE is {mva:g} MVA; give the winding base, above 0")
        return mva

    def ratios(self) -> list[float]:
        """The ratio of each winding."""
        code = self.code(4, "CW", 3)
        return [winding.ratio(code) for winding in self.windings]


def read_transformers(
    records: list[Record], base_mva: float, base_kv: Callable[[Record, int], float]
) -> Iterator[Transformer]:
    """The transformers of their section; `base_kv` gives the base voltage of the bus that a record names."""
    place = 0
    while place < len(records):
        head = records[place]
        buses = [head.integer(k, field, 0) for k, field in enumerate("IJK")]
        count = 3 if buses[2] else 2
        lines = records[place : place + 2 + count]
        if len(lines) < 2 + count:
            raise head.error(f"the transformer ends after {len(lines)} of its {2 + count} lines; add the others")
        buses = [abs(bus) for bus in buses[:count]]
        windings = tuple(
            Winding(line, bus, base_kv(head, bus)) for line, bus in zip(lines[2:], buses, strict=True)
        )  # fmt: skip
        yield Transformer(head, lines[1], windings, base_mva)
        place += 2 + count


def two_winding_branch(transformer: Transformer) -> Branch:
    """A transformer of two windings as a branch."""
    t_1, t_2 = transformer.ratios()
    first, second = transformer.windings
    return Branch(
        transformer.head, first.bus, second.bus, transformer.circuit, transformer.impedance(0) * t_2**2, t_1 / t_2,
        first.angle, transformer.magnetising, rating=first.rating,
        in_service=transformer.head.integer(11, "STAT", 1) != 0,
    )  # fmt: skip


def star_branches(
    transformer: Transformer, number: int, voltage: Callable[[Record, int], complex]
) -> tuple[Star, list[Branch]]:
    """A transformer of three windings as a star bus of this number and its branches, by stored voltages of buses."""
    z_12, z_23, z_31 = (transformer.impedance(pair) for pair in range(3))
    legs = ((z_12 + z_31 - z_23) / 2, (z_12 + z_23 - z_31) / 2, (z_23 + z_31 - z_12) / 2)
    status = transformer.head.integer(11, "STAT", 1)
    if status not in range(5):
        raise transformer.head.error(f"STAT is {status}; it is 0 (out), 1 (in) or 2 to 4 (one winding out)")
    branches = [
        Branch(
            transformer.head, winding.bus, number, transformer.circuit, z if abs(z) > MIN_X else complex(0.0, MIN_X),
            ratio, winding.angle, transformer.magnetising if k == 0 else 0j, rating=winding.rating,
            in_service=status != 0 and OPEN_WINDING.get(status) != k,
        )
        for k, (winding, z, ratio) in enumerate(zip(transformer.windings, legs, transformer.ratios(), strict=True))
    ]  # fmt: skip
    V = _star_voltage([branch for branch in branches if branch.in_service], voltage)
    return Star(number, abs(V), float(np.angle(V)), transformer.windings[0].bus), branches


def _star_voltage(legs: list[Branch], voltage: Callable[[Record, int], complex]) -> complex:
    """What the stored voltages of its windings make of a star bus; exact, where VMSTAR and ANSTAR are rounded."""
    if not legs:
        return 1.0 + 0j
    behind = sum(voltage(leg.record, leg.start) / (leg.tap * np.exp(1j * leg.shift)) / leg.z for leg in legs)
    total = sum(1.0 / leg.z for leg in legs)
    return complex(behind / total) if abs(total) > 0 else 1.0 + 0j

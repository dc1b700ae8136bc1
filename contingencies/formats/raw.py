"""PSS/E RAW files, versions 32 to 35, read into the plain network.

Field positions follow the version (12 ratings and a name per branch from 34 on, more fields in 35). Switched shunts
stand at BINIT. Lines without impedance and closed switching devices join their buses. A unit that regulates another
bus, or that is at a reactive limit with another voltage than its set point, holds its stored voltage. A terminal of a
DC line, a FACTS device or an induction machine is the constant power that balances the stored state at its bus.
Everything that is left out or replaced is said in `RawFile.notes`.
"""

from collections import Counter
from dataclasses import dataclass

import numpy as np

from contingencies.errors import SpecError
from contingencies.formats.case import Case
from contingencies.formats.joined import Joined, join_buses
from contingencies.formats.psse_text import Record
from contingencies.formats.raw_branches import branch_table, jumpers, read_lines, transformer_branches
from contingencies.formats.raw_devices import balanced_loads, device_buses
from contingencies.formats.raw_sections import RawSections, split_sections
from contingencies.formats.raw_transformers import Star
from contingencies.formats.tables import Buses, Complex, Int, Loads, Shunts, Units, table

AT_LIMIT = 1e-3  # MVAr from a limit that count as at it; pu from a set point that count as another voltage
UNUSED = ("multi-terminal dc", "gne device")  # sections whose devices are missing from the network


@dataclass(frozen=True, eq=False)
class RawFile:
    """What a RAW file holds beyond the plain network."""

    case: Case
    version: int
    frequency_hz: float
    unit_bus: Int  # (units,) bus of each unit as printed, also where buses are joined
    step_up: Complex  # (units,) impedance of each unit's own step-up transformer on its machine base, pu
    notes: tuple[str, ...]  # what was left out or replaced, one sentence each


def read_raw(content: bytes, name: str) -> RawFile:
    """The network of a RAW file; `name` is what complaints call the file."""
    return _Reader(split_sections(content, name)).file()


class _Reader:
    """Reads the sections of one file; buses are looked up by their printed number."""

    def __init__(self, sections: RawSections) -> None:
        self.sections, self.base = sections, sections.base_mva
        self.notes: Counter[str] = Counter()
        self.row: dict[int, int] = {}
        for record in sections.of("bus"):
            number = record.integer(0, "I")
            if number in self.row:
                raise record.error(f"bus {number} stands twice; give each bus a number of its own")
            self.row[number] = len(self.row)
        if not self.row:
            raise SpecError(f"{sections.name}: the file has no buses; give a whole RAW file.")

    def bus(self, record: Record, number: int) -> int:
        """Position of the bus that a record names."""
        if number not in self.row:
            raise record.error(f"bus {number} does not exist; add it to the bus data or mend the number")
        return self.row[number]

    def file(self) -> RawFile:
        """The whole file."""
        sections = self.sections
        lines = read_lines(sections)
        transformers, stars = transformer_branches(sections, self.bus, max(self.row) + 1, self.notes)
        buses = self._buses(stars)
        joined = join_buses(buses, jumpers(sections, lines, self.bus, self.notes))
        units, step_up = self._units(buses, joined)
        try:
            case = Case(
                name=sections.name, base_mva=self.base, buses=joined.buses, loads=self._loads(joined),
                shunts=self._shunts(joined), branches=branch_table([*lines, *transformers], self.bus, joined),
                units=units, merged=joined.merged,
            )  # fmt: skip
        except SpecError as error:
            known = str(error).startswith(sections.name)
            raise SpecError(str(error) if known else f"{sections.name}: {error}") from None
        at = {int(joined.place[self.bus(record, bus)]) for record, bus in device_buses(sections, self.notes)}
        case = balanced_loads(case, np.array(sorted(at), dtype=np.int64))
        for section in UNUSED:
            if sections.of(section):
                self.notes[f"{len(sections.of(section))} lines of {section} data: left out"] += 1
        notes = tuple(text if count == 1 else f"{count} times: {text}" for text, count in self.notes.items())
        printed = np.array([record.integer(0, "I") for record in sections.of("generator")], dtype=np.int64)
        return RawFile(case, sections.version, sections.frequency_hz, printed, step_up, notes)

    def _buses(self, stars: list[Star]) -> Buses:
        """The buses of the file, then star buses, which share area and zone with the first winding's bus."""
        records = self.sections.of("bus")
        kinds = [abs(record.integer(3, "IDE", 1)) for record in records]
        for record, kind in zip(records, kinds, strict=True):
            if not 1 <= kind <= 4:
                raise record.error(f"IDE is {kind}; it is 1 (load), 2 (generator), 3 (swing) or 4 (isolated)")
        rows = [*records, *(records[self.row[star.beside]] for star in stars)]
        for star in stars:
            self.row[star.number] = len(self.row)
        angles = np.deg2rad([record.real(8, "VA", 0.0) for record in records])
        return table(
            Buses, len(rows),
            number=list(self.row), kind=[*kinds, *(1 for _ in stars)],
            base_kv=[*(record.real(2, "BASKV", 0.0) for record in records), *(0.0 for _ in stars)],
            v=[*(record.real(7, "VM", 1.0) for record in records), *(star.v for star in stars)],
            angle=[*angles, *(star.angle for star in stars)],
            area=[record.integer(4, "AREA", 1) for record in rows],
            zone=[record.integer(5, "ZONE", 1) for record in rows],
            name=[*(record.text(1) for record in records), *("star" for _ in stars)],
        )  # fmt: skip

    def _places(self, records: list[Record], joined: Joined) -> Int:
        """Positions of the buses that records name first."""
        return joined.place[np.array([self.bus(r, r.integer(0, "I")) for r in records], dtype=np.int64)]

    def _loads(self, joined: Joined) -> Loads:
        records = [r for r in self.sections.of("load") if r.integer(2, "STATUS", 1) != 0]
        power = [complex(r.real(5, "PL", 0.0), r.real(6, "QL", 0.0)) - self._distributed(r) for r in records]
        current = [complex(r.real(7, "IP", 0.0), r.real(8, "IQ", 0.0)) for r in records]
        # YQ is negative for an inductive load: an admittance, not a power
        impedance = [complex(r.real(9, "YP", 0.0), -r.real(10, "YQ", 0.0)) for r in records]
        parts = {"S_power": power, "S_current": current, "S_impedance": impedance}
        scaled = {key: np.array(values, dtype=complex) / self.base for key, values in parts.items()}
        return table(Loads, len(records), bus=self._places(records, joined), **scaled)

    def _distributed(self, record: Record) -> complex:
        """Generation behind a load, MVA, which versions 34 and 35 give beside it."""
        if self.sections.version < 34 or record.integer(16, "DGENM", 0) != 1:
            return 0j
        return complex(record.real(14, "DGENP", 0.0), record.real(15, "DGENQ", 0.0))

    def _shunts(self, joined: Joined) -> Shunts:
        fixed = [r for r in self.sections.of("fixed shunt") if r.integer(2, "STATUS", 1) != 0]
        status, binit = (4, 11) if self.sections.version >= 35 else (3, 9)  # 35 has an identifier and NREG before them
        switched = [r for r in self.sections.of("switched shunt") if r.integer(status, "STAT", 1) != 0]
        y = [complex(r.real(3, "GL", 0.0), r.real(4, "BL", 0.0)) for r in fixed]
        y += [complex(0.0, r.real(binit, "BINIT", 0.0)) for r in switched]
        rows = [*fixed, *switched]
        return table(Shunts, len(rows), bus=self._places(rows, joined), y=np.array(y, dtype=complex) / self.base)

    def _units(self, buses: Buses, joined: Joined) -> tuple[Units, Complex]:
        records = self.sections.of("generator")
        stored = [float(buses.v[self.bus(r, r.integer(0, "I"))]) for r in records]
        m = 9 if self.sections.version >= 35 else 8  # MBASE; 35 has NREG before it
        mva = [r.real(m, "MBASE", self.base) or self.base for r in records]
        for record, value in zip(records, mva, strict=True):
            if value < 0:
                raise record.error(f"MBASE is {value:g} MVA; give the machine base, above 0")
        step_up = [complex(r.real(m + 3, "RT", 0.0), r.real(m + 4, "XT", 0.0)) for r in records]
        if any(z != 0 and r.real(m + 5, "GTAP", 1.0) != 1.0 for r, z in zip(records, step_up, strict=True)):
            self.notes["units have a step-up transformer with a tap (GTAP): taken as 1"] += 1
        powers = {"P": (2, "PG", 0.0), "Q": (3, "QG", 0.0), "q_max": (4, "QT", 9999.0), "q_min": (5, "QB", -9999.0)}
        units = table(
            Units, len(records), bus=self._places(records, joined), id=[r.text(1, "1") for r in records],
            v_set=[self._set_point(record, v) for record, v in zip(records, stored, strict=True)], mva=mva,
            z_source=[complex(r.real(m + 1, "ZR", 0.0), r.real(m + 2, "ZX", 1.0)) for r in records],
            in_service=[r.integer(m + 6, "STAT", 1) != 0 for r in records],
            **{key: np.array([r.real(*field) for r in records]) / self.base for key, field in powers.items()},
        )  # fmt: skip
        return units, np.array(step_up, dtype=np.complex128)

    def _set_point(self, record: Record, stored: float) -> float:
        """VS, or the stored voltage where the unit does not hold VS at its own bus."""
        v_set, regulated = record.real(6, "VS", 1.0), record.integer(7, "IREG", 0)
        if abs(v_set - stored) <= AT_LIMIT:
            return v_set
        if regulated not in (0, record.integer(0, "I")):
            self.notes["a unit regulates another bus: it holds the stored voltage of its own"] += 1
            return stored
        q = record.real(3, "QG", 0.0)
        if q >= record.real(4, "QT", 9999.0) - AT_LIMIT or q <= record.real(5, "QB", -9999.0) + AT_LIMIT:
            self.notes["a unit is at a reactive limit: it holds the stored voltage, not its set point"] += 1
            return stored
        return v_set

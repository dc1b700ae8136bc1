"""Lines, transformers and boundary lines of a grid that pypowsybl holds, as rows of the branch table, per unit."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from contingencies.formats.powsybl_case import GridTables

SMALLEST_OHM = 1e-9  # a branch without impedance would join its buses; files mean a very short one
SHORT_PU = 1e-5  # reactance that such a branch gets


@dataclass(frozen=True)
class Row:
    """One branch between positions, per unit."""

    start: int
    end: int
    z: complex
    y_start: complex = 0j
    y_end: complex = 0j
    tap: float = 1.0
    shift: float = 0.0  # rad
    rating: float = 0.0  # MVA
    is_transformer: bool = False


@dataclass(frozen=True)
class ExtraBus:
    """A bus that the file does not have: the star of three windings, or the far end of a boundary line."""

    name: str
    kv: float
    v: float  # pu
    angle: float  # rad
    beside: int  # position of a bus whose area it shares
    load: complex = 0j  # MVA


class _Builder:
    """Collects rows, buses and what lines with one open end leave at the other."""

    def __init__(self, tables: "GridTables", base_mva: float) -> None:
        self.tables, self.base = tables, base_mva
        self.ratings = _ratings(tables)
        self.rows: list[Row] = []
        self.extra: list[ExtraBus] = []
        self.open_ends: list[tuple[int, complex]] = []

    def add(self, ends: tuple[int, int], kv: tuple[float, float], values: tuple[complex, complex, complex], **more: Any
            ) -> None:  # fmt: skip
        """A branch from its series impedance (ohm) and end admittances (S); `ends` are -1 where it is open."""
        z_ohm, y_1, y_2 = values
        z = z_ohm * self.base / kv[1] ** 2
        z = z if abs(z_ohm) > SMALLEST_OHM else complex(0.0, SHORT_PU)
        tap, y_start, y_end = kv[1] / kv[0], y_1 * kv[0] ** 2 / self.base, y_2 * kv[1] ** 2 / self.base
        if min(ends) >= 0:
            more.setdefault("tap", tap)
            more.setdefault("is_transformer", abs(tap - 1) > 1e-9)
            self.rows.append(Row(*ends, z, y_start, y_end, **more))
        elif max(ends) >= 0 and not more:
            near, far = (y_start, y_end) if ends[1] < 0 else (y_end, y_start)
            seen = z if ends[1] < 0 else z * tap**2
            if far or near:
                self.open_ends.append((max(ends), near + (1 / (seen + 1 / far) if far else 0j)))

    def fresh(self, bus: ExtraBus) -> int:
        """Position of a bus that is added."""
        self.extra.append(bus)
        return len(self.tables.buses) + len(self.extra) - 1

    def side(self, record: Any, k: int | str) -> int:
        """Position of the bus at a side of an element, -1 where it is open there."""
        connected = getattr(record, f"connected{k}")
        return self.tables.at(getattr(record, f"bus{k}_id")) if connected else -1

    def rating(self, record: Any, kv: float) -> float:
        """MVA of the permanent current limit, 0 where there is none."""
        return float(np.sqrt(3) * kv * self.ratings.get(str(record.Index), 0.0) / 1e3)


def branch_rows(tables: "GridTables", base_mva: float) -> tuple[list[Row], list[ExtraBus], list[tuple[int, complex]]]:
    """All branches, the buses that they add, and shunts (position, pu) of lines with one open end."""
    builder = _Builder(tables, base_mva)
    for line in _records(tables, "get_lines"):
        kv = tables.level_kv[line.voltage_level1_id], tables.level_kv[line.voltage_level2_id]
        ends = builder.side(line, 1), builder.side(line, 2)
        values = complex(line.r, line.x), complex(line.g1, line.b1), complex(line.g2, line.b2)
        rating = {"rating": builder.rating(line, kv[0])} if min(ends) >= 0 else {}
        builder.add(ends, kv, values, **rating)
    for transformer in _records(tables, "get_2_windings_transformers"):
        _two_windings(builder, transformer)
    for transformer in _records(tables, "get_3_windings_transformers"):
        _three_windings(builder, transformer)
    _boundary(builder)
    return builder.rows, builder.extra, builder.open_ends


def _two_windings(builder: _Builder, record: Any) -> None:
    levels = builder.tables.level_kv
    kv = levels[record.voltage_level1_id], levels[record.voltage_level2_id]
    ends = builder.side(record, 1), builder.side(record, 2)
    values = _winding_values(record, "", kv[0], kv[1], float(record.rho))
    if min(ends) >= 0:
        builder.add(ends, kv, values[0], rating=builder.rating(record, kv[0]), **values[1])


def _winding_values(
    record: Any, k: str, kv_1: float, kv_2: float, rho: float
) -> tuple[tuple[complex, complex, complex], dict[str, Any]]:
    """Series impedance and admittances of a winding (ohm, S), and its ratio: the admittance stands behind the ratio."""
    z, y = (
        complex(getattr(record, f"{a}{k}_at_current_tap"), getattr(record, f"{b}{k}_at_current_tap"))
        for a, b in ("rx", "gb")
    )
    alpha = float(getattr(record, f"alpha{k}"))
    ratio = {"tap": kv_2 / (rho * kv_1), "shift": -float(np.deg2rad(alpha)), "is_transformer": True}
    return (z, y * rho**2, 0j), ratio


def _three_windings(builder: _Builder, record: Any) -> None:
    tables, kv_0 = builder.tables, float(record.rated_u0)
    sides = [(k, builder.side(record, k)) for k in (1, 2, 3)]
    live = [(k, place) for k, place in sides if place >= 0]
    if len(live) < 2:
        return
    legs, seen, total = [], 0j, 0j
    for k, place in live:
        kv = float(tables.nominal_kv[place])
        values, ratio = _winding_values(record, str(k), kv, kv_0, float(getattr(record, f"rho{k}")))
        z = values[0] * builder.base / kv_0**2
        z = z if abs(values[0]) > SMALLEST_OHM else complex(0.0, SHORT_PU)
        bus = tables.buses.iloc[place]
        V = bus.v_mag / kv * np.exp(1j * np.deg2rad(bus.v_angle))
        seen += V / (ratio["tap"] * np.exp(1j * ratio["shift"])) / z
        total += 1 / z
        legs.append((place, kv, values, ratio))
    V_star = complex(seen / total)
    star = builder.fresh(ExtraBus("star", kv_0, abs(V_star), float(np.angle(V_star)), live[0][1]))
    for place, kv, values, ratio in legs:
        builder.add((place, star), (kv, kv_0), values, rating=0.0, **ratio)


def _boundary(builder: _Builder) -> None:
    """Lines to the boundary; the two halves of a tie line meet at one bus without a load."""
    tables = builder.tables
    meeting: dict[str, int] = {}
    for line in _records(tables, "get_boundary_lines"):
        place = tables.at(line.bus_id) if line.connected else -1
        if place < 0:
            continue
        kv = tables.level_kv[line.voltage_level_id]
        key = str(line.tie_line_id)
        if not line.paired or key not in meeting:
            load = 0j if line.paired else complex(line.p0, line.q0)
            far = _boundary_voltage(tables, line, place, load)
            name = str(line.pairing_key or line.Index)
            bus = builder.fresh(ExtraBus(name, kv, abs(far), float(np.angle(far)), place, load))
            if line.paired:
                meeting[key] = bus
        else:
            bus = meeting[key]
        values = complex(line.r, line.x), complex(line.g, line.b), 0j  # the library puts it all at the near end
        builder.add((place, bus), (kv, kv), values, rating=builder.rating(line, kv))
    if builder.extra:
        tables.notes.append(f"{len(builder.extra)} buses are added for stars and boundaries")


def _boundary_voltage(tables: "GridTables", line: Any, place: int, load: complex) -> complex:
    """The stored voltage of a boundary, else that of the near end, pu."""
    kv = float(tables.nominal_kv[place])
    v, angle = float(line.boundary_v_mag), float(line.boundary_v_angle)
    if not (np.isfinite(v) and np.isfinite(angle)):
        bus = tables.buses.iloc[place]
        v, angle = float(bus.v_mag), float(bus.v_angle)
    return complex(v / kv * np.exp(1j * np.deg2rad(angle)))


def _records(tables: "GridTables", getter: str) -> Iterator[Any]:
    yield from getattr(tables.grid, getter)(all_attributes=True).itertuples()


def _ratings(tables: "GridTables") -> dict[str, float]:
    """Smallest permanent current limit of each element, A."""
    limits = tables.grid.get_loading_limits().reset_index()
    permanent = limits[(limits.type == "CURRENT") & (limits.acceptable_duration == -1)] if len(limits) else limits
    found: dict[str, float] = permanent.groupby("element_id").value.min().to_dict() if len(permanent) else {}
    return {key: float(value) for key, value in found.items() if np.isfinite(value) and value < 1e6}

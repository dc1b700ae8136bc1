"""The plain network of a grid that pypowsybl holds: from volts, ohms and siemens to per unit on 100 MVA.

With nominal voltages u_1 and u_2 (kV) at its ends, an admittance y in siemens between two buses is y u_1 u_2 / S per
unit, so that a line between different nominal voltages has the ratio u_2 / u_1. A transformer has its ratio
rho exp(j alpha) at side 1 and its admittance behind it; three windings meet at a star bus of `rated_u0`. A line to the
boundary ends at a bus of its own, where the rest of the world is a load. Static compensators and converters are
the power that balances the stored state at their buses.
"""

import re
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np

from contingencies.errors import SpecError
from contingencies.formats.case import Case
from contingencies.formats.powsybl_branches import Row, branch_rows
from contingencies.formats.raw_devices import balanced_loads
from contingencies.formats.tables import PQ, PV, SLACK, Branches, Buses, Int, Loads, Shunts, Units, table

BASE_MVA = 100.0
UNLIMITED = 1e6  # MVA; the library writes the largest float for no limit and for no rating
NO_SLACK = "no unit in service holds a voltage; give a network with at least one that does."
NUMBER = re.compile(r"(?:B|BUS-)(\d{1,9})")  # how the library names the buses of numbered formats
BALANCED = {  # kinds of elements that become the power that balances their bus, as people call them
    "get_static_var_compensators": "static var compensators", "get_vsc_converter_stations": "VSC stations",
    "get_lcc_converter_stations": "LCC stations",
}  # fmt: skip


class GridTables:
    """The tables of a grid, fetched once; buses are those that closed switches leave."""

    def __init__(self, grid: Any, name: str) -> None:
        self.grid, self.name = grid, name
        self.notes: list[str] = []
        buses = grid.get_buses()
        self.buses = buses[np.isfinite(buses.v_mag) & np.isfinite(buses.v_angle)]
        if len(self.buses) < len(buses):
            self.notes.append(f"{len(buses) - len(self.buses)} buses without a voltage: left out")
        self.row = {bus: k for k, bus in enumerate(self.buses.index)}
        levels = grid.get_voltage_levels()
        self.nominal_kv = levels.nominal_v[self.buses.voltage_level_id].to_numpy(dtype=float)
        self.level_kv: dict[str, float] = levels.nominal_v.to_dict()
        self.substation = levels.substation_id[self.buses.voltage_level_id].tolist()
        parts = grid.get_bus_breaker_view_buses()
        known = parts[parts.bus_id.isin(self.row)]
        first = known[~known.bus_id.duplicated()].reset_index().set_index("bus_id")
        self.bus_ids = tuple(str(first.id.get(bus, bus)) for bus in self.buses.index)
        self.names = [str(first.name.get(bus, "")) if len(first) else "" for bus in self.buses.index]

    @cached_property
    def _printed(self) -> list[int] | None:
        found = [NUMBER.fullmatch(bus) for bus in self.bus_ids]
        numbers = [int(match[1]) for match in found if match]
        return numbers if len(set(numbers)) == len(found) else None

    @property
    def renumbered(self) -> bool:
        return self._printed is None

    @property
    def numbers(self) -> list[int]:
        """Printed numbers, or 1 to n where buses have other names."""
        return self._printed or list(range(1, len(self.bus_ids) + 1))

    def at(self, bus: Any) -> int:
        """Position of a bus, -1 for an element that is not connected."""
        return self.row.get(str(bus), -1)

    def connected(self, getter: str) -> Iterator[tuple[int, Any]]:
        """Position and record of the elements of a kind that stand at a live bus."""
        for record in getattr(self.grid, getter)(all_attributes=True).itertuples():
            place = self.at(record.bus_id)
            if record.connected and place >= 0:
                yield place, record


def case_of_grid(tables: GridTables) -> Case:
    """The plain network."""
    rows, extra, open_ends = branch_rows(tables, BASE_MVA)
    units, kind = _units(tables)
    n = len(tables.buses) + len(extra)
    fresh = max(tables.numbers) + 1
    area, count = _areas(tables)
    if count > 1:
        tables.notes.append(f"{count} countries: areas 1 to {count} in alphabetical order")
    case = Case(
        name=tables.name, base_mva=BASE_MVA,
        buses=table(
            Buses, n, number=[*tables.numbers, *range(fresh, fresh + len(extra))], kind=[*kind, *(PQ for _ in extra)],
            base_kv=[*tables.nominal_kv, *(bus.kv for bus in extra)],
            v=[*(tables.buses.v_mag.to_numpy() / tables.nominal_kv), *(bus.v for bus in extra)],
            angle=[*np.deg2rad(tables.buses.v_angle.to_numpy()), *(bus.angle for bus in extra)],
            area=[*area, *(area[bus.beside] for bus in extra)],
            name=[*(name or bus for name, bus in zip(tables.names, tables.bus_ids, strict=True)),
                  *(bus.name for bus in extra)],
        ),
        loads=_loads(tables, [(len(tables.buses) + k, bus.load) for k, bus in enumerate(extra) if bus.load]),
        shunts=_shunts(tables, open_ends), branches=_branches(rows), units=units,
    )  # fmt: skip
    return balanced_loads(case, _balanced(tables))


def _areas(tables: GridTables) -> tuple[list[int], int]:
    """An area per country, and how many there are."""
    countries = tables.grid.get_substations().country.to_dict()
    of_bus = [str(countries.get(station, "")) for station in tables.substation]
    known = sorted(set(of_bus))
    return [known.index(country) + 1 for country in of_bus], len(known)


def _loads(tables: GridTables, boundary: list[tuple[int, complex]]) -> Loads:
    drawn = [(place, complex(load.p0, load.q0)) for place, load in tables.connected("get_loads")]
    drawn += [
        (place, complex(-battery.target_p, -battery.target_q)) for place, battery in tables.connected("get_batteries")
    ]
    drawn += boundary
    return table(
        Loads, len(drawn), bus=[place for place, _ in drawn], S_power=np.array([S for _, S in drawn]) / BASE_MVA
    )


def _shunts(tables: GridTables, open_ends: list[tuple[int, complex]]) -> Shunts:
    rows = [
        (place, complex(shunt.g, shunt.b) * tables.nominal_kv[place] ** 2 / BASE_MVA)
        for place, shunt in tables.connected("get_shunt_compensators")
    ]
    rows += open_ends
    return table(Shunts, len(rows), bus=[place for place, _ in rows], y=np.array([y for _, y in rows], dtype=complex))


def _units(tables: GridTables) -> tuple[Units, Int]:
    rows = list(tables.connected("get_generators"))
    kind = np.full(len(tables.buses), PQ, dtype=np.int64)
    stored = tables.buses.v_mag.to_numpy() / tables.nominal_kv
    v_set = []
    for place, unit in rows:
        own = tables.at(unit.regulated_bus_id) == place
        if unit.voltage_regulator_on:
            kind[place] = PV
        v_set.append(float(unit.target_v) / tables.nominal_kv[place] if own else float(stored[place]))
        if unit.voltage_regulator_on and not own:
            tables.notes.append(f"unit {str(unit.Index)[:40]} regulates another bus: it holds the voltage of its own")
    slack = slack_bus(tables.grid)
    if slack is None or tables.at(slack) < 0:
        raise SpecError(NO_SLACK)
    kind[tables.at(slack)] = SLACK
    if not len(tables.grid.get_extensions("slackTerminal")):
        tables.notes.append(f"no slack bus is named: bus {tables.numbers[tables.at(slack)]} is taken")
    limits = {key: np.array([float(getattr(unit, key)) for _, unit in rows]) for key in ("min_q", "max_q")}
    far = {key: np.where(np.isfinite(q) & (np.abs(q) < UNLIMITED), q / BASE_MVA, np.nan) for key, q in limits.items()}
    places = [place for place, _ in rows]
    ids = [str(places[:k].count(place) + 1) for k, place in enumerate(places)]
    units = table(
        Units, len(rows), bus=places, id=ids,
        P=np.array([unit.target_p for _, unit in rows]) / BASE_MVA,
        Q=np.nan_to_num([unit.target_q for _, unit in rows]) / BASE_MVA, v_set=v_set,
        q_min=np.where(np.isnan(far["min_q"]), -np.inf, far["min_q"]),
        q_max=np.where(np.isnan(far["max_q"]), np.inf, far["max_q"]),
        mva=[float(unit.rated_s) if 0 < unit.rated_s < UNLIMITED else 0.0 for _, unit in rows],
    )  # fmt: skip
    return units, kind


def slack_bus(grid: Any) -> str | None:
    """The slack bus that the file names if a unit holds its voltage there, else that of the largest such unit."""
    units = grid.get_generators(all_attributes=True)
    holding = units[units.connected & units.voltage_regulator_on & (units.bus_id != "")]
    main = grid.get_buses()
    holding = holding[holding.bus_id.isin(main.index[main.connected_component == 0])]
    named = grid.get_extensions("slackTerminal")
    for bus in named.bus_id if len(named) else ():
        if (holding.bus_id == bus).any():
            return str(bus)
    return str(holding.bus_id[holding.target_p.idxmax()]) if len(holding) else None


def _branches(rows: list[Row]) -> Branches:
    columns = {key: [getattr(row, key) for row in rows] for key in ("start", "end", "tap", "shift", "rating")}
    counted: dict[tuple[int, int], int] = {}
    circuits = []
    for row in rows:
        pair = (min(row.start, row.end), max(row.start, row.end))
        counted[pair] = counted.get(pair, 0) + 1
        circuits.append(str(counted[pair]))
    return table(
        Branches, len(rows), r=[row.z.real for row in rows], x=[row.z.imag for row in rows], circuit=circuits,
        y_start=[row.y_start for row in rows], y_end=[row.y_end for row in rows],
        is_transformer=[row.is_transformer for row in rows], **columns,
    )  # fmt: skip


def _balanced(tables: GridTables) -> Int:
    places: set[int] = set()
    for getter, words in BALANCED.items():
        here = [place for place, _ in tables.connected(getter)]
        if here:
            tables.notes.append(f"{len(here)} {words}: the power that balances the stored state")
            places.update(here)
    return np.array(sorted(places), dtype=np.int64)

"""A plain network written as a PSS/E RAW file, version 33, so that any format can be kept as one that is read directly.

Numbers are written in full, and reading the file back gives the same network. What a RAW file has no place for goes to
an equivalent one: a shunt at the far end of a transformer becomes a fixed shunt of its bus.
"""

from collections.abc import Iterator

import numpy as np

from contingencies.formats.case import Case
from contingencies.formats.raw_sections import BEFORE_34

NO_LIMIT = 9999.0  # MVAr, PSS/E's own


def raw_of(case: Case, frequency_hz: float, title: str) -> str:
    """The RAW file of a network; branches come back lines first."""
    branches = case.branches
    if (branches.is_transformer & ((branches.g != 0) | (branches.b != 0))).any() or branches.g.any() or case.merged:
        raise ValueError("a RAW file has no place for charging behind a ratio, nor for joined buses")
    sections = {
        "bus": _buses(case), "load": _loads(case), "fixed shunt": _shunts(case), "generator": _units(case),
        "branch": _lines(case), "transformer": _transformers(case),
    }  # fmt: skip
    lines = [f"0, {case.base_mva!r}, 33, 0, 1, {frequency_hz!r} / written by cct-zoo", _plain(title, 60), ""]
    for name in BEFORE_34:
        lines += sections.get(name, ())
        lines.append(f"0 / END OF {name.upper()} DATA")
    return "\n".join([*lines, "Q", ""])


def _plain(text: str, length: int) -> str:
    """Text without what ends a field or a record."""
    return "".join(character for character in text if character.isprintable() and character not in "'\"/,")[:length]


def _row(*fields: object) -> str:
    return ",".join(repr(field.item()) if isinstance(field, np.generic) else str(field) for field in fields)


def _pair(value: complex) -> tuple[np.float64, np.float64]:
    return np.float64(value.real), np.float64(value.imag)


def _buses(case: Case) -> Iterator[str]:
    buses, angle = case.buses, np.rad2deg(case.buses.angle)
    for k in range(len(buses)):
        name = f"'{_plain(str(buses.name[k]), 12):12}'"
        yield _row(
            buses.number[k], name, buses.base_kv[k], buses.kind[k], buses.area[k], buses.zone[k], 1, buses.v[k],
            angle[k],
        )  # fmt: skip


def _numbered(positions: np.ndarray) -> list[str]:
    """1, 2, ... for what stands at the same bus."""
    counted: dict[int, int] = {}
    found = []
    for position in positions.tolist():
        counted[position] = counted.get(position, 0) + 1
        found.append(f"'{counted[position]}'")
    return found


def _loads(case: Case) -> Iterator[str]:
    loads, number = case.loads, case.buses.number
    for k, identifier in enumerate(_numbered(loads.bus)):
        S, current, fixed = (
            getattr(loads, key)[k] * case.base_mva for key in ("S_power", "S_current", "S_impedance")
        )  # fmt: skip
        parts = (*_pair(S), *_pair(current), *_pair(np.conj(fixed)))  # YQ is negative for an inductive load
        yield _row(number[loads.bus[k]], identifier, 1, 1, 1, *parts, 1)


def _shunts(case: Case) -> Iterator[str]:
    branches = case.branches
    at_end = np.flatnonzero(branches.is_transformer & branches.in_service & (branches.y_end != 0))
    bus, y = np.append(case.shunts.bus, branches.end[at_end]), np.append(case.shunts.y, branches.y_end[at_end])
    for k, identifier in enumerate(_numbered(bus)):
        yield _row(case.buses.number[bus[k]], identifier, 1, *_pair(y[k] * case.base_mva))


def _units(case: Case) -> Iterator[str]:
    units, base = case.units, case.base_mva
    top, bottom = (np.clip(q * base, -NO_LIMIT, NO_LIMIT) for q in (units.q_max, units.q_min))
    for k, identifier in enumerate(_numbered(units.bus)):
        mva = units.mva[k] if units.mva[k] > 0 else np.float64(base)
        z = units.z_source[k] if units.z_source[k] != 0 else 1j
        yield _row(
            case.buses.number[units.bus[k]], identifier, units.P[k] * base, units.Q[k] * base, top[k], bottom[k],
            units.v_set[k], 0, mva, *_pair(z), 0.0, 0.0, 1.0, int(units.in_service[k]), 100.0, NO_LIMIT, -NO_LIMIT,
        )  # fmt: skip


def _lines(case: Case) -> Iterator[str]:
    branches, number = case.branches, case.buses.number
    for k in np.flatnonzero(~branches.is_transformer):
        yield _row(
            number[branches.start[k]], number[branches.end[k]], f"'{_plain(str(branches.circuit[k]), 2)}'",
            branches.r[k], branches.x[k], branches.b[k], branches.rating[k], 0.0, 0.0, *_pair(branches.y_start[k]),
            *_pair(branches.y_end[k]), int(branches.in_service[k]), 1, 0.0,
        )  # fmt: skip


def _transformers(case: Case) -> Iterator[str]:
    branches, number, shift = case.branches, case.buses.number, np.rad2deg(case.branches.shift)
    for k in np.flatnonzero(branches.is_transformer):
        yield _row(
            number[branches.start[k]], number[branches.end[k]], 0, f"'{_plain(str(branches.circuit[k]), 2)}'", 1, 1, 1,
            *_pair(branches.y_start[k]), 2, "''", int(branches.in_service[k]),
        )  # fmt: skip
        yield _row(branches.r[k], branches.x[k], np.float64(case.base_mva))
        yield _row(branches.tap[k], 0.0, shift[k], branches.rating[k], 0.0, 0.0)
        yield _row(1.0, 0.0)

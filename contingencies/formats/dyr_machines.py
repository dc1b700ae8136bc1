"""Units of a RAW file and models of a DYR file as classical machines, one per bus.

Units of a bus are added up on the sum of their bases: inertia and damping in proportion to the base, reactances (x'd
and the unit's own step-up transformer) in parallel. Units in service without a machine model (converters, motors) are
*static*: constant impedances at what they feed.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from contingencies.errors import SpecError
from contingencies.formats.dyr import DynamicMachine, DyrFile
from contingencies.formats.energised import live_buses
from contingencies.formats.raw import RawFile

INFINITE_H = 1e6  # s, of GENCLS with H = 0, which is PSS/E's infinite bus
PLAUSIBLE_H = (0.5, 15.0)  # s on the machine base, from small gas sets to large hydro and condensers
PLAUSIBLE_X = (0.05, 1.0)  # pu on the machine base, x'd of anything that is built


@dataclass(frozen=True)
class BusMachine:
    """The classical machine of a bus, on the sum of its units' bases."""

    bus: int
    H: float  # s
    x_d: float  # pu
    D: float  # pu
    mva: float


@dataclass(frozen=True)
class MachineTable:
    """Machines by bus, units without one, and what was replaced or looks wrong."""

    machines: tuple[BusMachine, ...]
    static: tuple[tuple[int, str], ...]  # bus and identifier
    notes: tuple[str, ...]
    warnings: tuple[str, ...]


def machines_of(raw: RawFile, dyr: DyrFile) -> MachineTable:
    """The machines of a network, in the order of its units."""
    models = {(machine.bus, machine.id.upper()): machine for machine in dyr.machines}
    by_bus: dict[int, list[tuple[float, DynamicMachine, float]]] = {}
    static: list[tuple[int, str]] = []
    warnings: list[str] = []
    used = set()
    case, units = raw.case, raw.case.units
    running = units.in_service & live_buses(case)[units.bus]
    for k, (number, identifier) in enumerate(_printed(raw)):
        used.add((number, identifier.upper()))
        model = models.get((number, identifier.upper()))
        if not running[k]:
            continue
        if model is None:
            static.append((number, identifier))
            continue
        mva = float(units.mva[k])
        x_d = float(units.z_source[k].imag) if model.x_d is None else model.x_d
        warnings += _implausible(model, x_d)
        if x_d <= 0:
            raise model.record.error(
                f"the unit's ZX in the RAW file is {x_d:g} pu, and a {model.model} takes x'd from it; give it there"
            )
        # A bus keeps one machine; with joined buses the one that is left stands for all.
        bus = int(case.buses.number[units.bus[k]])
        by_bus.setdefault(bus, []).append((mva, model, x_d + float(raw.step_up[k].imag)))
    if not by_bus:
        raise SpecError(
            f"{dyr.name}: no machine model belongs to a unit in service of the RAW file; check the numbers."
        )
    return MachineTable(
        tuple(_together(bus, parts) for bus, parts in by_bus.items()), tuple(static),
        tuple(_notes(by_bus, static, set(models) - used, dyr)), tuple(warnings),
    )  # fmt: skip


def _printed(raw: RawFile) -> Iterator[tuple[int, str]]:
    """Bus and identifier of each unit as the RAW file prints them."""
    yield from zip(raw.unit_bus.tolist(), raw.case.units.id.tolist(), strict=True)


def _together(bus: int, parts: list[tuple[float, DynamicMachine, float]]) -> BusMachine:
    mva = sum(base for base, _, _ in parts)
    H = sum(base * (model.H or INFINITE_H) for base, model, _ in parts) / mva
    D = sum(base * model.D for base, model, _ in parts) / mva
    x_d = mva / sum(base / x for base, _, x in parts)
    return BusMachine(bus, *(float(f"{value:.12g}") for value in (H, x_d, D, mva)))


def _implausible(model: DynamicMachine, x_d: float) -> list[str]:
    where = f"{model.record.name}:{model.record.line}: {model.model} of unit {model.id} at bus {model.bus}"
    found = []
    if model.H and not PLAUSIBLE_H[0] <= model.H <= PLAUSIBLE_H[1]:
        found.append(f"{where}: H = {model.H:g} s on the machine base is implausible; check MBASE and H.")
    if not PLAUSIBLE_X[0] <= x_d <= PLAUSIBLE_X[1]:
        found.append(f"{where}: x'd = {x_d:g} pu on the machine base is implausible; check MBASE and x'd.")
    return found


def _notes(
    by_bus: dict[int, list[tuple[float, DynamicMachine, float]]], static: list[tuple[int, str]],
    without_unit: set[tuple[int, str]], dyr: DyrFile,
) -> Iterator[str]:  # fmt: skip
    several = [bus for bus, parts in by_bus.items() if len(parts) > 1]
    if several:
        yield f"{len(several)} buses with several machines (bus {_listed(several)}): one equivalent machine each"
    infinite = [bus for bus, parts in by_bus.items() if any(model.H == 0 for _, model, _ in parts)]
    if infinite:
        yield f"GENCLS with H = 0 at bus {_listed(infinite)}: an infinite bus"
    if static:
        places = _listed([f"{bus}/{identifier}" for bus, identifier in static])
        yield f"{len(static)} units without a machine model ({places}): constant impedances"
    if without_unit:
        places = _listed([f"{bus}/{identifier}" for bus, identifier in sorted(without_unit)])
        yield f"{len(without_unit)} machine models without a unit ({places}): left out"
    if dyr.ignored:
        models = ", ".join(f"{count} {model}" for model, count in dyr.ignored.items())
        yield f"models that the classical machine has no place for: {models}"


def _listed(things: list[object] | list[int] | list[str], shown: int = 5) -> str:
    return ", ".join(map(str, things[:shown])) + (", ..." if len(things) > shown else "")

"""Contingencies of a PSS/E .con file as our own: what is faulted, and what clearing the fault takes out of service.

A .con file lists outages. Where a case has no fault of its own, a bolted fault stands at the first bus of its first
line, or at the bus of its first unit, and clearing takes the outage: the usual reading of an outage list in a stability
study. What has no counterpart (transformers, single units of a bus, subsystems) is left out, with line and reason.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import ValidationError

from contingencies.cases import read_case
from contingencies.clearing_specs import Clearing, RemoveLine, Restore, Trip
from contingencies.errors import SpecError
from contingencies.families import Family, LeftOut
from contingencies.fault_specs import BusFault, Fault, LineFault
from contingencies.formats.case import Case
from contingencies.formats.con import Action, ConCase, ConFile, FaultBus, FaultLine, OpenLine, TripUnit
from contingencies.library import Contingency, System
from contingencies.network import Network, solve_network
from contingencies.network_changes import NetworkChange
from contingencies.recipes import BOLTED, STABILITY, WINDOW
from contingencies.reduction import reduce_network
from contingencies.spec import ContingencySpec, Stability, Window


@dataclass(frozen=True)
class Study:
    """What every contingency of a list has in common."""

    window: Window = WINDOW
    severity: tuple[float, float] = (0.0, 1.0)
    stability: Stability = STABILITY


def con_family(con: ConFile, system: System, study: Study, reference: str | None = None) -> Family:
    """The contingencies of a list on a system, in its order; `reference` is how they name their system."""
    network, case = solve_network(system), read_case(system)
    reduction = reduce_network(network)
    members: dict[str, Contingency] = {}
    left_out = [LeftOut("statement outside of a contingency", statement) for statement in con.outside]
    for entry in con.cases:
        name = _free_name(f"{system.name}-{_plain(entry.name) or f'line-{entry.line}'}", members)
        try:
            contingency = Contingency(_spec(entry, name, network, case, study, reference or system.name), system)
            NetworkChange.of(contingency, reduction)  # refuses what does not fit the network
        except SpecError as error:
            left_out.append(LeftOut(name, f"line {entry.line}: {str(error).removeprefix(f'{name}: ').rstrip('.')}"))
        else:
            members[name] = contingency
    return Family(tuple(members.values()), tuple(left_out))


def _plain(text: str) -> str:
    return re.sub(r"[^a-z0-9._-]+", "-", text.lower()).strip("-._")


def _free_name(wanted: str, taken: dict[str, Contingency]) -> str:
    name, count = wanted[:100], 2
    while name in taken:
        name, count = f"{wanted[:94]}-{count}", count + 1
    return name


def _spec(entry: ConCase, name: str, network: Network, case: Case, study: Study, reference: str) -> ContingencySpec:
    if entry.unknown:
        raise SpecError(f"a statement is not understood ({entry.unknown[0]})")
    if not entry.actions:
        raise SpecError("it has no statement; give at least one")
    try:
        return ContingencySpec(
            name=name, description=entry.name[:1000], system=reference,
            fault=_fault(entry.actions, network, name), clearing=_clearing(entry.actions, network, case, name),
            window=study.window, severity=study.severity, stability=study.stability,
        )  # fmt: skip
    except ValidationError as error:
        raise SpecError(error.errors()[0]["msg"].removeprefix("Value error, ")) from None


def _fault(actions: Sequence[Action], network: Network, name: str) -> Fault:
    faults = [action for action in actions if isinstance(action, FaultBus | FaultLine)]
    if len(faults) > 1:
        raise SpecError("it has several faults; one is studied at a time")
    if faults and isinstance(faults[0], FaultLine):
        buses, circuit = faults[0].buses, _circuit(faults[0], network, name)
        return LineFault(kind="line", line=buses, circuit=circuit, impedance_pu=BOLTED)
    first = faults[0] if faults else next((action for action in actions if isinstance(action, OpenLine)), actions[0])
    bus = first.buses[0] if isinstance(first, OpenLine | FaultLine) else first.bus
    return BusFault(kind="bus", bus=bus, impedance_pu=BOLTED)


def _clearing(actions: Sequence[Action], network: Network, case: Case, name: str) -> Clearing:
    lines = [(action.buses, _circuit(action, network, name)) for action in actions if isinstance(action, OpenLine)]
    generators = _generators([action for action in actions if isinstance(action, TripUnit)], network, case)
    if not lines and not generators:
        return Restore(action="restore")
    if len(lines) == 1 and not generators:
        (buses, circuit) = lines[0]
        return RemoveLine(action="remove-line", line=buses, circuit=circuit)
    named = tuple(buses if circuit is None else (*buses, circuit) for buses, circuit in lines)
    return Trip(action="trip", lines=named, generators=generators)


def _circuit(line: OpenLine | FaultLine, network: Network, name: str) -> int | None:
    """The number of the circuit that the file prints, None where only one line joins the buses."""
    together = network.between(line.buses, name)
    if len(together) == 1:
        return None
    printed = line.circuit or "1"
    found = [k for k in together if str(network.branches.name[k]) == printed]
    if len(found) != 1:
        known = ", ".join(str(network.branches.name[k]) for k in together)
        raise SpecError(f"{line.buses[0]}-{line.buses[1]} has no circuit {printed}; it has {known}")
    return together.index(found[0]) + 1


def _generators(tripped: Sequence[TripUnit], network: Network, case: Case) -> tuple[int, ...]:
    """Buses whose machine leaves; the units of a bus are one machine and leave together."""
    units = case.units
    for bus in dict.fromkeys(unit.bus for unit in tripped):
        position = network.position.get(bus)
        there = {
            str(identifier)
            for identifier, number, on in zip(units.id, case.buses.number[units.bus], units.in_service, strict=True)
            if on and network.position.get(int(number)) == position
        }
        named = {unit.id for unit in tripped if unit.bus == bus}
        if None not in named and there - named:
            raise SpecError(f"bus {bus} has other units than those tripped, and the machine of a bus leaves as a whole")
    return tuple(dict.fromkeys(unit.bus for unit in tripped))

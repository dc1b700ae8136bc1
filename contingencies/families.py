"""Families of contingencies written as data: N-1 line faults, bus faults, mechanical perturbations.

A family applies one recipe (fault kind, clearing action, window, severities) everywhere in a system. What the
recipe cannot be applied to is left out, with its reason, so that nothing is missing silently. Lines are named
by their two bus numbers in ascending order, and positions count from the lower one.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from pydantic import ValidationError

from contingencies.clearing_specs import Clearing
from contingencies.connectivity import bridge_problem, removal_problem
from contingencies.errors import SpecError
from contingencies.fault_specs import Fault
from contingencies.library import Contingency, System
from contingencies.network import Network, solve_network
from contingencies.recipes import BOLTED, MIDPOINT, NO_POWER_PU, Recipe, first_problem
from contingencies.reduction import reduce_network


@dataclass(frozen=True)
class LeftOut:
    """A place where the recipe does not apply."""

    name: str
    reason: str


@dataclass(frozen=True)
class Family:
    """The members of a family, in the order of the network's data, and what was left out."""

    members: tuple[Contingency, ...]
    left_out: tuple[LeftOut, ...]


@dataclass(frozen=True)
class _Candidate:
    """A member before it has a system and a window."""

    place: str  # what is added to the system's name, e.g. line-16-17-remove
    description: str
    fault: Fault
    clearing: Clearing


Candidates = Iterator[_Candidate | LeftOut]


def generate_family(system: System, recipe: Recipe, reference: str | None = None) -> Family:
    """All contingencies that a recipe makes of a system.

    Parameters
    ----------
    system : System
    recipe : Recipe
    reference : str, optional
        How the members name their system: a shipped name or a path; default: the system's name.
    """
    network = solve_network(system)
    candidates = {"line": _line_candidates, "bus": _bus_candidates, "mechanical": _mechanical_candidates}
    members, left_out = [], []
    for candidate in candidates[recipe.fault](network, recipe):
        if not recipe.selection.takes_name(candidate.name if isinstance(candidate, LeftOut) else candidate.place):
            continue
        if isinstance(candidate, LeftOut):
            left_out.append(LeftOut(f"{system.name}-{candidate.name}", candidate.reason))
        else:
            members.append(_member(candidate, system, recipe, reference or system.name))
    return Family(tuple(members), tuple(left_out))


def _member(candidate: _Candidate, system: System, recipe: Recipe, reference: str) -> Contingency:
    name = f"{system.name}-{candidate.place}"
    try:
        spec = recipe.spec(name, candidate.description, reference, candidate.fault, candidate.clearing)
    except ValidationError as error:
        raise SpecError(f"{name}: {first_problem(error)}; give the system a shorter name or path.") from None
    return Contingency(spec, system)


# --- lines ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Branch:
    """A branch as its name in a spec: ascending bus numbers, and the circuit where there are several."""

    index: int
    ends: tuple[int, int]
    circuit: int | None
    is_line: bool

    @property
    def label(self) -> str:
        return f"{self.ends[0]}-{self.ends[1]}" + ("" if self.circuit is None else f"-c{self.circuit}")


def _branches(network: Network) -> Iterator[_Branch]:
    branches = network.branches
    for pair, together in network.lines_between.items():
        low, high = sorted(network.bus_numbers[list(pair)].tolist())
        for circuit, k in enumerate(together, start=1):
            yield _Branch(k, (low, high), circuit if len(together) > 1 else None, bool(branches.is_line[k]))


def _line_candidates(network: Network, recipe: Recipe) -> Candidates:
    remove = recipe.clearing == "remove-line"
    suffix, outcome = ("remove", "opening the line") if remove else ("restore", "restoring the topology")
    for branch in sorted(_branches(network), key=lambda branch: branch.index):
        if not recipe.selection.takes_line(network, branch.index):
            continue
        problem = _line_problem(network, branch, remove, scaled=recipe.impedance is None)
        if problem:
            yield LeftOut(f"line-{branch.label}-{suffix}", problem)
            continue
        for position in recipe.positions:
            near, where = _place_on_line(recipe, branch, position)
            description = f"{where} on line {branch.label}, cleared by {outcome}."
            fault = recipe.fault_at(branch.ends, branch.circuit, position)
            yield _Candidate(f"line-{branch.label}{near}-{suffix}", description, fault, recipe.clearing_at())


def _place_on_line(recipe: Recipe, branch: _Branch, position: float) -> tuple[str, str]:
    """What is added to a line's name where its ends are told apart, and where the fault sits, in words."""
    kind = "Bolted fault" if recipe.impedance == BOLTED else "Fault"
    if len(recipe.positions) > 1:
        end = branch.ends[0] if position < MIDPOINT else branch.ends[1]
        return f"-near-{end}", f"{kind} near bus {end}"
    return "", f"{kind} at the middle" if position == MIDPOINT else f"{kind} at {position:g}"


def _line_problem(network: Network, branch: _Branch, remove: bool, scaled: bool = False) -> str | None:
    if not branch.is_line:
        return "is a transformer, not a line"
    if scaled and network.branches.y_series[branch.index].imag > 0:
        return "has a negative reactance, so that its own admittance is no fault"
    cut_off = bridge_problem(network, branch.index) if remove else None
    return f"is a bridge: opening it {cut_off}" if cut_off else None


# --- buses ------------------------------------------------------------------------------------


def _bus_candidates(network: Network, recipe: Recipe) -> Candidates:
    lines_at: dict[int, list[_Branch]] = {}
    for branch in _branches(network):
        for number in branch.ends:
            if branch.is_line:
                lines_at.setdefault(number, []).append(branch)
    for position, number in enumerate(network.bus_numbers.tolist()):
        if not recipe.selection.takes_bus(network, position):
            continue
        lines = lines_at.get(number, [])
        place, words = f"bus-{number}", f"{_kind_of_bus_fault(recipe)} at bus {number}, cleared by"
        if recipe.clearing == "remove-line":
            yield from _bus_and_line_candidates(network, recipe, number, lines)
            continue
        trip = recipe.clearing == "trip-feeders"
        suffix, outcome = ("trip", "tripping its feeders") if trip else ("restore", "restoring the topology")
        problem = _trip_problem(network, lines) if trip else None
        if problem:
            yield LeftOut(f"{place}-{suffix}", problem)
        else:
            fault, clearing = recipe.fault_at((number,)), recipe.clearing_at()
            yield _Candidate(f"{place}-{suffix}", f"{words} {outcome}.", fault, clearing)


def _bus_and_line_candidates(network: Network, recipe: Recipe, number: int, lines: list[_Branch]) -> Candidates:
    """A fault at a bus cleared by opening one of the lines that end there, for each of them."""
    if not lines:
        yield LeftOut(f"bus-{number}-remove", "no line ends at the bus")
    for branch in lines:
        place = f"bus-{number}-remove-{branch.label}"
        problem = _line_problem(network, branch, remove=True)
        if problem:
            yield LeftOut(place, problem)
            continue
        description = f"{_kind_of_bus_fault(recipe)} at bus {number}, cleared by opening line {branch.label}."
        clearing = recipe.clearing_at(branch.ends, branch.circuit)
        yield _Candidate(place, description, recipe.fault_at((number,)), clearing)


def _kind_of_bus_fault(recipe: Recipe) -> str:
    if recipe.impedance is None:
        return "Shunt fault"
    return "Bolted fault" if recipe.impedance == BOLTED else "Fault"


def _trip_problem(network: Network, lines: list[_Branch]) -> str | None:
    if not lines:
        return "the bus has no feeder that can be tripped"
    problem = removal_problem(network, tuple(branch.index for branch in lines))
    return f"tripping the feeders {problem}" if problem else None


# --- machines ---------------------------------------------------------------------------------


def _mechanical_candidates(network: Network, recipe: Recipe) -> Candidates:
    P_m = reduce_network(network).P_m
    factor = recipe.factor
    suffix, outcome = ("restore", "restored") if factor is None else ("set", f"set to {factor:g} of its value")
    for machine, number in enumerate(network.bus_numbers[network.machine_bus].tolist()):
        place = f"mech-g{number}-{suffix}"
        if not recipe.selection.takes_bus(network, int(network.machine_bus[machine])):
            continue
        if abs(P_m[machine]) < NO_POWER_PU:
            yield LeftOut(place, "has no mechanical power to change (a condenser)")
            continue
        description = f"Mechanical power of the generator at bus {number} changed, then {outcome}."
        yield _Candidate(place, description, recipe.fault_at((number,)), recipe.clearing_at())

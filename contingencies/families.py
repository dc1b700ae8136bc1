"""Families of contingencies written as data: N-1 line faults, bus faults, mechanical perturbations.

A family applies one recipe (fault kind, clearing action, window, severities) everywhere in a system. What the
recipe cannot be applied to is left out, with its reason, so that nothing is missing silently. Lines are named
by their two bus numbers in ascending order, and positions count from the lower one.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from pydantic import ValidationError

from contingencies.connectivity import bridge_problem, removal_problem
from contingencies.errors import SpecError, UsageError
from contingencies.library import Contingency, System
from contingencies.network import Network, solve_network
from contingencies.reduction import reduce_network
from contingencies.spec import (
    BusFault,
    Clearing,
    ContingencySpec,
    Fault,
    Impedance,
    LineFault,
    MechanicalFault,
    RemoveLine,
    Restore,
    RestoreMechanical,
    SetMechanical,
    Shunt,
    Stability,
    TripFeeders,
    Window,
)

FaultKind = Literal["line", "bus", "mechanical"]
ACTIONS: dict[str, tuple[str, ...]] = {  # fault kind -> clearing actions that apply to each member alike
    "line": ("remove-line", "restore"),
    "bus": ("trip-feeders", "remove-line", "restore"),
    "mechanical": ("restore-mechanical", "set-mechanical"),
}
WINDOW = Window(t_f=0.2, T=2.5, t_c=(0.21, 1.21))  # from the first cycle after the fault to a second later
BOLTED = Impedance(r=0.0, x=0.0)
SHUNT = Shunt(g=0.0, b=-100.0)  # of the admittance law: nearly bolted on a 100 MVA base
NEAR_END = 0.02  # of a line's length from a bus: what engineers call a close-in fault
MIDPOINT = 0.5
STABILITY = Stability(max_separation_rad=np.pi)
NO_POWER_PU = 1e-9  # machines below this carry no mechanical power: condensers, to the power flow's tolerance


@dataclass(frozen=True)
class Recipe:
    """What happens at every member of a family."""

    fault: FaultKind
    clearing: str
    position: float | None = None  # of a line fault, from the lower bus number; None: near either end
    impedance: Impedance | None = BOLTED  # of line and bus faults; None: the paper's law, which scales an admittance
    shunt: Shunt = SHUNT  # of a bus fault under that law
    coefficient: float = 1.25  # of a mechanical perturbation
    factor: float | None = None  # of set-mechanical
    window: Window = WINDOW
    severity: tuple[float, float] = (0.0, 1.0)
    stability: Stability = STABILITY

    def __post_init__(self) -> None:
        if self.fault not in ACTIONS:
            raise UsageError(f"fault kind {self.fault!r} is not known; use {' or '.join(ACTIONS)}.")
        if self.clearing not in ACTIONS[self.fault]:
            raise UsageError(
                f"clearing {self.clearing!r} does not make a family of {self.fault} faults; "
                f"use {' or '.join(ACTIONS[self.fault])}."
            )
        if (self.clearing == "set-mechanical") != (self.factor is not None):
            raise UsageError("clearing 'set-mechanical', and no other, needs a factor of the pre-fault P_m; give it.")
        try:  # at a place that any network could have: what is wrong with the recipe is wrong everywhere
            fault = self.fault_at((1, 2), position=self.positions[0])
            self.spec("recipe", "", "recipe", fault, self.clearing_at((1, 2)))
        except ValidationError as error:
            raise UsageError(f"{_first_problem(error)}.") from None

    @property
    def positions(self) -> tuple[float, ...]:
        """Where on each line a fault is put: a fraction from the lower bus number.

        The paper's line fault grows with the line's own admittance; it belongs to the middle of the line.
        """
        if self.position is not None:
            return (self.position,)
        return (MIDPOINT,) if self.impedance is None else (NEAR_END, 1.0 - NEAR_END)

    @property
    def fault_words(self) -> str:
        """What severity 1 of a member is, for headings."""
        if self.fault == "mechanical":
            return f"P_m changed by {100 * self.coefficient:+g} %"
        if self.impedance is None:
            size = "the line's own admittance" if self.fault == "line" else f"{self.shunt.g:g}{self.shunt.b:+g}j pu"
            return f"shunt of {size}, not bolted"
        if self.impedance.value == 0:
            return "bolted three-phase"
        return f"three-phase through {self.impedance.r:g}{self.impedance.x:+g}j pu"

    def fault_at(self, buses: tuple[int, ...], circuit: int | None = None, position: float = MIDPOINT) -> Fault:
        """The fault at a point of the line between two buses, or at a bus or machine."""
        if self.fault == "line":
            ends = (buses[0], buses[1])
            return LineFault(kind="line", line=ends, circuit=circuit, position=position, impedance_pu=self.impedance)
        if self.fault == "bus":
            shunt = self.shunt if self.impedance is None else None
            return BusFault(kind="bus", bus=buses[0], shunt_pu=shunt, impedance_pu=self.impedance)
        return MechanicalFault(kind="mechanical", generator=buses[0], coefficient=self.coefficient)

    def clearing_at(self, line: tuple[int, int] | None = None, circuit: int | None = None) -> Clearing:
        """The clearing action; a bus fault cleared by opening a line names the line."""
        if self.clearing == "remove-line":
            return RemoveLine(action="remove-line", line=line, circuit=circuit)
        if self.clearing == "trip-feeders":
            return TripFeeders(action="trip-feeders")
        if self.clearing == "restore-mechanical":
            return RestoreMechanical(action="restore-mechanical")
        if self.factor is not None:
            return SetMechanical(action="set-mechanical", generator=None, factor=self.factor)
        return Restore(action="restore")

    def spec(self, name: str, description: str, system: str, fault: Fault, clearing: Clearing) -> ContingencySpec:
        """A member's description."""
        return ContingencySpec(
            name=name, description=description, system=system, fault=fault, clearing=clearing,
            window=self.window, severity=self.severity, stability=self.stability,
        )  # fmt: skip


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
        raise SpecError(f"{name}: {_first_problem(error)}; give the system a shorter name or path.") from None
    return Contingency(spec, system)


def _first_problem(error: ValidationError) -> str:
    first = error.errors()[0]
    field = "".join(f"{step}: " for step in first["loc"][:1])
    message = first["msg"].removeprefix("Value error, ")
    return f"{field}{message[0].lower()}{message[1:]}"


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
    for number in network.bus_numbers.tolist():
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
        if abs(P_m[machine]) < NO_POWER_PU:
            yield LeftOut(place, "has no mechanical power to change (a condenser)")
            continue
        description = f"Mechanical power of the generator at bus {number} changed, then {outcome}."
        yield _Candidate(place, description, recipe.fault_at((number,)), recipe.clearing_at())

"""What happens at every member of a family: kind of fault and clearing, where, window, severities."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from pydantic import ValidationError

from contingencies.clearing_specs import Clearing, RemoveLine, Restore, RestoreMechanical, SetMechanical, TripFeeders
from contingencies.errors import UsageError
from contingencies.fault_specs import BusFault, Fault, Impedance, LineFault, MechanicalFault, Shunt
from contingencies.selection import EVERYWHERE, Selection
from contingencies.spec import ContingencySpec, Protection, Stability, Window

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
    selection: Selection = EVERYWHERE
    protection: Protection | None = None  # the time that every member's protection needs

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
        if self.selection.rating_min and self.fault != "line":
            raise UsageError("a rating selects lines, and the faults of this family are not on lines; leave it out.")
        try:  # at a place that any network could have: what is wrong with the recipe is wrong everywhere
            fault = self.fault_at((1, 2), position=self.positions[0])
            self.spec("recipe", "", "recipe", fault, self.clearing_at((1, 2)))
        except ValidationError as error:
            raise UsageError(f"{first_problem(error)}.") from None

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
            window=self.window, severity=self.severity, stability=self.stability, protection=self.protection,
        )  # fmt: skip


def first_problem(error: ValidationError) -> str:
    """What is wrong with a description, in lower case, for the middle of a sentence."""
    first = error.errors()[0]
    field = "".join(f"{step}: " for step in first["loc"][:1])
    message = first["msg"].removeprefix("Value error, ")
    return f"{field}{message[0].lower()}{message[1:]}"

"""What a user writes down: systems and contingencies, validated, with a stable identity.

A system names a network and its classical machines; a contingency names a system, a fault, a
clearing action and the study window. Both are frozen, strict, and have a canonical JSON whose
SHA-256 is their identity. Nothing here solves or simulates: whether a bus exists is asked when
the contingency is compiled (`contingencies.operators`).
"""

import hashlib
import json
import math
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag, field_validator, model_validator

from contingencies.conditions import Conditions
from contingencies.documents import FieldError
from contingencies.records import LARGEST, BusNumber, Name, NonNegative, Positive, Real, Record, Text

Severity = Annotated[float, Field(ge=-LARGEST, le=1e6, allow_inf_nan=False)]

# --- faults -----------------------------------------------------------------------------------


class Shunt(Record):
    """Reference fault admittance y = g + jb at severity 1."""

    g: Real = Field(0.0, description="conductance, pu on the system base")
    b: Real = Field(description="susceptance, pu on the system base; inductive faults are negative")

    @property
    def admittance(self) -> complex:
        return complex(self.g, self.b)

    @model_validator(mode="after")
    def _not_zero(self) -> "Shunt":
        if self.g < 0:
            raise ValueError(f"g = {self.g} would generate power; use a conductance of at least 0")
        if abs(self.admittance) == 0:
            raise ValueError("a shunt of zero admittance is no fault; give g or b")
        return self


class Impedance(Record):
    """A fault impedance; both parts 0 for a bolted fault."""

    r: NonNegative = Field(0.0, description="resistance")
    x: Real = Field(0.0, description="reactance")

    @property
    def value(self) -> complex:
        return complex(self.r, self.x)


class ShortCircuit(Record):
    """A fault through an impedance, in pu on the system base or in ohms; alpha = 1 is the fault as given."""

    added_later = frozenset({"impedance_pu", "impedance_ohm"})

    impedance_pu: Impedance | None = Field(
        None, description="fault impedance, pu on the system base; {} is a bolted fault"
    )
    impedance_ohm: Impedance | None = Field(None, description="fault impedance, ohm; {} is a bolted fault")

    @property
    def through_impedance(self) -> bool:
        """Whether the fault is given by an impedance, rather than by an admittance that alpha scales."""
        return self.impedance_pu is not None or self.impedance_ohm is not None

    @model_validator(mode="after")
    def _one_impedance(self) -> "ShortCircuit":
        if self.impedance_pu is not None and self.impedance_ohm is not None:
            raise ValueError("the fault impedance is given twice; give impedance_pu or impedance_ohm")
        return self


class BusFault(ShortCircuit):
    """A fault at a generator or load bus: a shunt alpha * y, or a fault impedance."""

    added_later = ShortCircuit.added_later | {"shunt_pu"}

    kind: Literal["bus"]
    bus: BusNumber
    shunt_pu: Shunt | None = Field(None, description="fault admittance at severity 1, instead of an impedance")

    @model_validator(mode="after")
    def _one_law(self) -> "BusFault":
        if (self.shunt_pu is None) != self.through_impedance:
            raise ValueError(
                "give the fault either as shunt_pu or as impedance_pu (or impedance_ohm); "
                "impedance_pu: {} is a bolted fault"
            )
        return self


class LineRef(Record):
    """One circuit of a line, by the numbers of its two buses."""

    line: tuple[BusNumber, BusNumber] = Field(description="the two buses, in either order")
    circuit: Annotated[int, Field(ge=1, le=99)] | None = Field(
        None, description="number of the circuit, needed only where circuits run in parallel"
    )

    @model_validator(mode="after")
    def _two_buses(self) -> "LineRef":
        if self.line[0] == self.line[1]:
            raise ValueError(f"line {list(self.line)} starts and ends at the same bus; name two buses")
        return self


class LineFault(LineRef, ShortCircuit):
    """A fault at a point of a line: a shunt alpha * y with the line's own admittance y, or a fault impedance."""

    kind: Literal["line"]
    position: Annotated[float, Field(allow_inf_nan=False)] = Field(
        0.5, description="fraction of the line from its first-named bus, strictly between 0 and 1"
    )

    @field_validator("position")
    @classmethod
    def _inside(cls, position: float) -> float:
        if not 0 < position < 1:
            raise ValueError(f"{position} is not strictly between 0 and 1; use kind: bus for a fault at a line's end")
        return position


class MechanicalFault(Record):
    """Mechanical power of one generator scaled by 1 + coefficient * alpha."""

    kind: Literal["mechanical"]
    generator: BusNumber = Field(description="bus of the generator")
    coefficient: Real = Field(description="s_mech: relative change of P_m at severity 1")

    @field_validator("coefficient")
    @classmethod
    def _not_zero(cls, coefficient: float) -> float:
        if coefficient == 0:
            raise ValueError("a coefficient of 0 perturbs nothing; give the relative change of P_m at severity 1")
        return coefficient


Fault = Annotated[BusFault | LineFault | MechanicalFault, Field(discriminator="kind")]


# --- clearing actions -------------------------------------------------------------------------


class Restore(Record):
    """The fault disappears and the network is as before."""

    action: Literal["restore"]


class RemoveLine(Record):
    """The fault disappears with one line: the faulted one unless another is named."""

    action: Literal["remove-line"]
    line: tuple[BusNumber, BusNumber] | None = Field(None, description="the line to open; default: the faulted line")
    circuit: Annotated[int, Field(ge=1, le=99)] | None = None

    @model_validator(mode="after")
    def _circuit_of_a_line(self) -> "RemoveLine":
        if self.line is None and self.circuit is not None:
            raise ValueError("circuit is given without line; name the line's two buses as well")
        if self.line is not None and self.line[0] == self.line[1]:
            raise ValueError(f"line {list(self.line)} starts and ends at the same bus; name two buses")
        return self


class TripFeeders(Record):
    """All removable non-transformer branches at the faulted bus open."""

    action: Literal["trip-feeders"]


LineName = tuple[BusNumber, BusNumber] | tuple[BusNumber, BusNumber, Annotated[int, Field(ge=1, le=99)]]


class Trip(Record):
    """Several lines open and generators leave the network; nothing else changes."""

    action: Literal["trip"]
    lines: tuple[LineName, ...] = Field(
        (), max_length=100, description="lines to open: two buses, and the circuit where circuits run in parallel"
    )
    generators: tuple[BusNumber, ...] = Field(
        (), max_length=100, description="buses of the generators to disconnect; all units of a bus together"
    )

    @model_validator(mode="after")
    def _something_once(self) -> "Trip":
        if not self.lines and not self.generators:
            raise ValueError("trips nothing; name lines or generators, or use restore")
        for line in self.lines:
            if line[0] == line[1]:
                raise FieldError("lines", f"line {list(line[:2])} starts and ends at the same bus; name two buses")
        named = [(*sorted(line[:2]), *line[2:]) for line in self.lines]
        for what, places in (("line", named), ("generator", [(bus,) for bus in self.generators])):
            twice = next((place for place in places if places.count(place) > 1), None)
            if twice:
                raise FieldError(f"{what}s", f"{what} {'-'.join(map(str, twice))} is named twice; name it once")
        return self


class RestoreMechanical(Record):
    """The perturbed mechanical power returns to its pre-fault value."""

    action: Literal["restore-mechanical"]


class SetMechanical(Record):
    """The network is as before and one generator's P_m becomes factor times its pre-fault value."""

    action: Literal["set-mechanical"]
    generator: BusNumber | None = Field(None, description="bus of the generator; default: the perturbed one")
    factor: NonNegative = Field(description="post-clearing P_m over pre-fault P_m")


Clearing = Annotated[
    Restore | RemoveLine | TripFeeders | Trip | RestoreMechanical | SetMechanical, Field(discriminator="action")
]


# --- contingency ------------------------------------------------------------------------------


class Window(Record):
    """Instants on the simulation clock, s."""

    t_f: NonNegative = Field(0.2, description="fault applied, s")
    T: Positive = Field(2.0, le=1000, description="end of the study, s")
    t_c: tuple[Positive, Positive] = Field((0.25, 1.25), description="first and last clearing instant studied, s")

    @model_validator(mode="after")
    def _in_order(self) -> "Window":
        first, last = self.t_c
        if not self.t_f < first:
            raise FieldError(
                "t_c", f"t_c starts at {first} s, which is not after the fault (t_f = {self.t_f} s); set t_c[0] > t_f"
            )
        if not first < last:
            raise FieldError(
                "t_c", f"t_c ends at {last} s, which is not after its start {first} s; set t_c[1] > t_c[0]"
            )
        if not last < self.T:
            raise FieldError(
                "t_c",
                f"t_c ends at {last} s, which is not before the end of the study (T = {self.T} s); set T > t_c[1]",
            )
        return self


class Stability(Record):
    """When synchronism counts as lost."""

    max_separation_rad: Positive = Field(math.pi, le=1000, description="largest admissible rotor-angle separation, rad")


class ContingencySpec(Record):
    """What happens to a grid: fault, clearing, study window, severities."""

    added_later = frozenset({"conditions"})

    name: Name
    description: Text = ""
    system: Annotated[str, Field(min_length=1, max_length=1000)] = Field(
        description="name of a shipped system, or path of a system file relative to this file"
    )
    fault: Fault
    clearing: Clearing
    window: Window = Window()
    severity: tuple[Severity, Severity] = Field((0.0, 1.0), description="smallest and largest severity alpha studied")
    stability: Stability = Stability()
    conditions: Conditions | None = Field(None, description="what varies; left out, the case's own operating point")

    @field_validator("severity")
    @classmethod
    def _admissible(cls, severity: tuple[float, float]) -> tuple[float, float]:
        if severity[0] < 0:
            raise ValueError(
                f"severity starts at {severity[0]}, which is negative; severities start at 0 (no fault) or above"
            )
        if not severity[0] < severity[1]:
            raise ValueError(
                f"severity ends at {severity[1]}, which is not above its start {severity[0]}; "
                "set severity[1] > severity[0]"
            )
        return severity

    @model_validator(mode="after")
    def _severity_fits_fault(self) -> "ContingencySpec":
        if isinstance(self.fault, ShortCircuit) and self.fault.through_impedance and self.severity[1] > 1:
            raise FieldError(
                "severity",
                f"severity ends at {self.severity[1]}, but 1 is the whole of a fault given by its impedance; "
                "let severity end at 1 or below",
            )
        return self

    @model_validator(mode="after")
    def _clearing_fits_fault(self) -> "ContingencySpec":
        fault, clearing = self.fault, self.clearing
        mechanical = isinstance(fault, MechanicalFault)
        if mechanical and not isinstance(clearing, RestoreMechanical | SetMechanical):
            raise FieldError(
                "clearing",
                f"clearing action {clearing.action!r} cannot clear a mechanical fault; "
                "use restore-mechanical or set-mechanical",
            )
        if not mechanical and isinstance(clearing, RestoreMechanical):
            raise FieldError("clearing", "clearing action 'restore-mechanical' needs a mechanical fault; use restore")
        if isinstance(clearing, TripFeeders) and not isinstance(fault, BusFault):
            raise FieldError("clearing", "clearing action 'trip-feeders' needs a bus fault; use remove-line")
        if isinstance(clearing, RemoveLine) and clearing.line is None and not isinstance(fault, LineFault):
            raise FieldError(
                "clearing",
                "clearing action 'remove-line' must name the line when the fault is not on one; add line: [from, to]",
            )
        if isinstance(clearing, SetMechanical) and clearing.generator is None and not mechanical:
            raise FieldError(
                "clearing",
                "clearing action 'set-mechanical' must name the generator when the fault is not mechanical; "
                "add generator",
            )
        return self

    @model_validator(mode="after")
    def _conditions_fit_fault(self) -> "ContingencySpec":
        if self.conditions is None or self.conditions.position is None or isinstance(self.fault, LineFault):
            return self
        raise FieldError("conditions", "position varies along a line, and the fault is not on one; leave it out")


# --- systems ----------------------------------------------------------------------------------


class PandapowerCase(Record):
    """A network that pandapower ships."""

    pandapower: Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_]*$", max_length=60)] = Field(
        description="function in pandapower.networks, e.g. case39"
    )
    bus_numbers: Literal["name", "index+1"] = Field(
        "name", description="where pandapower keeps the printed bus numbers of this case"
    )


class NetworkFile(Record):
    """A network in a file: pandapower JSON (.json) or MATPOWER (.m, .mat)."""

    file: Annotated[str, Field(min_length=1, max_length=1000)] = Field(description="path, relative to this file")
    bus_numbers: Literal["name", "index", "index+1"] | None = Field(
        None, description="pandapower JSON only: where the bus numbers are; default: name"
    )


def _network_kind(network: Any) -> str:
    """Which of the two a network is, so that mistakes in one are not told as mistakes in the other."""
    of_file = "file" in network if isinstance(network, dict) else isinstance(network, NetworkFile)
    return "network file" if of_file else "pandapower case"


NetworkSource = Annotated[
    Annotated[PandapowerCase, Tag("pandapower case")] | Annotated[NetworkFile, Tag("network file")],
    Discriminator(_network_kind),
]


class Machine(Record):
    """A classical machine; all units of a bus together."""

    bus: BusNumber
    H: Positive = Field(ge=1e-3, description="inertia constant, s")
    x_d: Positive = Field(description="transient reactance x'd, pu")
    D: NonNegative = Field(0.0, description="damping, pu power per pu speed")
    mva: Positive | None = Field(None, description="machine base, MVA; needed with base: machine")


class Machines(Record):
    """The machine side-car of a network."""

    base: Literal["system", "machine"] = Field(description="base of H, x_d and D")
    units: tuple[Machine, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _consistent(self) -> "Machines":
        seen: set[int] = set()
        for unit in self.units:
            if unit.bus in seen:
                raise ValueError(f"the machine at bus {unit.bus} is given twice; give one equivalent machine per bus")
            seen.add(unit.bus)
            if self.base == "machine" and unit.mva is None:
                raise ValueError(
                    f"the machine at bus {unit.bus} has no mva; base: machine needs the MVA of every machine"
                )
            if self.base == "system" and unit.mva is not None:
                raise ValueError(
                    f"the machine at bus {unit.bus} has mva, but base is system; remove mva or set base: machine"
                )
        return self


class SystemSpec(Record):
    """A network and its machines, with where the numbers come from."""

    name: Name
    description: Text = ""
    network: NetworkSource
    base_mva: Positive = Field(
        100.0,
        description="system base, MVA, of fault shunts and of machines on base: system; the network is converted",
    )
    frequency_hz: Positive = Field(60.0, ge=1, le=1000, description="nominal frequency, Hz")
    machines: Machines
    provenance: Text = Field(description="where the network and the machine data come from")

    @field_validator("network", mode="before")
    @classmethod
    def _one_source(cls, network: Any) -> Any:
        if isinstance(network, dict) and ("pandapower" in network) == ("file" in network):
            raise ValueError("name exactly one source: pandapower: CASE or file: PATH")
        return network


# --- identity ---------------------------------------------------------------------------------

PROSE = frozenset({"description", "provenance"})  # words about the physics, not physics


def canonical_json(record: Record, **physics: str) -> str:
    """The record as canonical JSON: sorted keys, no prose, no spaces; `physics` replaces fields."""
    content = {key: value for key, value in record.model_dump(mode="json").items() if key not in PROSE}
    return json.dumps(content | physics, sort_keys=True, separators=(",", ":"), allow_nan=False)


def sha256(text: str | bytes) -> str:
    """Hexadecimal SHA-256."""
    return hashlib.sha256(text.encode() if isinstance(text, str) else text).hexdigest()

"""Faults as a user describes them: at a bus, on a line, in the mechanical power of a generator."""

from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from contingencies.records import LARGEST, SMALLEST, BusNumber, NonNegative, Real, Record

Severity = Annotated[float, Field(ge=-LARGEST, le=1e6, allow_inf_nan=False)]


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

    @property
    def is_bolted(self) -> bool:
        """Whether severity 1 is a fault without impedance."""
        impedance = self.impedance_pu or self.impedance_ohm
        return impedance is not None and impedance.value == 0

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
        if not SMALLEST <= position <= 1 - SMALLEST:
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

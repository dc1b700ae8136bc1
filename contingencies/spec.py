"""What a user writes down: systems and contingencies, validated, with a stable identity.

A system names a network and its classical machines; a contingency names a system, a fault, a
clearing action and the study window. Both are frozen, strict, and have a canonical JSON whose
SHA-256 is their identity. Nothing here solves or simulates: whether a bus exists is asked when
the contingency is compiled (`contingencies.operators`).
"""

import hashlib
import json
import math
from typing import Annotated

from pydantic import AfterValidator, Field, field_validator, model_validator

from contingencies.clearing_specs import Clearing, RemoveLine, RestoreMechanical, SetMechanical, TripFeeders
from contingencies.conditions import Conditions
from contingencies.documents import FieldError
from contingencies.fault_specs import BusFault, Fault, LineFault, MechanicalFault, ShortCircuit
from contingencies.records import (
    LARGEST,
    Milliseconds,
    Name,
    NonNegative,
    Positive,
    Record,
    Text,
    Thousand,
    not_dust,
)

Severity = Annotated[float, Field(ge=-LARGEST, le=1e6, allow_inf_nan=False), AfterValidator(not_dust)]


# --- contingency ------------------------------------------------------------------------------


class Window(Record):
    """Instants on the simulation clock, s."""

    t_f: NonNegative = Field(0.2, description="fault applied, s")
    T: Thousand = Field(2.0, description="end of the study, s")
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

    max_separation_rad: Thousand = Field(math.pi, description="largest admissible rotor-angle separation, rad")


class Protection(Record):
    """What the protection of a contingency needs."""

    required_ms: Milliseconds = Field(description="longest time from fault to clearing, ms")

    @property
    def required(self) -> float:
        """In s."""
        return 1e-3 * self.required_ms


class ContingencySpec(Record):
    """What happens to a grid: fault, clearing, study window, severities."""

    added_later = frozenset({"conditions", "protection"})

    name: Name
    description: Text = Field("", description="a sentence for people; not part of the identity")
    system: Annotated[str, Field(min_length=1, max_length=1000)] = Field(
        description="name of a shipped system, or path of a system file relative to this file"
    )
    fault: Fault
    clearing: Clearing
    window: Window = Window()
    severity: tuple[Severity, Severity] = Field((0.0, 1.0), description="smallest and largest severity alpha studied")
    stability: Stability = Stability()
    conditions: Conditions | None = Field(None, description="what varies; left out, the case's own operating point")
    protection: Protection | None = Field(None, description="the time that protection needs; left out, none is asked")

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


# --- identity ---------------------------------------------------------------------------------

PROSE = frozenset({"description", "provenance"})  # words about the physics, not physics


def canonical_json(record: Record, **physics: str) -> str:
    """The record as canonical JSON: sorted keys, no prose, no spaces; `physics` replaces fields."""
    content = {key: value for key, value in record.model_dump(mode="json").items() if key not in PROSE}
    return json.dumps(content | physics, sort_keys=True, separators=(",", ":"), allow_nan=False)


def sha256(text: str | bytes) -> str:
    """Hexadecimal SHA-256."""
    return hashlib.sha256(text.encode() if isinstance(text, str) else text).hexdigest()

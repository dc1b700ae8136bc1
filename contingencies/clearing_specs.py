"""How a fault is cleared, as a user describes it."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from contingencies.documents import FieldError
from contingencies.records import LARGEST, BusNumber, NonNegative, Record

Severity = Annotated[float, Field(ge=-LARGEST, le=1e6, allow_inf_nan=False)]


class Restore(Record):
    """The fault disappears and the network is as before."""

    action: Literal["restore"]


class RemoveLine(Record):
    """The fault disappears with one line: the faulted one unless another is named."""

    action: Literal["remove-line"]
    line: tuple[BusNumber, BusNumber] | None = Field(None, description="the line to open; default: the faulted line")
    circuit: Annotated[int, Field(ge=1, le=99)] | None = Field(
        None, description="number of the circuit, needed only where circuits run in parallel"
    )

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

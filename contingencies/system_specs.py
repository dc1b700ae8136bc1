"""Systems as a user describes them: a network, its classical machines, and where the numbers come from.

Machines stand in the system file, or in the DYR file of a PSS/E network (`SystemDocument`); once read, a system
carries them by bus (`SystemSpec`).
"""

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Discriminator, Field, Tag, field_validator, model_validator

from contingencies.records import BusNumber, Frequency, Name, NonNegative, Positive, Power, Record, Text


class PandapowerCase(Record):
    """A network that pandapower ships."""

    pandapower: Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_]*$", max_length=60)] = Field(
        description="function in pandapower.networks, e.g. case39"
    )
    bus_numbers: Literal["name", "index+1"] = Field(
        "name", description="where pandapower keeps the printed bus numbers of this case"
    )


class NetworkFile(Record):
    """A network in a file: PSS/E (.raw), MATPOWER (.m, .mat) or pandapower JSON (.json)."""

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
    mva: Power | None = Field(None, description="machine base, MVA; needed with base: machine")


class Machines(Record):
    """The machine side-car of a network."""

    added_later = frozenset({"static"})

    base: Literal["system", "machine"] = Field(description="base of H, x_d and D")
    units: tuple[Machine, ...] = Field(min_length=1, description="the machines, one entry each")
    static: tuple[tuple[BusNumber, Annotated[str, Field(max_length=20)]], ...] | None = Field(
        None,
        max_length=100_000,
        description="units that are no machines, by bus and identifier: constant impedances at what they feed",
    )

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


class MachineFile(Record):
    """The machines of a PSS/E network, in a DYR file."""

    file: Annotated[str, Field(min_length=1, max_length=1000)] = Field(description="path, relative to this file")


class SystemFields(Record):
    """What every description of a system has besides its machines."""

    name: Name
    description: Text = Field("", description="a sentence for people; not part of the identity")
    network: NetworkSource
    base_mva: Power = Field(
        100.0,
        description="system base, MVA, of fault shunts and of machines on base: system; the network is converted",
    )
    frequency_hz: Frequency = Field(60.0, description="nominal frequency, Hz; default of a PSS/E file: its own")
    provenance: Text = Field(description="where the network and the machine data come from")

    @field_validator("network", mode="before")
    @classmethod
    def _one_source(cls, network: Any) -> Any:
        if isinstance(network, dict) and ("pandapower" in network) == ("file" in network):
            raise ValueError("name exactly one source: pandapower: CASE or file: PATH")
        return network


class SystemSpec(SystemFields):
    """A network and its machines, with where the numbers come from."""

    machines: Machines


def _machines_kind(machines: Any) -> str:
    """Which of the two ways machines are given, so that mistakes in one are not told as mistakes in the other."""
    of_file = "file" in machines if isinstance(machines, dict) else isinstance(machines, MachineFile)
    return "machine file" if of_file else "machines"


class SystemDocument(SystemFields):
    """A system as people write it: the machines may stand in a file of their own."""

    model_config = ConfigDict(title="SystemSpec")  # one schema for whoever writes a system file

    machines: Annotated[
        Annotated[Machines, Tag("machines")] | Annotated[MachineFile, Tag("machine file")],
        Discriminator(_machines_kind),
    ]

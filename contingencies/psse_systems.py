"""Systems whose network is a PSS/E RAW file, with their machines in the system file or in a DYR file.

The machines of a DYR file are worked out when the system is read, so that a system carries H, x'd and D of every bus
whichever way they were given: its identity is that of its physics, not of comments in the file they come from.
"""

from collections.abc import Callable
from functools import lru_cache

from contingencies.documents import Document
from contingencies.errors import SpecError
from contingencies.formats.dyr import read_dyr
from contingencies.formats.dyr_machines import MachineTable, machines_of
from contingencies.formats.raw import RawFile, read_raw
from contingencies.system_specs import Machine, MachineFile, Machines, NetworkFile, SystemDocument, SystemSpec


@lru_cache(maxsize=4)
def raw_file(content: bytes, name: str) -> RawFile:
    """A RAW file, read once per process."""
    return read_raw(content, name)


def psse_system(
    spec: SystemDocument, document: Document, network: bytes, read_file: Callable[[str], bytes]
) -> SystemSpec:
    """The system that a document describes: machines by bus, and the frequency of the RAW file unless another is given.

    Parameters
    ----------
    spec : SystemDocument
        Its network is a RAW file.
    document : Document
        Where it was read from, for complaints.
    network : bytes
        The RAW file.
    read_file : callable
        The bytes of a file beside the document, by name.
    """
    assert isinstance(spec.network, NetworkFile)
    fields = spec.model_dump()
    if "frequency_hz" not in document.content or isinstance(spec.machines, MachineFile):
        try:
            raw = raw_file(network, spec.network.file)
        except SpecError as error:
            raise SpecError(f"{document.where(('network', 'file'))}: {error}") from None
        if "frequency_hz" not in document.content:
            fields["frequency_hz"] = raw.frequency_hz
    if isinstance(spec.machines, MachineFile):
        content = read_file(spec.machines.file)
        try:
            machines = machines_of(raw, read_dyr(content, spec.machines.file))
        except SpecError as error:
            raise SpecError(f"{document.where(('machines', 'file'))}: {error}") from None
        fields["machines"] = machine_records(machines).model_dump()
    return SystemSpec.model_validate(fields)


def machine_records(table: MachineTable) -> Machines:
    """Machines as a system file would give them."""
    units = tuple(
        Machine(bus=machine.bus, H=machine.H, x_d=machine.x_d, D=machine.D, mva=machine.mva)
        for machine in table.machines
    )
    return Machines(base="machine", units=units, static=table.static or None)

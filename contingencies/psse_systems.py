"""Systems whose network is a PSS/E RAW file, with their machines in the system file or in a DYR file.

The machines of a DYR file are worked out when the system is read, so that a system carries H, x'd and D of every bus
whichever way they were given: its identity is that of its physics, not of comments in the file they come from.
"""

from collections.abc import Callable
from functools import lru_cache

from pydantic import ValidationError

from contingencies.documents import Document
from contingencies.errors import SpecError
from contingencies.formats.dyr import read_dyr
from contingencies.formats.dyr_machines import BusMachine, MachineTable, machines_of
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
            machines = machine_records(machines_of(raw, read_dyr(content, spec.machines.file)))
        except SpecError as error:
            raise SpecError(f"{document.where(('machines', 'file'))}: {error}") from None
        fields["machines"] = machines.model_dump()
    try:
        return SystemSpec.model_validate(fields)
    except ValidationError as error:  # the document was valid, so it is about what the files gave
        raise SpecError(f"{document.where(('network', 'file'))}: {_said(error)}; mend the PSS/E files.") from None


def machine_records(table: MachineTable) -> Machines:
    """Machines as a system file would give them."""
    if not table.machines:
        raise SpecError("no unit of the network has a machine; give at least one, or describe the machines by bus.")
    return Machines(base="machine", units=tuple(map(_record, table.machines)), static=table.static or None)


def _record(machine: BusMachine) -> Machine:
    try:
        return Machine(bus=machine.bus, H=machine.H, x_d=machine.x_d, D=machine.D, mva=machine.mva)
    except ValidationError as error:
        raise SpecError(
            f"the machine at bus {machine.bus} has an impossible {_said(error)}; mend its records."
        ) from None


def _said(error: ValidationError) -> str:
    """Field, value and complaint of the first mistake."""
    first = error.errors(include_url=False)[0]
    field = ".".join(map(str, first["loc"]))
    return f"{field} = {str(first['input'])[:40]}: {first['msg'].removeprefix('Value error, ')}"

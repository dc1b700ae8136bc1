"""Import of networks: a RAW file, and the DYR file that belongs to it, become a system file with copies beside.

IEEE CDF, UCTE, CGMES and IIDM files become a RAW file first, so that nothing later needs the library that read them.
What the import could not take over is listed, and the stored state is checked against its own network: the largest
mismatch, in MVA, is the best single figure of whether a file was read rightly.
"""

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from contingencies.errors import SpecError, UsageError
from contingencies.files import read_regular
from contingencies.formats.dyr import read_dyr
from contingencies.formats.dyr_machines import MachineTable, machines_of
from contingencies.formats.powsybl import SUFFIXES, PowsyblFile, read_powsybl
from contingencies.formats.raw import RawFile
from contingencies.formats.raw_writer import raw_of
from contingencies.library import MAX_NETWORK_BYTES
from contingencies.power_flow import stored_mismatch
from contingencies.psse_systems import raw_file
from contingencies.records import NAME_PATTERN
from contingencies.spec_files import Written, quoted, write_together
from contingencies.tables import csv_text

WARN_MVA = 5.0  # five digits of a voltage leave 1 MVA in a large network; more was not solved, or not read rightly


@dataclass(frozen=True, eq=False)
class Imported:
    """What an import read and wrote."""

    name: str
    system_file: Path
    raw: RawFile
    machines: MachineTable | None
    mismatch_mva: float
    mismatch_bus: int
    files: Written
    format: str  # of the network file, as people call it
    conversion: tuple[str, ...] = ()  # what was left out or replaced on the way to a RAW file

    @property
    def notes(self) -> tuple[str, ...]:
        """What was left out or replaced."""
        return self.conversion + self.raw.notes + (self.machines.notes if self.machines else ())

    @property
    def warnings(self) -> tuple[str, ...]:
        """What looks wrong in the files."""
        found = self.machines.warnings if self.machines else ()
        if self.mismatch_mva > WARN_MVA:
            found += (
                f"the stored state is off by {self.mismatch_mva:.4g} MVA at bus {self.mismatch_bus}: it was saved "
                "unsolved, or the file holds something that was left out.",
            )
        return found


def import_network(
    source: Path, dyr: Path | None, directory: Path, name: str | None = None, force: bool = False
) -> Imported:
    """Write a system file for a network file, and copies of the files it names, into a directory.

    Parameters
    ----------
    source : Path
        The network: PSS/E RAW, or a format of the extra `formats`, of which a RAW file is written.
    dyr : Path, optional
        The machines. Without it the system file lists the units, and their H must be added.
    directory : Path
        Made if missing.
    name : str, optional
        Of the system; default: that of the network file.
    force : bool
        Replace files that hold something else.
    """
    name = _system_name(source, name)
    if dyr is not None and dyr.suffix.lower() != ".dyr":
        raise UsageError(f"{dyr}: its name does not end in .dyr; give the network file first, then the DYR file.")
    converted = None
    content = read_bytes(source)
    if source.suffix.lower() in SUFFIXES:
        converted = read_powsybl(content, source.suffix.lower(), str(source))
        content = raw_of(converted.case, converted.frequency_hz, f"from {source.name}").encode()
    contents = {f"{name}.raw": content}
    if dyr is not None:
        contents[f"{name}.dyr"] = read_bytes(dyr)
    files = list(contents)
    network = raw_file(contents[files[0]], str(source))
    machines = None if dyr is None else machines_of(network, read_dyr(contents[files[1]], str(dyr)))
    try:
        mismatch, bus = stored_mismatch(network.case)
    except SpecError as error:
        raise SpecError(f"{source}: {error}") from None
    text = _system_text(name, network, files, source.name)
    beside = {f"{name}.yaml": text.encode()}
    if converted is not None and converted.renumbered:
        beside[f"{name}-buses.csv"] = _bus_names(converted).encode()
    written = write_together(contents | beside, directory, force)
    read_as = converted.format if converted else f"PSS/E version {network.version}"
    notes = converted.notes if converted else ()
    return Imported(name, directory / f"{name}.yaml", network, machines, mismatch, bus, written, read_as, notes)


def _bus_names(converted: PowsyblFile) -> str:
    """What the file calls the buses that were numbered, as CSV."""
    buses = converted.case.buses
    rows = zip(buses.number.tolist(), converted.bus_ids, buses.name.tolist(), buses.base_kv.tolist(), strict=True)
    fields = ("number", "id", "name", "base_kv")
    return csv_text(fields, [dict(zip(fields, row, strict=True)) for row in rows])


def _system_name(source: Path, name: str | None) -> str:
    """The name that was given, else that of the file, whose format must be known."""
    if source.suffix.lower() not in (".raw", *SUFFIXES):
        raise UsageError(
            f"{source}: its name does not end in .raw; give the RAW file first, then the DYR file "
            f"({', '.join(f'{words}: {suffix}' for suffix, words in SUFFIXES.items())})."
        )
    chosen = name or re.sub(r"[^a-z0-9._-]+", "-", source.stem.lower()).strip("-._")[:100]
    if not re.fullmatch(NAME_PATTERN, chosen):
        raise UsageError(
            f"{chosen!r} is no name of a system; give --name in lower-case letters, digits, '.', '_', '-'."
        )
    return chosen


def read_bytes(path: Path) -> bytes:
    """The bytes of a plain file that a user names."""
    return read_regular(path, MAX_NETWORK_BYTES)


def _system_text(name: str, network: RawFile, files: list[str], source: str) -> str:
    """The system file; without a DYR file the units stand in it and lack their H."""
    head = (
        f"name: {name}\nnetwork: {{file: {quoted(files[0])}}}\nbase_mva: {network.case.base_mva!r}\n"
        f"frequency_hz: {network.frequency_hz!r}\n"
    )
    sources = quoted(f"imported from the PSS/E files {' and '.join(files)}")
    if not source.lower().endswith(".raw"):
        sources = quoted(f"imported from {source[:200]} by way of {files[0]}")
    if len(files) > 1:
        return f"{head}machines: {{file: {quoted(files[1])}}}\nprovenance: {sources}\n"
    units = "".join(
        f"    - {{bus: {bus}, x_d: {x_d!r}, mva: {mva!r}}}  # add H\n" for bus, x_d, mva in _units_by_bus(network)
    )
    return f"{head}machines:\n  base: machine\n  units:\n{units}provenance: {sources}\n"


def _units_by_bus(network: RawFile) -> list[tuple[int, float, float]]:
    """Bus, reactance on its base and base in MVA of the units in service."""
    units = network.case.units
    x = units.z_source.imag + network.step_up.imag
    rows = []
    for position in dict.fromkeys(units.bus[units.in_service].tolist()):
        at = units.in_service & (units.bus == position)
        mva = float(units.mva[at].sum())
        parallel = float((units.mva[at] / np.where(x[at] > 0, x[at], 1.0)).sum())
        rows.append((int(network.case.buses.number[position]), float(f"{mva / parallel:.12g}"), mva))
    return rows

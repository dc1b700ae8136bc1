"""Import of PSS/E files: a RAW file, and the DYR file that belongs to it, become a system file with copies beside.

What the import could not take over is listed, and the stored state of the RAW file is checked against its own network:
the largest mismatch, in MVA, is the best single figure of whether a file was read rightly.
"""

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from contingencies.errors import SpecError, UsageError
from contingencies.files import read_regular
from contingencies.formats.dyr import read_dyr
from contingencies.formats.dyr_machines import MachineTable, machines_of
from contingencies.formats.raw import RawFile
from contingencies.library import MAX_NETWORK_BYTES
from contingencies.power_flow import stored_mismatch
from contingencies.psse_systems import raw_file
from contingencies.records import NAME_PATTERN
from contingencies.spec_files import Written, quoted, write_together

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

    @property
    def notes(self) -> tuple[str, ...]:
        """What was left out or replaced."""
        return self.raw.notes + (self.machines.notes if self.machines else ())

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


def import_psse(raw: Path, dyr: Path | None, directory: Path, name: str | None = None, force: bool = False) -> Imported:
    """Write a system file for PSS/E files, and copies of them, into a directory.

    Parameters
    ----------
    raw, dyr : Path
        The network; the machines. Without the latter the system file lists the units, and their H must be added.
    directory : Path
        Made if missing.
    name : str, optional
        Of the system; default: that of the RAW file.
    force : bool
        Replace files that hold something else.
    """
    name = _system_name(raw, name)
    contents = {_copied(raw, name, ".raw"): read_bytes(raw)}
    if dyr is not None:
        contents[_copied(dyr, name, ".dyr")] = read_bytes(dyr)
    files = list(contents)
    network = raw_file(contents[files[0]], str(raw))
    machines = None if dyr is None else machines_of(network, read_dyr(contents[files[1]], str(dyr)))
    try:
        mismatch, bus = stored_mismatch(network.case)
    except SpecError as error:
        raise SpecError(f"{raw}: {error}") from None
    text = _system_text(name, network, files)
    written = write_together(contents | {f"{name}.yaml": text.encode()}, directory, force)
    return Imported(name, directory / f"{name}.yaml", network, machines, mismatch, bus, written)


def _system_name(raw: Path, name: str | None) -> str:
    chosen = name or re.sub(r"[^a-z0-9._-]+", "-", raw.stem.lower()).strip("-._")[:100]
    if not re.fullmatch(NAME_PATTERN, chosen):
        raise UsageError(
            f"{chosen!r} is no name of a system; give --name in lower-case letters, digits, '.', '_', '-'."
        )
    return chosen


def _copied(path: Path, name: str, suffix: str) -> str:
    """Name of the copy of a file."""
    if path.suffix.lower() != suffix:
        raise UsageError(f"{path}: its name does not end in {suffix}; give the RAW file first, then the DYR file.")
    return f"{name}{suffix}"


def read_bytes(path: Path) -> bytes:
    """The bytes of a plain file that a user names."""
    return read_regular(path, MAX_NETWORK_BYTES)


def _system_text(name: str, network: RawFile, files: list[str]) -> str:
    """The system file; without a DYR file the units stand in it and lack their H."""
    head = (
        f"name: {name}\nnetwork: {{file: {quoted(files[0])}}}\nbase_mva: {network.case.base_mva!r}\n"
        f"frequency_hz: {network.frequency_hz!r}\n"
    )
    sources = quoted(f"imported from the PSS/E files {' and '.join(files)}")
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

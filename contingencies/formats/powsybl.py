"""Network files that pypowsybl reads: IEEE CDF, UCTE, CGMES and IIDM, through the extra `cct-zoo[formats]`.

The library's own values are taken, in volts, ohms and siemens, not one of its exports. A file without a solved state
gets that of the library's load flow, so that every network can be checked the same way: its state must balance in our
arrays. XML with a document type and archives that unpack to any size are refused before the library sees them.
"""

import io
import logging
import re
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from contingencies.errors import SpecError, UsageError
from contingencies.formats.case import Case
from contingencies.formats.powsybl_case import NO_SLACK, GridTables, case_of_grid, slack_bus

MAX_BYTES = 200_000_000  # of a file, and of all that an archive unpacks to
SUFFIXES = {".cdf": "IEEE CDF", ".uct": "UCTE", ".zip": "CGMES", ".xiidm": "IIDM"}
IMPORTERS = {".cdf": "IEEE-CDF", ".uct": "UCTE", ".zip": "CGMES"}
READ_AS = {".cdf": ".txt"}  # the ending by which the library knows a format
FREQUENCY_HZ = {".cdf": 60.0}  # the format is North American; all others are European
DOCTYPE = re.compile(rb"<!(?:DOCTYPE|ENTITY)", re.IGNORECASE)


@dataclass(frozen=True, eq=False)
class PowsyblFile:
    """A network that the library read."""

    case: Case
    format: str  # as people call it
    frequency_hz: float
    bus_ids: tuple[str, ...]  # (n,) what the file calls each bus
    renumbered: bool  # whether the buses got numbers of their own
    notes: tuple[str, ...]


def read_powsybl(content: bytes, suffix: str, name: str) -> PowsyblFile:
    """The network of a file, by its ending; `name` is what complaints call the file."""
    library = _library()
    _check_content(content, suffix, name)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"network{READ_AS.get(suffix, suffix)}"
        path.write_bytes(content)
        try:
            grid = library.network.load(str(path))
        except Exception as error:  # the library raises whatever the malformed content provokes
            raise SpecError(f"{name}: {_said(error)}; export it again as {SUFFIXES[suffix]}.") from None
    if suffix != ".xiidm" and grid.source_format != IMPORTERS[suffix]:  # IIDM says what it was made from
        raise SpecError(
            f"{name}: it holds {str(grid.source_format)[:40]}, not {SUFFIXES[suffix]}; give the file the ending of "
            f"its format ({', '.join(SUFFIXES)})."
        )
    return file_of_grid(grid, name, suffix)


def file_of_grid(grid: Any, name: str, suffix: str = ".xiidm") -> PowsyblFile:
    """The plain network of a grid that the library holds."""
    notes = []
    buses = grid.get_buses()
    if not len(buses):
        raise SpecError(f"{name}: the file has no buses that are connected to anything; give a whole network.")
    main = buses[buses.connected_component == 0]
    if not np.isfinite(main[["v_mag", "v_angle"]].to_numpy()).all():
        solve_grid(grid, name)
        notes.append("the file stores no state: that of pypowsybl's load flow is taken")
    elif _solved_steps(grid):
        notes.append("taps and shunts stand at the steps of the stored state, not at those that were scheduled")
    tables = GridTables(grid, name)
    try:
        case = case_of_grid(tables)
    except SpecError as error:
        raise SpecError(str(error) if str(error).startswith(name) else f"{name}: {error}") from None
    frequency = FREQUENCY_HZ.get(suffix, 50.0)
    notes.append(f"{SUFFIXES[suffix]} does not say the frequency: {frequency:g} Hz is written")
    if tables.renumbered:
        notes.append(f"buses have no numbers: they are numbered 1 to {len(tables.bus_ids)}")
    ids = (*tables.bus_ids, *("" for _ in range(len(case.buses) - len(tables.bus_ids))))
    return PowsyblFile(case, SUFFIXES[suffix], frequency, ids, tables.renumbered, (*notes, *tables.notes))


def _library() -> Any:
    logging.getLogger("powsybl").setLevel(logging.ERROR)  # it warns on import of parts that are not needed
    try:
        import pypowsybl
    except ImportError:
        raise UsageError(
            "IEEE CDF, UCTE, CGMES and IIDM files are read by pypowsybl, which is not installed; "
            "install the extra: pip install 'cct-zoo[formats]'."
        ) from None
    return pypowsybl


def _check_content(content: bytes, suffix: str, name: str) -> None:
    """Refuse what could make the library fetch or unpack without end."""
    if len(content) > MAX_BYTES:
        raise SpecError(f"{name}: the file has {len(content)} bytes; at most {MAX_BYTES} are read.")
    parts = [content]
    if suffix == ".zip":
        parts, left = [], MAX_BYTES
        try:
            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                for entry in archive.infolist():
                    with archive.open(entry) as file:
                        parts.append(file.read(left + 1))
                    left -= len(parts[-1])
                    if left < 0:
                        raise SpecError(f"{name}: the archive unpacks to more than {MAX_BYTES} bytes; split it.")
        except (zipfile.BadZipFile, NotImplementedError, RuntimeError, OSError, EOFError, ValueError):
            raise SpecError(f"{name}: it is no readable zip archive; pack the CGMES profiles again.") from None
    if suffix in (".zip", ".xiidm") and any(DOCTYPE.search(part) for part in parts):
        raise SpecError(f"{name}: its XML has a document type or entities, which are not read; leave them out.")


def solve_grid(grid: Any, name: str) -> None:
    """The library's load flow with what ours does: set points held, no limits, no tap or shunt control, one slack."""
    from pypowsybl import loadflow

    slack = slack_bus(grid)
    if slack is None:
        raise SpecError(f"{name}: {NO_SLACK}")
    parameters = loadflow.Parameters(
        transformer_voltage_control_on=False, use_reactive_limits=False, phase_shifter_regulation_on=False,
        shunt_compensator_voltage_control_on=False, distributed_slack=False, read_slack_bus=False,
        provider_parameters={
            "newtonRaphsonConvEpsPerEq": "1e-10", "slackBusSelectionMode": "NAME", "slackBusesIds": slack,
        },
    )  # fmt: skip
    try:
        result = loadflow.run_ac(grid, parameters)[0]
    except Exception as error:
        raise SpecError(f"{name}: {_said(error)}; check the network.") from None
    if result.status_text.lower() != "converged" and result.status != loadflow.ComponentStatus.CONVERGED:
        raise SpecError(
            f"{name}: the file stores no state, and pypowsybl's load flow does not converge "
            f"({' '.join(result.status_text.split())[:100]}); export it with a solved state."
        )


def _solved_steps(grid: Any) -> bool:
    """Put taps and shunts at the steps that belong to the stored state, where the file says them; whether any moved."""
    moved = False
    for kind, scheduled, solved in (
        ("ratio_tap_changers", "tap", "solved_tap_position"), ("phase_tap_changers", "tap", "solved_tap_position"),
        ("shunt_compensators", "section_count", "solved_section_count"),
    ):  # fmt: skip
        rows = getattr(grid, f"get_{kind}")(all_attributes=True)
        if solved not in rows or not len(rows):
            continue
        changed = rows[np.isfinite(rows[solved].astype(float)) & (rows[solved] != rows[scheduled])]
        if len(changed):
            named = changed.set_index("side", append=True) if (changed.get("side", "") != "").any() else changed
            getattr(grid, f"update_{kind}")(named[[solved]].astype(int).rename(columns={solved: scheduled}))
            moved = True
    return moved


def _said(error: Exception) -> str:
    return f"pypowsybl cannot read it ({' '.join(str(error).split())[:120]})"

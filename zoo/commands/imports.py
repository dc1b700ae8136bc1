"""Commands that take over files of other programs: networks with their machines, and contingency lists."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from zoo.commands.families import left_out_report, print_left_out
from zoo.commands.options import json_option
from zoo.commands.output import print_json
from zoo.commands.recipes import severity_option, study_of, study_options

if TYPE_CHECKING:
    from contingencies.importing import Imported

SHOWN = 10  # warnings that are printed
existing_file = click.Path(path_type=Path)


@click.command(
    "import", epilog="Example: cct-zoo import docs/examples/coast9.raw docs/examples/coast9.dyr --output coast"
)
@click.argument("network", type=existing_file)
@click.argument("dyr", type=existing_file, required=False)
@click.option(
    "--output", type=click.Path(file_okay=False, path_type=Path), required=True, help="Directory, made if missing."
)
@click.option("--name", help="Name of the system.  [default: that of the network file]")
@click.option("--force", is_flag=True, help="Replace files that hold something else.")
@json_option
def import_(network: Path, dyr: Path | None, output: Path, name: str | None, force: bool, as_json: bool) -> None:
    """Make a system of a PSS/E RAW file and the DYR file with its machines.

    Copies both into the output directory, with a system file beside them. Prints how far the stored state is from
    balance, and everything that was left out or replaced. With the extra cct-zoo[formats], the network may also be
    IEEE CDF (.cdf), UCTE (.uct), CGMES (.zip) or IIDM (.xiidm), and a RAW file is written of it.
    """
    from contingencies.errors import UsageError
    from contingencies.importing import import_network

    if output.suffix in (".yaml", ".yml", ".json"):
        raise UsageError(f"--output {str(output)!r} names a file; give a directory, which gets the system file.")
    imported = import_network(network, dyr, output, name, force)
    report = _report(imported)
    if as_json:
        print_json(report)
        return
    click.echo(
        f"{imported.name}: {imported.format}, {report['buses']} buses, {report['lines']} lines, "
        f"{report['transformers']} transformers, {report['units']} units in service, {report['base_mva']:g} MVA, "
        f"{report['frequency_hz']:g} Hz"
    )
    click.echo(f"stored state: largest mismatch {report['mismatch_mva']:.4g} MVA at bus {report['mismatch_bus']}")
    if dyr is None:
        click.echo("machines: none given; add H of every unit to the system file, or import a DYR file with it")
    else:
        click.echo(f"machines: {report['machines']}")
    for note in imported.notes:
        click.echo(f"note: {note}")
    for warning in imported.warnings[:SHOWN]:
        click.echo(f"warning: {warning}")
    if len(imported.warnings) > SHOWN:
        click.echo(f"warning: ... and {len(imported.warnings) - SHOWN} more; --json lists them all")
    click.echo(f"system file: {imported.system_file}")


def _report(imported: "Imported") -> dict[str, Any]:
    case = imported.raw.case
    running = case.branches.in_service
    return {
        "system": imported.name,
        "system_file": str(imported.system_file),
        "format": imported.format,
        "version": imported.raw.version,
        "base_mva": case.base_mva,
        "frequency_hz": imported.raw.frequency_hz,
        "buses": len(case.buses),
        "lines": int((running & ~case.branches.is_transformer).sum()),
        "transformers": int((running & case.branches.is_transformer).sum()),
        "units": int(case.units.in_service.sum()),
        "machines": None if imported.machines is None else len(imported.machines.machines),
        "static_units": None if imported.machines is None else [list(unit) for unit in imported.machines.static],
        "mismatch_mva": imported.mismatch_mva,
        "mismatch_bus": imported.mismatch_bus,
        "notes": list(imported.notes),
        "warnings": list(imported.warnings),
        "written": [path.name for path in imported.files.written],
        "unchanged": [path.name for path in imported.files.unchanged],
    }


@click.command(
    "import-contingencies",
    epilog="Example: cct-zoo import-contingencies docs/examples/coast9.con --system coast9.yaml --output faults.yaml",
)
@click.argument("con", type=existing_file)
@click.option("--system", required=True, help="A shipped system, or the path of a system file.")
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path), required=True, help="YAML file to write.")
@study_options
@severity_option
@click.option("--force", is_flag=True, help="Replace a file that holds something else.")
@json_option
def import_contingencies(
    con: Path,
    system: str,
    output: Path,
    severity: tuple[float, float] | None,
    force: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Make contingencies of a PSS/E contingency list (.con) for a system.

    Lines that open, units that are removed and faults at buses or lines become one YAML file for
    register-contingency. A case without a fault gets a bolted one, at the first bus of its first line or at the bus
    of its first unit. What has no counterpart is listed with the reason.
    """
    from contingencies.con_contingencies import Study, con_family
    from contingencies.errors import SpecError
    from contingencies.formats.con import read_con
    from contingencies.importing import read_bytes
    from contingencies.library import load_system
    from contingencies.spec_files import contingency_text, system_reference, write_together

    study = Study(severity=severity or (0.0, 1.0), **study_of(**options))
    cases = read_con(read_bytes(con), str(con))
    family = con_family(cases, load_system(system), study, system_reference(system, output.parent))
    text = "---\n".join(contingency_text(member.spec) for member in family.members)
    written = write_together({output.name: text.encode()}, output.parent, force) if family.members else None
    if as_json:
        print_json(
            {
                "system": system,
                "file": str(output) if written else None,
                "members": [member.name for member in family.members],
                "left_out": left_out_report(family.left_out),
            }
        )
    else:
        where = f" in {output}" if written else ", so no file is written"
        click.echo(f"{len(family.members)} of {len(cases.cases)} contingencies{where}")
        print_left_out(family.left_out)
    if not written:
        raise SpecError(
            f"{con}: no contingency of the list fits system {system}; give --system the network that the list is for."
        )

"""The command that writes a whole family of contingencies down, and what is said of places left out."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from zoo.commands.options import json_option, required_option
from zoo.commands.output import print_json
from zoo.commands.recipes import recipe_of, recipe_options, severity_option

if TYPE_CHECKING:
    from contingencies.families import LeftOut


def print_left_out(left_out: "Sequence[LeftOut]") -> None:
    """Print the places that a family leaves out, each with its reason."""
    if left_out:
        click.echo(f"left out: {len(left_out)}")
        width = max(len(item.name) for item in left_out)
        for item in left_out:
            click.echo(f"  {item.name:{width}}  {item.reason}")


def left_out_report(left_out: "Sequence[LeftOut]") -> list[dict[str, str]]:
    """The places that a family leaves out, as JSON."""
    return [{"place": item.name, "reason": item.reason} for item in left_out]


@click.command(
    "generate-contingencies",
    epilog="Example: cct-zoo generate-contingencies ieee39 --fault line --clearing remove-line --output family",
)
@click.argument("system")
@recipe_options()
@severity_option
@required_option
@click.option(
    "--output", type=click.Path(file_okay=False, path_type=Path), required=True, help="Directory, made if missing."
)
@click.option("--force", is_flag=True, help="Replace files that hold something else.")
@json_option
def generate_contingencies(
    system: str,
    fault: str,
    clearing: str,
    output: Path,
    severity: tuple[float, float] | None,
    required_ms: float | None,
    force: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Write one contingency file for every place of SYSTEM where the same thing can happen.

    SYSTEM is a shipped system or the path of a system file. Places where it cannot happen are listed with
    the reason: transformers, lines that hold the network together, buses without feeders, idle machines. With
    --required-ms every file states the time that protection needs.
    """
    from contingencies.families import generate_family
    from contingencies.library import load_system
    from contingencies.spec_files import system_reference, write_contingencies

    recipe = recipe_of(fault, clearing, severity, required_ms=required_ms, **options)
    family = generate_family(load_system(system), recipe, system_reference(system, output))
    result = write_contingencies(family.members, output, force)
    if as_json:
        print_json(
            {
                "system": system,
                "directory": str(output),
                "members": [member.name for member in family.members],
                "written": [path.name for path in result.written],
                "unchanged": [path.name for path in result.unchanged],
                "left_out": left_out_report(family.left_out),
            }
        )
        return
    unchanged = f", {len(result.unchanged)} were there already" if result.unchanged else ""
    click.echo(f"{len(family.members)} contingencies in {output}: {len(result.written)} files written{unchanged}")
    print_left_out(family.left_out)

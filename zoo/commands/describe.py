"""Commands that show what there is: systems, contingencies, one description, the schema."""

from typing import Any

import click

from zoo.commands.common import json_option, print_json


@click.command()
@json_option
def systems(as_json: bool) -> None:
    """List the shipped systems."""
    from contingencies.library import load_system, shipped_systems

    loaded = [load_system(name) for name in shipped_systems()]
    if as_json:
        print_json(
            [
                {
                    "system": system.name,
                    "machines": len(system.spec.machines.units),
                    "description": system.spec.description,
                    "provenance": system.spec.provenance.strip(),
                    "sha256": system.sha256,
                }
                for system in loaded
            ]
        )
        return
    for system in loaded:
        click.echo(f"{system.name:9} {len(system.spec.machines.units):3} machines  {system.spec.description}")


@click.command()
@json_option
def contingencies(as_json: bool) -> None:
    """List the shipped contingencies."""
    from contingencies.library import load_contingency, shipped_contingencies

    loaded = [load_contingency(name) for name in shipped_contingencies()]
    if as_json:
        print_json(
            [
                {
                    "contingency": contingency.name,
                    "system": contingency.system.name,
                    "source": "shipped",
                    "description": contingency.spec.description,
                    "sha256": contingency.sha256,
                }
                for contingency in loaded
            ]
        )
        return
    for contingency in loaded:
        click.echo(f"{contingency.name:25} {contingency.spec.description}")


@click.command()
@click.argument("name")
@json_option
def show(name: str, as_json: bool) -> None:
    """Show a contingency and what it compiles to, or a system.

    NAME is a contingency or a system, shipped, or the path of a contingency file.
    """
    from contingencies.library import shipped_systems

    if name in shipped_systems():
        _show_system(name, as_json)
    else:
        _show_contingency(name, as_json)


def _show_system(name: str, as_json: bool) -> None:
    from contingencies.library import load_system
    from contingencies.network import solve_network
    from contingencies.reports import describe_network

    system = load_system(name)
    report = {"system": name, "sha256": system.sha256, "provenance": system.spec.provenance.strip()}
    report |= describe_network(solve_network(system))
    _print_report(report, as_json)


def _show_contingency(name: str, as_json: bool) -> None:
    import json

    from contingencies.library import load_contingency
    from contingencies.operators import compile_contingency
    from contingencies.reports import describe_operators

    contingency = load_contingency(name)
    report = {"contingency": contingency.name, "sha256": contingency.sha256}
    report |= {"spec": json.loads(contingency.to_json())}
    report |= describe_operators(compile_contingency(contingency))
    _print_report(report, as_json)


def _print_report(report: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(report)
        return
    for key, value in report.items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            click.echo(f"{key}:")
            for row in value:
                click.echo("  " + ", ".join(f"{name} {entry}" for name, entry in row.items()))
        elif isinstance(value, dict):
            click.echo(f"{key}:")
            for name, entry in value.items():
                click.echo(f"  {name}: {entry}")
        else:
            click.echo(f"{key}: {value}")


@click.command()
@click.option("--system", "of_system", is_flag=True, help="The schema of system files instead of contingency files.")
@json_option
def schema(of_system: bool, as_json: bool) -> None:
    """Print the JSON Schema of contingency files, for editors."""
    del as_json  # a schema is JSON either way
    from contingencies.library import json_schema
    from contingencies.spec import ContingencySpec, SystemSpec

    click.echo(json_schema(SystemSpec if of_system else ContingencySpec))

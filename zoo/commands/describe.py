"""Commands that show what there is: systems, contingencies, one description, the schema."""

from typing import TYPE_CHECKING, Any

import click

from zoo.commands.options import json_option, registry_options
from zoo.commands.output import print_json, report_lines

if TYPE_CHECKING:
    from contingencies.library import System


@click.command(epilog="Example: cct-zoo systems")
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


@click.command(epilog="Example: cct-zoo contingencies")
@registry_options
@json_option
def contingencies(home: str, registry: str | None, as_json: bool) -> None:
    """List the contingencies: registered ones with version and deployments, and shipped ones."""
    listed = _registered(home, registry)
    registered = {entry["contingency"] for entry in listed}
    listed += [entry for entry in _shipped() if entry["contingency"] not in registered]
    listed.sort(key=lambda entry: entry["contingency"])
    if as_json:
        print_json(listed)
        return
    from registry.texts import printable

    for entry in listed:
        state = "shipped" if entry["version"] is None else f"v{entry['version']}"
        deployed = "".join(f" [{alias}: head {head}]" for alias, head in entry["deployed"].items())
        click.echo(f"{entry['contingency']:25} {state:8}{deployed} {printable(entry['description'])}")


def _shipped() -> list[dict[str, Any]]:
    from contingencies.library import load_contingency, shipped_contingencies

    return [
        {
            "contingency": contingency.name,
            "system": contingency.system.name,
            "source": "shipped",
            "version": None,
            "deployed": {},
            "description": contingency.spec.description,
            "sha256": contingency.sha256,
        }
        for contingency in map(load_contingency, shipped_contingencies())
    ]


def _registered(home: str, registry: str | None) -> list[dict[str, Any]]:
    import json

    from contingencies.errors import NotFoundError
    from registry.home import Home
    from registry.store import contingencies as store
    from registry.store import deployments

    try:
        opened = Home.open(home, registry, create=False)
    except NotFoundError:  # nothing has been registered yet
        return []
    with opened:
        rows = store.latest(opened.database)
        deployed: dict[str, dict[str, int]] = {}
        for row in deployments.all_active(opened.database):
            deployed.setdefault(row.contingency, {})[row.alias] = row.head_id
    return [
        {
            "contingency": row.name,
            "system": row.system.name,
            "source": "registered",
            "version": row.version,
            "deployed": deployed.get(row.name, {}),
            "description": json.loads(row.spec_json).get("description", ""),
            "sha256": row.sha256,
        }
        for row in rows
    ]


@click.command(epilog="Example: cct-zoo show ieee30-line-3-4-restore")
@click.argument("name")
@registry_options
@json_option
def show(name: str, home: str, registry: str | None, as_json: bool) -> None:
    """Show a contingency and what it compiles to, or a system.

    NAME is a registered contingency (NAME@VERSION for an older version) or a system that registered ones are of, a
    shipped contingency or system, or the path of a contingency or system file.
    """
    from zoo.lookup import find_system

    system = find_system(name, home, registry)
    if system is None:
        _show_contingency(name, home, registry, as_json)
    else:
        _show_system(system, as_json)


def _show_system(system: "System", as_json: bool) -> None:
    from contingencies.network import solve_network
    from contingencies.reports import describe_network

    report = {
        "system": system.name,
        "description": system.spec.description,
        "sha256": system.sha256,
        "network": system.spec.network.model_dump(exclude_none=True),
        "machine_data_base": system.spec.machines.base,
        "provenance": system.spec.provenance.strip(),
    }
    report |= describe_network(solve_network(system))
    _print_report(report, as_json)


def _show_contingency(name: str, home: str, registry: str | None, as_json: bool) -> None:
    import json

    from contingencies.operators import compile_contingency
    from contingencies.reports import describe_operators
    from zoo.lookup import find_contingency

    contingency = find_contingency(name, home, registry)
    report: dict[str, Any] = {"contingency": contingency.name, "sha256": contingency.sha256}
    report |= _registration(contingency.sha256, home, registry)
    report |= {"spec": json.loads(contingency.to_json())}
    report |= describe_operators(compile_contingency(contingency))
    _print_report(report, as_json)


def _registration(sha256: str, home: str, registry: str | None) -> dict[str, Any]:
    """Version, heads and deployments of a contingency that is registered; empty otherwise."""
    from contingencies.errors import NotFoundError
    from registry.home import Home
    from registry.store import contingencies as store
    from registry.store import deployments
    from registry.store.heads import heads_of

    try:
        opened = Home.open(home, registry, create=False)
    except NotFoundError:
        return {}
    with opened:
        row = store.find_sha256(opened.database, sha256)
        if row is None:
            return {}
        heads = heads_of(opened.database, f"{row.name}@{row.version}")
        active = [d for d in deployments.history(opened.database, row.name) if d.active]
    return {
        "version": row.version,
        "registered_at": row.created_at.isoformat(timespec="seconds"),
        "heads": [head.id for head in heads],
        "deployed": {deployment.alias: deployment.head_id for deployment in active},
    }


def _print_report(report: dict[str, Any], as_json: bool) -> None:
    print_json(report) if as_json else click.echo("\n".join(report_lines(report)))


@click.command(epilog="Example: cct-zoo schema > contingency.schema.json")
@click.option("--system", "of_system", is_flag=True, help="The schema of system files instead of contingency files.")
@click.option("--table", is_flag=True, help="The fields as a Markdown table for people.")
@json_option
def schema(of_system: bool, table: bool, as_json: bool) -> None:
    """Print the JSON Schema of contingency files, for editors."""
    from contingencies.field_tables import field_table
    from contingencies.library import json_schema
    from contingencies.spec import ContingencySpec
    from contingencies.system_specs import SystemDocument

    record = SystemDocument if of_system else ContingencySpec
    if table and not as_json:
        click.echo(field_table(record), nl=False)
    else:
        click.echo(json_schema(record))

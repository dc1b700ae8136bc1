"""The command that registers contingencies."""

import click

from zoo.commands.options import json_option, registry_options
from zoo.commands.output import print_json
from zoo.commands.progress import progress


@click.command(
    "register-contingency", epilog="Example: cct-zoo register-contingency ieee30-line-3-4-restore my-faults.yaml"
)
@click.argument("files", nargs=-1, required=True)
@registry_options
@json_option
def register_contingency(files: tuple[str, ...], home: str, registry: str | None, as_json: bool) -> None:
    """Register contingencies: YAML FILES, directories of them, or names of shipped ones.

    All of them are registered, or none. The same physics is registered once; a changed
    description of a known name becomes its next version.
    """
    from contingencies.reading import read_and_check
    from registry.home import Home
    from registry.store.deployments import PRODUCTION, all_active

    with progress("register") as display:
        contingencies = read_and_check(
            files,
            lambda done, total: display("reading files", done, total),
            lambda done, total: display("checking physics", done, total),
        )
    with Home.open(home, registry) as opened:
        results = opened.register(contingencies)
        deployed = [each for each in all_active(opened.database) if each.alias == PRODUCTION]
    answering = {each.contingency: each.head.contingency.version for each in deployed}
    if as_json:
        print_json(
            [
                {
                    "contingency": result.row.name,
                    "version": result.row.version,
                    "created": result.created,
                    "sha256": result.row.sha256,
                    "system": result.row.system.name,
                }
                for result in results
            ]
        )
        return
    for result in results:
        verdict = "registered" if result.created else "already registered"
        older = answering.get(result.row.name, result.row.version)
        still = f"  (production still answers for version {older}: distill and deploy the new one)"
        still = still if older < result.row.version else ""
        click.echo(f"{result.row.name}  version {result.row.version}  {verdict}  {result.row.sha256[:12]}{still}")

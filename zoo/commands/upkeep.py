"""Commands that look after a home: verify and gc."""

from dataclasses import asdict

import click

from zoo.commands.options import Finite, json_option, registry_options
from zoo.commands.output import print_json


@click.command(epilog="Example: cct-zoo verify")
@registry_options
@json_option
def verify(home: str, registry: str | None, as_json: bool) -> None:
    """Check every row and every file of the registry; exit code 7 when something is damaged."""
    from contingencies.errors import IntegrityError
    from registry.home import Home
    from registry.upkeep import verify as check

    with Home.open(home, registry, create=False) as opened:
        verdict = check(opened)
    if as_json:
        print_json(asdict(verdict))
    else:
        for problem in verdict.problems:
            click.echo(f"damaged: {problem}")
        click.echo(
            f"{verdict.contingencies} contingencies, {verdict.heads} heads, {verdict.deployments} deployments, "
            f"{verdict.files} files checked; {verdict.unreferenced} files not referred to"
        )
    if verdict.problems:
        raise IntegrityError(
            f"{len(verdict.problems)} problems found; restore the damaged files from a copy of the home."
        )


@click.command(epilog="Example: cct-zoo gc --delete")
@click.option("--delete", is_flag=True, help="Really remove; without it, only say what would be removed.")
@click.option("--heads", is_flag=True, help="Also heads that were never deployed and have a newer one.")
@click.option(
    "--grace-minutes",
    type=Finite(0, 1e9),
    default=60.0,
    show_default=True,
    help="Spare younger files: a running command may be about to refer to them.",
)
@registry_options
@json_option
def gc(delete: bool, heads: bool, grace_minutes: float, home: str, registry: str | None, as_json: bool) -> None:
    """Remove files that nothing refers to; a dry run unless --delete is given.

    What a deployment uses, or ever used, is kept: a rollback may need it.
    """
    from registry.home import Home
    from registry.upkeep import collect_garbage

    with Home.open(home, registry, create=False) as opened:
        garbage = collect_garbage(opened, delete=delete, heads=heads, grace_s=60 * grace_minutes)
    if as_json:
        print_json(
            {
                "deleted": garbage.deleted,
                "heads": garbage.heads,
                "files": [file.path.name for file in garbage.files],
                "bytes": garbage.size,
            }
        )
        return
    verb = "removed" if garbage.deleted else "would remove (add --delete)"
    click.echo(f"{verb}: {len(garbage.files)} files, {garbage.size} bytes, {len(garbage.heads)} heads")

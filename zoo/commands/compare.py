"""The command that asks deployed heads and the reference ODEs side by side."""

import click

from zoo.commands.options import alias_option, alpha_option, json_option, parse_severities, registry_options
from zoo.commands.output import print_json
from zoo.commands.progress import progress


@click.command(epilog="Example: cct-zoo compare ieee30-line-3-4-restore --alpha 0.93")
@click.argument("names", nargs=-1, required=True)
@alpha_option("the middle of the finite range")
@alias_option
@registry_options
@json_option
def compare(
    names: tuple[str, ...], alphas: tuple[str, ...], alias: str, home: str, registry: str | None, as_json: bool
) -> None:
    """The deployed answers for contingencies NAMES beside the strict ODE, which takes seconds, and the fast one."""
    from pathlib import Path

    from registry.home import Home
    from registry.store import contingencies as store
    from zoo.commands.pipeline import example_line
    from zoo.heads.comparison import example

    severities = parse_severities(alphas) if alphas else [None]
    with Home.open(home, registry, create=False) as opened:
        rows = [store.find(opened.database, name) for name in names]
        contingencies = opened.contingencies(rows)
    examples = []
    with progress("compare") as display:
        for row, contingency in zip(rows, contingencies, strict=True):
            for alpha in severities:
                examples.append(example(Path(home), row, contingency, alpha, registry, alias))
                display("asking the strict ODE", len(examples), len(rows) * len(severities))
    if as_json:
        print_json([vars(entry) | {"error": entry.error} for entry in examples])
        return
    for entry in examples:
        click.echo(example_line(entry))

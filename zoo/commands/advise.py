"""The command that says where the answers for a contingency should come from."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from zoo.commands.options import json_option, registry_options
from zoo.commands.output import print_json

if TYPE_CHECKING:
    from zoo.studies.advice import Figure


@click.command(epilog="Example: cct-zoo advise ieee30-line-3-4-restore")
@click.argument("name")
@registry_options
@json_option
def advise(name: str, home: str, registry: str | None, as_json: bool) -> None:
    """Which source should answer for contingency NAME: cost and error of each, and a recommendation.

    The reference ODEs are timed now, in seconds of the processor; heads and checkpoints of the registry tell what was
    measured of them; otherwise figures of the documents stand in. Every figure names its origin. NAME is registered,
    shipped, or the path of a contingency file.
    """
    from contingencies.errors import NotFoundError
    from registry.home import Home
    from zoo.lookup import find_contingency
    from zoo.studies.advice import advise as advice_for

    contingency = find_contingency(name, home, registry)
    try:
        with Home.open(home, registry, create=False) as opened:
            found = advice_for(contingency, opened)
    except NotFoundError:  # no registry yet
        found = advice_for(contingency)
    if as_json:
        print_json(found.report())
        return
    others = f", {found.registered} registered contingencies" if found.registered > 1 else ""
    click.echo(f"{found.contingency}: {found.system}, {found.machines} machines{others}")
    click.echo(f"{'source':26}  {'build':>9}  {'an answer':>9}  {'mean error':>11}  where the figures come from; note")
    for option in found.options:
        build, answer = _seconds(option.build), _seconds(option.answer)
        error = "-" if option.error.value is None else f"{option.error.value:.2g} ms"
        origins = dict.fromkeys(each.origin for each in (option.build, option.answer, option.error))
        click.echo(f"{option.source:26}  {build:>9}  {answer:>9}  {error:>11}  {', '.join(origins)}; {option.note}")
    click.echo(found.recommendation)
    if Path(name).is_file():
        click.echo(f"A file is registered before it is distilled: cct-zoo register-contingency {name}.")


def _seconds(figure: "Figure") -> str:
    """A duration in the unit that suits it."""
    value = figure.value
    if value is None:
        return "-"
    for unit, size in (("min", 60.0), ("s", 1.0), ("ms", 1e-3)):
        if value >= 0.95 * size:
            return f"{value / size:.2g} {unit}"
    return "0" if value == 0 else f"{1e6 * value:.2g} µs"

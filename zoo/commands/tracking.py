"""Commands around MLflow, the diary of runs: sync-runs and ui."""

import click

from zoo.commands.options import Finite, json_option, registry_options
from zoo.commands.output import print_json


@click.command("sync-runs", epilog="Example: cct-zoo sync-runs")
@click.option(
    "--stale-minutes",
    type=Finite(0, 1e9),
    default=10.0,
    show_default=True,
    help="Give up runs that have been silent for so long.",
)
@registry_options
@json_option
def sync_runs(stale_minutes: float, home: str, registry: str | None, as_json: bool) -> None:
    """Send the records of runs that wait in the spool to MLflow, and close runs that died."""
    from datetime import timedelta

    from registry.synchronising import synchronise

    done = synchronise(home, registry, timedelta(minutes=stale_minutes))
    if done.warning:
        click.echo(f"Warning: {done.warning}", err=True)
    if as_json:
        print_json({"runs": done.runs, "records": done.records, "warning": done.warning})
    else:
        click.echo(f"{len(done.runs)} runs, {done.records} records sent")


@click.command(epilog="Example: cct-zoo ui")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", type=click.IntRange(1, 65535), default=5000, show_default=True, help="Port to listen on.")
@registry_options
@json_option
def ui(host: str, port: int, home: str, registry: str | None, as_json: bool) -> None:
    """Start the MLflow UI on the runs of the zoo; stop it with Ctrl-C."""
    del registry  # the runs' diary belongs to the home
    import os
    from pathlib import Path

    from registry.tracking import initialise_store, safe_uri, tracking_uri, ui_command

    arguments, environment = ui_command(Path(home), host, port)
    initialise_store(Path(home))
    shown = {"url": f"http://{host}:{port}", "store": safe_uri(tracking_uri(Path(home)))}
    print_json(shown) if as_json else click.echo(f"MLflow UI on {shown['url']} (Ctrl-C stops it)")
    os.execve(arguments[0], arguments, environment)  # noqa: S606 - our own interpreter; it gets our signals directly

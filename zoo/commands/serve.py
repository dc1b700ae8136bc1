"""The command that serves the registry over HTTP."""

import click

from zoo.commands.options import Finite, json_option, registry_options
from zoo.commands.output import print_json


@click.command(epilog="Example: cct-zoo serve --port 8420")
@click.option(
    "--host", default="127.0.0.1", show_default=True, help="Address to listen on; others than loopback need a token."
)
@click.option("--port", type=click.IntRange(1, 65535), default=8420, show_default=True, help="Port to listen on.")
@click.option("--workers", type=click.IntRange(1, 64), default=1, show_default=True, help="Worker processes.")
@click.option(
    "--server", type=click.Choice(["uvicorn", "granian"]), default="uvicorn", show_default=True, help="HTTP server."
)
@click.option(
    "--rate",
    type=Finite(0, 1e9),
    default=2000.0,
    show_default=True,
    help="Requests per second, token and worker; 0: no limit.",
)
@click.option("--mlflow-url", metavar="URL", help="Where people open MLflow; runs link to it.")
@click.option(
    "--access-log/--no-access-log", default=True, show_default=True, help="One JSON line per request on standard error."
)
@click.option("--check", is_flag=True, help="Say whether and where it would listen, and end.")
@registry_options
@json_option
def serve(
    host: str,
    port: int,
    workers: int,
    server: str,
    rate: float,
    mlflow_url: str | None,
    access_log: bool,
    check: bool,
    home: str,
    registry: str | None,
    as_json: bool,
) -> None:
    """Serve the registry over HTTP: an API and a page.

    Without tokens it listens on loopback only and nothing can be changed. 'cct-zoo token create' makes tokens; from
    then on every request needs one. It ends on SIGTERM or Ctrl-C, after the requests that are open.
    """
    from registry.service.serving import check_port, run_server
    from registry.service.settings import Settings
    from registry.service.state import Service
    from registry.store import tokens

    settings = Settings(
        home, registry, host, port, rate=rate, mlflow_url=_checked_url(mlflow_url), access_log=access_log
    )
    service = Service.open(settings)  # what cannot be served is said here, not by a worker
    guarded = tokens.exist(service.home.database)
    service.close()
    check_port(settings)
    shown = f"[{host}]" if ":" in host else host
    report = {"url": f"http://{shown}:{port}/", "guarded": guarded, "workers": workers, "server": server}
    if as_json:
        print_json(report)
    else:
        access = "every request needs a token" if guarded else "open to this machine, read only: there is no token"
        click.echo(f"{report['url']}  {access}")
    if not check:
        run_server(settings, workers, server)


def _checked_url(url: str | None) -> str | None:
    from contingencies.errors import UsageError

    if url is not None and not url.startswith(("http://", "https://")):
        raise UsageError(f"--mlflow-url {url[:80]!r} is not a web address; write it like http://host:5000.")
    return None if url is None else url.rstrip("/")

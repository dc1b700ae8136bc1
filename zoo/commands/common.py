"""What several commands share: output as JSON, progress on long work, finding the registry."""

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click

PROGRESS_INTERVAL_S = 5.0  # off a terminal, one line per interval

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")


def registry_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --home and --registry; the command gets them as `home` and `registry`."""
    command = click.option(
        "--registry",
        metavar="URL",
        envvar="CCT_ZOO_REGISTRY",
        help="A PostgreSQL registry instead of the SQLite file in the home (also CCT_ZOO_REGISTRY).",
    )(command)
    return click.option(
        "--home",
        metavar="FOLDER",
        envvar="CCT_ZOO_HOME",
        default=".cct-zoo",
        show_default=True,
        help="The zoo home: registry, artifacts, runs (also CCT_ZOO_HOME).",
    )(command)


def print_json(value: Any) -> None:
    """One JSON value on standard output; not-a-number is refused rather than printed."""
    click.echo(json.dumps(value, indent=2, allow_nan=False))


@contextmanager
def progress(label: str, total: int) -> Iterator[Callable[[int], None]]:
    """A progress bar on a terminal, one line per interval elsewhere, always on standard error.

    Yields a callable that is told how many items are done so far.
    """
    if sys.stderr.isatty():
        with click.progressbar(length=total, label=label, file=sys.stderr) as bar:
            yield lambda done: bar.update(done - bar.pos)
        return
    started = last = time.monotonic()

    def report(done: int) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= PROGRESS_INTERVAL_S:
            last = now
            left = (now - started) / max(done, 1) * (total - done)
            click.echo(f"{label}: {done}/{total}, about {left:.0f} s left", err=True)

    yield report

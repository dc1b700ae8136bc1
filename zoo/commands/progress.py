"""Progress of long work, on standard error."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click

PROGRESS_INTERVAL_S = 5.0  # off a terminal, one line per interval


@contextmanager
def progress(label: str, total: int) -> Iterator[Callable[[int], None]]:
    """A progress bar on a terminal, one line per interval elsewhere, always on standard error.

    Yields a callable that is told how many items are done so far.
    """
    if sys.stderr.isatty():
        with click.progressbar(length=total, label=label, file=sys.stderr) as bar:
            yield lambda done: bar.update(done - bar.pos)
        return
    last = time.monotonic()
    began: tuple[float, int] | None = None  # what comes before the first item must not count as its time

    def report(done: int) -> None:
        nonlocal last, began
        now = time.monotonic()
        if began is None:
            began = now, done
        if now - last >= PROGRESS_INTERVAL_S:
            last, gained = now, done - began[1]
            left = f", about {(now - began[0]) / gained * (total - done):.0f} s left" if gained > 0 else ""
            click.echo(f"{label}: {done}/{total}{left}", err=True)

    yield report

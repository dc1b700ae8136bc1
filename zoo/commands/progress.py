"""The one display of long work, on standard error: label, stage, done of total, time left.

Redraws one line on a terminal; prints a line every few seconds elsewhere.
"""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import click

PROGRESS_INTERVAL_S = 5.0  # off a terminal, one line per interval
BAR = 24  # characters


class Display:
    """Shows how far work is; it is a `zoo.work.reporting.Report`."""

    def __init__(self, label: str) -> None:
        self.label, self.terminal = label, sys.stderr.isatty()
        self.stage, self.drawn = "", False
        self.last_line = time.monotonic()
        self.began: tuple[float, float] = (self.last_line, 0.0)  # when the stage was first heard of, and how far it was

    def __call__(self, stage: str, done: float, total: float, detail: str = "") -> None:
        """Show that `done` of `total` of a stage is done; a total of 0 is not known, one of 1 makes `done` a share."""
        now = time.monotonic()
        if stage != self.stage:
            self.end_line()
            self.stage, self.began = stage, (now, done)
        text = f"{_amount(done, total)}{self._time_left(now, done, total)}{f'  {detail}' if detail else ''}"
        if self.terminal:
            filled = int(BAR * min(done / total, 1.0)) if total else 0
            bar = f" [{'#' * filled}{'-' * (BAR - filled)}]" if total else ""
            click.echo(f"\r\x1b[K{self.label}: {stage}{bar} {text}", err=True, nl=False)
            self.drawn = True
        elif now - self.last_line >= PROGRESS_INTERVAL_S:
            self.last_line = now
            click.echo(f"{self.label}: {stage} {text}", err=True)

    def say(self, sentence: str) -> None:
        """Print a sentence that stays."""
        self.end_line()
        click.echo(sentence, err=True)

    def end_line(self) -> None:
        """Leave the line that is redrawn as it stands."""
        if self.drawn:
            click.echo(err=True)
        self.drawn = False

    def _time_left(self, now: float, done: float, total: float) -> str:
        """What the stage still takes at its pace since it was first heard of, which is when it was resumed."""
        began_at, began_with = self.began
        gained = done - began_with
        if gained <= 0 or not total:
            return ""
        left = max((now - began_at) / gained * (total - done), 0.0)
        minutes, seconds = divmod(round(left), 60)
        return f", {minutes}:{seconds:02d} left"


def _amount(done: float, total: float) -> str:
    """3 of 12 (25%), 25%, or what is done of nobody knows how much."""
    if not total:
        return f"{done:g}"
    percent = f"{100 * done / total:.0f}%"
    return percent if total == 1 else f"{done:g} of {total:g} ({percent})"


@contextmanager
def progress(label: str, resumable: bool = False) -> Iterator[Display]:
    """The display of one command; its line is ended whatever happens.

    With `resumable`, an interrupted command says that it can be resumed.
    """
    display = Display(label)
    try:
        yield display
    except KeyboardInterrupt:
        if resumable:
            display.say("What is done is kept; the same command resumes.")
        raise
    finally:
        display.end_line()

"""How long work says how far it is: a stage by name, how much of it is done, and of how much."""

from collections.abc import Callable
from typing import Protocol


class Report(Protocol):
    """Hears how far work is.

    `total` is 0 when nobody knows it. Work that is not counted reports its share, with a total of 1. `detail` are a few
    words that change as the work goes on.
    """

    def __call__(self, stage: str, done: float, total: float, detail: str = "") -> None:
        """Hear that `done` of `total` of a stage is done."""


Say = Callable[[str], None]  # hears a sentence that a user should read


def silent(stage: str, done: float, total: float, detail: str = "") -> None:
    """Report nothing."""


def quiet(sentence: str) -> None:
    """Say nothing."""


def within(report: Report, stage: str, total: int) -> Callable[[int], None]:
    """A callable for work that only counts: what it is told is reported as done of `total`."""
    return lambda done: report(stage, done, total)

"""How long work says how far it is: a stage by name, how much of it is done, and of how much."""

from collections.abc import Callable

Report = Callable[[str, int, int], None]  # stage, done, total


def silent(stage: str, done: int, total: int) -> None:
    """Report nothing."""


def within(report: Report, stage: str, total: int) -> Callable[[int], None]:
    """A callable for work that only counts: what it is told is reported as done of `total`."""
    return lambda done: report(stage, done, total)

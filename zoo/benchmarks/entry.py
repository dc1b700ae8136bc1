"""What an entry is made of: the trainings and measurements it needs, and the tables and figures they become.

An entry is data and two functions: from a setting to its tasks, and from their results to what is shown.
Tasks are values: two entries that need the same training name the same one, and it is done once.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from zoo.benchmarks.budgets import Budget


@dataclass(frozen=True)
class Setting:
    """How much is run."""

    budget: Budget
    seeds: tuple[int, ...]


# --- work -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Training:
    """One training; everything here decides its result."""

    model: str
    members: tuple[str, ...]  # names of contingencies
    minutes: float
    seed: int = 0
    fraction: float = 1.0


@dataclass(frozen=True)
class Task:
    """One measurement: a function "module:name" of zoo.benchmarks, the training it looks at, and its options."""

    function: str
    training: Training | None = None
    options: tuple[tuple[str, Any], ...] = ()


def task(function: str, training: Training | None = None, **options: Any) -> Task:
    """A task with its options as keyword arguments; lists are given as tuples."""
    return Task(function, training, tuple(sorted(options.items())))


class Findings:
    """Results of tasks and trainings; those that failed have a sentence instead."""

    def __init__(
        self, results: Mapping[Task | Training, dict[str, Any]], errors: Mapping[Task | Training, str]
    ) -> None:
        self.results, self.errors = results, errors

    def get(self, wanted: Task | Training) -> dict[str, Any] | None:
        """The result, or None when there is none."""
        return self.results.get(wanted)

    def of(self, wanted: Sequence[Task]) -> list[dict[str, Any]]:
        """The results there are."""
        return [self.results[each] for each in wanted if each in self.results]

    def problem(self, wanted: Sequence[Task]) -> str:
        """Why results are missing; empty when none is."""
        said = [self.errors.get(each, "not run") for each in wanted if each not in self.results]
        return "" if not said else f"{len(said)} of {len(wanted)} missing: {said[0]}"


# --- what is shown ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Published:
    """A number of the paper, and its standard deviation over five seeds if it has one."""

    mean: float
    std: float | None = None


@dataclass(frozen=True)
class Quantity:
    """A column of a table."""

    name: str
    unit: str = ""
    digits: int = 4  # significant ones that are shown


@dataclass(frozen=True)
class Cell:
    """Ours beside the paper's; None where there is no number."""

    ours: float | None
    ours_std: float | None = None  # over seeds, when there are several
    paper: float | None = None
    paper_std: float | None = None
    count: int = 0  # numbers that ours is the mean of


@dataclass(frozen=True)
class Row:
    """One line of a table; `why` says why ours and the paper's may differ, or why a number is missing."""

    label: str
    cells: tuple[Cell, ...]
    why: str


@dataclass(frozen=True)
class Table:
    """A table; `source` is where the published numbers stand."""

    name: str
    title: str
    source: str
    quantities: tuple[Quantity, ...]
    rows: tuple[Row, ...]


@dataclass(frozen=True, eq=False)
class Drawing:
    """A matplotlib figure; `suffix` is its format."""

    name: str
    caption: str
    figure: Any
    suffix: str = ".svg"


@dataclass(frozen=True, eq=False)
class Presentation:
    """What an entry shows."""

    tables: tuple[Table, ...]
    drawings: tuple[Drawing, ...] = ()
    notes: tuple[str, ...] = field(default=())


@dataclass(frozen=True)
class Benchmark:
    """An entry: what of the paper it repeats, what it needs, and what it shows."""

    name: str
    title: str
    source: str
    tasks: Callable[[Setting], list[Task]]
    present: Callable[[Setting, Findings], Presentation]


def cell(values: Sequence[float | None], paper: Published | None = None, factor: float = 1.0) -> Cell:
    """Mean and sample standard deviation of the numbers among `values`, times `factor`, beside the paper's."""
    numbers = [factor * value for value in values if value is not None and np.isfinite(value)]
    return Cell(
        ours=float(np.mean(numbers)) if numbers else None,
        ours_std=float(np.std(numbers, ddof=1)) if len(numbers) > 1 else None,
        paper=None if paper is None else paper.mean,
        paper_std=None if paper is None else paper.std,
        count=len(numbers),
    )

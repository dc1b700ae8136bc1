"""What an entry is made of: the trainings and measurements it needs, and how their results become tables and figures.

An entry is data and two functions: from a setting to its tasks, and from their results to what is shown.
Tasks are values: two entries that need the same training name the same one, and it is done once.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from zoo.paper import ENTRIES
from zoo.paper.budgets import Budget
from zoo.paper.tables import Presentation
from zoo.surrogates.budgets import Residual


@dataclass(frozen=True)
class Setting:
    """How much is run."""

    budget: Budget
    seeds: tuple[int, ...]


@dataclass(frozen=True)
class Training:
    """One training; everything here decides its result."""

    model: str
    members: tuple[str, ...]  # names of contingencies
    minutes: float  # of the processor; 0 where steps are counted instead
    seed: int = 0
    fraction: float = 1.0
    focus: bool = False  # whether a one-shot model learns what decides stability only; chained ones always do
    residual: Residual = "pointwise"  # the paper's
    steps: int | None = None  # instead of minutes


@dataclass(frozen=True)
class Task:
    """One measurement: a function "module:name" of zoo.paper, the training it looks at, and its options."""

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
        """Of how many seeds results are missing, and why; empty when none is."""
        lacking = [each for each in wanted if each not in self.results]
        if not lacking:
            return ""
        seeds, without = _seeds(wanted), _seeds(lacking)
        count = f"{len(without)} of {len(seeds)} seeds " if len(seeds) > 1 else ""
        return f"{count}missing: {self.errors.get(lacking[0], 'not run')}"

    def why(self, wanted: Sequence[Task], *reasons: str) -> str:
        """What a row says beside its numbers: what is missing, if anything is, and why they may differ."""
        return "; ".join(part for part in (self.problem(wanted), *reasons) if part)


def _seeds(tasks: Sequence[Task]) -> set[int]:
    """Seeds of the trainings that tasks look at."""
    return {each.training.seed for each in tasks if each.training is not None}


@dataclass(frozen=True)
class Benchmark:
    """An entry: what of the paper it repeats, what it needs, and what it shows."""

    name: str
    title: str
    source: str
    tasks: Callable[[Setting], list[Task]]
    present: Callable[[Setting, Findings], Presentation]


def entry(
    name: str, tasks: Callable[[Setting], list[Task]], present: Callable[[Setting, Findings], Presentation]
) -> Benchmark:
    """The entry that is listed under a name."""
    return Benchmark(name, *ENTRIES[name], tasks, present)

"""Severities asked of a boundary while a head is fitted: how many, what came of them, where the status changes.

A head must end: no more than `MAX_SEVERITIES` are asked, however often the boundary jumps. All severities of a round
are asked in one batch, because a source answers many together faster than one by one.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from espinn_moe.head import Array

if TYPE_CHECKING:
    from contingencies.stability import Boundary

BoundaryOf = Callable[[Array], "Boundary"]
Report = Callable[[int], None]

MAX_SEVERITIES = 600  # a smooth boundary takes some 250, one with a few kinks 500
SURE = 1e-9  # of the severity range: a change of status known less closely leaves an uncertain gap


class SpentError(Exception):
    """No more severities may be asked; what is not resolved stays uncertain."""


class Samples:
    """Every severity asked so far, with its status and CCT, in order of severity."""

    def __init__(self, boundary: BoundaryOf, report: Report, most: int = MAX_SEVERITIES) -> None:
        self._boundary, self._report, self.most = boundary, report, most
        self.alpha: Array = np.empty(0)
        self.cct: Array = np.empty(0)
        self.status: list[str] = []

    @property
    def left(self) -> int:
        """How many severities may still be asked."""
        return self.most - self.alpha.size

    def ask(self, alpha: Array) -> None:
        """Ask for severities that are not known yet, all in one batch; raises `SpentError` when they are too many."""
        new = np.setdiff1d(alpha, self.alpha)
        if new.size == 0:
            return
        if new.size > self.left:
            raise SpentError
        found = self._boundary(new)
        order = np.argsort(np.concatenate([self.alpha, new]), kind="stable")
        status = [*self.status, *found.status]
        self.alpha = np.concatenate([self.alpha, new])[order]
        self.cct = np.concatenate([self.cct, found.cct])[order]
        self.status = [status[i] for i in order]
        self._report(self.alpha.size)

    def within(self, low: float, high: float) -> tuple[Array, Array]:
        """Finite samples of an interval."""
        here = (self.alpha >= low) & (self.alpha <= high) & np.isfinite(self.cct)
        return self.alpha[here], self.cct[here]

    def all_finite(self, low: float, high: float) -> bool:
        first, last = np.searchsorted(self.alpha, [low, high], side="left")
        return all(status == "finite" for status in self.status[first : last + 1])


@dataclass(frozen=True)
class Run:
    """Severities with one status; `first` and `last` were asked, start and end are the edges around them."""

    start: float
    end: float
    first: float
    last: float
    status: str


def bisect_edges(samples: Samples, resolution: float) -> None:
    """Ask between neighbours of different status until every change is located to `resolution`.

    Many changes are located less closely: half of the severities that are left stay for what lies between them.
    """
    changes = sum(before != after for before, after in pairwise(samples.status))
    rounds = samples.left // (2 * changes) if changes else 0
    for _ in range(rounds):
        middles = [
            0.5 * (low + high)
            for low, high, before, after in zip(
                samples.alpha[:-1], samples.alpha[1:], samples.status[:-1], samples.status[1:], strict=True
            )
            if before != after and high - low > resolution and low < 0.5 * (low + high) < high
        ]
        if not middles:
            return
        samples.ask(np.array(middles))


def runs_of(samples: Samples) -> list[Run]:
    """Runs of one status that cover the range; between samples of different status too far apart it is uncertain."""
    sure = SURE * float(samples.alpha[-1] - samples.alpha[0])
    runs: list[Run] = []
    begin, start = 0, float(samples.alpha[0])
    for i in range(1, len(samples.status) + 1):
        if i < len(samples.status) and samples.status[i] == samples.status[begin]:
            continue
        first, last = float(samples.alpha[begin]), float(samples.alpha[i - 1])
        if i == len(samples.status):
            runs.append(Run(start, last, first, last, samples.status[begin]))
            break
        following = float(samples.alpha[i])
        known = following - last <= sure
        end = 0.5 * (last + following) if known else last
        runs.append(Run(start, end, first, last, samples.status[begin]))
        if not known:
            runs.append(Run(last, following, last, following, "uncertain"))
        begin, start = i, end if known else following
    return runs

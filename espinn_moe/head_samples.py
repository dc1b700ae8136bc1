"""Severities asked of a boundary while a head is fitted: how many, what came of them, where the status changes.

A head must end: no more than `MAX_SEVERITIES` are asked, however often the boundary jumps. All severities of a round
are asked in one batch, because a source answers many together faster than one by one. Where a source can look closer
(`Closer`), a severity between two whose answers are alike is asked only near them, and the edge of right-censoring is
the root in alpha of the margin at the last clearing instant; what does not come out as expected is asked in full.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from contingencies.search import Vicinity
from espinn_moe.head import Array

if TYPE_CHECKING:
    from contingencies.stability import Boundary

BoundaryOf = Callable[[Array], "Boundary"]
Report = Callable[[int], None]

MAX_SEVERITIES = 600  # a smooth boundary takes some 250, one with a few kinks 500
TWINS = 1e-14  # severities closer than this are the same; edges are located to 1e-12
SURE = 1e-9  # of the severity range: a change of status known less closely leaves an uncertain gap
ALIKE_S = 0.2  # answers of neighbours no farther apart: what lies between is looked for there first
BEYOND_S, BEYOND_PART = (
    1e-3,
    0.5,
)  # how far beyond the neighbours' answers one is looked for: s, part of their difference
SPARSE_S = 0.1  # spacing of instants where both neighbours are censored
EDGE_S = 0.02  # before the last clearing instant, where the boundary is beside the edge of right-censoring


@dataclass(frozen=True, eq=False)
class Closer:
    """How a source answers without searching the whole clearing window."""

    near: Callable[[Array, Vicinity], "Boundary"]  # severities (m,), where their crossings are expected
    last_margin: Callable[[Array], Array]  # severities (m,) -> margins at the last clearing instant, rad
    window: tuple[float, float]  # clearing instants, s
    sections: int  # severities of a round that looks for an edge


class SpentError(Exception):
    """No more severities may be asked; what is not resolved stays uncertain."""


class Samples:
    """Every severity asked so far, with its status and CCT, in order of severity."""

    def __init__(
        self, boundary: BoundaryOf, report: Report, most: int = MAX_SEVERITIES, closer: Closer | None = None
    ) -> None:
        self._boundary, self._report, self.most, self.closer = boundary, report, most, closer
        self.alpha: Array = np.empty(0)
        self.cct: Array = np.empty(0)
        self.status: list[str] = []

    @property
    def left(self) -> int:
        """How many severities may still be asked."""
        return self.most - self.alpha.size

    def ask(self, alpha: Array, in_full: bool = False) -> None:
        """Ask for severities that are not known yet, all in one batch; raises `SpentError` when they are too many.

        With `in_full` the whole clearing window is searched whatever the neighbours say.
        """
        new = self._unknown(alpha)
        if new.size == 0:
            return
        if new.size > self.left:
            raise SpentError
        if self.closer is None or in_full or self.alpha.size < 2:
            found = self._boundary(new)
            self.add(new, found.cct, found.status)
        else:
            self.add(new, *self._near_neighbours(new, self.closer))

    def _unknown(self, alpha: Array) -> Array:
        """Severities that have not been asked, each once; twins by rounding count as one, or slopes are noise."""
        new = np.unique(alpha)
        new = new[np.diff(new, prepend=-np.inf) > TWINS]
        if not self.alpha.size:
            return new
        after = np.searchsorted(self.alpha, new)
        around = self.alpha[np.clip([after - 1, after], 0, self.alpha.size - 1)]
        unknown: Array = new[np.abs(around - new).min(axis=0) > TWINS]
        return unknown

    def add(self, new: Array, cct: Array, answers: Sequence[str]) -> None:
        """Take in what was asked: severities (m,) that were not known, CCTs (m,), statuses."""
        order = np.argsort(np.concatenate([self.alpha, new]), kind="stable")
        status = [*self.status, *answers]
        self.alpha = np.concatenate([self.alpha, new])[order]
        self.cct = np.concatenate([self.cct, cct])[order]
        self.status = [status[i] for i in order]
        self._report(self.alpha.size)

    def _near_neighbours(self, new: Array, closer: Closer) -> tuple[Array, list[str]]:
        """CCTs and statuses of severities (m,), asked near their neighbours' answers where these are alike."""
        after = np.clip(np.searchsorted(self.alpha, new), 1, self.alpha.size - 1)
        known = np.array(self.status)
        left, right = self.cct[after - 1], self.cct[after]
        apart = np.abs(left - right)
        alike = (apart <= ALIKE_S) & (known[after - 1] == "finite") & (known[after] == "finite")
        censored = (known[after - 1] == known[after]) & (known[after] != "finite")
        beyond = BEYOND_S + BEYOND_PART * apart
        first = np.clip(np.where(alike, np.minimum(left, right) - beyond, closer.window[0]), *closer.window)
        last = np.clip(np.where(alike, np.maximum(left, right) + beyond, closer.window[1]), *closer.window)
        guess = np.where(alike, self._interpolated(new, after), np.nan)
        cct, status = np.full(new.size, np.nan), np.full(new.size, "", dtype="<U14")
        for chosen, spacing in ((alike & (first < last), np.inf), (censored, SPARSE_S)):
            if chosen.any():
                where = Vicinity(first[chosen], last[chosen], spacing, guess[chosen])
                found = closer.near(new[chosen], where)
                cct[chosen], status[chosen] = found.cct, found.status
        unexpected = np.where(alike, status != "finite", status != known[after])
        if unexpected.any():
            found = self._boundary(new[unexpected])
            cct[unexpected], status[unexpected] = found.cct, found.status
        return cct, status.tolist()

    def _interpolated(self, new: Array, after: np.ndarray) -> Array:
        """CCTs (m,) of severities (m,) by the cubics through the two samples on either side of each, s.

        NaN where one of them has no number. `after` is the first sample beyond each severity.
        """
        if self.alpha.size < 4:
            return np.full(new.size, np.nan)
        around = np.clip(after - 2, 0, self.alpha.size - 4)[:, None] + np.arange(4)
        alpha, cct = self.alpha[around], self.cct[around]
        guess = np.zeros(new.size)
        for k in range(4):
            others = np.delete(alpha, k, axis=1)
            guess += cct[:, k] * np.prod((new[:, None] - others) / (alpha[:, k, None] - others), axis=1)
        return guess

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
    if samples.closer is not None:
        ask_last_margins(samples, samples.closer, resolution)
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


def ask_last_margins(samples: Samples, closer: Closer, resolution: float) -> None:
    """Ask on both sides of every edge of right-censoring at which the last clearing instant becomes unstable."""
    edges: list[float] = []
    for k, pair in enumerate(pairwise(samples.status)):
        low, high = samples.alpha[k : k + 2]
        if set(pair) != {"finite", "right-censored"} or high - low <= resolution:
            continue
        stable = np.sign(closer.last_margin(np.array([low, high])))
        if stable[0] == stable[1]:
            continue  # the boundary begins in the middle of the clearing window
        while high - low > resolution and low < 0.5 * (low + high) < high:
            cuts = np.linspace(low, high, closer.sections + 2)
            changed = np.append(np.sign(closer.last_margin(cuts[1:-1])) != stable[0], True)
            low, high = cuts[changed.argmax()], cuts[changed.argmax() + 1]
        edges += [low, high]
    alpha = np.setdiff1d(edges, samples.alpha)
    if alpha.size > samples.left:
        raise SpentError
    if alpha.size:
        last = np.full(alpha.size, closer.window[1])
        found = closer.near(alpha, Vicinity(np.maximum(last - EDGE_S, closer.window[0]), last, guess=last))
        known = np.array(found.status) != "left-censored"  # of those instants: the boundary is farther away
        samples.add(alpha[known], found.cct[known], [status for status in found.status if status != "left-censored"])
        samples.ask(alpha[~known], in_full=True)


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

"""The search over clearing instants: the first loss of synchronism, and every stable and unstable interval.

One search serves every source of trajectories: strict ODE, fast ODE, DAE, surrogates. It scans the clearing window and
looks again, down to a stated resolution, into every cell between two instants that may hide an interval of the other
kind, theory.md eqs. (61)-(64):

- stability changes between its ends, or next to it;
- both ends are stable, and in some part of the time axis the largest separation rises towards the cell on its left
  and falls on its right, so that the tangents may meet above what is certainly stable. Beside an unstable interval
  the separations fall away from it on both sides, like square roots: tangents are the right thing to extend;
- both ends are unstable, and the instant of loss jumps, or grows towards the cell from both sides: next to a stable
  interval synchronism is lost ever later, like a logarithm.

The search only says which trajectories it wants to see next, so that the searches of many severities can go on side
by side where a large batch costs little more than a small one.
"""

import math
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from contingencies.looks import Look, joined, look_of_margins
from contingencies.network import Float
from contingencies.roots import Ask, Bracket, looks, roots
from contingencies.stability import CANDIDATE_SPACING_S, TAU_ROOT_S, Crossing, Margins

RESOLUTION_S = 5e-4  # stable and unstable intervals wider than this are found
SPACING_S = 3e-3  # of the first scan, where a trajectory costs little: every wider interval is met by it
SAFE_PART = 0.5  # of the largest separation: 90 degrees by default, below which every machine is pulled back
KINK_RAD_S = 0.5  # fall of a slope within a cell; smooth swings bend by 0.3 rad/s within 10 ms
FINER = 0.4  # of the resolution, in cells where stability changes and beside them
LOSS_JUMP_S = 0.03  # between neighbours; losses in successive swings lie tenths of a second apart
LOSS_KINK = 1.5  # fall of the slope of the loss instant within a cell, s/s

OFF_GUESS = 0.37  # of the tolerance of roots

Source = Callable[[Float, bool], Look]  # clearing instants (m,), whether values must be right
# Which searches (s,), their clearing instants (s, m), whether values must be right -> looks (s, m)
ManySource = Callable[[np.ndarray, Float, bool], Look]
Search = Generator[Ask, Look, Crossing]


@dataclass(frozen=True)
class Plan:
    """How a search goes about it."""

    spacing: float = SPACING_S  # of the first scan, s
    resolution: float = RESOLUTION_S  # to which suspicious cells are looked into, s
    points_per_call: int = 1  # where many margins cost as much as one, roots are found with so many at a time
    safe: float = -0.5 * math.pi  # rad, a margin below which no separation is suspicious
    intervals: bool = False  # whether every edge is refined to a root, or only the first crossing
    status_only: bool = False  # whether the status is all that is wanted: the crossing is left at the scan's spacing

    @classmethod
    def paper(cls, **options: Any) -> "Plan":
        """The paper's protocol: its clearing grid, the first cell whose ends differ, one root."""
        return cls(spacing=CANDIDATE_SPACING_S, resolution=CANDIDATE_SPACING_S, **options)

    def within(self, max_separation: float) -> "Plan":
        """The same for a largest separation of stable trajectories, rad."""
        return replace(self, safe=(SAFE_PART - 1.0) * max_separation)

    def scan(self, first: float, last: float, guess: float | None = None) -> Float:
        """The instants of the first look, with slopes at both ends of the window and a ladder about a guess, s."""
        closer = self.resolution < self.spacing and last - first > 4 * self.resolution
        inner = [first + self.resolution, last - self.resolution] if closer else []
        if guess is not None:
            inner = [rung for rung in self._ladder(guess).flat if first < rung < last]
        return np.union1d(_evenly(first, last, self.spacing), inner)

    def _ladder(self, guess: float) -> Float:
        """Instants on either side of a guess, s: in the innermost three cells one round reaches a root, beyond two."""
        parts = self.points_per_call + 1
        rungs = np.cumsum([0.5 * parts, parts, parts**2]) * np.array([[-1.0], [1.0]])
        # Rounding must not cost a round, and no cut may fall on the guess: a root would be found right there.
        return guess + 0.99 * TAU_ROOT_S * (rungs + OFF_GUESS)


SPARING = Plan(spacing=1e-2)  # where a trajectory costs much: the paper's grid, looked into by the same rules


def first_crossing(source: Source, window: tuple[float, float], plan: Plan | None = None) -> Crossing:
    """First stable-to-unstable transition over the clearing instants of a window, s."""

    def many(which: np.ndarray, instants: Float, values: bool) -> Look:
        return source(instants[0], values)[None]

    return run_together([search(window, plan or Plan())], many)[0]


def crossing_of_margins(margins: Margins, window: tuple[float, float], plan: Plan | None = None) -> Crossing:
    """`first_crossing` where nothing but margins is known."""
    return first_crossing(lambda t_c, values: look_of_margins(margins(t_c)), window, plan)


def run_together(
    searches: Sequence[Search], source: ManySource, report: Callable[[int], None] | None = None
) -> list[Crossing]:
    """What searches find that go on side by side, each asking for its next trajectories in the round of the others.

    Parameters
    ----------
    searches : sequence of Search
    source : callable
        Trajectories of several searches at once; shorter requests are filled up with their last instant.
    report : callable, optional
        Told how many searches are done.
    """
    asked = dict(enumerate(next(one) for one in searches))
    found: dict[int, Crossing] = {}
    while asked:
        alike: dict[tuple[int, bool], list[int]] = {}
        for which, ask in asked.items():
            alike.setdefault((len(ask.t_c).bit_length(), ask.values), []).append(which)
        for (_, values), group in alike.items():
            longest = max(len(asked[which].t_c) for which in group)
            instants = [np.pad(asked[which].t_c, (0, longest - len(asked[which].t_c)), mode="edge") for which in group]
            answer = source(np.array(group), np.stack(instants), values)
            for row, which in enumerate(group):
                try:
                    asked[which] = searches[which].send(answer[row, : len(asked[which].t_c)])
                except StopIteration as end:
                    found[which] = end.value
                    del asked[which]
            if report:
                report(len(found))
    return [found[which] for which in range(len(searches))]


def search(window: tuple[float, float], plan: Plan, guess: float | None = None) -> Search:
    """The search over a window of clearing instants: yields what it asks for, is sent looks, returns what it found.

    A `guess` of the crossing, s, saves rounds where it is good and costs none where it is not.
    """
    t_c = plan.scan(*window, guess)
    look = yield from looks(Ask(t_c))
    while (new := instants_to_add(t_c, look, plan)).size:
        if plan.status_only and (look.margin >= 0).any():
            break
        more = yield from looks(Ask(new))
        order = np.argsort(np.concatenate([t_c, new]), kind="stable")
        t_c, look = np.concatenate([t_c, new])[order], joined([look, more], order)
    unstable = look.margin >= 0
    changes = np.flatnonzero(unstable[1:] != unstable[:-1])
    wanted = changes if plan.intervals else changes[:1]
    if plan.status_only or (unstable[0] and not plan.intervals):
        wanted = changes[:0]  # no first crossing to refine
    edges = 0.5 * (t_c[changes] + t_c[changes + 1])
    edges[: len(wanted)] = yield from roots(
        [Bracket(*t_c[k : k + 2].tolist(), *look.margin[k : k + 2].tolist()) for k in wanted], plan.points_per_call
    )
    return _answer(window, edges, bool(unstable[0]), plan.resolution)


@dataclass(frozen=True, eq=False)
class Vicinity:
    """Where the crossings of several severities (m,) are looked for, when it is about known where they are."""

    first: Float  # (m,) s, clearing instants
    last: Float  # (m,) s
    spacing: float = math.inf  # of the instants looked at, s; nothing is looked into between those of one stability
    guess: Float | None = None  # (m,) s, NaN where there is none

    def searches(self, points_per_call: int) -> list[Search]:
        """The search of every severity; its status is that of the given instants alone."""
        plan = Plan(self.spacing, self.spacing, points_per_call)
        guesses = np.full(len(self.first), np.nan) if self.guess is None else self.guess
        return [
            search((float(first), float(last)), plan, float(guess) if np.isfinite(guess) else None)
            for first, last, guess in zip(self.first, self.last, guesses, strict=True)
        ]


def _answer(window: tuple[float, float], edges: Float, starts_unstable: bool, resolution: float) -> Crossing:
    """What stability that changes at `edges` amounts to."""
    ends = [window[0], *edges.tolist(), window[1]]
    pieces = list(pairwise(ends))
    stable = tuple(pieces[int(starts_unstable) :: 2])
    if starts_unstable:
        return Crossing("left-censored", None, bool(stable), stable, resolution)
    if len(edges) == 0:
        return Crossing("right-censored", None, False, stable, resolution)
    return Crossing("finite", float(edges[0]), len(stable) > 1, stable, resolution)


def instants_to_add(t_c: Float, look: Look, plan: Plan) -> Float:
    """Instants inside the cells between instants (m,) that may hide an interval of the other kind."""
    unstable = look.margin >= 0
    gap = np.diff(t_c)
    changes = unstable[1:] != unstable[:-1]
    near = changes.copy()  # further changes are likely in the cell of a change and in those beside it
    near[1:] |= changes[:-1]
    near[:-1] |= changes[1:]
    finest = plan.resolution * (FINER if plan.resolution < plan.spacing else 1.0)  # the paper looks no closer
    filled = np.flatnonzero(near & (gap > finest * (1.0 + 1e-6)))
    suspicious = np.where(unstable[1:], _loss_kinks(gap, look.lost), _tents(gap, look.swings, plan.safe))
    halved = np.flatnonzero(~near & suspicious & (gap > plan.resolution * (1.0 + 1e-6)))
    inside = [_evenly(t_c[k], t_c[k + 1], finest)[1:-1] for k in filled]
    return np.unique(np.concatenate([*inside, t_c[halved] + 0.5 * gap[halved]]))


def _tents(gap: Float, swings: Float, safe: float) -> np.ndarray:
    """Cells (m - 1,) in which tangents of some swing from both sides meet too high, theory.md eq. (63)."""
    left, right = _outer_slopes(np.diff(swings, axis=0) / gap[:, None])
    with np.errstate(invalid="ignore"):  # what is lost has no slope, and no tent
        apex = np.maximum(swings[:-1], swings[1:]) + 0.5 * (left - right) * gap[:, None]
        high = (left > 0) & (right < 0) & (left - right > KINK_RAD_S) & (apex > safe)
    return np.asarray(high.any(axis=1))


def _loss_kinks(gap: Float, lost: Float) -> np.ndarray:
    """Cells (m - 1,) in which the instant of loss jumps, or grows from both sides, theory.md eq. (64)."""
    with np.errstate(invalid="ignore"):
        later = np.diff(lost)
        left, right = _outer_slopes(later / gap)
        kinks: np.ndarray = (np.abs(later) > LOSS_JUMP_S) | ((left > 0) & (right < 0) & (left - right > LOSS_KINK))
    return kinks


def _outer_slopes(slopes: Float) -> tuple[Float, Float]:
    """Slopes of the cells to the left and right of each cell (m - 1, ...); NaN outside."""
    none = np.full_like(slopes[:1], np.nan)
    return np.concatenate([none, slopes[:-1]]), np.concatenate([slopes[1:], none])


def _evenly(first: float, last: float, spacing: float) -> Float:
    """Instants from first to last no farther apart than `spacing`."""
    return np.linspace(first, last, max(2, int(np.ceil((last - first) / spacing - 1e-9)) + 1))

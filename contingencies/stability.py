"""Hard margin, first crossing, hard CCT and its censoring (theory.md eqs. (12)-(14)).

One search serves every source of margins: strict ODE, fast ODE, DAE, and surrogates. It scans
the clearing window, takes the first stable-to-unstable cell, looks into that cell again more
finely (the stable set is not always an interval; local peaks of the margin get a second look too),
and refines the crossing. The search only says which margins it wants to know next, so that the
searches of many severities can go on side by side where a large batch costs little more than a
small one.
"""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from contingencies.errors import SolverError, UsageError
from contingencies.network import Float
from contingencies.operators import PhaseOperators

Status = Literal["finite", "right-censored", "left-censored"]

CANDIDATE_SPACING_S = 1e-2  # h_c, the paper's clearing grid: 101 candidates in a window of 1 s
RESOLUTION_S = 2e-4  # an unstable sliver narrower than this may be overlooked
PEAK_RAD = 1e-6  # a local peak of the margins stands out by more than round-off
TAU_ROOT_S = 1e-6  # below the paper's 1e-5 s, so that two references can be compared to 1e-5 s

Margins = Callable[[Float], Float]  # clearing instants (m,) -> margins (m,), rad
# Which searches (s,), their clearing instants (s, m), whether values must be right -> margins (s, m), rad
ManyMargins = Callable[[np.ndarray, Float, bool], Float]


@dataclass(frozen=True)
class CCT:
    """The answer for one severity: an instant on the simulation clock, or why there is none."""

    alpha: float
    status: Status
    cct: float | None  # s; None unless finite
    restabilises: bool  # whether some later clearing instant is stable again
    t_f: float
    reference: str

    @property
    def duration(self) -> float | None:
        """Seconds from fault to critical clearing."""
        return None if self.cct is None else self.cct - self.t_f


@dataclass(frozen=True, eq=False)
class Boundary:
    """CCT over severities."""

    alpha: Float  # (m,)
    cct: Float  # (m,) s, NaN where not finite
    status: tuple[Status, ...]
    restabilises: np.ndarray  # (m,) bool
    reference: str

    @property
    def finite(self) -> np.ndarray:
        """(m,) bool"""
        return np.isfinite(self.cct)


@dataclass(frozen=True)
class Crossing:
    """Where margins first become non-negative."""

    status: Status
    t_c: float | None
    restabilises: bool


def candidates(operators: PhaseOperators) -> Float:
    """The clearing instants that are scanned, s."""
    first, last = operators.window.t_c
    return np.linspace(first, last, int(np.ceil((last - first) / CANDIDATE_SPACING_S - 1e-9)) + 1)


@dataclass(frozen=True, eq=False)
class Ask:
    """Clearing instants whose margins a search wants to know next."""

    t_c: Float  # (m,) s, in order
    values: bool = False  # whether the margins' values must be right, for a root; elsewhere signs are enough


def first_crossing(
    scan: Margins, t_c: Float, refine: Margins | None = None, points_per_call: int = 1, resolution: float = RESOLUTION_S
) -> Crossing:
    """First stable-to-unstable transition of a margin over ordered clearing instants.

    Parameters
    ----------
    scan : callable
        Margins whose sign is right; used on the grid.
    t_c : array (m,)
        Ordered clearing instants, s.
    refine : callable, optional
        Margins whose value is right too, for the root; default `scan`.
    points_per_call, resolution
        As for `search`.
    """

    def margins(which: np.ndarray, instants: Float, values: bool) -> Float:
        return (refine if values and refine else scan)(instants[0])[None]

    return run_together([search(t_c, points_per_call, resolution)], margins)[0]


def run_together(
    searches: Sequence["Search"], margins: ManyMargins, report: Callable[[int], None] | None = None
) -> list[Crossing]:
    """What searches find that go on side by side, each asking for its next margins in the same round as the others.

    Parameters
    ----------
    searches : sequence of Search
    margins : callable
        Margins of several searches at once; all of a call ask for equally many.
    report : callable, optional
        Told how many searches are done.
    """
    asked = dict(enumerate(next(one) for one in searches))
    found: dict[int, Crossing] = {}
    while asked:
        alike: dict[tuple[int, bool], list[int]] = {}
        for which, ask in asked.items():
            alike.setdefault((len(ask.t_c), ask.values), []).append(which)
        for (_, values), group in alike.items():
            answers = margins(np.array(group), np.stack([asked[which].t_c for which in group]), values)
            for which, answer in zip(group, answers, strict=True):
                try:
                    asked[which] = searches[which].send(answer)
                except StopIteration as end:
                    found[which] = end.value
                    del asked[which]
            if report:
                report(len(found))
    return [found[which] for which in range(len(searches))]


def search(t_c: Float, points_per_call: int = 1, resolution: float = RESOLUTION_S) -> "Search":
    """The search for the first crossing: yields what it asks for, is sent the margins, returns what it found.

    Parameters
    ----------
    t_c : array (m,)
        Ordered clearing instants, s.
    points_per_call : int
        Where many margins cost as much as one, find the root by section with this many at a time;
        1 finds it by interpolation.
    resolution : float
        Spacing of the second look into the crossing cell, s.
    """
    margins = yield from _margins(Ask(t_c))
    unstable = margins >= 0
    first = int(unstable.argmax()) if unstable.any() else len(t_c)
    restabilises = bool((~unstable[first:]).any())
    if first == 0:
        return Crossing("left-censored", None, restabilises)
    for cell in _cells_to_search(margins, first):
        inner = _inside(t_c[cell - 1], t_c[cell], resolution)
        between = yield from _margins(Ask(inner[1:-1]))
        looked = np.concatenate([margins[cell - 1 : cell], between, margins[cell : cell + 1]])
        unstable = looked >= 0
        if unstable.any():
            restabilises |= cell < first or bool((~unstable[unstable.argmax() :]).any())
            break
    else:
        return Crossing("right-censored", None, False)
    upper = int(unstable.argmax())
    bracket = float(inner[upper - 1]), float(inner[upper])
    if points_per_call > 1:
        root = yield from _section(*bracket, points_per_call)
    else:
        root = yield from _interpolation(*bracket, float(looked[upper - 1]), float(looked[upper]))
    return Crossing("finite", root, restabilises)


Search = Generator[Ask, Float, Crossing]


def _margins(ask: Ask) -> Generator[Ask, Float, Float]:
    """What was asked for. A margin that is not a number is a failed simulation, never an unstable one."""
    margins = yield ask
    if not np.isfinite(margins).all():
        raise SolverError(
            "a simulation did not yield finite rotor angles; its stability is unknown, try another reference."
        )
    return margins


def _cells_to_search(margins: Float, first: int) -> list[int]:
    """Cells (by their right end) that may hold the first crossing, in order.

    The cell before the first unstable candidate always does. So may the neighbours of a local peak
    of the stable margins, where an unstable sliver can hide between two stable candidates.
    """
    stable = margins[:first]
    peaks = 1 + np.flatnonzero((stable[1:-1] > stable[:-2] + PEAK_RAD) & (stable[1:-1] > stable[2:] + PEAK_RAD))
    cells = {int(cell) for peak in peaks for cell in (peak, peak + 1)}
    return sorted(cells | ({first} if first < len(margins) else set()))


def _inside(lower: float, upper: float, resolution: float) -> Float:
    """Both ends of a cell and points between them no farther apart than `resolution`."""
    return np.linspace(lower, upper, max(3, int(np.ceil((upper - lower) / resolution - 1e-9)) + 1))


def _section(lower: float, upper: float, points: int) -> Generator[Ask, Float, float]:
    """The first crossing in [lower, upper], by cutting the interval into points + 1 parts at a time."""
    while upper - lower > TAU_ROOT_S:
        cuts = np.linspace(lower, upper, points + 2)
        unstable = np.append((yield from _margins(Ask(cuts[1:-1], values=True))) >= 0, True)
        first = int(unstable.argmax())
        lower, upper = float(cuts[first]), float(cuts[first + 1])
    return upper


def _interpolation(lower: float, upper: float, at_lower: float, at_upper: float) -> Generator[Ask, Float, float]:
    """A crossing in [lower, upper] by Chandrupatla's method (1997), one margin at a time.

    Inverse quadratic interpolation where the last three margins are nearly on a line, otherwise halves. Of the
    ends only the signs are relied on, stable below and unstable above: their values may be rough.
    """
    x, at_x, other, at_other = upper, at_upper, lower, at_lower  # the newest point, and the one across the root
    step = 0.5  # of the way to the other
    while abs(other - x) > TAU_ROOT_S:
        least = 0.5 * TAU_ROOT_S / abs(other - x)  # as far as to step across a root that is known well enough
        new = x + min(max(step, least), 1.0 - least) * (other - x)
        at_new = float((yield from _margins(Ask(np.array([new]), values=True)))[0])
        if (at_new >= 0) == (at_x >= 0):
            last, at_last = x, at_x
        else:
            last, at_last, other, at_other = other, at_other, x, at_x
        x, at_x = new, at_new
        along, height = (x - other) / (last - other), (at_x - at_other) / (at_last - at_other)
        step = 0.5
        if height**2 < along and (1.0 - height) ** 2 < 1.0 - along:
            step = at_x / (at_other - at_x) * at_last / (at_other - at_last) + (
                (last - x) / (other - x) * at_x / (at_last - at_x) * at_other / (at_last - at_other)
            )
    return x - at_x * (other - x) / (at_other - at_x)


def check_scenario(operators: PhaseOperators, alpha: float, t_c: float | None = None) -> None:
    """Refuse a severity or clearing instant that no simulator can take."""
    if not (np.isfinite(alpha) and alpha >= 0):
        raise UsageError(
            f"severity alpha = {alpha} is not a finite number of at least 0; give one such as {operators.severity[1]}."
        )
    window = operators.window
    if t_c is not None and not (np.isfinite(t_c) and window.t_f < t_c < window.T):
        raise UsageError(
            f"clearing instant t_c = {t_c} s is not between the fault (t_f = {window.t_f} s) and the end of the study "
            f"(T = {window.T} s); t_c is an instant, not a duration."
        )


def boundary_of(answers: list[CCT], reference: str) -> Boundary:
    """Single answers as one boundary."""
    return Boundary(
        alpha=np.array([a.alpha for a in answers]),
        cct=np.array([np.nan if a.cct is None else a.cct for a in answers]),
        status=tuple(a.status for a in answers),
        restabilises=np.array([a.restabilises for a in answers], dtype=bool),
        reference=reference,
    )

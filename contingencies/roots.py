"""Roots of margins between two clearing instants of different stability, found by asking.

Like the search itself these say which margins they want to know next and are sent them, so that many go on side by
side. Where a batch of margins costs little more than one, brackets are cut into many parts at a time; elsewhere one
margin at a time is interpolated.
"""

from collections.abc import Generator
from dataclasses import dataclass

import numpy as np

from contingencies.errors import SolverError
from contingencies.looks import Look
from contingencies.network import Float
from contingencies.stability import TAU_ROOT_S


@dataclass(frozen=True, eq=False)
class Ask:
    """Clearing instants whose trajectories a search wants to see next."""

    t_c: Float  # (m,) s, in order
    values: bool = False  # whether the margins' values must be right, for a root; elsewhere signs are enough


@dataclass(frozen=True)
class Bracket:
    """Two clearing instants, one stable and one not, s."""

    lower: float
    upper: float
    at_lower: float  # margin, rad
    at_upper: float


def looks(ask: Ask) -> Generator[Ask, Look, Look]:
    """What was asked for. A margin that is not a number is a failed simulation, never an unstable one."""
    look = yield ask
    if not np.isfinite(look.margin).all():
        raise SolverError(
            "a simulation did not yield finite rotor angles; its stability is unknown, try another reference."
        )
    return look


def roots(brackets: list[Bracket], points_per_call: int) -> Generator[Ask, Look, list[float]]:
    """Where stability changes in each of several brackets, in order, s."""
    if brackets and points_per_call > 1:
        return (yield from _sections(brackets, points_per_call))
    found = []
    for bracket in brackets:
        found.append((yield from _interpolation(bracket)))
    return found


def _sections(brackets: list[Bracket], points: int) -> Generator[Ask, Look, list[float]]:
    """The first change in each bracket, all cut into points + 1 parts at a time."""
    ends = np.array([[bracket.lower, bracket.upper] for bracket in brackets])
    from_unstable = np.array([bracket.at_lower >= 0 for bracket in brackets])
    rows = np.arange(len(brackets))
    while np.diff(ends, axis=1).max() > TAU_ROOT_S:
        cuts = np.linspace(ends[:, 0], ends[:, 1], points + 2, axis=1)
        look = yield from looks(Ask(cuts[:, 1:-1].ravel(), values=True))
        changed = (look.margin.reshape(-1, points) >= 0) != from_unstable[:, None]
        first = np.where(changed.any(1), changed.argmax(1), points)
        ends = np.stack([cuts[rows, first], cuts[rows, first + 1]], axis=1)
    return [float(upper) for upper in ends[:, 1]]


def _interpolation(bracket: Bracket) -> Generator[Ask, Look, float]:
    """A root in a bracket by Chandrupatla's method (1997), one margin at a time.

    Inverse quadratic interpolation where the last three margins are nearly on a line, otherwise halves. Of the
    ends only the signs are relied on: their values may be rough.
    """
    x, at_x, other, at_other = bracket.upper, bracket.at_upper, bracket.lower, bracket.at_lower
    step = 0.5  # of the way from the newest point to the one across the root
    while abs(other - x) > TAU_ROOT_S:
        least = 0.5 * TAU_ROOT_S / abs(other - x)  # as far as to step across a root that is known well enough
        new = x + min(max(step, least), 1.0 - least) * (other - x)
        look = yield from looks(Ask(np.array([new]), values=True))
        at_new = float(look.margin[0])
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

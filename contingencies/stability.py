"""Hard margin, first crossing, hard CCT and its censoring (theory.md eqs. (12)-(14)).

The values that the search over clearing instants (`contingencies.search`) answers with. A margin is negative where
synchronism is kept; the stable set of clearing instants need not be an interval, so an answer also says whether later
instants are stable again, and from which width on such intervals are found.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from contingencies.errors import UsageError
from contingencies.network import Float
from contingencies.operators import PhaseOperators

Status = Literal["finite", "right-censored", "left-censored"]

CANDIDATE_SPACING_S = 1e-2  # h_c, the paper's clearing grid: 101 candidates in a window of 1 s
TAU_ROOT_S = 1e-6  # below the paper's 1e-5 s, so that two references can be compared to 1e-5 s

Margins = Callable[[Float], Float]  # clearing instants (m,) -> margins (m,), rad
Interval = tuple[float, float]  # from, to: instants, s


@dataclass(frozen=True)
class CCT:
    """The answer for one severity: an instant on the simulation clock, or why there is none."""

    alpha: float
    status: Status
    cct: float | None  # s; None unless finite
    restabilises: bool  # whether some later clearing instant is stable again
    t_f: float
    reference: str
    resolution: float | None = None  # s; stable and unstable intervals wider than this are found
    stable: tuple[Interval, ...] | None = None  # every stable interval of clearing instants, where asked for

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

    def __getitem__(self, rows: slice) -> "Boundary":
        """Some of the severities."""
        return Boundary(self.alpha[rows], self.cct[rows], self.status[rows], self.restabilises[rows], self.reference)


@dataclass(frozen=True)
class Crossing:
    """Where margins first become non-negative, and where they are negative at all."""

    status: Status
    t_c: float | None
    restabilises: bool
    stable: tuple[Interval, ...]  # edges other than t_c are known to the resolution unless they were asked for
    resolution: float


def candidates(operators: PhaseOperators) -> Float:
    """The paper's clearing instants, s."""
    first, last = operators.window.t_c
    return np.linspace(first, last, int(np.ceil((last - first) / CANDIDATE_SPACING_S - 1e-9)) + 1)


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


def cct_of(crossing: Crossing, alpha: float, t_f: float, reference: str, intervals: bool = False) -> CCT:
    """A crossing as the answer for its severity; with `intervals`, every stable interval as well."""
    stable = crossing.stable if intervals else None
    return CCT(alpha, crossing.status, crossing.t_c, crossing.restabilises, t_f, reference, crossing.resolution, stable)


def boundary_of(answers: list[CCT], reference: str) -> Boundary:
    """Single answers as one boundary."""
    return Boundary(
        alpha=np.array([a.alpha for a in answers]),
        cct=np.array([np.nan if a.cct is None else a.cct for a in answers]),
        status=tuple(a.status for a in answers),
        restabilises=np.array([a.restabilises for a in answers], dtype=bool),
        reference=reference,
    )

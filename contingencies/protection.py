"""Whether a fault may last as long as protection needs to clear it.

A required time is a duration, s, from fault to clearing. A censored answer decides it only where the studied window
reaches that far; beyond, the verdict is open, never a guess.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from contingencies.spec import ContingencySpec, Window

Outcome = Literal["pass", "fail", "open"]


@dataclass(frozen=True)
class Verdict:
    """What a required time makes of one answer."""

    required: float  # s
    outcome: Outcome
    margin: float | None  # s, critical duration less its error bound and the required one; None if open
    at_least: bool = False  # whether the margin is only that of the end of the window

    def words(self) -> str:
        """The verdict in a few characters, margin in ms."""
        if self.margin is None:
            return self.outcome
        return f"{self.outcome} {'>= ' if self.at_least else ''}{1e3 * self.margin:+.1f}"


def required_time(spec: ContingencySpec, given_ms: float | None = None) -> float | None:
    """The required duration of a contingency, s: as given, or else as its description states it."""
    if given_ms is not None:
        return 1e-3 * given_ms
    return None if spec.protection is None else spec.protection.required


def judge(status: str, duration: float | None, window: Window, required: float, bound: float | None = None) -> Verdict:
    """Compare a critical duration with a required one.

    Parameters
    ----------
    status : str
        Of the answer: finite, right-censored, left-censored, or another one that says nothing.
    duration : float or None
        Critical fault duration, s; None unless finite.
    window : Window
        The studied clearing instants.
    required : float
        Duration that protection needs, s.
    bound : float, optional
        How far off the duration may be, s. A pass stands also where the true duration is that much shorter.
    """
    first, last = (instant - window.t_f for instant in window.t_c)
    if duration is not None:
        margin = duration - (bound or 0.0) - required
        return Verdict(required, "pass" if margin >= 0.0 else "fail", margin)
    if status == "right-censored" and last >= required:
        return Verdict(required, "pass", last - required, at_least=True)
    if status == "left-censored" and first <= required:
        return Verdict(required, "fail", first - required)
    return Verdict(required, "open", None)


def tally(verdicts: Iterable[Verdict], what: str) -> str:
    """How many verdicts on `what` are a failure, how many a pass, and how many open, as one line."""
    counts = Counter(verdict.outcome for verdict in verdicts)
    still = f", {counts['open']} undecided by the studied window" if counts["open"] else ""
    return f"{counts['fail']} of {counts.total()} fail {what}, {counts['pass']} pass{still}"

"""Reactive limits of PV buses in the power flow: which buses give up their voltage, and which take it back.

A PV bus whose units would have to give more reactive power than their limits together becomes a PQ bus at the
limit. It holds its voltage again when that lies on the other side of the set point, so that the limit no longer binds.
A bus that has switched back and forth too often stays at its limit, because two buses can chase each other.
"""

import numpy as np

from contingencies.formats.case import Case
from contingencies.formats.tables import PQ, PV, Complex, Float, Int, sum_at

MAX_ROUNDS = 50  # of switching; large cases settle within 10
MAX_RETURNS = 3  # of one bus to its set point
SLACKNESS = 1e-9  # pu, by which a limit or set point must be passed


class ReactiveLimits:
    """The state of the switching; `next_round` is asked after each solution."""

    def __init__(self, case: Case, kind: Int, set_point: Float) -> None:
        units, n = case.units, len(kind)
        running = units.in_service
        self.q_min = sum_at(n, units.bus[running], units.q_min[running]).real
        self.q_max = sum_at(n, units.bus[running], units.q_max[running]).real
        self.can_hold, self.set_point = kind == PV, set_point
        self.kind = kind.copy()
        self.held_at = np.full(n, np.nan)  # reactive power of the units of each bus at a limit, pu
        self.returns = np.zeros(n, dtype=np.int64)

    def next_round(self, V: Complex, Q: Float) -> tuple[Int, Float, Complex] | None:
        """What to solve next, or None when no bus has to switch.

        Parameters
        ----------
        V : Complex (n,)
            Solved voltages, pu.
        Q : Float (n,)
            Reactive power of the units of each bus, pu.

        Returns
        -------
        tuple or None
            Kinds of the buses; reactive power of those held at a limit, NaN elsewhere; voltages to start from.
        """
        v = np.abs(V)
        above, below = Q - self.q_max > SLACKNESS, self.q_min - Q > SLACKNESS
        beyond = (self.kind == PV) & (above | below)
        at_top = self.held_at == self.q_max
        eased = np.where(at_top, v - self.set_point > SLACKNESS, self.set_point - v > SLACKNESS)
        freed = self.can_hold & (self.kind == PQ) & eased & (self.returns < MAX_RETURNS)
        if not beyond.any() and not freed.any():
            return None
        self.held_at = np.where(beyond, np.where(above, self.q_max, self.q_min), np.where(freed, np.nan, self.held_at))
        self.kind = np.where(beyond, PQ, np.where(freed, PV, self.kind))
        self.returns += freed
        return self.kind, self.held_at, np.where(freed, V / v * self.set_point, V)

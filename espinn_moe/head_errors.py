"""What a head is worth, measured on severities drawn at random, which no fit has seen.

Mean and maximum error, and a split-conformal bound, valid because the calibration severities are drawn like the queries
it promises to cover. Where a head says that it is uncertain it promises nothing and is not judged.
"""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from espinn_moe.head import STATUSES, UNCERTAIN, Array, Head

if TYPE_CHECKING:
    from contingencies.stability import Boundary

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Errors:
    """Errors of a head against a boundary on severities drawn at random, s."""

    count: int  # severities compared
    finite: int  # those where head and boundary both have a number
    mae_s: float | None  # over the finite ones
    max_s: float | None
    bound_s: float | None  # |error| stays below it with probability 0.95; None when it cannot be promised
    disagreements: int  # severities whose status differs


def draw_severities(head: Head, n: int, seed: int) -> Array:
    """n severities uniform over the intervals in which the head answers with a number; none when it never does."""
    intervals = head.finite_intervals
    if not intervals:
        return np.empty(0)
    starts, ends = np.array(intervals).T
    lengths = np.cumsum(ends - starts)
    drawn = np.random.default_rng(seed).uniform(0.0, lengths[-1], n)
    which = np.minimum(np.searchsorted(lengths, drawn, side="right"), len(intervals) - 1)
    inside: Array = ends[which] - (lengths[which] - drawn)
    return inside


def conformal_bound(scores: Array, confidence: float = CONFIDENCE) -> float | None:
    """The split-conformal quantile of absolute errors; None when too few, or when it is infinite."""
    rank = math.ceil((scores.size + 1) * confidence)
    if scores.size == 0 or rank > scores.size:
        return None
    bound = float(np.sort(scores)[rank - 1])
    return bound if math.isfinite(bound) else None


def errors_against(head: Head, truth: "Boundary") -> Errors:
    """Errors of a head against a boundary at that boundary's severities.

    A severity where the head has a number and the boundary has none counts as an infinite
    error in the conformal bound and as a disagreement, and is left out of mean and maximum.
    """
    cct, codes = head.answers(truth.alpha)
    status = np.array(truth.status)
    answered = codes == 0
    both = answered & (status == "finite")
    error = np.abs(cct - truth.cct)
    scores = np.where(both, error, np.inf)[answered]
    head_status = np.array(STATUSES)[codes]
    return Errors(
        count=truth.alpha.size,
        finite=int(both.sum()),
        mae_s=float(error[both].mean()) if both.any() else None,
        max_s=float(error[both].max()) if both.any() else None,
        bound_s=conformal_bound(scores),
        disagreements=int(((head_status != status) & (codes != UNCERTAIN)).sum()),
    )

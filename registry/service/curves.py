"""A head drawn as a curve: severities close enough together for its bends, with band, censored ranges and slope."""

from dataclasses import dataclass

import numpy as np

from espinn_moe.condition_head import AnyHead, ConditionHead
from espinn_moe.head import Array
from registry.records import HeadRecord

POINTS = 161  # of a finite interval; denser towards both ends, where a boundary is steepest
SLOPE_STEP = 1e-5  # of the severity domain, for central differences


@dataclass(frozen=True, eq=False)
class Curve:
    """Durations of a head over its finite intervals (s), and where it has none."""

    alpha: Array  # (m,)
    duration_s: Array  # (m,)
    slope_s: Array  # (m,) d duration / d alpha, s
    breaks: list[int]  # positions in which a new interval begins
    censored: list[tuple[float, float, str]]
    bound_s: Array  # (m,) NaN where none was measured


def curve_of(head: AnyHead) -> Curve:
    """The curve of a head, of one over conditions at the case's own point."""
    low, high = head.severity
    step = SLOPE_STEP * (high - low)
    parts: list[Array] = []
    slopes: list[Array] = []
    breaks: list[int] = []
    for start, end in head.finite_intervals:
        inside = 0.5 - 0.5 * np.cos(np.linspace(0.0, np.pi, POINTS))  # in [0, 1]
        last = end if end == high else np.nextafter(end, start)  # an interval does not hold its end
        alpha = np.clip(start + (end - start) * inside, start, last)
        breaks.append(sum(len(part) for part in parts))
        before, after = np.maximum(alpha - step, start), np.minimum(alpha + step, last)
        parts.append(alpha)
        slopes.append((head.answers(after)[0] - head.answers(before)[0]) / (after - before))
    alpha = np.concatenate(parts) if parts else np.empty(0)
    slope = np.concatenate(slopes) if slopes else np.empty(0)
    censored = [interval for interval in head.intervals if interval[2] != "finite"]
    return Curve(alpha, head.answers(alpha)[0] - head.t_f, slope, breaks, censored, _bounds(head, alpha))


def _bounds(head: AnyHead, alpha: Array) -> Array:
    if isinstance(head, ConditionHead):
        return head.bounded_answers(alpha)[2]
    return np.full(alpha.shape, np.nan if head.error_bound_s is None else head.error_bound_s)


def strict_points(record: HeadRecord) -> list[tuple[float, float | None, str]]:
    """Severity, CCT (s) and status by the strict ODE where a head was measured.

    Empty for heads of older versions, and for those over conditions, which are measured all over their domain.
    """
    if record.kind == ConditionHead.kind:
        return []
    stored = record.errors.get("detail", {}).get("strict_points", [])
    return [(float(alpha), cct, str(status)) for alpha, cct, status in stored]

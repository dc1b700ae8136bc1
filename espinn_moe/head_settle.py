"""What a head can say of severities that could not be resolved with the ones that were asked.

Neighbouring samples belong together when they have one status and, where finite, a line through the two before them
meets the next one. A stretch of enough of them gets its status, and its series where that follows its own samples;
everything else is uncertain, and the head says so instead of giving a number.
"""

import numpy as np

from espinn_moe.head import Array, Segment
from espinn_moe.head_pieces import HONEST_S
from espinn_moe.head_samples import Samples
from espinn_moe.head_series import best_fit, reaching

LEAST_SAMPLES = 7  # of a stretch: fewer could be chance
TRIM = 2  # samples that a stretch gives up at either end: beyond them one may continue it by chance
STEP_S = 2e-3  # by which a sample may miss the line through the two before it


def settle(samples: Samples, low: float, high: float, seed: int) -> list[Segment]:
    """Segments that cover [low, high], from the samples there are.

    Parameters
    ----------
    samples : Samples
        With at least both ends of the range among them.
    low, high : float
        Range of severities.
    seed : int
        Decides which samples judge a series.
    """
    segments: list[Segment] = []
    for first, last in _stretches(samples, low, high):
        segment = _segment(samples, first, last, seed)
        if segment is None:
            continue
        end = segments[-1].end if segments else low
        if segment.start > end:
            segments.append(Segment(end, segment.start, "uncertain"))
        segments.append(segment)
    end = segments[-1].end if segments else low
    return segments if end >= high else [*segments, Segment(end, high, "uncertain")]


def _stretches(samples: Samples, low: float, high: float) -> list[tuple[int, int]]:
    """First and last sample of every stretch long enough to rely on."""
    begin, end = np.searchsorted(samples.alpha, [low, high], side="left")
    stretches, first = [], int(begin)
    for k in range(int(begin) + 1, int(end) + 2):
        if k <= end and k < samples.alpha.size and _continues(samples, first, k):
            continue
        inner = first + (TRIM if first > begin else 0), k - 1 - (TRIM if k <= end else 0)
        if inner[1] - inner[0] + 1 >= LEAST_SAMPLES:
            stretches.append(inner)
        first = k
    return stretches


def _continues(samples: Samples, first: int, k: int) -> bool:
    """Whether sample k goes on where the stretch from `first` to k - 1 left off."""
    if samples.status[k] != samples.status[k - 1]:
        return False
    if samples.status[k] != "finite":
        return True
    cct: Array = samples.cct
    expected = cct[k - 1]
    if k - first >= 2:
        slope = (cct[k - 1] - cct[k - 2]) / (samples.alpha[k - 1] - samples.alpha[k - 2])
        step = samples.alpha[k] - samples.alpha[k - 1]
        line = cct[k - 1] + slope * step
        if min(abs(cct[k] - line), abs(cct[k] - expected)) <= STEP_S:
            return True
    return bool(abs(cct[k] - expected) <= STEP_S)


def _segment(samples: Samples, first: int, last: int, seed: int) -> Segment | None:
    """A stretch with its status and series; None where no series follows it."""
    low, high = float(samples.alpha[first]), float(samples.alpha[last])
    status = samples.status[first]
    if status != "finite":
        return Segment(low, high, status)
    fit = best_fit(samples, low, high, seed)  # less exact stretches are uncertain
    if fit.error_s > HONEST_S or not np.abs(fit.residual).max() <= HONEST_S:
        return None
    return Segment(low, high, "finite", reaching(fit.series, low, high))

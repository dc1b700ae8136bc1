"""The pieces of one finite range of severities: split at jumps found by bisection, and where a bend defeats a series.

The first crossing can jump in alpha, because the set of stable clearing times need not be an interval.
"""

import numpy as np

from contingencies.stability import TAU_ROOT_S
from espinn_moe.head import Array, Segment, Series
from espinn_moe.head_samples import Run, Samples
from espinn_moe.head_series import FEW, NODES, Fit, best_fit, constant, piece_severities, reaching

MAX_PIECES = 24
NOISE_FACTOR = 4.0  # the largest of some forty normal deviates stays below it
OUTLIER = 30.0  # times the median: a step of the residuals that looks like a jump
BRANCH, KINK = 6, 5.0  # samples of either branch that meets in a kink; how much its bend stands out
JUMP_RESOLUTION = 1e-7  # of the stretch: so seldom does a severity fall beside a jump on the wrong side
HONEST_S = 1e-4  # an error that is not worth the last severities: the head's bound tells it
JUMP_S = 5e-5  # a smaller step is not told from noise


def _noise(samples: Samples, low: float, high: float) -> float:
    """Scatter of the boundary itself, s: what is left of short stretches after a parabola is taken off.

    A root found to a tolerance scatters by it, and no series should be split to follow that.
    """
    width, scatter = high - low, []
    stretches = low + width * (np.array([[0.27], [0.52], [0.77]]) + 1e-3 * np.linspace(-0.5, 0.5, 9))
    samples.ask(np.concatenate([stretches.ravel(), piece_severities(low, high, FEW)]))  # what is asked next, too
    for stretch in stretches:
        alpha, cct = samples.within(stretch[0], stretch[-1])
        if alpha.size >= 6:
            x = (alpha - alpha.mean()) / width * 2e3
            rest = cct - np.polynomial.polynomial.polyval(x, np.polynomial.polynomial.polyfit(x, cct, 2))
            scatter.append(float(np.sqrt(np.sum(rest**2) / (alpha.size - 3))))
    return float(np.median(scatter)) if scatter else 0.0


def _find_break(samples: Samples, low: float, high: float, fit: Fit, resolution: float) -> tuple[float, float]:
    """Two neighbouring severities between which to split: around a jump, or around the worst bend."""
    alpha, cct = samples.within(low, high)
    steps = np.abs(np.diff(fit.residual))
    i = int(np.argmax(steps))
    a, b, fa, fb = float(alpha[i]), float(alpha[i + 1]), float(cct[i]), float(cct[i + 1])
    left, right = a, b
    resolution = max(resolution, JUMP_RESOLUTION * (high - low))
    while b - a > resolution and abs(fb - fa) > JUMP_S:
        middle = 0.5 * (a + b)
        if not a < middle < b:
            break
        samples.ask(np.array([middle]), in_full=True)
        at = int(np.searchsorted(samples.alpha, middle))
        if samples.status[at] != "finite":
            return left, right  # the caller sees the new status and starts over
        fm = float(samples.cct[at])
        if abs(fm - fa) >= abs(fb - fm):
            b, fb = middle, fm
        else:
            a, fa = middle, fm
    if abs(fb - fa) > JUMP_S:
        return a, b
    kink = _find_kink(alpha, cct)
    if kink is not None:
        return kink, kink
    # Neither jump nor kink: split the widest way near the bend, but never so that a side is empty.
    middle = min(max(0.5 * (left + right), low + 0.02 * (high - low)), high - 0.02 * (high - low))
    return middle, middle


def _find_kink(alpha: Array, cct: Array) -> float | None:
    """Where two smooth branches of samples (m,) meet, by extending both; None where there is no kink."""
    bend = np.abs(np.diff(np.diff(cct) / np.diff(alpha)))  # of the slopes, at the samples 1, ..., m - 2
    if bend.size < 2 * BRANCH + 1:
        return None
    around = np.maximum(bend[:-4], bend[4:])
    gap = np.diff(alpha)
    noise = NOISE_FACTOR * TAU_ROOT_S * (1.0 / gap[:-1] + 1.0 / gap[1:])  # bends that tolerances of roots explain
    score = np.zeros_like(bend)
    score[2:-2] = bend[2:-2] / np.maximum(around, noise[2:-2])
    score[: BRANCH - 1] = score[-BRANCH + 1 :] = 0.0
    k = 1 + int(score.argmax())  # the sample at which the slope changes most, against its neighbours
    if score[k - 1] < KINK:
        return None
    x = (alpha - alpha[k]) / (alpha[k + 1] - alpha[k - 1])
    left = np.polyfit(x[k - BRANCH : k], cct[k - BRANCH : k], 3)
    right = np.polyfit(x[k + 1 : k + 1 + BRANCH], cct[k + 1 : k + 1 + BRANCH], 3)
    meetings = np.roots(left - right)
    real = meetings.real[(np.abs(meetings.imag) < 1e-9) & (meetings.real > x[k - 1]) & (meetings.real < x[k + 1])]
    return float(alpha[k] + real[0] * (alpha[k + 1] - alpha[k - 1])) if real.size == 1 else None


def _piece(samples: Samples, low: float, high: float, seed: int, tolerance: float) -> Fit | None:
    """The best series of a piece, from few samples where they suffice; None when one of them is not finite."""
    for nodes in (FEW, NODES):
        samples.ask(piece_severities(low, high, nodes))
        if not samples.all_finite(low, high):
            return None
        fit = best_fit(samples, low, high, seed)
        steps = np.abs(np.diff(fit.residual))
        if fit.error_s <= tolerance or steps.max() > max(JUMP_S, OUTLIER * float(np.median(steps))):
            break  # a jump is split, not sampled more densely
    return fit


def fit_interval(samples: Samples, run: Run, resolution: float, seed: int, tolerance: float) -> list[Segment]:
    """Series for one finite run; nothing when a sample inside it turned out not to be finite."""
    if run.last - run.first > 4 * resolution and tolerance < NOISE_FACTOR * TAU_ROOT_S:
        tolerance = max(tolerance, NOISE_FACTOR * _noise(samples, run.first, run.last))
    todo: list[tuple[float, float, float, float]] = [(run.start, run.end, run.first, run.last)]
    done: list[tuple[float, float, Series]] = []
    while todo:
        start, end, low, high = todo.pop()
        if high - low <= 4 * resolution:
            done.append((start, end, constant(low, high, float(np.nanmean(samples.within(low, high)[1])))))
            continue
        fit = _piece(samples, low, high, seed, tolerance)
        if fit is None:
            return []
        room = samples.left >= 6 * NODES or fit.error_s > HONEST_S  # what both sides of a split may ask
        if fit.error_s > tolerance and room and len(todo) + len(done) + 2 <= MAX_PIECES:
            a, b = _find_break(samples, low, high, fit, resolution)
            if not samples.all_finite(low, high):
                return []
            cut = 0.5 * (a + b)
            if a == b:  # a bend: the cut itself is a sample of both sides
                samples.ask(np.array([cut]))
                if not samples.all_finite(low, high):
                    return []
            if low <= a and b <= high and low < cut < high:
                todo += [(start, cut, low, a), (cut, end, b, high)]
                continue
        done.append((start, end, reaching(fit.series, start, end)))
    done.sort(key=lambda piece: piece[0])
    return [Segment(start, end, "finite", series) for start, end, series in done]

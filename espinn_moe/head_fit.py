"""Fitting a head to any boundary: the reference's or a surrogate's, through the same call.

The severity range is scanned, every change of status is bisected, and each finite interval
gets Chebyshev series. The coordinate (plain alpha, or the square root of the distance to an
edge near either end) and the degree are chosen by error on samples left out of the fit. The
first crossing can jump in alpha, because the set of stable clearing times need not be an
interval: where no series fits, the interval is split, at the jump if there is one.

What a head is worth is measured afterwards on severities drawn at random, which no fit has
seen: mean and maximum error, and a split-conformal bound, valid because the calibration
severities are drawn like the queries it promises to cover.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from espinn_moe.head import STATUSES, Array, Coordinate, Head, Network, Segment, Series

if TYPE_CHECKING:
    from contingencies.stability import Boundary

BoundaryOf = Callable[[Array], "Boundary"]
Report = Callable[[int], None]

SCAN = 65  # severities of the first scan; a status that lasts less than 1/64 of the range may go unseen
EDGE_TOLERANCE = 1e-12  # of the severity range: sqrt of it, times a slope of seconds, is below a microsecond
NODES = 40  # samples per coordinate and piece
TOLERANCE_S = 1e-6  # a tenth of the root tolerance of the strict reference
MAX_DEGREE = 26
MAX_PIECES = 24
ATTEMPTS = 6
MAX_EVALUATIONS = 3000  # a boundary whose status flickers is followed no further than this
NOISE_FACTOR = 4.0  # the largest of some forty normal deviates stays below it
JUMP_S = 5e-5  # a smaller step is not told from noise
CONFIDENCE = 0.95
MIN_CALIBRATION = 19  # the fewest scores from which a 95 % bound follows


class _Samples:
    """Every severity asked so far, with its status and CCT, in order of severity."""

    def __init__(self, boundary: BoundaryOf, report: Report) -> None:
        self._boundary, self._report = boundary, report
        self.alpha: Array = np.empty(0)
        self.cct: Array = np.empty(0)
        self.status: list[str] = []

    def ask(self, alpha: Array) -> None:
        new = np.setdiff1d(alpha, self.alpha)
        if new.size == 0:
            return
        found = self._boundary(new)
        order = np.argsort(np.concatenate([self.alpha, new]), kind="stable")
        status = [*self.status, *found.status]
        self.alpha = np.concatenate([self.alpha, new])[order]
        self.cct = np.concatenate([self.cct, found.cct])[order]
        self.status = [status[i] for i in order]
        self._report(self.alpha.size)

    def within(self, low: float, high: float) -> tuple[Array, Array]:
        """Finite samples of an interval."""
        here = (self.alpha >= low) & (self.alpha <= high) & np.isfinite(self.cct)
        return self.alpha[here], self.cct[here]

    def all_finite(self, low: float, high: float) -> bool:
        first, last = np.searchsorted(self.alpha, [low, high], side="left")
        return all(status == "finite" for status in self.status[first : last + 1])


@dataclass(frozen=True)
class _Run:
    """Severities with one status; `first` and `last` were asked, start and end are the edges around them."""

    start: float
    end: float
    first: float
    last: float
    status: str


def _bisect_edges(samples: _Samples, resolution: float) -> None:
    """Ask between neighbours of different status until every change is located to `resolution`."""
    while True:
        middles = [
            0.5 * (low + high)
            for low, high, before, after in zip(
                samples.alpha[:-1], samples.alpha[1:], samples.status[:-1], samples.status[1:], strict=True
            )
            if before != after and high - low > resolution and low < 0.5 * (low + high) < high
        ]
        if not middles:
            return
        samples.ask(np.array(middles))


def _runs(samples: _Samples) -> list[_Run]:
    runs: list[_Run] = []
    begin = 0
    for i in range(1, len(samples.status) + 1):
        if i < len(samples.status) and samples.status[i] == samples.status[begin]:
            continue
        start = runs[-1].end if runs else float(samples.alpha[0])
        at_end = i == len(samples.status)
        end = float(samples.alpha[-1]) if at_end else 0.5 * float(samples.alpha[i - 1] + samples.alpha[i])
        runs.append(_Run(start, end, float(samples.alpha[begin]), float(samples.alpha[i - 1]), samples.status[begin]))
        begin = i
    return runs


# --- one series -------------------------------------------------------------------------------


def _chebyshev_nodes(n: int) -> Array:
    """n points of (0, 1), clustered at both ends."""
    nodes: Array = 0.5 - 0.5 * np.cos((np.arange(n) + 0.5) * np.pi / n)
    return nodes


def _ask_piece(samples: _Samples, low: float, high: float) -> None:
    """Samples of one piece: dense where any of the coordinates wants them."""
    width, x = high - low, _chebyshev_nodes(NODES)
    samples.ask(
        np.unique(np.clip(np.concatenate([low + width * x, low + width * x**2, high - width * x**2]), low, high))
    )


def _series(coordinate: Coordinate, edge: float, low: float, high: float) -> Series:
    empty = Series(coordinate, float(edge), (0.0, 1.0), (0.0,))
    if coordinate == "plain":
        return replace(empty, u_range=(low, high))
    u = sorted(math.sqrt(abs(end - edge)) for end in (low, high))
    return replace(empty, u_range=(u[0], u[1]))


def _candidates(low: float, high: float) -> list[Series]:
    """Coordinates to try: the singularity may lie on the edge or somewhat beyond it.

    It lies beyond when the scan over clearing times meets the unstable window only once the
    window is wide enough to hold a candidate.
    """
    width = high - low
    offsets = [0.0, *(width * 10.0**k for k in np.arange(-7.0, 0.26, 0.25))]
    candidates = [_series("plain", 0.0, low, high)]
    for offset in offsets:
        candidates.append(_series("above-edge", low - offset, low, high))
        candidates.append(_series("below-edge", high + offset, low, high))
    return candidates


@dataclass(frozen=True)
class _Fit:
    series: Series
    error_s: float  # maximum on the samples left out
    residual: Array


def _least_squares(candidate: Series, alpha: Array, cct: Array, seed: int) -> _Fit:
    """The best degree for one coordinate, judged on every third sample, chosen at random."""
    x = candidate.coordinate_of(alpha)
    left_out = np.zeros(alpha.size, dtype=bool)
    left_out[np.random.default_rng(seed).permutation(alpha.size)[: alpha.size // 3]] = True
    # Weights of the equilibrium measure make dense clusters of samples count as one stretch.
    order = np.argsort(x)
    gaps = np.gradient(np.arccos(np.clip(x[order], -1, 1)))
    weight = np.empty_like(x)
    weight[order] = np.sqrt(np.abs(gaps) + 1e-3 * np.pi / alpha.size)
    kept = ~left_out
    most = min(MAX_DEGREE, max(int(kept.sum()) // 2 - 1, 0))
    basis = np.polynomial.chebyshev.chebvander(x, most)
    fits: list[tuple[float, int, Array]] = []
    for degree in range(0, most + 1, 2 if most > 6 else 1):
        columns = basis[:, : degree + 1]
        c: Array = np.asarray(
            np.linalg.lstsq(columns[kept] * weight[kept, None], cct[kept] * weight[kept], rcond=None)[0],
            dtype=np.float64,
        )
        fits.append((float(np.max(np.abs(columns @ c - cct)[left_out], initial=0.0)), degree, c))
        if fits[-1][0] < 0.02 * TOLERANCE_S:
            break
    best = min(error for error, _, _ in fits)
    good = max(1.5 * best, 0.1 * TOLERANCE_S)
    error, degree, c = next(fit for fit in fits if fit[0] <= good)
    series = replace(candidate, coefficients=tuple(float(v) for v in c))
    return _Fit(series, error, basis[:, : degree + 1] @ c - cct)


def _constant(low: float, high: float, cct: float) -> Series:
    # u_range must not be empty even where the interval is as narrow as a rounding error.
    return Series("plain", 0.0, (low, max(high, math.nextafter(low, math.inf))), (cct,))


def _best_fit(samples: _Samples, low: float, high: float, seed: int) -> _Fit:
    alpha, cct = samples.within(low, high)
    fits = [_least_squares(candidate, alpha, cct, seed) for candidate in _candidates(low, high)]
    best = min(fit.error_s for fit in fits)
    enough = max(1.2 * best, 0.2 * TOLERANCE_S)
    return min((fit for fit in fits if fit.error_s <= enough), key=lambda fit: len(fit.series.coefficients))


# --- pieces -----------------------------------------------------------------------------------


def _noise(samples: _Samples, low: float, high: float) -> float:
    """Scatter of the boundary itself, s: what is left of short stretches after a parabola is taken off.

    A root found to a tolerance scatters by it, and no series should be split to follow that.
    """
    width, scatter = high - low, []
    for place in (0.27, 0.52, 0.77):
        stretch = low + width * (place + 1e-3 * np.linspace(-0.5, 0.5, 9))
        samples.ask(stretch)
        alpha, cct = samples.within(stretch[0], stretch[-1])
        if alpha.size >= 6:
            x = (alpha - alpha.mean()) / width * 2e3
            rest = cct - np.polynomial.polynomial.polyval(x, np.polynomial.polynomial.polyfit(x, cct, 2))
            scatter.append(float(np.sqrt(np.sum(rest**2) / (alpha.size - 3))))
    return float(np.median(scatter)) if scatter else 0.0


def _find_break(samples: _Samples, low: float, high: float, fit: _Fit, resolution: float) -> tuple[float, float]:
    """Two neighbouring severities between which to split: around a jump, or around the worst bend."""
    alpha, cct = samples.within(low, high)
    steps = np.abs(np.diff(fit.residual))
    i = int(np.argmax(steps))
    a, b, fa, fb = float(alpha[i]), float(alpha[i + 1]), float(cct[i]), float(cct[i + 1])
    left, right = a, b
    while b - a > resolution and abs(fb - fa) > JUMP_S:
        middle = 0.5 * (a + b)
        if not a < middle < b:
            break
        samples.ask(np.array([middle]))
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
    # No jump: split the widest way near the bend, but never so that a side is empty.
    middle = min(max(0.5 * (left + right), low + 0.02 * (high - low)), high - 0.02 * (high - low))
    return middle, middle


def _fit_interval(
    samples: _Samples, run: _Run, resolution: float, seed: int, tolerant: bool, tolerance: float
) -> list[Segment] | None:
    """Series for one finite run; None when a sample inside it turned out not to be finite.

    `tolerant` passes over such samples: a boundary whose status flickers gets the series of
    its finite samples, and the flicker shows as disagreement when the head is measured.
    """
    finite = (lambda low, high: True) if tolerant else samples.all_finite
    if run.last - run.first > 4 * resolution:
        tolerance = max(tolerance, NOISE_FACTOR * _noise(samples, run.first, run.last))
    todo: list[tuple[float, float, float, float]] = [(run.start, run.end, run.first, run.last)]
    done: list[tuple[float, float, Series]] = []
    while todo:
        start, end, low, high = todo.pop()
        if high - low <= 4 * resolution:
            done.append((start, end, _constant(low, high, float(np.nanmean(samples.within(low, high)[1])))))
            continue
        _ask_piece(samples, low, high)
        if not finite(low, high):
            return None
        fit = _best_fit(samples, low, high, seed)
        if fit.error_s > tolerance and len(todo) + len(done) + 2 <= MAX_PIECES:
            a, b = _find_break(samples, low, high, fit, resolution)
            if not finite(low, high):
                return None
            cut = 0.5 * (a + b)
            if a == b:  # a bend: the cut itself is a sample of both sides
                samples.ask(np.array([cut]))
                if not finite(low, high):
                    return None
            if low <= a and b <= high and low < cut < high:
                todo += [(start, cut, low, a), (cut, end, b, high)]
                continue
        done.append((start, end, _reaching(fit.series, start, end)))
    done.sort(key=lambda piece: piece[0])
    return [Segment(start, end, "finite", series) for start, end, series in done]


def _reaching(series: Series, start: float, end: float) -> Series:
    """The series with its edge outside [start, end], which is wider than its samples by a rounding error."""
    if series.coordinate == "above-edge" and series.edge > start:
        return replace(series, edge=start)
    if series.coordinate == "below-edge" and series.edge < end:
        return replace(series, edge=end)
    return series


# --- the whole head ---------------------------------------------------------------------------


@dataclass(frozen=True)
class HeadFit:
    """A head and what it cost: how many severities the boundary was asked for."""

    head: Head
    evaluations: int
    asked: Array  # those severities, in order


def fit_head(
    boundary: BoundaryOf,
    severity: tuple[float, float],
    t_f: float,
    *,
    network: Callable[[Array, Array], Network] | None = None,
    tolerance_s: float = TOLERANCE_S,
    seed: int = 0,
    report: Report = lambda asked: None,
) -> HeadFit:
    """A head for a boundary over a severity range.

    Parameters
    ----------
    boundary : callable
        Severities (m,) -> `contingencies.stability.Boundary`; any source of CCTs will do.
    severity : (low, high)
        Domain of the head.
    t_f : float
        Instant of the fault, s.
    network : callable, optional
        (alpha (m,), cct (m,)) of finite samples -> Network; makes a head of the kind "network",
        as `espinn_moe.head_network.train` does, instead of Chebyshev series.
    tolerance_s : float
        An interval is split until its series are this close to the boundary, s.
    seed : int
        Decides which samples judge the coordinate and the degree.
    report : callable
        Told how many severities have been asked so far.

    Returns
    -------
    HeadFit
        The head has no error bound yet: see `measure`.
    """
    low, high = float(severity[0]), float(severity[1])
    resolution = EDGE_TOLERANCE * (high - low)
    samples = _Samples(boundary, report)
    samples.ask(np.linspace(low, high, SCAN))
    trained: Network | None = None
    targets: list[Array] = []  # evenly spread, as the paper trains its head
    for attempt in range(ATTEMPTS):  # a fit may meet a status that the scan did not see, which then counts
        tolerant = attempt == ATTEMPTS - 1 or samples.alpha.size > MAX_EVALUATIONS
        _bisect_edges(samples, resolution)
        segments: list[Segment] = []
        complete = True
        for run in _runs(samples):
            if run.status != "finite":
                segments.append(Segment(run.start, run.end, run.status))
            elif network is not None:
                targets.append(np.linspace(run.first, run.last, 2 * NODES))
                segments.append(Segment(run.start, run.end, "finite"))
            else:
                pieces = _fit_interval(samples, run, resolution, seed, tolerant, tolerance_s)
                if pieces is None:
                    complete = False
                    break
                segments += pieces
        if complete:
            break
    if network is not None and targets:
        samples.ask(np.concatenate(targets))
        chosen = np.isin(samples.alpha, np.concatenate(targets)) & np.isfinite(samples.cct)
        trained = network(samples.alpha[chosen], samples.cct[chosen])
    return HeadFit(Head((low, high), t_f, tuple(segments), None, trained), samples.alpha.size, samples.alpha)


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
        disagreements=int((head_status != status).sum()),
    )

"""One Chebyshev series for a stretch of the boundary: its coordinate and degree, chosen on samples left out of the fit.

The coordinate is plain alpha, or the square root of the distance to an edge near either end, where CCT(alpha) is
nearly vertical.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from espinn_moe.head import Array, Coordinate, Series
from espinn_moe.head_samples import Samples

FEW, NODES = 14, 42  # samples per coordinate of a piece at first, and where they do not suffice; the few are among them
TOLERANCE_S = 1e-6  # a tenth of the root tolerance of the strict reference
MAX_DEGREE = 26
SOUND = 1e-12  # of the first diagonal element of a triangular factor: smaller ones are rounding errors


def chebyshev_nodes(n: int) -> Array:
    """n points of (0, 1), clustered at both ends."""
    nodes: Array = 0.5 - 0.5 * np.cos((np.arange(n) + 0.5) * np.pi / n)
    return nodes


def piece_severities(low: float, high: float, nodes: int) -> Array:
    """Severities to ask for one piece: dense where any of the coordinates wants them."""
    width, x = high - low, chebyshev_nodes(nodes)
    return np.unique(np.clip(np.concatenate([low + width * x, low + width * x**2, high - width * x**2]), low, high))


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
class Fit:
    """A series, and how well it follows the samples of its stretch."""

    series: Series
    error_s: float  # maximum on the samples left out
    residual: Array


def _least_squares(candidate: Series, alpha: Array, cct: Array, seed: int) -> Fit:
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
    # In an orthogonal basis a coefficient is the same at every degree, so that one decomposition serves them all.
    Q, R = np.linalg.qr(basis[kept] * weight[kept, None])
    sound = np.append(np.abs(np.diag(R)) > SOUND * abs(R[0, 0]), False)  # samples that coincide carry fewer degrees
    most = int(np.argmin(sound)) - 1
    basis, Q, inverse = basis[:, : most + 1], Q[:, : most + 1], np.linalg.inv(R[: most + 1, : most + 1])
    parts = Q.T @ (cct[kept] * weight[kept])
    residual = np.cumsum((basis @ inverse) * parts, axis=1) - cct[:, None]  # (samples, degrees)
    degrees = np.arange(0, most + 1, 2 if most > 6 else 1)
    errors = np.abs(residual[left_out][:, degrees]).max(axis=0, initial=0.0)
    degree = int(degrees[np.argmax(errors <= max(1.5 * errors.min(), 0.1 * TOLERANCE_S))])
    error = float(np.abs(residual[left_out, degree]).max(initial=0.0))
    c = inverse[: degree + 1, : degree + 1] @ parts[: degree + 1]
    series = replace(candidate, coefficients=tuple(float(v) for v in c))
    return Fit(series, error, residual[:, degree])


def constant(low: float, high: float, cct: float) -> Series:
    """The same CCT over a stretch."""
    # u_range must not be empty even where the interval is as narrow as a rounding error.
    return Series("plain", 0.0, (low, max(high, math.nextafter(low, math.inf))), (cct,))


def best_fit(samples: Samples, low: float, high: float, seed: int) -> Fit:
    """The series of fewest coefficients among the most exact, from the finite samples of a stretch."""
    alpha, cct = samples.within(low, high)
    fits = [_least_squares(candidate, alpha, cct, seed) for candidate in _candidates(low, high)]
    best = min(fit.error_s for fit in fits)
    enough = max(1.2 * best, 0.2 * TOLERANCE_S)
    return min((fit for fit in fits if fit.error_s <= enough), key=lambda fit: len(fit.series.coefficients))


def reaching(series: Series, start: float, end: float) -> Series:
    """The series with its edge outside [start, end], which is wider than its samples by a rounding error."""
    if series.coordinate == "above-edge" and series.edge > start:
        return replace(series, edge=start)
    if series.coordinate == "below-edge" and series.edge < end:
        return replace(series, edge=end)
    return series

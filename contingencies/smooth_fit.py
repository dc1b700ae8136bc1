"""Polynomials through solved points: Chebyshev products of a total degree that grows until the fit is good enough.

The functions evaluate on NumPy arrays or torch tensors. Points are cosines of a scrambled Sobol sequence, dense
towards the ends of the ranges like Chebyshev's own, so that twice as many points as coefficients make a
well-conditioned least-squares fit in any number of dimensions; a higher degree keeps the points of the lower one.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from contingencies.errors import SolverError
from contingencies.points import Axis, sample_points

Array = Any  # numpy.ndarray or torch.Tensor
Parts = dict[str, Array]
Float = NDArray[np.float64]
Int = NDArray[np.int64]

TOLERANCE = 1e-9  # of the size of each quantity
FIRST_DEGREE = 3
MOST_TERMS = 3100  # total degree 8 in six dimensions
CHECKS = 32  # random points, besides the corners, at which a fit is checked
OVERSAMPLING = 2.0  # points per coefficient
SEED = 20_240  # of the points: a fit is the same in every process


@dataclass(frozen=True, eq=False)
class SmoothFit:
    """Quantities as polynomials over [-1, 1]^q."""

    degrees: Int  # (K, q) of the Chebyshev products
    coefficients: Parts  # name -> (K, ...)
    points: int  # solved for the fit and its checks
    error: float  # largest at the checks, relative to the size of a quantity

    def __call__(self, x: Array) -> Parts:
        """Quantities (..., shape) at x (..., q)."""
        return evaluate(self.coefficients, chebyshev_products(x, self.degrees))


def fit_smooth(solve: Callable[[Float], Parts], q: int, tolerance: float = TOLERANCE) -> SmoothFit:
    """Fit quantities that are analytic in q coordinates.

    Parameters
    ----------
    solve : callable
        Points (m, q) in [-1, 1] -> quantities (m, ...) by name.
    q : int
    tolerance : float
        Largest error at points that no fit has seen, corners included, relative to the size of each quantity.

    Raises
    ------
    SolverError
        When no degree that is allowed will do.
    """
    if q == 0:
        return SmoothFit(np.zeros((1, 0), dtype=np.int64), solve(np.zeros((1, 0))), 1, 0.0)
    corners = np.array(list(product((-1.0, 1.0), repeat=q)))
    checks = np.concatenate([corners, np.random.default_rng(SEED).uniform(-1.0, 1.0, (CHECKS, q))])
    truth = solve(checks)
    size = {name: max(float(np.abs(values).max()), 1e-12) for name, values in truth.items()}
    unit = tuple(Axis(str(k), 0.0, 1.0) for k in range(q))
    x, known, error, degree = (
        np.empty((0, q)),
        {name: values[:0] for name, values in truth.items()},
        np.inf,
        FIRST_DEGREE,
    )
    while len(degrees := total_degree(q, degree)) <= MOST_TERMS:
        wanted = np.cos(np.pi * sample_points(unit, int(OVERSAMPLING * len(degrees)) + 8, SEED))
        new = solve(wanted[len(x) :])
        x, known = wanted, {name: np.concatenate([values, new[name]]) for name, values in known.items()}
        inverse = np.linalg.pinv(chebyshev_products(x, degrees))
        coefficients = {
            name: (inverse @ values.reshape(len(x), -1)).reshape(-1, *values.shape[1:])
            for name, values in known.items()
        }
        fitted = evaluate(coefficients, chebyshev_products(checks, degrees))
        error = max(float(np.abs(fitted[name] - truth[name]).max()) / size[name] for name in truth)
        if error <= tolerance:
            return SmoothFit(degrees, coefficients, len(x) + len(checks), error)
        degree += 1
    raise SolverError(f"polynomials of degree {degree - 1} leave a relative error of {error:.1e}")


def chebyshev_products(x: Array, degrees: Int) -> Array:
    """Products of Chebyshev polynomials of degrees (K, q) at x (..., q), (..., K)."""
    if x.shape[-1] == 0:
        shape = (*x.shape[:-1], len(degrees))
        return np.ones(shape) if isinstance(x, np.ndarray) else x.new_ones(shape)
    total: Array = None
    for axis in range(x.shape[-1]):
        polynomials = [x[..., axis] * 0.0 + 1.0, x[..., axis]]
        for _ in range(2, int(degrees.max()) + 1):
            polynomials.append(2.0 * x[..., axis] * polynomials[-1] - polynomials[-2])
        factor = stacked(*polynomials)[..., degrees[:, axis].tolist()]
        total = factor if total is None else total * factor
    return total


def evaluate(coefficients: Parts, products: Array) -> Parts:
    """Quantities (..., shape) of coefficients (K, shape) at points with Chebyshev products (..., K)."""
    return {
        name: (products @ values.reshape(len(values), -1)).reshape(*products.shape[:-1], *values.shape[1:])
        for name, values in coefficients.items()
    }


def total_degree(q: int, degree: int) -> Int:
    """Degrees (K, q) of all products of total degree at most `degree`."""
    rows: list[tuple[int, ...]] = [()]
    for _ in range(q):
        rows = [(*row, k) for row in rows for k in range(degree + 1 - sum(row))]
    return np.array(rows, dtype=np.int64)


def stacked(*parts: Array) -> Array:
    """Arrays or tensors of one shape as one, along a new last axis."""
    if isinstance(parts[0], np.ndarray | np.floating):
        return np.stack(parts, -1)
    import torch

    return torch.stack(parts, -1)

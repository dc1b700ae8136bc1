"""How far rotor angles spread: separation, loss of synchronism, and a peak between two samples.

The separation d(t) is the largest pairwise difference of rotor angles, theory.md eq. (12); synchronism counts as lost
once it passes a limit. The functions take NumPy arrays or torch tensors with any batch shape in front; the compiled
integrator compiles `vertex` from this very source.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

Array = Any  # numpy.ndarray or torch.Tensor
LEAST_BEND = 1e-30  # keeps 0 / 0 out of three equal samples; far below any bend of angles, in single precision too


def spread(delta: Array) -> Array:
    """Largest pairwise separation (...) of angles (..., n), rad: the largest angle less the smallest."""
    if isinstance(delta, np.ndarray):
        return np.ptp(delta, axis=-1)
    return delta.amax(-1) - delta.amin(-1)


def separation(t: Array, delta: Array, t_c: float, tripped: tuple[int, ...]) -> Array:
    """Separation (k,) of angles (k, n) at times (k,), rad; machines that clearing trips at t_c count up to it only."""
    largest = spread(delta)
    if tripped:
        after = t > t_c
        largest[after] = spread(np.delete(delta[after], tripped, axis=-1))
    return largest


def lost(delta: Array, limit: float) -> Array:
    """Samples (..., k) from the first on at which the separation of angles (..., k, n) passes `limit`, rad."""
    beyond = spread(delta) > limit
    if isinstance(beyond, np.ndarray):
        return np.maximum.accumulate(beyond, axis=-1)
    return beyond.cummax(-1)[0]


def vertex(
    before: Array, middle: Array, after: Array, step_before: Array = 1.0, step_after: Array = 1.0
) -> tuple[Array, Array]:
    """Top of the parabola through three samples of which the middle one is the largest.

    Parameters
    ----------
    before, middle, after : array (...)
        Samples.
    step_before, step_after : array (...)
        Time from each sample to the next, s; default one unit each.

    Returns
    -------
    (array, array)
        Height of the top, in the unit of the samples, and its instant after the middle sample, in that of the steps.
    """
    rise, fall = (middle - before) / step_before, (middle - after) / step_after  # neither is negative
    both = step_before + step_after
    slope, bend = (rise * step_after - fall * step_before) / both, (rise + fall) / both + LEAST_BEND
    return middle + slope * slope / (4.0 * bend), slope / (2.0 * bend)


def peak(samples: Array, t: Array | None = None) -> tuple[Array, Array]:
    """Largest of samples (..., k), refined by the parabola through it and its neighbours.

    Parameters
    ----------
    samples : array (..., k)
        Separations at successive instants.
    t : array (k,), optional
        These instants, s; default 0, 1, ..., k - 1.

    Returns
    -------
    (array (...), array (...))
        Height of the peak, and its instant. A peak at either end of the samples is not refined.
    """
    last = samples.shape[-1] - 1
    k = samples.argmax(-1)
    if isinstance(samples, np.ndarray):
        times: Array = np.arange(last + 1.0) if t is None else np.asarray(t)
        return _refined(samples, times, k, np.where, lambda at: np.take_along_axis(samples, at[..., None], -1)[..., 0])
    import torch

    times = torch.arange(last + 1.0, dtype=samples.dtype, device=samples.device) if t is None else t
    return _refined(samples, times, k, torch.where, lambda at: samples.gather(-1, at[..., None])[..., 0])


def _refined(samples: Array, t: Array, k: Array, where: Any, taken: Callable[[Array], Array]) -> tuple[Array, Array]:
    """`peak` of samples whose largest are the k-th, with the functions of either library."""
    last = samples.shape[-1] - 1
    highest, instant = taken(k), t[k]
    if last < 2:
        return highest, instant
    inside = (k > 0) & (k < last)
    middle = k.clip(1, last - 1)
    top, past = vertex(
        taken(middle - 1), highest, taken(middle + 1), t[middle] - t[middle - 1], t[middle + 1] - t[middle]
    )
    return where(inside, top, highest), where(inside, instant + past, instant)

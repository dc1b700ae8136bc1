"""What a search sees of the trajectories of clearing instants, from whatever simulates them.

The margin alone is the upper envelope of many smooth branches (the peaks of successive swings, of different machines,
the value at the end), and an envelope hides a branch that rises and falls between two instants. So the separation is
noted in parts of the post-clearing leg: each part follows its own branch, continuously in the clearing instant. Of an
unstable trajectory the instant of loss says which branch it took.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from contingencies.network import Float
from contingencies.separation import peak

BINS = 16  # parts of the time axis; a swing of a second spans several in windows of a few seconds


@dataclass(frozen=True, eq=False)
class Look:
    """Trajectories of clearing instants, any batch shape (...) in front."""

    margin: Float  # (...) rad; its sign is right, its value where that was asked for
    swings: Float  # (..., b) rad, largest separation in each part of the time axis less its limit; NaN once lost
    lost: Float  # (...) s, when the limit is first passed; infinity where it is not

    def __getitem__(self, index: Any) -> "Look":
        return Look(self.margin[index], self.swings[index], self.lost[index])


def look_of_margins(margin: Float) -> Look:
    """A look at margins (...) of which nothing else is known."""
    unstable = margin >= 0
    return Look(margin, np.where(unstable, np.nan, margin)[..., None], np.where(unstable, 0.0, np.inf))


def look_of_samples(t: Float, separation: Float, limit: float, margin: Float | None = None) -> Look:
    """A look at separations sampled at common times.

    Parameters
    ----------
    t : array (k,)
        Times, s.
    separation : array (..., k)
        Separations, rad.
    limit : float
        Largest separation of a stable trajectory, rad.
    margin : array (...), optional
        Margins known better than the samples tell, rad.
    """
    if margin is None:
        margin = np.asarray(peak(separation)[0]) - limit
    starts = np.unique(np.linspace(0, len(t), BINS + 1).astype(int)[:-1])
    swings = np.maximum.reduceat(separation, starts, axis=-1) - limit
    beyond = separation >= limit
    first = np.where(beyond.any(-1), beyond.argmax(-1), len(t) - 1)
    before = np.maximum(first - 1, 0)
    d_1, d_0 = (np.take_along_axis(separation, at[..., None], -1)[..., 0] for at in (first, before))
    share = np.clip((limit - d_0) / np.maximum(d_1 - d_0, 1e-12), 0.0, 1.0)
    unstable = margin >= 0
    lost = np.where(unstable, t[before] + share * (t[first] - t[before]), np.inf)
    after = np.append(t[starts[1:]], np.inf) > lost[..., None]  # parts that end after the loss
    return Look(margin, np.where(after, np.nan, swings), lost)


def joined(parts: list[Look], order: np.ndarray) -> Look:
    """Looks at instants (m,) one after another, in a given order."""
    return Look(
        np.concatenate([part.margin for part in parts])[order],
        np.concatenate([part.swings for part in parts])[order],
        np.concatenate([part.lost for part in parts])[order],
    )

"""The two learned phases, and when a trajectory has lost synchronism for good."""

import numpy as np

from contingencies.separation import lost

FAULT_ON, POST_CLEARING = 0, 1  # positions of the learned phases
SETTLED_RAD = 1.5 * np.pi  # trajectories past this separation have lost synchronism for good


def settled(delta: np.ndarray) -> np.ndarray:
    """Samples (..., k) from the moment the separation of angles (..., k, n) first passes 1.5 pi."""
    samples: np.ndarray = lost(delta, SETTLED_RAD)
    return samples

"""Where the buses of a network are drawn: the same network always looks the same.

Stress majorisation (Gansner, Koren and North 2004): distances on paper follow the number of branches between two
buses. It starts from classical scaling, whose signs are fixed, so nothing is random.
"""

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import shortest_path

from contingencies.network import Network

SMALL = 400  # buses up to which every pair is looked at often
ROUNDS, ROUNDS_LARGE = 120, 15
FAR = 1.5  # times the largest distance: that of buses without a path between them


def layout(network: Network) -> np.ndarray:
    """Positions (n, 2) of the buses in [0, 1], x to the right and y down; the longer side fills its range."""
    n = network.n_buses
    if n == 1:
        return np.full((1, 2), 0.5)
    distance = _distances(network)
    positions = _classical(distance)
    weight = 1.0 / np.where(distance > 0, distance, 1.0) ** 2
    np.fill_diagonal(weight, 0.0)
    total = weight.sum(axis=1, keepdims=True)
    for _ in range(ROUNDS if n <= SMALL else ROUNDS_LARGE):
        gaps = positions[:, None] - positions[None]
        lengths = np.maximum(np.sqrt((gaps**2).sum(axis=2)), 1e-9)
        pull = weight * distance / lengths
        positions = (weight @ positions + (pull[:, :, None] * gaps).sum(axis=1)) / total
    return _upright(positions)


def _distances(network: Network) -> np.ndarray:
    """Branches on the shortest path between every two buses."""
    start, end, n = network.branches.start, network.branches.end, network.n_buses
    graph = csr_array((np.ones(len(start)), (start, end)), shape=(n, n))
    distance: np.ndarray = shortest_path(graph, directed=False, unweighted=True)
    finite = np.isfinite(distance)
    return np.where(finite, distance, FAR * max(distance[finite].max(), 1.0))


def _classical(distance: np.ndarray) -> np.ndarray:
    """Classical scaling into the plane."""
    square = distance**2
    centred = -0.5 * (square - square.mean(axis=0) - square.mean(axis=1)[:, None] + square.mean())
    values, vectors = np.linalg.eigh(centred)
    plane = vectors[:, [-1, -2]] * np.sqrt(np.maximum(values[[-1, -2]], 1e-9))
    signs = np.sign(plane[np.abs(plane).argmax(axis=0), [0, 1]])
    # Buses that look alike from everywhere would coincide; a little of their order keeps them apart.
    shift = 1e-3 * np.column_stack([np.cos(np.arange(len(plane))), np.sin(np.arange(len(plane)))])
    result: np.ndarray = plane * signs + shift
    return result


def _upright(positions: np.ndarray) -> np.ndarray:
    """Turned so that the longer side lies across, and scaled into the unit square."""
    centred = positions - positions.mean(axis=0)
    _, _, axes = np.linalg.svd(centred, full_matrices=False)
    axes = axes * np.sign(axes[np.arange(2), np.abs(axes).argmax(axis=1)])[:, None]
    turned = centred @ axes.T
    low, high = turned.min(axis=0), turned.max(axis=0)
    result: np.ndarray = (turned - low) / max((high - low).max(), 1e-9)
    return result

"""Where the buses of a network are drawn: the same network always looks the same.

A case that says where its buses are is drawn that way. Otherwise stress majorisation (Gansner, Koren and North 2004)
makes distances on paper follow the number of branches between two buses. It starts from classical scaling, whose signs
are fixed, so nothing is random.
"""

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import shortest_path

from contingencies.network import Network

SMALL = 400  # buses up to which every pair is looked at often
ROUNDS, ROUNDS_LARGE = 120, 15
ENOUGH = 0.75  # of the buses with coordinates; the others have neighbours to be put between
ROUNDS_BETWEEN = 20
APART = 0.012  # of the drawing: a bus and a half
FAR = 1.5  # times the largest distance: that of buses without a path between them


def layout(network: Network) -> np.ndarray:
    """Positions (n, 2) of the buses in [0, 1], x to the right and y down; the longer side fills its range."""
    places = _placed(network)
    return _stress(network) if places is None else _scaled(_apart(places))


def _placed(network: Network) -> np.ndarray | None:
    """Coordinates of the case, y down; a bus without is put between its neighbours. None when too few have any."""
    places = np.column_stack([network.east, -network.north])
    known = np.isfinite(places).all(axis=1)
    if known.mean() < ENOUGH or np.ptp(places[known], axis=0).max() == 0:
        return None
    start, end = network.branches.start, network.branches.end
    places[~known] = places[known].mean(axis=0)
    for _ in range(ROUNDS_BETWEEN):  # so many unknown ones in a row
        total, count = np.zeros_like(places), np.zeros(len(places))
        for a, b in ((start, end), (end, start)):
            np.add.at(total, a, places[b])
            np.add.at(count, a, 1)
        places[~known] = (total / np.maximum(count, 1)[:, None])[~known]
    return places


def _apart(places: np.ndarray) -> np.ndarray:
    """Buses at the same place, as those of one substation, a little apart on a circle."""
    _, group = np.unique(places.round(9), axis=0, return_inverse=True)
    group = group.ravel()
    result = places.copy()
    for one in np.flatnonzero(np.bincount(group) > 1):
        members = np.flatnonzero(group == one)
        angle = 2 * np.pi * np.arange(len(members)) / len(members)
        circle = np.column_stack([np.cos(angle), np.sin(angle)])
        result[members] += APART * np.ptp(places, axis=0).max() * circle
    return result


def _stress(network: Network) -> np.ndarray:
    """Positions by stress majorisation."""
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
    return _scaled(centred @ axes.T)


def _scaled(positions: np.ndarray) -> np.ndarray:
    """Positions in the unit square; the longer side fills it."""
    low, high = positions.min(axis=0), positions.max(axis=0)
    result: np.ndarray = (positions - low) / max((high - low).max(), 1e-9)
    return result

"""Which branches hold a network together, and what their removal cuts off.

One depth-first search over the multigraph of branches finds every bridge (Tarjan's low-links), so that
for a single line the question costs a lookup. Parallel circuits are never bridges.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from contingencies.admittance import islands
from contingencies.network import Int, Network

SHOWN = 5  # buses named in a reason; enough to find the place
GROUND_PU = 1e-6  # below any load in use, far above the round-off that balances an empty bus


@dataclass(frozen=True, eq=False)
class Connectivity:
    """The bridges of a network."""

    connected: bool
    order: Int  # (n_b,) buses in the order of the search; what hangs on a bridge is a slice of it
    bridges: dict[int, slice]  # branch -> the part of `order` on its far side


def _search(network: Network) -> Connectivity:
    n = network.n_buses
    neighbours: list[list[tuple[int, int]]] = [[] for _ in range(n)]
    for k, (i, j) in enumerate(zip(network.branches.start.tolist(), network.branches.end.tolist(), strict=True)):
        neighbours[i].append((j, k))
        neighbours[j].append((i, k))
    entered, low = [-1] * n, [0] * n
    order: list[int] = []
    bridges: dict[int, slice] = {}
    roots = 0
    for root in range(n):
        if entered[root] >= 0:
            continue
        roots += 1
        entered[root] = low[root] = len(order)
        order.append(root)
        path = [(root, -1, iter(neighbours[root]))]  # bus, branch it was reached by, what is left to look at
        while path:
            bus, arrived_by, left = path[-1]
            for other, branch in left:
                if branch == arrived_by:  # the branch itself, not the bus behind it: a parallel circuit leads back
                    continue
                if entered[other] >= 0:
                    low[bus] = min(low[bus], entered[other])
                    continue
                entered[other] = low[other] = len(order)
                order.append(other)
                path.append((other, branch, iter(neighbours[other])))
                break
            else:
                path.pop()
                if not path:
                    continue
                parent = path[-1][0]
                low[parent] = min(low[parent], low[bus])
                if low[bus] > entered[parent]:
                    bridges[arrived_by] = slice(entered[bus], len(order))
    return Connectivity(roots == 1, np.array(order, dtype=np.int64), bridges)


@lru_cache(maxsize=16)
def connectivity(network: Network) -> Connectivity:
    """The bridges of a network, searched once per process."""
    return _search(network)


def bridge_problem(network: Network, branch: int) -> str | None:
    """What opening one branch cuts off the network, or None when the branch is not a bridge."""
    graph = connectivity(network)
    if branch not in graph.bridges:
        return None
    side = graph.bridges[branch]
    far = graph.order[side]
    near = np.concatenate([graph.order[: side.start], graph.order[side.stop :]])
    machines_far = int(np.isin(network.machine_bus, far).sum())
    # The smaller part is the one cut off: fewer machines, then fewer buses.
    far_is_smaller = (machines_far, len(far)) <= (network.n_machines - machines_far, len(near))
    cut_off = far if far_is_smaller else near
    problem = _part_problem(network, cut_off, network.machine_bus)
    return problem or f"cuts off bus {_listed(network.bus_numbers[cut_off])}"


def removal_problem(network: Network, removed: tuple[int, ...], tripped: tuple[int, ...] = ()) -> str | None:
    """Why opening branches and tripping machines with them leaves no solvable network, or None when it does not."""
    if not removed or _stays_whole(network, removed):
        return None
    labels = islands(network, removed)
    if labels.max() == 0:
        return None
    running = np.delete(network.machine_bus, list(tripped))
    main = np.bincount(labels[running]).argmax()
    for label in range(labels.max() + 1):
        if label != main:
            problem = _part_problem(network, np.flatnonzero(labels == label), running)
            if problem:
                return problem
    return None


def _stays_whole(network: Network, removed: tuple[int, ...]) -> bool:
    """True when the search has already shown that opening these branches splits nothing."""
    graph = connectivity(network)
    return graph.connected and len(removed) == 1 and removed[0] not in graph.bridges


def _part_problem(network: Network, part: Int, running: Int) -> str | None:
    """Why a part cut off from the rest cannot be solved: it has running machines, or no path to ground."""
    stranded = np.intersect1d(running, part)
    if len(stranded):
        return f"islands the generator at bus {_listed(network.bus_numbers[stranded])}"
    if np.abs(network.y_load[part] + network.y_shunt[part]).max() < GROUND_PU:
        return f"leaves bus {_listed(network.bus_numbers[part])} floating with no path to ground"
    return None


def _listed(numbers: Int) -> str:
    ordered = np.sort(numbers).tolist()
    return ", ".join(map(str, ordered[:SHOWN])) + (", ..." if len(ordered) > SHOWN else "")

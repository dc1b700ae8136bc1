"""Buses that are one and the same: joined by a closed switch or a line without impedance."""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from contingencies.formats.tables import ISOLATED, Buses, Int


@dataclass(frozen=True, eq=False)
class Joined:
    """The buses that are left, and where each of the old ones went."""

    buses: Buses
    place: Int  # (n,) position of each old bus among those left
    merged: tuple[tuple[int, int], ...]  # printed number without a row, position of the bus it is joined to


def join_buses(buses: Buses, pairs: list[tuple[int, int]]) -> Joined:
    """Join pairs of bus positions; of a group the slack bus stays, else a PV bus, else the lowest number."""
    n = len(buses)
    if not pairs:
        return Joined(buses, np.arange(n), ())
    i, j = np.array(pairs, dtype=np.int64).T
    group = connected_components(sp.coo_matrix((np.ones(len(i)), (i, j)), shape=(n, n)), directed=False)[1]
    rank = np.where(buses.kind == ISOLATED, 0, buses.kind)
    order = np.lexsort((buses.number, -rank, group))  # by group, the one that stays first
    first = np.ones(n, dtype=bool)
    first[1:] = group[order][1:] != group[order][:-1]
    stays = np.zeros(n, dtype=bool)
    stays[order[first]] = True
    position = np.cumsum(stays) - 1
    representative = np.empty(group.max() + 1, dtype=np.int64)
    representative[group[order[first]]] = position[order[first]]
    place: Int = representative[group]
    merged = tuple((int(buses.number[k]), int(place[k])) for k in np.flatnonzero(~stays))
    return Joined(buses.taken(stays), place, merged)

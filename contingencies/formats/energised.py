"""Which buses of a plain network are live, and what each of them holds in the power flow.

Kinds follow MATPOWER: a PV or slack bus counts as such only while a unit there is in service, and without any
slack bus the first PV bus becomes it. A bus is live when branches in service connect it to a slack bus.
"""

from dataclasses import replace

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from contingencies.errors import SpecError
from contingencies.formats.case import Case
from contingencies.formats.tables import ISOLATED, PQ, PV, SLACK, Bool, Int


def bus_kinds(case: Case) -> Int:
    """PQ, PV, SLACK or ISOLATED of every bus, (n,), given which units are in service."""
    kind = case.buses.kind.copy()
    has_unit = np.zeros(len(kind), dtype=bool)
    has_unit[case.units.bus[case.units.in_service]] = True
    kind[~has_unit & (kind != ISOLATED)] = PQ
    if not (kind == SLACK).any():
        candidates = np.flatnonzero(kind == PV)
        if len(candidates) == 0:
            raise SpecError("no bus with a unit in service is a slack or PV bus; make one the slack bus (type 3).")
        kind[candidates[0]] = SLACK
    return kind


def live_buses(case: Case) -> Bool:
    """Whether each bus is connected to a slack bus, (n,)."""
    kind, branches = bus_kinds(case), case.branches
    closed = branches.in_service & (kind[branches.start] != ISOLATED) & (kind[branches.end] != ISOLATED)
    n = len(kind)
    graph = sp.coo_matrix((np.ones(closed.sum()), (branches.start[closed], branches.end[closed])), shape=(n, n))
    labels = connected_components(graph, directed=False)[1]
    live: Bool = np.isin(labels, labels[kind == SLACK])
    return live


def energised(case: Case) -> Case:
    """The live part of a network: its buses, and what is in service there; positions are those of the part."""
    live = live_buses(case)
    place = np.cumsum(live) - 1
    branches, units = case.branches, case.units
    kept = branches.taken(branches.in_service & live[branches.start] & live[branches.end])
    loads = case.loads.taken(live[case.loads.bus])
    shunts = case.shunts.taken(live[case.shunts.bus])
    units = units.taken(units.in_service & live[units.bus])
    return replace(
        case,
        buses=replace(case.buses.taken(live), kind=bus_kinds(case)[live]),
        loads=replace(loads, bus=place[loads.bus]),
        shunts=replace(shunts, bus=place[shunts.bus]),
        branches=replace(kept, start=place[kept.start], end=place[kept.end]),
        units=replace(units, bus=place[units.bus]),
        merged=tuple((number, int(place[position])) for number, position in case.merged if live[position]),
    )

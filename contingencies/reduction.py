"""One network factorised once: the reduced pre-fault network, and solves shared by its contingencies.

A contingency touches a few buses and needs two things of each: how the machines see a current injected
there, and the impedances between the touched buses (theory.md eqs. (9)-(11)). Both are parts of columns of
Z = Y_bb^-1, so a whole family costs one solve per touched bus, however many members share the bus.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.sparse.linalg import splu

from contingencies.admittance import bus_admittance, machine_admittance, with_machine_reactances
from contingencies.network import Complex, Float, Int, Network
from contingencies.swing import electrical_power

CHUNK = 64  # right-hand sides per solve: enough to amortise the call, few enough to stay in cache


@dataclass(frozen=True, eq=False)
class BusTransfers:
    """The parts of Z = Y_bb^-1 that some groups of buses need, looked up by bus position."""

    nodes: Int  # (k,) solved buses, ascending
    machines: Complex  # (k, n_g) y_g Z[g, node]: current at each machine per current injected at the node
    keys: Int  # (q,) column * n_b + row of each stored entry of Z, ascending
    entries: Complex  # (q,) pu
    n_buses: int

    def to_machines(self, nodes: Int) -> Complex:
        """What the machines see of currents injected at m solved buses, (n_g, m)."""
        seen: Complex = self.machines[np.searchsorted(self.nodes, nodes)].T
        return seen

    def between(self, nodes: Int) -> Complex:
        """Z[nodes, nodes] (m, m) for buses that lie in one group, pu."""
        keys = nodes[None, :] * self.n_buses + nodes[:, None]
        block: Complex = self.entries[np.searchsorted(self.keys, keys)]
        return block


@dataclass(frozen=True, eq=False)
class Reduction:
    """One network factorised once: everything that its contingencies share."""

    network: Network
    solver: Any  # sparse LU of Y_bb
    y_g: Complex  # (n_g,)
    T: Complex  # (n_b, n_g) bus voltages per internal voltage
    Y_pre: Complex  # (n_g, n_g)
    P_m: Float  # (n_g,) electrical power at the operating point

    @staticmethod
    def of(network: Network) -> "Reduction":
        """Factorise Y_bb and reduce the pre-fault network."""
        y_g = machine_admittance(network)
        solver = splu(with_machine_reactances(bus_admittance(network), network))
        sources = np.zeros((network.n_buses, network.n_machines), dtype=complex)
        sources[network.machine_bus, np.arange(network.n_machines)] = y_g
        T = solver.solve(sources)
        Y_pre = np.diag(y_g) - y_g[:, None] * T[network.machine_bus]
        P_m = electrical_power(network.delta_0, network.E, Y_pre.real, Y_pre.imag)
        return Reduction(network, solver, y_g, T, Y_pre, P_m)

    def transfers(self, groups: Iterable[Int]) -> BusTransfers:
        """Solve for every bus of some groups, keeping the impedances between buses of the same group."""
        n, machine_bus = self.network.n_buses, self.network.machine_bus
        keys = np.unique(np.concatenate([np.empty(0, np.int64), *(_pair_keys(group, n) for group in groups)]))
        columns, rows = np.divmod(keys, n)
        nodes = np.unique(columns)
        machines = np.empty((len(nodes), len(machine_bus)), dtype=complex)
        entries = np.empty(len(keys), dtype=complex)
        for first in range(0, len(nodes), CHUNK):
            chunk = nodes[first : first + CHUNK]
            unit = np.zeros((n, len(chunk)), dtype=complex, order="F")
            unit[chunk, np.arange(len(chunk))] = 1.0
            Z = self.solver.solve(unit)
            machines[first : first + len(chunk)] = (self.y_g[:, None] * Z[machine_bus]).T
            here = slice(*np.searchsorted(columns, [chunk[0], chunk[-1] + 1]))
            entries[here] = Z[rows[here], np.searchsorted(chunk, columns[here])]
        return BusTransfers(nodes, machines, keys, entries, n)


def _pair_keys(group: Int, n_buses: int) -> Int:
    keys: Int = (group[None, :] * n_buses + group[:, None]).ravel()
    return keys


@lru_cache(maxsize=16)
def _reduction(network: Network) -> Reduction:
    return Reduction.of(network)


def reduce_network(network: Network) -> Reduction:
    """The factorisation of a network, made once per process."""
    return _reduction(network)

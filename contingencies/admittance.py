"""The bus admittance matrix, its edits, and its reduction to the machine nodes.

The direct constructions here are the plain statement of the physics (theory.md eqs. (5)-(8)); the
DAE simulator works on them, and the compiler's closed forms are tested against them.
"""

from collections.abc import Collection

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from contingencies.network import Complex, Int, Network


def bus_admittance(network: Network, removed: Collection[int] = ()) -> sp.csc_matrix:
    """Y_bus (n_b, n_b) with shunts and constant-admittance loads, without the branches in `removed`."""
    branches = network.branches
    kept = np.ones(len(branches.start), dtype=bool)
    kept[list(removed)] = False
    i, j = branches.start[kept], branches.end[kept]
    diagonal = np.arange(network.n_buses)
    rows = np.concatenate([i, i, j, j, diagonal])
    columns = np.concatenate([i, j, i, j, diagonal])
    values = np.concatenate(
        [
            branches.y_ff[kept], branches.y_ft[kept], branches.y_tf[kept], branches.y_tt[kept],
            network.y_shunt + network.y_load,
        ]
    )  # fmt: skip
    return sp.csc_matrix((values, (rows, columns)), shape=(network.n_buses, network.n_buses))


def machine_admittance(network: Network) -> Complex:
    """Admittance 1 / (j x'd) of each machine's transient reactance, (n_g,) pu."""
    admittance: Complex = (1.0 / (1j * network.x_d)).astype(np.complex128)
    return admittance


def with_machine_reactances(Y_bus: sp.spmatrix, network: Network) -> sp.csc_matrix:
    """Y_bb: the bus matrix with every x'd as a shunt, theory.md eq. (5)."""
    shunt = np.zeros(Y_bus.shape[0], dtype=complex)
    np.add.at(shunt, network.machine_bus, machine_admittance(network))
    return sp.csc_matrix(Y_bus + sp.diags(shunt))


def faulted_bus_admittance(
    network: Network, nodes: Int, weights: Complex, y: complex, z_series: complex
) -> sp.csc_matrix:
    """Y_bus with an explicit fault node that carries the shunt y; the node comes last.

    The node hangs on the buses `nodes` as an ideal point of the line between them: its open-circuit
    voltage is `weights @ V[nodes]`, its own series impedance `z_series` (0 for a fault at a bus).
    """
    Y = bus_admittance(network)
    if z_series == 0:
        fault = sp.csc_matrix(([y], ([nodes[0]], [nodes[0]])), shape=Y.shape)
        return sp.csc_matrix(Y + fault)
    # Pure series segments y/lambda and y/(1-lambda) replace the series branch, theory.md eq. (7).
    near, far = weights.real  # 1 - lambda, lambda
    y_line = near * far / z_series
    i, j, f = int(nodes[0]), int(nodes[1]), Y.shape[0]
    y_i, y_j = y_line / far, y_line / near
    stamps = [
        (i, i, -y_line), (j, j, -y_line), (i, j, y_line), (j, i, y_line),
        (i, i, y_i), (f, f, y_i), (i, f, -y_i), (f, i, -y_i),
        (j, j, y_j), (f, f, y_j), (j, f, -y_j), (f, j, -y_j), (f, f, y),
    ]  # fmt: skip
    rows, columns, values = zip(*stamps, strict=True)
    grown = sp.csc_matrix((Y.data, Y.indices, np.append(Y.indptr, Y.indptr[-1])), shape=(f, f + 1))
    grown = sp.csc_matrix(sp.vstack([grown, sp.csc_matrix((1, f + 1))]))
    return sp.csc_matrix(grown + sp.csc_matrix((values, (rows, columns)), shape=(f + 1, f + 1)))


def bordered_by_fault_current(
    network: Network, nodes: Int, weights: Complex, alpha: float, z_path: complex
) -> sp.csc_matrix:
    """Y_bus with the current of a fault through an impedance as one more unknown, theory.md eq. (35).

    Parameters
    ----------
    nodes, weights : (1,) or (2,)
        The fault point's open-circuit voltage is weights @ V[nodes].
    alpha : float
        Severity; 0 leaves the current 0.
    z_path : complex
        Factor of the current in its own equation, pu: alpha weights @ V = z_path I_f.

    Returns
    -------
    sparse (n_b + 1, n_b + 1)
        The fault current leaves the fault point; its equation comes last.
    """
    column = sp.csc_matrix((weights, (nodes, np.zeros(len(nodes), dtype=int))), shape=(network.n_buses, 1))
    corner = sp.csc_matrix([[-z_path]])
    return sp.csc_matrix(sp.bmat([[bus_admittance(network), column], [alpha * column.T, corner]]))


def kron_reduction(Y_bus: sp.spmatrix, network: Network) -> Complex:
    """Y_red (n_g, n_g) seen from the internal machine nodes, theory.md eq. (6); dense and direct."""
    y_g = machine_admittance(network)
    Y_bb = with_machine_reactances(Y_bus, network).toarray()
    Y_bg = np.zeros((Y_bb.shape[0], network.n_machines), dtype=complex)
    Y_bg[network.machine_bus, np.arange(network.n_machines)] = -y_g
    reduced: Complex = np.diag(y_g) - Y_bg.T @ np.linalg.solve(Y_bb, Y_bg)
    return reduced


def islands(network: Network, removed: Collection[int] = ()) -> Int:
    """Label (n_b,) of the connected part each bus belongs to once branches are removed."""
    branches = network.branches
    kept = np.ones(len(branches.start), dtype=bool)
    kept[list(removed)] = False
    i, j = branches.start[kept], branches.end[kept]
    graph = sp.coo_matrix((np.ones(len(i)), (i, j)), shape=(network.n_buses, network.n_buses))
    labels: Int = connected_components(graph, directed=False)[1]
    return labels

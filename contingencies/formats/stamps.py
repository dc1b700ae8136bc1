"""Two-port admittances and the bus admittance matrix of a plain network: theory.md eq. (40), the only place.

With y = 1 / (r + jx), y_c = (g + jb) / 2 and the ratio a = tap exp(j shift) at the start,

    y_ff = (y + y_c) / tap^2 + y_start,   y_ft = -y / conj(a),   y_tf = -y / a,   y_tt = y + y_c + y_end.
"""

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from contingencies.formats.case import Case
from contingencies.formats.tables import Branches, Complex


class TwoPorts(NamedTuple):
    """The four entries that each branch adds to the bus matrix, (m,) pu, as if it were in service."""

    y_ff: Complex
    y_ft: Complex
    y_tf: Complex
    y_tt: Complex


def series_admittance(branches: Branches) -> Complex:
    """1 / (r + jx) of each branch, (m,) pu."""
    return np.reciprocal(branches.r + 1j * branches.x).astype(np.complex128)


def two_ports(branches: Branches) -> TwoPorts:
    """The stamps of branches."""
    y, y_c = series_admittance(branches), (branches.g + 1j * branches.b) / 2
    a = branches.tap * np.exp(1j * branches.shift)
    return TwoPorts((y + y_c) / branches.tap**2 + branches.y_start, -y / a.conj(), -y / a, y + y_c + branches.y_end)


def bus_matrix(case: Case) -> sp.csr_matrix:
    """Y_bus (n, n) of branches in service and fixed shunts, without loads, pu; every diagonal entry is stored."""
    branches = case.branches
    if not branches.in_service.all():
        branches = branches.taken(branches.in_service)
    i, j, k = branches.start, branches.end, np.arange(len(case.buses))
    rows = np.concatenate([i, i, j, j, case.shunts.bus, k])
    columns = np.concatenate([i, j, i, j, case.shunts.bus, k])
    values = np.concatenate([*two_ports(branches), case.shunts.y, np.zeros(len(k))])
    return sp.csr_matrix((values, (rows, columns)), shape=(len(k), len(k)))

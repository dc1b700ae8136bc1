"""One phase of a learned trajectory on cells of a millisecond, with the residual of the swing equation in each.

Windows of a chained surrogate need no care, because its states are continuous and residuals are never taken at the end
of a cell.
"""

from dataclasses import dataclass

import numpy as np
import torch

from contingencies.network import Complex, Float
from contingencies.sensitivity import phase_field
from espinn_moe.surrogate import Surrogate

CELL_S = 1e-3  # quadrature cells, counted from each event so that windows of whole milliseconds end on them
GAUSS = np.array([0.5 - 0.5 / np.sqrt(3.0), 0.5 + 0.5 / np.sqrt(3.0)])  # exact to third order within a cell


@dataclass(frozen=True, eq=False)
class Leg:
    """One phase of the learned trajectory on k cells; `half` holds states at cell ends and middles alternately."""

    t: Float  # (2k+1,)
    half: Float  # (2k+1, 2n)
    residual: Float  # (k, 2, 2n) at the Gauss points of the cells
    Y: Complex
    P_m: Float

    @property
    def widths(self) -> Float:
        """(k,) s"""
        return np.diff(self.t[::2])


def learned_leg(
    surrogate: Surrogate, member: int, alpha: float, t_c: float, start: float, end: float, faulted: bool
) -> Leg:
    """The learned states and residuals of one phase between two instants (s), cleared at `t_c`."""
    operators = surrogate.members[member]
    whole = int((end - start) / CELL_S + 1e-9)
    nodes = start + CELL_S * np.arange(whole + 1)
    if end - nodes[-1] > 1e-9:
        nodes = np.append(nodes, end)
    widths = np.diff(nodes)
    t = np.empty(2 * len(nodes) - 1)
    t[::2], t[1::2] = nodes, nodes[:-1] + 0.5 * widths
    inner = nodes[:-1, None] + GAUSS * widths[:, None]
    Y, P_m = (
        (operators.Y_fault(alpha), operators.P_m_fault(alpha)) if faulted else (operators.Y_post, operators.P_m_post)
    )
    device = next((parameter.device for parameter in surrogate.parameters()), torch.device("cpu"))
    severity, instant, times, points = (
        torch.as_tensor(x, dtype=surrogate.dtype, device=device) for x in (alpha, t_c, t, inner)
    )
    with torch.no_grad():
        half = surrogate.states(times, severity, instant, member).double().cpu().numpy()
        states, rates = (
            x.double().cpu().numpy() for x in surrogate.states_and_rates(points, severity, instant, member)
        )
    return Leg(t, half, rates - phase_field(operators, states, Y, P_m), Y, P_m)


def l1_norm(leg: Leg) -> float:
    """L1 norm over the leg of the residual's largest component."""
    return float((np.abs(leg.residual).max(-1).mean(-1) * leg.widths).sum())

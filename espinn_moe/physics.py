"""The members' phase operators as tensors, so that severity stays in the graph.

Same closed form and same swing equation as the simulators (`contingencies.operators`,
`contingencies.swing`); what is new is that a batch may mix members. The tensors derive from the
operators and are not part of a saved model.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from contingencies.operators import PhaseOperators
from contingencies.severity import fault_coefficient
from contingencies.swing import electrical_power, swing_field, taylor_coefficients
from espinn_moe.condition_physics import FamilyOperators
from espinn_moe.low_rank import LowRank, admittances, padded
from espinn_moe.surrogate import Member

Index = Tensor | slice | tuple[Tensor, ...]
Matrix = Tensor | LowRank
MANY_MACHINES = 24  # from here on a row's own n x n matrix costs more than its low-rank change


@dataclass(frozen=True, eq=False)
class Phase:
    """Operator of one phase for a batch of rows."""

    G: Matrix  # (n, n) or (..., n, n), pu
    B: Matrix
    P_m: Tensor  # (n,) or (..., n), pu

    def for_samples(self) -> "Phase":
        """The same operator for a row of several samples: one more axis before the machines'."""
        if self.G.ndim == 2 and self.P_m.ndim == 1:
            return self
        G, B = (Y if Y.ndim == 2 else Y.unsqueeze(-3) for Y in (self.G, self.B))
        return Phase(G, B, self.P_m if self.P_m.ndim == 1 else self.P_m.unsqueeze(-2))

    def __getitem__(self, rows: Index) -> "Phase":
        """The operator of some rows."""
        G, B = (Y if Y.ndim == 2 else Y[rows] for Y in (self.G, self.B))
        return Phase(G, B, self.P_m if self.P_m.ndim == 1 else self.P_m[rows])


@dataclass(frozen=True, eq=False)
class Expansion:
    """A state and its local swing-equation derivatives, each (..., n), theory.md eq. (4)."""

    delta: Tensor  # rad
    omega: Tensor  # pu
    v: Tensor  # d delta/dt, rad/s
    a: Tensor  # d omega/dt, pu/s
    b: Tensor  # d2 omega/dt2, pu/s2

    def for_samples(self) -> "Expansion":
        """The same expansion for a row of several samples: one more axis before the machines'."""
        return Expansion(*(part.unsqueeze(-2) for part in (self.delta, self.omega, self.v, self.a, self.b)))

    def __getitem__(self, rows: Index) -> "Expansion":
        """The expansions of some rows."""
        return Expansion(self.delta[rows], self.omega[rows], self.v[rows], self.a[rows], self.b[rows])


class Physics(nn.Module):
    """Phase operators of the members of one system.

    Parameters
    ----------
    members : sequence of PhaseOperators
    dtype : torch.dtype
        Real; admittances are kept as real and imaginary parts.

    Members with conditions bring their families: rows may then have operating points of their own (`conditions`
    (m, d) beside severities (m,)). Without them, rows are at the case's own point.
    """

    E: Tensor
    H: Tensor
    D: Tensor
    x_0: Tensor
    inertia_share: Tensor
    G_pre: Tensor
    B_pre: Tensor
    G_post: Tensor
    B_post: Tensor
    P_m_pre: Tensor
    P_m_slope: Tensor
    P_m_post: Tensor
    initial_a: Tensor
    fault_G: Tensor
    fault_B: Tensor
    fault_gain: Tensor
    fault_bend: Tensor
    fault_left: Tensor
    fault_right: Tensor
    post_left: Tensor
    post_right: Tensor

    def __init__(self, members: Sequence[PhaseOperators], dtype: torch.dtype) -> None:
        super().__init__()
        first = members[0]
        self.omega_b = first.omega_b
        outer = np.stack([np.outer(m.fault_from, m.fault_to) for m in members])
        Y_post = np.stack([m.Y_post for m in members])
        real = {
            "E": first.E,
            "H": first.H,
            "D": first.D,
            "x_0": np.concatenate([first.delta_0, np.ones(first.n_machines)]),
            "inertia_share": first.H / first.H.sum(),
            "G_pre": first.Y_pre.real,
            "B_pre": first.Y_pre.imag,
            "G_post": Y_post.real,
            "B_post": Y_post.imag,
            "P_m_pre": first.P_m_pre,
            "P_m_slope": np.stack([m.P_m_slope for m in members]),
            "P_m_post": np.stack([m.P_m_post for m in members]),
            "fault_G": outer.real,
            "fault_B": outer.imag,
            "initial_a": np.stack([_initial_acceleration(m) for m in members]),
        }
        for name, value in real.items():
            self.register_buffer(name, torch.tensor(np.ascontiguousarray(value), dtype=dtype), persistent=False)
        for name, values in (
            ("fault_gain", [m.fault_gain for m in members]),
            ("fault_bend", [m.fault_bend for m in members]),
        ):
            self.register_buffer(name, torch.tensor(values, dtype=dtype.to_complex()), persistent=False)
        families = [m.family for m in members if m.family is not None]
        self.low_rank = first.n_machines >= MANY_MACHINES and not families
        if self.low_rank:
            for name, factors in (
                ("fault_left", [m.fault_from[:, None] for m in members]),
                ("fault_right", [m.fault_to[:, None] for m in members]),
                ("post_left", [m.post_from @ m.post_core for m in members]),
                ("post_right", [m.post_to for m in members]),
            ):
                self.register_buffer(name, torch.tensor(padded(factors), dtype=dtype), persistent=False)
        self.varied = FamilyOperators(families, dtype) if families else None
        if families:  # voltages that differ from row to row stand in the admittances
            scale = self.E[:, None] * self.E
            for name in ("G_pre", "B_pre", "G_post", "B_post", "fault_G", "fault_B"):
                getattr(self, name).mul_(scale)
            self.E.fill_(1.0)

    def initial(self, conditions: Tensor | None) -> Tensor:
        """State before the fault: (2 n,), or (m, 2 n) at conditions (m, d)."""
        return self.x_0 if conditions is None else self._varied.initial(conditions)

    @property
    def _varied(self) -> FamilyOperators:
        assert self.varied is not None, "members without conditions have one operating point"
        return self.varied

    def fault_on(self, alpha: Tensor, member: Member, conditions: Tensor | None = None) -> Phase:
        """Fault-on operator of rows with severities alpha (...); a member tensor broadcasts with alpha."""
        if conditions is not None:
            return Phase(*self._varied.fault_on(alpha, member, conditions))
        c = fault_coefficient(alpha, self.fault_gain[member], self.fault_bend[member])
        c_re, c_im = c.real[..., None, None], c.imag[..., None, None]
        P_m = self.P_m_pre + alpha[..., None] * self.P_m_slope[member]
        if self.low_rank:
            real, imaginary = self.fault_left[member].chunk(2, dim=-1)
            left = torch.cat([c_re * real - c_im * imaginary, c_re * imaginary + c_im * real], dim=-1)
            return Phase(*admittances(self.G_pre, self.B_pre, left, self.fault_right[member].expand_as(left)), P_m)
        R, X = self.fault_G[member], self.fault_B[member]
        return Phase(
            self.G_pre + c_re * R - c_im * X,
            self.B_pre + c_re * X + c_im * R,
            P_m,
        )

    def post_clearing(self, member: Member, conditions: Tensor | None = None) -> Phase:
        """Post-clearing operator; one for all rows when the member is a number and rows have no conditions."""
        if conditions is not None:
            return Phase(*self._varied.post_clearing(member, conditions))
        if self.low_rank and isinstance(member, Tensor):
            change = self.post_left[member], self.post_right[member]
            return Phase(*admittances(self.G_pre, self.B_pre, *change), self.P_m_post[member])
        return Phase(self.G_post[member], self.B_post[member], self.P_m_post[member])

    def field(self, phase: Phase, x: Tensor) -> Tensor:
        """Right-hand side of the swing equation at states x (..., 2 n)."""
        delta, omega = x.chunk(2, dim=-1)
        rates = swing_field(delta, omega, phase.P_m, self.E, phase.G, phase.B, self.H, self.D, self.omega_b)
        return torch.cat(rates, dim=-1)

    def expand_initial(self, alpha: Tensor, member: Member) -> Expansion:
        """Local expansion at the pre-fault state when the fault of severities alpha (...) strikes, each (..., n).

        Electrical power is linear in the admittance, and speeds are synchronous: so it is linear in the coefficient of
        the fault, and needs no admittance of every row.
        """
        c = fault_coefficient(alpha, self.fault_gain[member], self.fault_bend[member])
        parts = torch.stack(torch.broadcast_tensors(torch.ones_like(c.real), alpha, c.real, c.imag), dim=-1)
        slopes = self.initial_a[member]
        a = parts @ slopes if slopes.ndim == 2 else (parts[..., None] * slopes).sum(-2)
        delta, omega = (part.expand_as(a) for part in self.x_0.chunk(2, dim=-1))
        return Expansion(delta, omega, torch.zeros_like(a), a, -self.D * a / (2.0 * self.H))

    def expand(self, phase: Phase, x: Tensor) -> Expansion:
        """Local expansion at states x (..., 2 n)."""
        delta, omega = x.chunk(2, dim=-1)
        v, a, b = taylor_coefficients(delta, omega, phase.P_m, self.E, phase.G, phase.B, self.H, self.D, self.omega_b)
        return Expansion(delta, omega, v, a, b)


def _initial_acceleration(operators: PhaseOperators) -> np.ndarray:
    """d omega/dt (4, n) at the pre-fault state: without a fault, and by alpha, Re c and Im c."""
    fault = np.outer(operators.fault_from, operators.fault_to)

    def power(Y: np.ndarray) -> np.ndarray:
        taken: np.ndarray = electrical_power(operators.delta_0, operators.E, Y.real, Y.imag)
        return taken

    parts = [operators.P_m_pre - power(operators.Y_pre), operators.P_m_slope, -power(fault), -power(1j * fault)]
    return np.stack(parts) / (2.0 * operators.H)

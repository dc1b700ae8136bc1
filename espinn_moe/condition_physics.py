"""Phase operators over conditions as tensors: differentiable, and each row of a batch at its own operating point.

The polynomials are those of `contingencies.operator_family`; severity and position enter in closed form, theory.md
eqs. (9), (34) and (61). Internal voltages differ from row to row, so admittances are given as E_i Y_ij E_j
and go with internal voltages of 1.
"""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor, nn

from contingencies.operator_family import OperatorFamily
from contingencies.operators import severity_law
from contingencies.severity import fault_coefficient
from contingencies.smooth_fit import chebyshev_products

Parts = dict[str, Tensor]
Operator = tuple[Tensor, Tensor, Tensor]  # G, B (m, n, n) scaled by the internal voltages, P_m (m, n)
GROUPS = {  # what each question needs of a family
    "initial": ("delta_0",),
    "fault": ("E", "P_m_pre", "P_m_slope", "Y_pre_re", "Y_pre_im", "w_re", "w_im", "u_re", "u_im", "z_re", "z_im"),
    "post": ("E", "P_m_post", "Y_post_re", "Y_post_im"),
}


class MemberOperators(nn.Module):
    """Operators of one contingency at conditions (m, d).

    Parameters
    ----------
    family : OperatorFamily
    dtype : torch.dtype
    """

    def __init__(self, family: OperatorFamily, dtype: torch.dtype) -> None:
        super().__init__()
        self.family, self.n = family, family.base.n_machines
        self.shapes: dict[str, list[tuple[str, tuple[int, ...]]]] = {}
        known = family.fit.coefficients
        restored = {f"Y_post_{part}": known[f"Y_pre_{part}"] for part in ("re", "im")}
        for group, names in GROUPS.items():
            arrays = {name: (restored | known)[name] for name in names}
            flat = np.concatenate([values.reshape(len(values), -1) for values in arrays.values()], axis=1)
            self.register_buffer(f"{group}_coefficients", torch.tensor(flat, dtype=dtype), persistent=False)
            self.shapes[group] = [(name, values.shape[1:]) for name, values in arrays.items()]

    def initial(self, conditions: Tensor) -> Tensor:
        """States (m, 2 n) before the fault."""
        delta_0 = self._parts("initial", conditions)["delta_0"]
        return torch.cat([delta_0, torch.ones_like(delta_0)], dim=-1)

    def fault_on(self, alpha: Tensor, conditions: Tensor) -> Operator:
        """Fault-on operator at severities alpha (m,)."""
        parts = self._parts("fault", conditions)
        weights, z_series = self._weights(conditions)
        w, u = (
            torch.einsum("mq,mqn->mn", weights.to(z.dtype), z) for z in (_complex(parts, "w"), _complex(parts, "u"))
        )
        z_th = torch.einsum("mq,mqr,mr->m", weights.to(w.dtype), _complex(parts, "z"), weights.to(w.dtype)) + z_series
        c = fault_coefficient(alpha, *severity_law(self.family.base.fault_point, z_th))
        if not isinstance(c, Tensor) or c.ndim == 0:
            c = torch.zeros_like(z_th)
        Y = _complex(parts, "Y_pre") + (c[:, None] * w)[:, :, None] * u[:, None, :]
        return _scaled(Y, parts["E"], parts["P_m_pre"] + alpha[:, None] * parts["P_m_slope"])

    def post_clearing(self, conditions: Tensor) -> Operator:
        """Post-clearing operator."""
        parts = self._parts("post", conditions)
        return _scaled(_complex(parts, "Y_post"), parts["E"], parts["P_m_post"])

    def _parts(self, group: str, conditions: Tensor) -> Parts:
        family = self.family
        x = family.scaled(conditions)[..., family.moving.tolist()]
        flat = chebyshev_products(x, family.fit.degrees) @ getattr(self, f"{group}_coefficients")
        sizes = [int(np.prod(shape)) for _, shape in self.shapes[group]]
        pieces = flat.split(sizes, dim=-1)
        return {
            name: piece.unflatten(-1, shape) if len(shape) > 1 else piece
            for piece, (name, shape) in zip(pieces, self.shapes[group], strict=True)
        }

    def _weights(self, conditions: Tensor) -> tuple[Tensor, Tensor | complex]:
        weights, z_series = self.family.fault_weights(conditions)
        if not isinstance(weights, Tensor):
            weights = conditions.new_tensor(weights).expand(len(conditions), -1)
        return weights, z_series


class FamilyOperators(nn.Module):
    """Operators of all members of a model, each row with its own member and conditions."""

    def __init__(self, families: Sequence[OperatorFamily], dtype: torch.dtype) -> None:
        super().__init__()
        self.axes = families[0].axes
        self.members = nn.ModuleList(MemberOperators(family, dtype) for family in families)

    def scaled(self, conditions: Tensor) -> Tensor:
        """Conditions (..., d) in [-1, 1], as networks see them."""
        family: OperatorFamily = self._member(0).family
        scaled: Tensor = family.scaled(conditions)
        return scaled

    def initial(self, conditions: Tensor) -> Tensor:
        """States (m, 2 n) before the fault; the same for all members."""
        return self._member(0).initial(conditions)

    def fault_on(self, alpha: Tensor, member: int | Tensor, conditions: Tensor) -> Operator:
        """Fault-on operators of rows with severities alpha (m,) and conditions (m, d)."""
        return self._by_member(member, lambda k, rows: self._member(k).fault_on(alpha[rows], conditions[rows]))

    def post_clearing(self, member: int | Tensor, conditions: Tensor) -> Operator:
        """Post-clearing operators of rows with conditions (m, d)."""
        return self._by_member(member, lambda k, rows: self._member(k).post_clearing(conditions[rows]))

    def _member(self, k: int) -> MemberOperators:
        member = self.members[k]
        assert isinstance(member, MemberOperators)
        return member

    def _by_member(self, member: int | Tensor, ask: Callable[[int, Tensor | slice], Operator]) -> Operator:
        """Ask each member for its rows, and put the answers back into the order of the rows."""
        if not isinstance(member, Tensor):
            return ask(member, slice(None))
        groups = [(member == k).nonzero().squeeze(-1) for k in range(len(self.members))]
        answers = [ask(k, rows) for k, rows in enumerate(groups) if len(rows)]
        order = torch.argsort(torch.cat(groups))
        G, B, P_m = (torch.cat(parts)[order] for parts in zip(*answers, strict=True))
        return G, B, P_m


def _complex(parts: Parts, name: str) -> Tensor:
    return torch.complex(parts[f"{name}_re"], parts[f"{name}_im"])


def _scaled(Y: Tensor, E: Tensor, P_m: Tensor) -> Operator:
    scale = E[:, :, None] * E[:, None, :]
    return Y.real * scale, Y.imag * scale, P_m

"""Physics-informed DeepONet: a branch over (alpha, t_c) and a trunk over t, multiplied and read out.

Like the vanilla network it spans the whole study without events, with a soft penalty on the
initial state.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from contingencies.operators import PhaseOperators
from espinn_moe.layers import Stack
from espinn_moe.surrogate import Member, Rows
from zoo.surrogates.baselines.common import Baseline


class PIDeepONet(Baseline):
    """Branch 2-[129]x4-129, trunk 1-[129]x4-129, readout 129-12 on six machines: 136,365 parameters."""

    def __init__(
        self, members: Sequence[PhaseOperators], *, dtype: str = "float32", width: int = 129, depth: int = 4
    ) -> None:
        super().__init__(members, dtype)
        self.width, self.depth = width, depth
        self.branch = Stack([2, *[width] * depth, width], self.dtype, "tanh")
        self.trunk = Stack([1, *[width] * depth, width], self.dtype, "tanh")
        self.readout = nn.Linear(width, 2 * self.n_machines, dtype=self.dtype)

    def states(self, t: Tensor, alpha: Tensor, t_c: Tensor, member: Member = 0) -> Tensor:
        time, severity, clearing = self.scaled(t, alpha, t_c)
        product = self.branch(torch.stack([severity, clearing], dim=-1))[0] * self.trunk(time[..., None])[0]
        return self.x_0 + self.scale * self.readout(product)

    def states_and_rates(self, t: Tensor, alpha: Tensor, t_c: Tensor, member: Member = 0) -> tuple[Tensor, Tensor]:
        time, severity, clearing = self.scaled(t, alpha, t_c)
        basis, basis_rate = self.trunk(time[..., None], time.new_tensor([self.scaled_time_rate]))
        weights, _ = self.branch(torch.stack([severity, clearing], dim=-1))
        return self._answer(weights, basis, weights, basis_rate)

    def states_and_first_rates(
        self, t: Tensor, alpha: Tensor, t_c: Tensor, member: Member, rated: int
    ) -> tuple[Tensor, Tensor]:
        time, severity, clearing = self.scaled(t, alpha, t_c)
        basis, basis_rate = self.trunk(time[:, None], time.new_full((rated, 1), self.scaled_time_rate))
        weights, _ = self.branch(torch.stack([severity, clearing], dim=-1))
        return self._answer(weights, basis, weights[:rated], basis_rate)

    def _answer(self, weights: Tensor, basis: Tensor, its_weights: Tensor, basis_rate: Tensor) -> tuple[Tensor, Tensor]:
        """States from weights and basis, and rates where the basis has them."""
        out, rate = self.readout(weights * basis), (its_weights * basis_rate) @ self.readout.weight.T
        return self.x_0 + self.scale * out, self.scale * rate

    def trajectories(
        self, t: Tensor, alpha: Tensor, t_c: Tensor, member: int = 0, limit: float | None = None
    ) -> Tensor:
        """As the interface says; branch and trunk are evaluated once per scenario and per instant."""
        nothing = t.new_zeros(())
        _, severity, clearing = self.scaled(nothing, alpha[:, None], t_c)
        time, _, _ = self.scaled(t, nothing, nothing)
        weights, _ = self.branch(torch.stack([severity, clearing], dim=-1))  # (a, c, width)
        basis, _ = self.trunk(time[..., None])  # (k, width) or (a, k, width)
        product = weights[:, :, None] * basis[..., None, :, :]
        return self.x_0 + self.scale * self.readout(product)

    def extra_terms(self, rows: Rows) -> dict[str, Tensor]:
        return {"initial": self.initial_misfit(rows)}

    def settings(self) -> dict[str, Any]:
        return {**super().settings(), "width": self.width, "depth": self.depth}

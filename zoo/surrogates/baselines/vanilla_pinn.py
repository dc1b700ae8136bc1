"""Vanilla PINN: one tanh network over the whole study, with a soft penalty on the initial state.

It knows nothing of events: faults and clearing are kinks that a smooth network must draw.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from contingencies.operators import PhaseOperators
from espinn_moe.layers import Stack
from espinn_moe.surrogate import Member, Rows
from zoo.surrogates.baselines.common import Baseline


class VanillaPINN(Baseline):
    """3-[138]x8-12 on six machines: 136,494 parameters."""

    def __init__(
        self, members: Sequence[PhaseOperators], *, dtype: str = "float32", width: int = 138, depth: int = 8
    ) -> None:
        super().__init__(members, dtype)
        self.width, self.depth = width, depth
        self.network = Stack([3, *[width] * depth, 2 * self.n_machines], self.dtype, "tanh")

    def states(self, t: Tensor, alpha: Tensor, t_c: Tensor, member: Member = 0) -> Tensor:
        out, _ = self.network(torch.stack(self.scaled(t, alpha, t_c), dim=-1))
        return self.x_0 + self.scale * out

    def states_and_rates(self, t: Tensor, alpha: Tensor, t_c: Tensor, member: Member = 0) -> tuple[Tensor, Tensor]:
        inputs = torch.stack(self.scaled(t, alpha, t_c), dim=-1)
        velocity = inputs.new_tensor([self.scaled_time_rate, 0.0, 0.0])
        out, rate = self.network(inputs, velocity)
        return self.x_0 + self.scale * out, self.scale * rate

    def states_and_first_rates(
        self, t: Tensor, alpha: Tensor, t_c: Tensor, member: Member, rated: int
    ) -> tuple[Tensor, Tensor]:
        inputs = torch.stack(self.scaled(t, alpha, t_c), dim=-1)
        velocity = inputs.new_tensor([self.scaled_time_rate, 0.0, 0.0])
        out, rate = self.network(inputs, velocity.expand(rated, -1))
        return self.x_0 + self.scale * out, self.scale * rate

    def extra_terms(self, rows: Rows) -> dict[str, Tensor]:
        return {"initial": self.initial_misfit(rows)}

    def settings(self) -> dict[str, Any]:
        return {**super().settings(), "width": self.width, "depth": self.depth}

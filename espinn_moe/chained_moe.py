"""A family in the chained form: what its members share, and an expert for each.

A row of a batch is answered by exactly one expert; trunk and necks learn from all members.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from contingencies.operators import PhaseOperators
from espinn_moe.chained import TERMS, WINDOW_S, Chained
from espinn_moe.layers import Experts, Stack
from espinn_moe.phases import FAULT_ON, POST_CLEARING
from espinn_moe.topology import same_topology


class ChainedMoE(Chained):
    """A family: shared trunk, a neck per phase, an expert per member and phase, all tanh.

    Parameters
    ----------
    width : int
        Of trunk and necks.
    expert_width : int
    share_topology : bool
        Members whose post-clearing operators are equal share one post-clearing expert.
    """

    def __init__(
        self,
        members: Sequence[PhaseOperators],
        *,
        dtype: str = "float64",
        window_s: float = WINDOW_S,
        terms: int = TERMS,
        width: int = 96,
        expert_width: int = 24,
        share_topology: bool = False,
    ) -> None:
        own = tuple(range(len(members)))
        super().__init__(members, dtype, window_s, terms, (own, same_topology(members) if share_topology else own))
        self.width, self.expert_width, self.share_topology = width, expert_width, share_topology
        described = self.fault_inputs.width  # the longer description; the other is padded
        self.trunk = Stack([described + 1, width], self.dtype, "tanh", last_linear=False)
        self.necks = torch.nn.ModuleList(
            Stack([width, width], self.dtype, "tanh", first=False, last_linear=False) for _ in range(2)
        )
        # Experts see the state beside what is made of it: one that comes later finds a neck made for others.
        expert = [width + described + 1, expert_width, self.n_machines * terms]
        self.experts = torch.nn.ModuleList(
            Experts(max(index) + 1, expert, self.dtype, "tanh") for index in self.expert_of
        )

    @property
    def parameters_saved(self) -> int:
        """How many parameters fewer than with one post-clearing expert for each member."""
        count = max(self.expert_of[POST_CLEARING]) + 1
        size = sum(parameter.numel() for parameter in self.experts[POST_CLEARING].parameters())
        return (len(self.members) - count) * size // count

    def network(self, phase: int, inputs: Tensor, expert: int | Tensor) -> Tensor:
        padding = inputs.new_zeros(self.fault_inputs.width - inputs.shape[-1])
        label = inputs.new_tensor([-1.0 if phase == FAULT_ON else 1.0])
        inputs = torch.cat([inputs, torch.cat([padding, label]).expand(*inputs.shape[:-1], -1)], dim=-1)
        shared, _ = self.necks[phase](self.trunk(inputs)[0])
        out: Tensor = self.experts[phase](torch.cat([shared, inputs], dim=-1), None, expert)[0]
        return out

    def settings(self) -> dict[str, Any]:
        return {
            **super().settings(),
            "width": self.width,
            "expert_width": self.expert_width,
            "share_topology": self.share_topology,
        }

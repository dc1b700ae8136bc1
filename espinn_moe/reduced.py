"""The chained form for many machines: each expert sees few coordinates and answers in few.

The states of one contingency fill a surface of two dimensions during the fault (severity, time) and of three after it
(severity, clearing instant, time), however many machines there are: most of them move together, and most hardly move
at all. So every expert has a basis of its own, the principal components of what it sees and of the remainders it has
to give, both measured in a norm in which machines count by how far they move: machines near the fault make up nearly
all of it. What one sweep of the swing equation along the Taylor expansion tells about the remainder is taken from there
(`Chained.sweep`), with all machines; the networks learn what it leaves.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from contingencies.operators import PhaseOperators
from espinn_moe.chained import TERMS, WINDOW_S, Chained
from espinn_moe.chained_moe import ChainedMoE
from espinn_moe.layers import Experts, routed_product
from espinn_moe.physics import MANY_MACHINES

COMPONENTS = 24  # coordinates that an expert sees
MODES = 16  # coordinates in which it answers
NAMES = ("fault", "post")  # of the phases, in the names of buffers
BASIS = ("center", "view", "modes")  # what an expert's basis is made of


def chained_family(members: Sequence[PhaseOperators], **settings: Any) -> Chained:
    """The chained form of a family that suits its machines, or that the settings are those of.

    Few machines are seen as they are by trunk, necks and experts (`ChainedMoE`), and so are conditions and shared
    topologies; many in the experts' own bases (`ReducedMoE`).
    """
    reduced = "components" in settings or members[0].n_machines >= MANY_MACHINES
    if not reduced or "width" in settings or settings.get("share_topology") or members[0].family is not None:
        return ChainedMoE(members, **settings)
    return ReducedMoE(members, **settings)


class ReducedMoE(Chained):
    """A family on many machines: an expert per member and phase, each with a basis of its own.

    Parameters
    ----------
    components, modes : int
        Coordinates that an expert sees, and in which it answers.
    expert_width : int
        Of its two hidden layers.
    """

    knows_conditions = False

    def __init__(
        self,
        members: Sequence[PhaseOperators],
        *,
        dtype: str = "float64",
        window_s: float = WINDOW_S,
        terms: int = TERMS,
        components: int = COMPONENTS,
        modes: int = MODES,
        expert_width: int = 48,
    ) -> None:
        own = tuple(range(len(members)))
        super().__init__(members, dtype, window_s, terms, (own, own), swept=True)
        self.expert_width, outputs = expert_width, self.n_machines * terms
        self.components = min(components, self.post_inputs.width)
        self.modes = min(modes, outputs)
        for name, inputs in zip(NAMES, (self.fault_inputs, self.post_inputs), strict=True):
            self.register_buffer(f"{name}_center", torch.zeros(len(members), inputs.width, dtype=self.dtype))
            for part, (rows, columns) in (("view", (inputs.width, self.components)), ("modes", (self.modes, outputs))):
                untrained = torch.eye(rows, columns, dtype=self.dtype).repeat(len(members), 1, 1)
                self.register_buffer(f"{name}_{part}", untrained)
        widths = [self.components, expert_width, expert_width, self.modes]
        self.experts = torch.nn.ModuleList(Experts(len(members), widths, self.dtype, "tanh") for _ in NAMES)

    def center(self, phase: int) -> Tensor:
        """Mean inputs of each expert, (experts, width)."""
        return self.get_buffer(f"{NAMES[phase]}_center")

    def view(self, phase: int) -> Tensor:
        """What each expert makes of its inputs, (experts, width, components)."""
        return self.get_buffer(f"{NAMES[phase]}_view")

    def shapes(self, phase: int) -> Tensor:
        """Modes of the remainder, each as large as it usually is, (experts, modes, n * terms), in units of `scale`."""
        return self.get_buffer(f"{NAMES[phase]}_modes")

    def seen(self, phase: int, inputs: Tensor, expert: int | Tensor) -> Tensor:
        """What an expert sees (..., components) of inputs (..., width)."""
        return routed_product(inputs - self.center(phase)[expert], self.view(phase), expert)

    def coordinates(self, phase: int, seen: Tensor, expert: int | Tensor) -> Tensor:
        """What an expert answers (..., modes) where it sees `seen` (..., components), in units of its modes."""
        out: Tensor = self.experts[phase](seen, None, expert)[0]
        return out

    def all_coordinates(self, phase: int, seen: Tensor) -> Tensor:
        """The same for all K experts and as many rows of each: (K, r, modes) from (K, r, components)."""
        experts = self.experts[phase]
        assert isinstance(experts, Experts)
        out: Tensor = experts.stack(seen)[0]
        return out

    def network(self, phase: int, inputs: Tensor, expert: int | Tensor) -> Tensor:
        answer = self.coordinates(phase, self.seen(phase, inputs, expert), expert)
        return routed_product(answer, self.shapes(phase), expert)

    def settings(self) -> dict[str, Any]:
        return {
            **super().settings(),
            "components": self.components,
            "modes": self.modes,
            "expert_width": self.expert_width,
        }

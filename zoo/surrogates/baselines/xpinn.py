"""Enhanced XPINN: one network per phase, held together at the events by penalties only.

The pre-fault state is exact and the phase networks are those of the event-structured model, so
that the only difference is how the phases meet: soft interfaces at t_f and t_c instead of chaining.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from contingencies.operators import PhaseOperators
from espinn_moe.inputs import EventInputs
from espinn_moe.layers import Stack, common_shape
from espinn_moe.surrogate import EventSurrogate, Member, Rows
from zoo.surrogates.baselines.common import Baseline


class EnhancedXPINN(Baseline, EventSurrogate):
    """Fault-on 2-[64]x5-12 and post-clearing 3-[128]x7-12 on six machines: 118,744 parameters."""

    def __init__(
        self,
        members: Sequence[PhaseOperators],
        *,
        dtype: str = "float32",
        fault_width: int = 64,
        fault_depth: int = 5,
        post_width: int = 128,
        post_depth: int = 7,
    ) -> None:
        super().__init__(members, dtype)
        self.sizes = {
            "fault_width": fault_width,
            "fault_depth": fault_depth,
            "post_width": post_width,
            "post_depth": post_depth,
        }
        states = 2 * self.n_machines
        self.inputs = EventInputs(members)
        self.t_f = members[0].window.t_f
        self.fault_on = Stack([2, *[fault_width] * fault_depth, states], self.dtype, "sine")
        self.post_clearing = Stack([3, *[post_width] * post_depth, states], self.dtype, "sine")

    def states(self, t: Tensor, alpha: Tensor, t_c: Tensor, member: Member = 0) -> Tensor:
        shape, rows = _flat(t, alpha, t_c)
        return self._by_phase(*rows, 0)[0].reshape(*shape, -1)

    def states_and_rates(self, t: Tensor, alpha: Tensor, t_c: Tensor, member: Member = 0) -> tuple[Tensor, Tensor]:
        shape, rows = _flat(t, alpha, t_c)
        states, rates = self._by_phase(*rows, len(rows[0]))
        return states.reshape(*shape, -1), rates.reshape(*shape, -1)

    def states_and_first_rates(
        self, t: Tensor, alpha: Tensor, t_c: Tensor, member: Member, rated: int
    ) -> tuple[Tensor, Tensor]:
        return self._by_phase(t, alpha, t_c, rated)

    def states_and_first_rates_forward_only(
        self, t: Tensor, alpha: Tensor, t_c: Tensor, member: Member, rated: int
    ) -> tuple[Tensor, Tensor]:
        return self._by_phase(
            t, alpha, t_c, rated
        )  # networks answer for their own phases; only the interface joins them

    def fault_on_states(self, t: Tensor, alpha: Tensor, member: Member = 0) -> Tensor:
        return self._fault_on(t, alpha, 0)[0]

    def _by_phase(self, t: Tensor, alpha: Tensor, t_c: Tensor, rated: int) -> tuple[Tensor, Tensor]:
        """Each row (m,) from the network of its phase; rows before the fault are the exact equilibrium.

        Rates are those of the first `rated` rows.
        """
        states = self.x_0.expand(len(t), -1)
        rates = torch.zeros_like(states[:rated])
        during = ((t >= self.t_f) & (t < t_c)).nonzero()[:, 0]
        after = (t >= t_c).nonzero()[:, 0]
        for rows, answer in (
            (during, lambda i, first: self._fault_on(t[i], alpha[i], first)),
            (after, lambda i, first: self._post_clearing(t[i], alpha[i], t_c[i], first)),
        ):
            first = int((rows < rated).sum())
            value, slope = answer(rows, first)
            states = states.index_copy(0, rows, value)
            if slope is not None:
                rates = rates.index_copy(0, rows[:first], slope)
        return states, rates

    def _fault_on(self, t: Tensor, alpha: Tensor, rated: int) -> tuple[Tensor, Tensor | None]:
        inputs, velocity = self.inputs.fault_on(t, alpha)
        return self._scaled_output(*self.fault_on(inputs, velocity.expand(rated, -1) if rated else None))

    def _post_clearing(self, t: Tensor, alpha: Tensor, t_c: Tensor, rated: int) -> tuple[Tensor, Tensor | None]:
        inputs, velocity = self.inputs.post_clearing(t, alpha, t_c)
        return self._scaled_output(*self.post_clearing(inputs, velocity.expand(rated, -1) if rated else None))

    def _scaled_output(self, out: Tensor, slope: Tensor | None) -> tuple[Tensor, Tensor | None]:
        return self.x_0 + self.scale * out, None if slope is None else self.scale * slope

    def extra_terms(self, rows: Rows) -> dict[str, Tensor]:
        """Squared jumps of the state at fault application and at clearing."""
        return self._interfaces(rows, self.fault_on_states(rows.t_c, rows.alpha))

    def extra_terms_forward_only(self, rows: Rows) -> dict[str, Tensor]:
        """The same, and at clearing the post-clearing side follows."""
        return self._interfaces(rows, self.fault_on_states(rows.t_c, rows.alpha).detach())

    def _interfaces(self, rows: Rows, before: Tensor) -> dict[str, Tensor]:
        at_fault = self.fault_on_states(torch.full_like(rows.t, self.t_f), rows.alpha)
        after, _ = self._post_clearing(rows.t_c, rows.alpha, rows.t_c, 0)
        return {"interface_fault": self.misfit(at_fault, self.x_0), "interface_clearing": self.misfit(after, before)}

    def settings(self) -> dict[str, Any]:
        return {**super().settings(), **self.sizes}


def _flat(t: Tensor, alpha: Tensor, t_c: Tensor) -> tuple[torch.Size, tuple[Tensor, Tensor, Tensor]]:
    """The common shape of the arguments, and each of them as rows (m,)."""
    shape = common_shape(t.shape, alpha.shape, t_c.shape)
    rows = (x.expand(shape).reshape(-1) for x in (t, alpha, t_c))
    return shape, (next(rows), next(rows), next(rows))

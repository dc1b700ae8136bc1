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
        return self._by_phase(t, alpha, t_c, with_rates=False)[0]

    def states_and_rates(self, t: Tensor, alpha: Tensor, t_c: Tensor, member: Member = 0) -> tuple[Tensor, Tensor]:
        states, rates = self._by_phase(t, alpha, t_c, with_rates=True)
        assert rates is not None
        return states, rates

    def fault_on_states(self, t: Tensor, alpha: Tensor, member: Member = 0) -> Tensor:
        return self._fault_on(t, alpha, False)[0]

    def states_forward_only(self, t: Tensor, alpha: Tensor, t_c: Tensor, member: Member = 0) -> Tensor:
        return self.states(t, alpha, t_c)  # each network answers for its own phase; only the interface joins them

    def states_and_rates_forward_only(
        self, t: Tensor, alpha: Tensor, t_c: Tensor, member: Member = 0
    ) -> tuple[Tensor, Tensor]:
        return self.states_and_rates(t, alpha, t_c)

    def _by_phase(self, t: Tensor, alpha: Tensor, t_c: Tensor, with_rates: bool) -> tuple[Tensor, Tensor | None]:
        """Each row from the network of its phase; rows before the fault are the exact equilibrium."""
        shape = common_shape(t.shape, alpha.shape, t_c.shape)
        t, alpha, t_c = (x.expand(shape).reshape(-1) for x in (t, alpha, t_c))
        states = self.x_0.expand(len(t), -1)
        rates = torch.zeros_like(states) if with_rates else None
        during = ((t >= self.t_f) & (t < t_c)).nonzero()[:, 0]
        after = (t >= t_c).nonzero()[:, 0]
        for rows, answer in (
            (during, lambda i: self._fault_on(t[i], alpha[i], with_rates)),
            (after, lambda i: self._post_clearing(t[i], alpha[i], t_c[i], with_rates)),
        ):
            value, slope = answer(rows)
            states = states.index_copy(0, rows, value)
            if rates is not None and slope is not None:
                rates = rates.index_copy(0, rows, slope)
        return states.reshape(*shape, -1), None if rates is None else rates.reshape(*shape, -1)

    def _fault_on(self, t: Tensor, alpha: Tensor, with_rates: bool) -> tuple[Tensor, Tensor | None]:
        inputs, velocity = self.inputs.fault_on(t, alpha)
        return self._scaled_output(*self.fault_on(inputs, velocity if with_rates else None))

    def _post_clearing(self, t: Tensor, alpha: Tensor, t_c: Tensor, with_rates: bool) -> tuple[Tensor, Tensor | None]:
        inputs, velocity = self.inputs.post_clearing(t, alpha, t_c)
        return self._scaled_output(*self.post_clearing(inputs, velocity if with_rates else None))

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
        after, _ = self._post_clearing(rows.t_c, rows.alpha, rows.t_c, False)
        return {"interface_fault": self.misfit(at_fault, self.x_0), "interface_clearing": self.misfit(after, before)}

    def settings(self) -> dict[str, Any]:
        return {**super().settings(), **self.sizes}

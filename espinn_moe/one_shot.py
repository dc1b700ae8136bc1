"""The paper's form: whole phases at once, hard-chained through their event states.

`ESPINN` learns one contingency; `HardRoutedMoE` a family, with a shared trunk, one neck per phase and one
expert per member and phase. Both are the same event-structured surrogate and differ in where the
correction comes from.
"""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from contingencies.errors import UsageError
from contingencies.operators import PhaseOperators
from espinn_moe.ansatz import state_gated, taylor_gated
from espinn_moe.inputs import EventInputs
from espinn_moe.layers import SINE_FREQUENCY, Experts, Stack, common_shape
from espinn_moe.phases import FAULT_ON, POST_CLEARING, settled
from espinn_moe.physics import Physics
from espinn_moe.surrogate import EventSurrogate, Member, Rows, Scenarios

GATE_S = 0.1  # l_q: the local expansion leads for about this long, as far as it is accurate

Rated = int | Literal["all"]  # how many rows get time derivatives: the first so many, or all of any shape
Chain = Literal["hard", "soft"]
EventRate = Literal["prescribed", "free"]


class EventStructured(EventSurrogate):
    """Exact pre-fault state, then two learned phases chained through their event states.

    Parameters
    ----------
    members : sequence of PhaseOperators
    dtype : str
        "float32" or "float64".
    gate_s : float
        Time scale of the gates, s.
    chain : "hard" or "soft"
        Soft: the post-clearing network draws its own event state, and a penalty ties it to the fault-on one.
    event_rate : "prescribed" or "free"
        Free: the gate fixes the event state only, not the right-hand derivative.
    """

    output_scale: Tensor
    calibrated: Tensor

    def __init__(
        self,
        members: Sequence[PhaseOperators],
        dtype: str,
        gate_s: float = GATE_S,
        chain: Chain = "hard",
        event_rate: EventRate = "prescribed",
    ) -> None:
        super().__init__(members, getattr(torch, dtype))
        if chain not in ("hard", "soft") or event_rate not in ("prescribed", "free"):
            raise UsageError(f"chain {chain!r} with event_rate {event_rate!r} is not known; use hard and prescribed.")
        if chain == "soft" and event_rate == "free":
            raise UsageError("a soft chain keeps the prescribed event derivative; remove one thing at a time.")
        self.gate_s, self.chain, self.event_rate = gate_s, chain, event_rate
        self.t_f = self.members[0].window.t_f
        self.physics = Physics(self.members, self.dtype)
        self.inputs = EventInputs(self.members)
        scales = torch.ones(len(self.members), 2, 2 * self.n_machines, dtype=self.dtype)
        scales[..., self.n_machines :] = 1e-2  # pu; speeds stay within a few per cent of synchronism
        self.register_buffer("output_scale", scales)
        self.register_buffer("calibrated", torch.tensor(False))

    @abstractmethod
    def correction(
        self, phase: int, inputs: Tensor, rate: Tensor | None, member: Member
    ) -> tuple[Tensor, Tensor | None]:
        """Unscaled correction (..., 2 n) of a learned phase, and its time derivative when `rate` is given."""

    def states(self, t: Tensor, alpha: Tensor, t_c: Tensor, member: Member = 0) -> Tensor:
        return self._evaluate(t, alpha, t_c, member, 0)[0]

    def states_and_rates(self, t: Tensor, alpha: Tensor, t_c: Tensor, member: Member = 0) -> tuple[Tensor, Tensor]:
        states, rates = self._evaluate(t, alpha, t_c, member, "all")
        assert rates is not None
        return states, rates

    def states_and_first_rates(
        self, t: Tensor, alpha: Tensor, t_c: Tensor, member: Member, rated: int
    ) -> tuple[Tensor, Tensor]:
        return self._rows(t, alpha, t_c, member, rated, forward_only=False)

    def states_and_first_rates_forward_only(
        self, t: Tensor, alpha: Tensor, t_c: Tensor, member: Member, rated: int
    ) -> tuple[Tensor, Tensor]:
        return self._rows(t, alpha, t_c, member, rated, forward_only=True)

    def fault_on_states(self, t: Tensor, alpha: Tensor, member: Member = 0) -> Tensor:
        return self._fault_on(t, alpha, member, 0)[0]

    def settings(self) -> dict[str, Any]:
        return {
            "dtype": str(self.dtype).removeprefix("torch."),
            "gate_s": self.gate_s,
            "chain": self.chain,
            "event_rate": self.event_rate,
        }

    def calibrate(self, scenarios: Sequence[Scenarios]) -> None:
        """Scale corrections by the size of what they must represent before synchronism is lost."""
        if self.calibrated:
            return
        x_0, n = self.physics.x_0.double().numpy(force=True), self.n_machines
        for member, data in enumerate(scenarios):
            kept = ~settled(data.states[..., :n])
            learned = {
                FAULT_ON: kept & (data.t > self.t_f) & (data.t <= data.t_c[:, None]),
                POST_CLEARING: kept & (data.t > data.t_c[:, None]),
            }
            for phase, mask in learned.items():
                if mask.any():
                    size = np.sqrt(np.mean((data.states[mask] - x_0) ** 2, axis=0))
                    self.output_scale[member, phase] = torch.as_tensor(np.maximum(size, 1e-6))
        self.calibrated.fill_(True)

    def extra_terms(self, rows: Rows) -> dict[str, Tensor]:
        """A soft chain is held together by the squared gap of the event states, in output scales."""
        return self._gap_of_events(rows, forward_only=False)

    def extra_terms_forward_only(self, rows: Rows) -> dict[str, Tensor]:
        return self._gap_of_events(rows, forward_only=True)

    def _gap_of_events(self, rows: Rows, forward_only: bool) -> dict[str, Tensor]:
        if self.chain == "hard":
            return {}
        with torch.set_grad_enabled(torch.is_grad_enabled() and not forward_only):
            fault_on = self.fault_on_states(rows.t_c, rows.alpha, rows.member)
        gap = self._own_event_state(rows.alpha, rows.t_c, rows.member) - fault_on
        return {"interface": (gap / self.output_scale[rows.member, POST_CLEARING]).square().mean()}

    def _evaluate(
        self, t: Tensor, alpha: Tensor, t_c: Tensor, member: Member, rated: Rated
    ) -> tuple[Tensor, Tensor | None]:
        """Each part is computed on the axes it depends on: the fault-on part never sees t_c."""
        index_shape = member.shape if isinstance(member, Tensor) else ()
        shape = common_shape(t.shape, alpha.shape, t_c.shape, index_shape)
        before, after = (t < self.t_f)[..., None], (t >= t_c).expand(shape)
        x, rates = self._fault_on(t.clamp(min=self.t_f), alpha, member, rated)
        x = torch.where(before, self.physics.x_0, x).expand(*shape, -1).clone()
        if rates is not None:
            rates = torch.where(before, torch.zeros_like(self.physics.x_0), rates).expand(*shape, -1).clone()
        if after.any():
            event, _ = self._fault_on(t_c, alpha, member, 0)
            its_t, its_alpha, its_t_c = (value.expand(shape)[after] for value in (t, alpha, t_c))
            its_member = member.expand(shape)[after] if isinstance(member, Tensor) else member
            x[after], post_rates = self._post_clearing(
                its_t, its_alpha, its_t_c, event.expand(*shape, -1)[after], its_member, rated
            )
            if rates is not None and post_rates is not None:
                rates[after] = post_rates
        return x, rates

    def _rows(
        self, t: Tensor, alpha: Tensor, t_c: Tensor, member: Member, rated: int, forward_only: bool
    ) -> tuple[Tensor, Tensor]:
        """States (m, 2 n) and first rates (r, 2 n) of rows (m,) from t_f on; a network sees only rows that need it.

        Rows are sorted into those during the fault and those after clearing, each with the rated ones first.
        """
        after = t >= t_c
        order = torch.cat([(~after).nonzero()[:, 0], after.nonzero()[:, 0]])
        count = len(t) - int(after.sum())
        during, cleared = order[:count], order[count:]
        its_member = member[order] if isinstance(member, Tensor) else member
        first, second = _split(its_member, count)
        fault_rated, post_rated = int((during < rated).sum()), int((cleared < rated).sum())
        if forward_only:
            x, rate = self._fault_on(t[during], alpha[during], first, fault_rated)
            with torch.no_grad():
                event, _ = self._fault_on(t_c[cleared], alpha[cleared], second, 0)
        else:
            x, rate = self._fault_on(torch.where(after, t_c, t)[order], alpha[order], its_member, fault_rated)
            x, event = x[:count], x[count:]
        x_post, rate_post = self._post_clearing(t[cleared], alpha[cleared], t_c[cleared], event, second, post_rated)
        states = torch.empty(len(t), x.shape[-1], dtype=x.dtype, device=x.device).index_copy(
            0, order, torch.cat([x, x_post])
        )
        if not rated:
            return states, states[:0]
        places = torch.cat([during[:fault_rated], cleared[:post_rated]])
        rates = torch.cat([part for part in (rate, rate_post) if part is not None])
        return states, torch.empty_like(states[:rated]).index_copy(0, places, rates)

    def _fault_on(self, t: Tensor, alpha: Tensor, member: Member, rated: Rated) -> tuple[Tensor, Tensor | None]:
        inputs, velocity = self.inputs.fault_on(t, alpha)
        A, A_rate = self._scaled(FAULT_ON, inputs, _rates(velocity, rated), member)
        s = t - self.t_f
        if self.event_rate == "free":
            return state_gated(self.physics.x_0, s, self.gate_s, A, A_rate)
        start = self.physics.expand_initial(alpha, member)
        return taylor_gated(start, s, self.gate_s, self.physics.omega_b, A, A_rate)

    def _post_clearing(
        self, t: Tensor, alpha: Tensor, t_c: Tensor, event: Tensor, member: Member, rated: Rated
    ) -> tuple[Tensor, Tensor | None]:
        inputs, velocity = self.inputs.post_clearing(t, alpha, t_c)
        A, A_rate = self._scaled(POST_CLEARING, inputs, _rates(velocity, rated), member)
        if self.chain == "soft":
            event = self._own_event_state(alpha, t_c, member)
            A = self.physics.x_0 + A - event
        s = t - t_c
        if self.event_rate == "free":
            return state_gated(event, s, self.gate_s, A, A_rate)
        start = self.physics.expand(self.physics.post_clearing(member), event)
        return taylor_gated(start, s, self.gate_s, self.physics.omega_b, A, A_rate)

    def _own_event_state(self, alpha: Tensor, t_c: Tensor, member: Member) -> Tensor:
        inputs, _ = self.inputs.post_clearing(t_c, alpha, t_c)
        return self.physics.x_0 + self._scaled(POST_CLEARING, inputs, None, member)[0]

    def _scaled(self, phase: int, inputs: Tensor, rate: Tensor | None, member: Member) -> tuple[Tensor, Tensor | None]:
        A, A_rate = self.correction(phase, inputs, rate, member)
        scale = self.output_scale[member, phase]
        if A_rate is None:
            return scale * A, None
        return scale * A, (scale if scale.ndim == 1 or A_rate.shape == A.shape else scale[: len(A_rate)]) * A_rate


def _rates(velocity: Tensor, rated: Rated) -> Tensor | None:
    """Time derivatives of inputs, from the one that all rows have: of all, of the first so many, or of none."""
    if rated == "all":
        return velocity
    return velocity.expand(rated, -1) if rated else None


def _split(member: Member, count: int) -> tuple[Member, Member]:
    """The members of the first rows and of the rest."""
    return (member[:count], member[count:]) if isinstance(member, Tensor) else (member, member)


class ESPINN(EventStructured):
    """One contingency; 2-[64]x5 and 3-[128]x7 sine networks: 118,744 parameters on six machines."""

    def __init__(
        self,
        members: Sequence[PhaseOperators],
        *,
        dtype: str = "float32",
        fault_width: int = 64,
        fault_depth: int = 5,
        post_width: int = 128,
        post_depth: int = 7,
        w0: float = SINE_FREQUENCY,
        gate_s: float = GATE_S,
        chain: Chain = "hard",
        event_rate: EventRate = "prescribed",
    ) -> None:
        if len(members) != 1:
            raise UsageError(f"es-pinn learns one contingency, not {len(members)}; use moe for a family.")
        super().__init__(members, dtype, gate_s, chain, event_rate)
        self.dimensions = {
            "fault_width": fault_width,
            "fault_depth": fault_depth,
            "post_width": post_width,
            "post_depth": post_depth,
        }
        self.w0 = w0
        out = 2 * self.n_machines
        self.fault_network = Stack([2, *[fault_width] * fault_depth, out], self.dtype, "sine", w0=w0)
        self.post_network = Stack([3, *[post_width] * post_depth, out], self.dtype, "sine", w0=w0)

    def correction(
        self, phase: int, inputs: Tensor, rate: Tensor | None, member: Member
    ) -> tuple[Tensor, Tensor | None]:
        network = self.fault_network if phase == FAULT_ON else self.post_network
        out: tuple[Tensor, Tensor | None] = network(inputs, rate)
        return out

    def settings(self) -> dict[str, Any]:
        return {**super().settings(), **self.dimensions, "w0": self.w0}


class HardRoutedMoE(EventStructured):
    """A family; E_{k,q}[N_q(H(zeta_q, q))]: half the parameters of two separate ES-PINNs.

    Parameters
    ----------
    trunk_depth, neck_depth, width : int
        Hidden layers and their width in the shared trunk and in the neck of each phase.
    expert_width : int
        Width of the one hidden layer of each expert.
    """

    def __init__(
        self,
        members: Sequence[PhaseOperators],
        *,
        dtype: str = "float32",
        width: int = 128,
        trunk_depth: int = 3,
        neck_depth: int = 1,
        expert_width: int = 89,
        w0: float = SINE_FREQUENCY,
        gate_s: float = GATE_S,
    ) -> None:
        super().__init__(members, dtype, gate_s)
        self.dimensions = {
            "width": width,
            "trunk_depth": trunk_depth,
            "neck_depth": neck_depth,
            "expert_width": expert_width,
        }
        self.w0, count = w0, len(self.members)
        self.trunk = Stack([4, *[width] * trunk_depth], self.dtype, "sine", last_linear=False, w0=w0)
        self.necks = torch.nn.ModuleList(
            Stack([width] * (neck_depth + 1), self.dtype, "sine", first=False, last_linear=False, w0=w0)
            for _ in range(2)
        )
        expert = [width, expert_width, 2 * self.n_machines]
        self.experts = torch.nn.ModuleList(Experts(count, expert, self.dtype, "sine", w0) for _ in range(2))

    def correction(
        self, phase: int, inputs: Tensor, rate: Tensor | None, member: Member
    ) -> tuple[Tensor, Tensor | None]:
        padding = inputs.new_zeros(3 - inputs.shape[-1])  # the fault-on phase has no clearing instant
        label = inputs.new_tensor([-1.0 if phase == FAULT_ON else 1.0])
        ends = torch.cat([padding, label])
        inputs = torch.cat([inputs, ends.expand(*inputs.shape[:-1], -1)], dim=-1)
        if rate is not None:
            rate = torch.cat([rate, torch.zeros_like(ends).expand(*rate.shape[:-1], -1)], dim=-1)
        shared, shared_rate = self.necks[phase](*self.trunk(inputs, rate))
        out: tuple[Tensor, Tensor | None] = self.experts[phase](shared, shared_rate, member)
        return out

    def settings(self) -> dict[str, Any]:
        mine = super().settings()
        del mine["chain"], mine["event_rate"]
        return {**mine, **self.dimensions, "w0": self.w0}

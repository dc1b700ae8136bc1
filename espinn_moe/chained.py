"""Our own form: learned phases cut into short windows, each hard-chained to the last.

Within a window that starts at x, a time s = tau h later,

    omega = omega_0 + a s + b s^2/2 + sum_j c_j(x) phi_j(tau),   phi_j(tau) = O(tau^3),

and delta is its exact time integral, so d delta/dt = omega_b (omega - 1) holds identically. The
Taylor coefficients a, b are those of the active phase; one small network per phase gives the
coefficients c of the remainder from the state at the window's start, for all windows. The
near-discontinuity at the stability boundary then arises by composition of smooth maps. The network
runs once per window, however many instants of it are asked for.
"""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from contingencies.errors import UsageError
from contingencies.operators import PhaseOperators
from espinn_moe.ansatz import taylor
from espinn_moe.inputs import StateInputs
from espinn_moe.layers import Experts, Stack
from espinn_moe.model import FAULT_ON, POST_CLEARING
from espinn_moe.physics import Expansion, Index, Phase, Physics
from espinn_moe.surrogate import Member, Surrogate

WINDOW_S = 0.06  # long enough that something is left to learn, short against the swings
TERMS = 4  # of the remainder; each is about 1/30 of the one before, so the fifth is below 1e-5 of the first
UNTRAINED_SCALE = 1e-5  # pu, typical remainder of a window, until the scales are measured


@dataclass(frozen=True, eq=False)
class Windows:
    """Starts and remainders of windows."""

    start: Expansion  # (..., n)
    remainder: Tensor  # (..., n, terms), pu

    def __getitem__(self, rows: Index) -> "Windows":
        """Some of the windows."""
        return Windows(self.start[rows], self.remainder[rows])


class RemainderBasis:
    """Polynomials tau^3 p_j(tau), orthonormal over a window: omega, its derivative and its integral."""

    def __init__(self, terms: int) -> None:
        self.powers = np.arange(3, 3 + terms)
        gram = 1.0 / (self.powers[:, None] + self.powers + 1.0)
        self.mix = np.linalg.inv(np.linalg.cholesky(gram)).T  # (powers, terms)

    def __call__(self, tau: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """phi, d phi/d tau and the integral of phi from 0, each (..., terms), at tau (...)."""
        p, mix = tau.new_tensor(self.powers), tau.new_tensor(self.mix)
        powers = [tau.square()]
        for _ in self.powers:
            powers.append(powers[-1] * tau)
        slope, value = torch.stack(powers[:-1], dim=-1), torch.stack(powers[1:], dim=-1)
        return value @ mix, (p * slope) @ mix, (value * tau[..., None] / (p + 1)) @ mix


class Chained(Surrogate):
    """Windows of length `window_s`, counted from t_f in the fault-on phase and from t_c after clearing.

    Parameters
    ----------
    members : sequence of PhaseOperators
    dtype : str
        "float64" unless only rough trajectories are wanted: the network learns a Taylor remainder.
    window_s : float
        Length of a window, s.
    terms : int
        Polynomials in the remainder.
    expert_of : (fault-on, post-clearing)
        Which expert answers for each member.
    """

    margin_kind = "hard"  # accurate enough that smoothing would be the larger part of the error

    calibrated: Tensor
    fault_scale: Tensor
    post_scale: Tensor
    fault_expert: Tensor
    post_expert: Tensor

    def __init__(
        self,
        members: Sequence[PhaseOperators],
        dtype: str,
        window_s: float,
        terms: int,
        expert_of: tuple[Sequence[int], Sequence[int]],
    ) -> None:
        super().__init__(members, getattr(torch, dtype))
        if not window_s > 0:
            raise UsageError(f"windows of {window_s} s are none; use a length such as {WINDOW_S}.")
        self.window_s, self.terms = window_s, terms
        self.t_f = self.members[0].window.t_f
        self.physics = Physics(self.members, self.dtype)
        self.basis = RemainderBasis(terms)
        self.fault_inputs = StateInputs(self.physics, with_severity=True, dtype=self.dtype)
        self.post_inputs = StateInputs(self.physics, with_severity=False, dtype=self.dtype)
        self.expert_of = tuple(tuple(index) for index in expert_of)
        for name, index in zip(("fault", "post"), self.expert_of, strict=True):
            shape = (max(index) + 1, self.n_machines, terms)
            self.register_buffer(f"{name}_scale", torch.full(shape, UNTRAINED_SCALE, dtype=self.dtype))
            self.register_buffer(f"{name}_expert", torch.tensor(index), persistent=False)
        self.register_buffer("calibrated", torch.tensor(False))

    @abstractmethod
    def network(self, phase: int, inputs: Tensor, expert: int | Tensor) -> Tensor:
        """Remainder coefficients (..., n * terms) in units of their scale, from standardised inputs."""

    def settings(self) -> dict[str, Any]:
        return {
            "dtype": str(self.dtype).removeprefix("torch."),
            "window_s": self.window_s,
            "terms": self.terms,
        }

    # --- one window ---------------------------------------------------------------------------

    def operator(self, phase: int, alpha: Tensor, member: Member) -> Phase:
        """Operator of a learned phase for rows with severities alpha (...)."""
        return self.physics.fault_on(alpha, member) if phase == FAULT_ON else self.physics.post_clearing(member)

    def expert(self, phase: int, member: Member) -> int | Tensor:
        """Which expert answers for a member."""
        if isinstance(member, Tensor):
            return (self.fault_expert if phase == FAULT_ON else self.post_expert)[member]
        return self.expert_of[phase][member]

    def inputs(self, phase: int) -> StateInputs:
        """What the networks of a phase see."""
        return self.fault_inputs if phase == FAULT_ON else self.post_inputs

    def scale(self, phase: int) -> Tensor:
        """Size of the remainder coefficients of each expert, (experts, n, terms), pu."""
        return self.fault_scale if phase == FAULT_ON else self.post_scale

    def remainder(self, phase: int, inputs: Tensor, member: Member) -> Tensor:
        """Remainder coefficients (..., n, terms), pu, from standardised inputs (..., width)."""
        expert = self.expert(phase, member)
        unscaled = self.network(phase, inputs, expert)
        return self.scale(phase)[expert] * unscaled.unflatten(-1, (self.n_machines, self.terms))

    def begin(self, phase: int, operator: Phase, x: Tensor, alpha: Tensor, member: Member) -> Windows:
        """Windows that start at states x (..., 2 n)."""
        start = self.physics.expand(operator, x)
        inputs = self.inputs(phase)(self.physics, start, alpha)
        return Windows(start, self.remainder(phase, inputs, member))

    def at(self, windows: Windows, tau: Tensor, with_rates: bool = True) -> tuple[Tensor, Tensor | None]:
        """States and right-hand derivatives (..., 2 n) a fraction tau (...) into the windows."""
        phi, slope, integral = (part[..., None] for part in self.basis(tau))
        c = windows.remainder
        return self._assembled(
            windows.start,
            tau,
            (c @ integral).squeeze(-1),
            (c @ phi).squeeze(-1),
            (c @ slope).squeeze(-1) if with_rates else None,
        )

    def at_nodes(self, windows: Windows, nodes: Tensor) -> tuple[Tensor, Tensor]:
        """States and right-hand derivatives (m, J, 2 n) at the same fractions (J,) of windows (m,)."""
        phi, slope, integral = (part.mT for part in self.basis(nodes))
        c = windows.remainder
        x, rate = self._assembled(windows.start.for_samples(), nodes, (c @ integral).mT, (c @ phi).mT, (c @ slope).mT)
        assert rate is not None
        return x, rate

    def _assembled(
        self, start: Expansion, tau: Tensor, angle: Tensor, omega: Tensor, slope: Tensor | None
    ) -> tuple[Tensor, Tensor | None]:
        """Taylor expansion plus remainder, from the remainder's integral, value and slope in tau."""
        h, omega_b = self.window_s, self.physics.omega_b
        x, rate = taylor(start, h * tau, omega_b)
        x = x + torch.cat([omega_b * h * angle, omega], dim=-1)
        return x, None if slope is None else rate + torch.cat([omega_b * omega, slope / h], dim=-1)

    # --- the chain ----------------------------------------------------------------------------

    def chain(self, phase: int, x: Tensor, alpha: Tensor, member: Member, count: int) -> Windows:
        """`count` windows one after another from states x (m, 2 n), stacked in front: (count, m, ...)."""
        operator = self.operator(phase, alpha, member)
        one = x.new_ones(())
        phi, _, integral = self.basis(one)
        windows = []
        for _ in range(count):
            window = self.begin(phase, operator, x, alpha, member)
            x, _ = self._assembled(window.start, one, window.remainder @ integral, window.remainder @ phi, None)
            windows.append(window)
        fields = ("delta", "omega", "v", "a", "b")
        start = Expansion(*(torch.stack([getattr(w.start, name) for w in windows]) for name in fields))
        return Windows(start, torch.stack([w.remainder for w in windows]))

    def states(self, t: Tensor, alpha: Tensor, t_c: Tensor, member: Member = 0) -> Tensor:
        return self._evaluate(t, alpha, t_c, member, with_rates=False)[0]

    def states_and_rates(self, t: Tensor, alpha: Tensor, t_c: Tensor, member: Member = 0) -> tuple[Tensor, Tensor]:
        return self._evaluate(t, alpha, t_c, member, with_rates=True)

    def _evaluate(
        self, t: Tensor, alpha: Tensor, t_c: Tensor, member: Member, with_rates: bool
    ) -> tuple[Tensor, Tensor]:
        """The fault-on chain runs once per (alpha, member), the post-clearing chain once per scenario."""
        index_shape = member.shape if isinstance(member, Tensor) else ()
        by_severity = torch.broadcast_shapes(alpha.shape, index_shape)
        by_scenario = torch.broadcast_shapes(by_severity, t_c.shape)
        shape = torch.broadcast_shapes(by_scenario, t.shape)
        x = self.physics.x_0.expand(*shape, -1).clone()
        rates = torch.zeros_like(x)
        faulted = ((t >= self.t_f) & (t < t_c)).expand(shape)
        cleared = (t >= t_c).expand(shape)
        if not x.numel() or not bool((faulted | cleared).any()):
            return x, rates

        severities = _flat(alpha, by_severity)
        last = float(torch.minimum(t.max(), t_c.max()).detach())
        fault = self.chain(
            FAULT_ON,
            self.physics.x_0.expand(len(severities), -1),
            severities,
            _member(member, by_severity),
            self._count(last - self.t_f),
        )
        row = torch.arange(len(severities), device=t.device).reshape(by_severity)
        if faulted.any():
            places = row.expand(shape)[faulted], t.expand(shape)[faulted] - self.t_f
            x[faulted], faulted_rates = self._sample(fault, *places, with_rates)
            if faulted_rates is not None:
                rates[faulted] = faulted_rates
        if cleared.any():
            instants = _flat(t_c, by_scenario)
            reached = (instants <= t.max()).nonzero().squeeze(-1)  # later events leave no trace in the answer
            instants = instants[reached]
            event, _ = self._sample(fault, _flat(row, by_scenario)[reached], instants - self.t_f, False)
            its_member = _member(member, by_scenario)
            its_member = its_member[reached] if isinstance(its_member, Tensor) else its_member
            count = self._count(float((t.max() - instants.min()).detach()))
            post = self.chain(POST_CLEARING, event, _flat(alpha, by_scenario)[reached], its_member, count)
            row = torch.zeros(t_c.expand(by_scenario).numel(), dtype=torch.int64, device=t.device)
            row[reached] = torch.arange(len(reached), device=t.device)
            row = row.reshape(by_scenario).expand(shape)[cleared]
            x[cleared], cleared_rates = self._sample(post, row, (t - t_c).expand(shape)[cleared], with_rates)
            if cleared_rates is not None:
                rates[cleared] = cleared_rates
        return x, rates

    def _sample(self, windows: Windows, row: Tensor, s: Tensor, with_rates: bool) -> tuple[Tensor, Tensor | None]:
        """States and rates (m, 2 n) a time s (m,) after the beginning of the chain in `row` (m,)."""
        count = len(windows.remainder)
        place = (s.detach() / self.window_s).floor().long().clamp(0, count - 1)
        tau = (s - place * self.window_s) / self.window_s
        return self.at(windows[place, row], tau, with_rates)

    def _count(self, duration: float) -> int:
        """Windows that cover a duration."""
        return max(1, int(np.ceil(duration / self.window_s - 1e-9)))


class ChainedESPINN(Chained):
    """One contingency: a tanh network per phase."""

    def __init__(
        self,
        members: Sequence[PhaseOperators],
        *,
        dtype: str = "float64",
        window_s: float = WINDOW_S,
        terms: int = TERMS,
        width: int = 64,
        depth: int = 2,
    ) -> None:
        if len(members) != 1:
            raise UsageError(f"es-pinn-chained learns one contingency, not {len(members)}; use moe-chained.")
        super().__init__(members, dtype, window_s, terms, ((0,), (0,)))
        self.width, self.depth = width, depth
        self.networks = torch.nn.ModuleList(
            Stack([inputs.width, *[width] * depth, self.n_machines * terms], self.dtype, "tanh")
            for inputs in (self.fault_inputs, self.post_inputs)
        )

    def network(self, phase: int, inputs: Tensor, expert: int | Tensor) -> Tensor:
        out: Tensor = self.networks[phase](inputs)[0]
        return out

    def settings(self) -> dict[str, Any]:
        return {**super().settings(), "width": self.width, "depth": self.depth}


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


def same_topology(members: Sequence[PhaseOperators]) -> tuple[int, ...]:
    """For each member, which of the distinct post-clearing operators is its own, in order of appearance."""
    seen: list[PhaseOperators] = []
    index = []
    for operators in members:
        for place, other in enumerate(seen):
            if (
                set(operators.removed_branches) == set(other.removed_branches)
                and np.array_equal(operators.P_m_post, other.P_m_post)
            ):  # fmt: skip
                index.append(place)
                break
        else:
            index.append(len(seen))
            seen.append(operators)
    return tuple(index)


def _flat(value: Tensor, shape: torch.Size) -> Tensor:
    return value.expand(shape).reshape(-1)


def _member(member: Member, shape: torch.Size) -> Member:
    return _flat(member, shape) if isinstance(member, Tensor) else member

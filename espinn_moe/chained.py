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
from typing import Any

import numpy as np
import torch
from torch import Tensor

from contingencies.errors import UsageError
from contingencies.operators import PhaseOperators
from contingencies.separation import spread
from espinn_moe.inputs import StateInputs
from espinn_moe.layers import Stack, common_shape
from espinn_moe.phases import FAULT_ON, POST_CLEARING
from espinn_moe.physics import MANY_MACHINES, Expansion, Phase, Physics
from espinn_moe.surrogate import Follow, Member, Surrogate
from espinn_moe.windows import Chains, RemainderBasis, Windows

WINDOW_S = 0.06  # long enough that something is left to learn, short against the swings
TERMS = 4  # of the remainder; each is about 1/30 of the one before, so the fifth is below 1e-5 of the first
SAMPLES_AT_ONCE = 4096  # each is given the whole of its window: more of them outgrow the caches
WIDTH, WIDTH_OF_MANY_POINTS = 64, 96  # of the networks for one operating point, and for all within conditions
UNTRAINED_SCALE = 1e-5  # pu, typical remainder of a window, until the scales are measured


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
    swept : bool
        Whether the networks learn what one sweep of the swing equation along the Taylor expansion leaves.
    """

    knows_conditions = True
    margin_kind = "hard"  # accurate enough that smoothing would be the larger part of the error

    calibrated: Tensor
    polynomials: Tensor
    step: Tensor
    nodes: Tensor
    fit: Tensor
    own: Tensor
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
        swept: bool = False,
    ) -> None:
        super().__init__(members, getattr(torch, dtype))
        if not window_s > 0:
            raise UsageError(f"windows of {window_s} s are none; use a length such as {WINDOW_S}.")
        self.window_s, self.terms = window_s, terms
        self.t_f = self.members[0].window.t_f
        self.physics = Physics(self.members, self.dtype)
        self.basis = RemainderBasis(terms)
        polynomials = self.basis.polynomials(window_s, self.physics.omega_b)
        step = polynomials[:, :2].sum(0)  # parts to the state at the window's end
        if self.n_machines < MANY_MACHINES:  # as one product with many zeros, which is quick while it is small
            step = np.kron(step.T, np.eye(self.n_machines))
        self.swept = swept
        nodes, fit = self.basis.collocation(window_s)
        for name, values in (("polynomials", polynomials), ("step", step), ("nodes", nodes), ("fit", fit)):
            self.register_buffer(name, torch.tensor(values, dtype=self.dtype), persistent=False)
        everything = tuple(range(len(self.axes)))
        lasting = tuple(place for place in everything if self.axes[place].name != "position")  # after clearing, too
        self.fault_inputs = StateInputs(self.physics, True, self.dtype, everything)
        self.post_inputs = StateInputs(self.physics, False, self.dtype, lasting)
        own = [m.family.own for m in self.members if m.family is not None]
        self.register_buffer("own", torch.tensor(np.array(own), dtype=self.dtype), persistent=False)
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

    def settle_at(self, operators: PhaseOperators, values: Sequence[float], member: int = 0) -> None:
        """Ask a member at one operating point (d,) wherever no conditions are given; `operators` are those there."""
        self.own[member] = torch.tensor(list(values), dtype=self.dtype)
        self.members = tuple(operators if k == member else each for k, each in enumerate(self.members))

    def operator(self, phase: int, alpha: Tensor, member: Member, conditions: Tensor | None = None) -> Phase:
        """Operator of a learned phase for rows with severities alpha (...), and conditions (m, d) if the model has."""
        if phase == FAULT_ON:
            return self.physics.fault_on(alpha, member, conditions)
        return self.physics.post_clearing(member, conditions)

    def described(
        self, phase: int, start: Expansion, alpha: Tensor, conditions: Tensor | None, raw: bool = False
    ) -> Tensor:
        """What the network of a phase sees of windows that start at an expansion (..., n), (..., width)."""
        if conditions is not None:
            assert self.physics.varied is not None
            conditions = self.physics.varied.scaled(conditions)
        inputs = self.inputs(phase)
        return (inputs.raw if raw else inputs)(self.physics, start, alpha, conditions)

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

    def begin(
        self, phase: int, operator: Phase, x: Tensor, alpha: Tensor, member: Member, conditions: Tensor | None = None
    ) -> Windows:
        """Windows that start at states x (..., 2 n)."""
        start = self.physics.expand(operator, x)
        remainder = self.remainder(phase, self.described(phase, start, alpha, conditions), member)
        return Windows(start, remainder + self.sweep(operator, start) if self.swept else remainder)

    def sweep(self, operator: Phase, start: Expansion, remainder: Tensor | None = None) -> Tensor:
        """Coefficients (..., n, terms), pu, that the swing equation gives at the nodes of a path, theory.md eq. (67).

        Parameters
        ----------
        operator : Phase
        start : Expansion (..., n)
        remainder : Tensor (..., n, terms), optional
            Of the path; default: the Taylor expansion alone.
        """
        if remainder is None:
            remainder = start.delta.new_zeros(*start.delta.shape, self.terms)
        x, _ = self.at_nodes(Windows(start, remainder), self.nodes)
        rate = self.physics.field(operator.for_samples(), x)[..., self.n_machines :]
        local = start.for_samples()
        left = rate - local.a - self.window_s * self.nodes[:, None] * local.b
        return left.mT @ self.fit

    def at(self, parts: Tensor, tau: Tensor, with_rates: bool = True) -> tuple[Tensor, Tensor | None]:
        """States and right-hand derivatives (..., 2 n) a fraction tau (...) into windows of parts (..., parts, n)."""
        out = (self._weights(tau, with_rates) @ parts).flatten(-2)
        return out[..., : 2 * self.n_machines], out[..., 2 * self.n_machines :] if with_rates else None

    def at_nodes(self, windows: Windows, nodes: Tensor) -> tuple[Tensor, Tensor]:
        """States and right-hand derivatives (m, J, 2 n) at the same fractions (J,) of windows (m,)."""
        weights = self._weights(nodes, with_rates=True)
        out = (weights.flatten(0, 1) @ windows.parts()).unflatten(-2, (len(nodes), 4)).flatten(-2)
        return out[..., : 2 * self.n_machines], out[..., 2 * self.n_machines :]

    def _end(self, parts: Tensor) -> Tensor:
        """States (m, 2 n) at the end of windows of parts (m, parts, n)."""
        if self.n_machines < MANY_MACHINES:
            return parts.flatten(-2) @ self.step
        return (self.step @ parts).flatten(-2)

    def _weights(self, tau: Tensor, with_rates: bool) -> Tensor:
        """How much each part counts in angles, speeds and their derivatives, (..., 2 or 4, parts), at tau (...)."""
        polynomials = self.polynomials[:, : 4 if with_rates else 2]
        powers = [torch.ones_like(tau)]
        for _ in polynomials[1:]:
            powers.append(powers[-1] * tau)
        return (torch.stack(powers, dim=-1) @ polynomials.flatten(1)).unflatten(-1, polynomials.shape[1:])

    # --- the chain ----------------------------------------------------------------------------

    def chain(
        self,
        phase: int,
        x: Tensor,
        alpha: Tensor,
        member: Member,
        lengths: Tensor,
        limit: float | None = None,
        conditions: Tensor | None = None,
    ) -> Chains:
        """Windows one after another.

        Parameters
        ----------
        phase : int
        x : Tensor (m, 2 n)
            States at which the chains begin.
        alpha, member
            Severities (m,), and members (m,) or one for all.
        lengths : Tensor (m,)
            How many windows each row needs.
        limit : float, optional
            Separation, rad, at which a row ends early, with the first window that ends beyond it.
        conditions : Tensor (m, d), optional
            Operating points, of a model with conditions.
        """
        operator, lengths = self.operator(phase, alpha, member, conditions), lengths.clone()
        n = self.n_machines
        row = numbers = torch.arange(len(x), device=x.device)
        where = torch.zeros(int(lengths.max()), len(x), dtype=torch.int64, device=x.device)
        windows, total = [], 0
        for place in range(len(where)):
            window = self.begin(phase, operator, x, alpha, member, conditions).parts()
            windows.append(window)
            x = self._end(window)
            where[place, row] = total + numbers[: len(row)]
            total += len(row)
            if limit is not None:
                lost = spread(x[:, :n]) > limit
                lengths[row[lost]] = place + 1
            on = (lengths[row] > place + 1).nonzero().squeeze(-1)
            if not len(on):
                break
            if len(on) < len(row):
                row, x, alpha, operator = row[on], x[on], alpha[on], operator[on]
                member = member[on] if isinstance(member, Tensor) else member
                conditions = None if conditions is None else conditions[on]
        return Chains(torch.cat(windows), where, lengths)

    def states(
        self, t: Tensor, alpha: Tensor, t_c: Tensor, member: Member = 0, conditions: Tensor | None = None
    ) -> Tensor:
        """As the interface says; conditions (..., d) go with severities (...), default the case's own."""
        return self._evaluate(t, alpha, t_c, member, conditions, with_rates=False)[0]

    def states_and_rates(
        self, t: Tensor, alpha: Tensor, t_c: Tensor, member: Member = 0, conditions: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        x, rates = self._evaluate(t, alpha, t_c, member, conditions, with_rates=True)
        assert rates is not None
        return x, rates

    def trajectories(
        self,
        t: Tensor,
        alpha: Tensor,
        t_c: Tensor,
        member: int = 0,
        limit: float | None = None,
        conditions: Tensor | None = None,
    ) -> Tensor:
        """As the interface says; the windows after the limit is passed are left out."""
        points = None if conditions is None else conditions[:, None, None]
        return self._evaluate(t[..., None, :], alpha[:, None, None], t_c[..., None], member, points, False, limit)[0]

    def follow(self, alpha: Tensor, member: int = 0) -> Follow:
        """As the interface says; what happens before clearing is evaluated once for each severity."""
        if self.axes or not len(alpha):  # a contingency that is censored throughout has no severity to follow
            return super().follow(alpha, member)
        longest = alpha.new_full(alpha.shape, self.members[member].window.t_c[1] - self.t_f)
        begin = self.physics.initial(None).expand(len(alpha), -1)
        fault = self.chain(FAULT_ON, begin, alpha, member, self._count(longest))
        return lambda row, t, t_c, limit: self._evaluate(
            t[..., None, :], alpha[row, None, None], t_c[..., None], member, None, False, limit, fault[row]
        )[0]

    def _evaluate(
        self,
        t: Tensor,
        alpha: Tensor,
        t_c: Tensor,
        member: Member,
        conditions: Tensor | None,
        with_rates: bool,
        limit: float | None = None,
        fault: Chains | None = None,
    ) -> tuple[Tensor, Tensor | None]:
        """Each part on the axes it depends on: fault-on chains per severity, post-clearing ones per scenario."""
        index_shape = member.shape if isinstance(member, Tensor) else ()
        if self.axes and conditions is None:
            conditions = self.own[member]
        points_shape = () if conditions is None else conditions.shape[:-1]
        by_severity = common_shape(alpha.shape, index_shape, points_shape)
        by_scenario = common_shape(by_severity, t_c.shape)
        by_time, shape = (common_shape(some, t.shape) for some in (by_severity, by_scenario))
        x_0 = self.physics.x_0
        if not shape.numel():
            return x_0.expand(*shape, -1), x_0.expand(*shape, -1) if with_rates else None

        longest = (torch.minimum(t.max(), t_c.max()) - self.t_f).detach().clamp(min=0.0)
        severities, points = _flat(alpha, by_severity), _points(conditions, by_severity)
        begin = self.physics.initial(points).expand(len(severities), -1)
        if fault is None:
            fault = self.chain(
                FAULT_ON, begin, severities, _member(member, by_severity),
                self._count(longest.expand(len(severities))), conditions=points,
            )  # fmt: skip
        row = torch.arange(len(severities), device=t.device).reshape(by_severity)
        since = _flat((t - self.t_f).clamp(0.0, float(longest)), by_time)
        found = self._sample(fault, _flat(row, by_time), since, with_rates)
        before = (t < self.t_f)[..., None]
        if conditions is not None:
            x_0 = begin.reshape(*by_severity, -1)
        x = torch.where(before, x_0, found[0].reshape(*by_time, -1)).expand(*shape, -1)
        rates = None
        if found[1] is not None:
            rates = torch.where(before, torch.zeros_like(x_0), found[1].reshape(*by_time, -1)).expand(*shape, -1)
        cleared = (t >= t_c).expand(shape)
        if not cleared.any():
            return x, rates

        instants = _flat(t_c, by_scenario)
        reached = (instants <= t.max()).nonzero().squeeze(-1)  # later events leave no trace in the answer
        instants = instants[reached]
        event, _ = self._sample(fault, _flat(row, by_scenario)[reached], instants - self.t_f, False)
        its_member = _member(member, by_scenario)
        its_member = its_member[reached] if isinstance(its_member, Tensor) else its_member
        its_alpha = _flat(alpha, by_scenario)[reached]
        points = None if conditions is None else _points(conditions, by_scenario)[reached]
        post = self.chain(POST_CLEARING, event, its_alpha, its_member, self._count(t.max() - instants), limit, points)
        row = torch.zeros(by_scenario, dtype=torch.int64, device=t.device)
        row.view(-1)[reached] = torch.arange(len(reached), device=t.device)
        if limit is not None:  # after the end of a chain nothing moves
            end = self.window_s * post.lengths.to(t)
            last, _ = self._sample(post, torch.arange(len(end), device=t.device), end, False)
            ended = cleared & (t - t_c >= end[row])
            x, cleared = torch.where(ended[..., None], last[row], x), cleared & ~ended
        since = (t - t_c).expand(shape)[cleared]
        found = self._sample(post, row.expand(shape)[cleared], since, with_rates)
        x = x.clone()
        x[cleared] = found[0]
        if rates is not None and found[1] is not None:
            rates = rates.clone()
            rates[cleared] = found[1]
        return x, rates

    def _sample(self, chains: Chains, row: Tensor, s: Tensor, with_rates: bool) -> tuple[Tensor, Tensor | None]:
        """States and rates (m, 2 n) a time s (m,) after the beginning of the chain in `row` (m,)."""
        found = [
            self.at(*chains.find(some, times, self.window_s), with_rates)
            for some, times in zip(row.split(SAMPLES_AT_ONCE), s.split(SAMPLES_AT_ONCE), strict=True)
        ]
        x, rates = torch.cat([x for x, _ in found]), [rate for _, rate in found if rate is not None]
        return x, torch.cat(rates) if with_rates else None

    def _count(self, duration: Tensor) -> Tensor:
        """Windows (m,) that cover durations (m,), s."""
        return torch.ceil(duration.detach() / self.window_s - 1e-9).long().clamp(min=1)


class ChainedESPINN(Chained):
    """One contingency: a tanh network per phase."""

    def __init__(
        self,
        members: Sequence[PhaseOperators],
        *,
        dtype: str = "float64",
        window_s: float = WINDOW_S,
        terms: int = TERMS,
        width: int | None = None,
        depth: int = 2,
    ) -> None:
        if len(members) != 1:
            raise UsageError(f"es-pinn-chained learns one contingency, not {len(members)}; use moe-chained.")
        super().__init__(members, dtype, window_s, terms, ((0,), (0,)))
        width = width or (WIDTH_OF_MANY_POINTS if self.axes else WIDTH)
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


def _flat(value: Tensor, shape: torch.Size) -> Tensor:
    return value.expand(shape).reshape(-1)


def _points(conditions: Any, shape: torch.Size) -> Any:
    """Conditions (..., d) for rows of a shape, (m, d)."""
    return None if conditions is None else conditions.expand(*shape, -1).reshape(shape.numel(), -1)


def _member(member: Member, shape: torch.Size) -> Member:
    return _flat(member, shape) if isinstance(member, Tensor) else member

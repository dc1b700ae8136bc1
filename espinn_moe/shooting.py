"""The shooting residual: what a surrogate's own event state leads to, by the swing equation, theory.md eqs. (50)-(51).

A pointwise residual is cheap to satisfy along a wrong trajectory: between two training instants, where trajectories
part, a smooth network draws a ramp. The integral form x(t) - Phi(x(t_c)) is not. Its labels are rolled out from the
surrogate's own states in scenarios that were never simulated, most of them close to the boundary that these rollouts
have. Labels carry no gradient, and what is learned after clearing does not move the event state: otherwise large late
errors at the boundary would move it, and the labels with it.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from contingencies.network import Float
from contingencies.rollouts import after_clearing, during_fault
from espinn_moe.losses import TrajectoryBatch, TrajectoryObjective, routing, weights_since_clearing
from espinn_moe.own_boundary import boundary_points, event_states
from espinn_moe.phases import settled
from espinn_moe.sampling import joined
from espinn_moe.surrogate import EventSurrogate, Rows, Scenarios

ROWS = 256  # samples of training scenarios per step
ROLLOUTS, SEGMENTS = 256, 128  # post-clearing and fault-on; one sample of each per step
ROLLOUTS_PER_MEMBER = 32  # at least, in a family
SEGMENT_S = 0.2  # length of a fault-on segment
REFRESH_STEPS = 60  # steps that learn from the same rollouts
MAP_STEPS = 400  # steps between two looks for the boundary, at least
BOUNDARY_SHARE = 0.6  # of the rollouts that begin close to the boundary
OFFSETS_S = (1.5e-4, 2e-2)  # how close in t_c, log-uniform on either side
DECAY = (2.0, 0.0)  # how fast weights fall with the time since clearing, 1/s, at the beginning and at the end


@dataclass(frozen=True, eq=False)
class ShootingBatch:
    """Samples of training scenarios, and samples of rollouts."""

    data: Rows
    rollouts: Rows


@dataclass(frozen=True, eq=False)
class RolloutPool:
    """Samples of rollouts, one after the other; `begins` and `sizes` (p,) say which belong to which."""

    samples: Rows
    begins: Tensor
    sizes: Tensor

    def draw(self, generator: torch.Generator) -> Rows:
        """One sample of each rollout."""
        along = torch.rand(len(self.sizes), generator=generator).to(self.begins.device)
        index = self.begins + (along * self.sizes).long().clamp(max=self.sizes - 1)
        return Rows(*(part[index] for part in _fields(self.samples)))


class ShootingObjective:
    """Two stages: data misfit with pointwise residuals first, then data misfit with the shooting residual.

    Parameters
    ----------
    model : EventSurrogate
        The one that is trained; rollouts begin at its states. Is calibrated by this.
    scenarios : sequence of Scenarios
        One entry per member.
    decisive : bool
        Learn only from what comes before the separation first passes 1.5 pi, which decides stability.
    rows, rollouts, segments : int
        Of the second stage: samples of training scenarios, post-clearing and fault-on rollouts.
    boundary_share : float
        Part of the post-clearing rollouts that begin close to the boundary.
    refresh_steps : int, optional
        Steps that learn from the same rollouts; more of them need fewer rollouts in all. By default `REFRESH_STEPS`.
    decay : (float, float)
        Rates at which rows of the second stage lose weight with the time since clearing, 1/s, at its beginning and end.
    first_stage
        Arguments of the `TrajectoryObjective` of the first stage.
    """

    def __init__(
        self,
        model: EventSurrogate,
        scenarios: Sequence[Scenarios],
        *,
        decisive: bool = False,
        rows: int = ROWS,
        rollouts: int = ROLLOUTS,
        segments: int = SEGMENTS,
        boundary_share: float = BOUNDARY_SHARE,
        refresh_steps: int | None = None,
        decay: tuple[float, float] = DECAY,
        **first_stage: Any,
    ) -> None:
        self.model, self.decisive = model, decisive
        self.first = TrajectoryObjective(model, scenarios, decisive=decisive, **first_stage)
        self.scales, self.weights = self.first.scales, {**self.first.weights, "shooting": 1.0}
        shares, least = self.first.shares, min(ROLLOUTS_PER_MEMBER, rollouts)
        self.rows = [math.ceil(share * rows) for share in shares]
        self.rollouts = [max(least, math.ceil(share * rollouts)) for share in shares]
        self.segments = [max(least // 2, math.ceil(share * segments)) for share in shares]
        self.boundary_share, self.decay = boundary_share, decay
        self.refresh_steps = refresh_steps or REFRESH_STEPS
        self._stage, self._done = 0, 0.0
        self._age = 0  # batches of the second stage
        self._boundary = [torch.empty(0, 2, dtype=torch.float64) for _ in model.members]
        self._pool: RolloutPool | None = None

    def advance(self, done: float, stage: int = 0) -> None:
        """Move on to a stage, and to the weights after a fraction of it."""
        self._stage, self._done = stage, done
        if stage == 0:
            self.first.advance(done)

    def batch(self, generator: torch.Generator) -> TrajectoryBatch | ShootingBatch:
        """Rows of the current stage; in the second, rollouts are renewed when they have been used for a while."""
        if self._stage == 0:
            return self.first.batch(generator)
        if self._age % max(MAP_STEPS, self.refresh_steps) == 0:
            self._boundary = [
                boundary_points(self.model, member, generator) for member in range(len(self.model.members))
            ]
        if self._age % self.refresh_steps == 0:
            self._pool = self.roll_out(generator)
        self._age += 1
        assert self._pool is not None
        data = [pool.draw(number, generator) for pool, number in zip(self.first.pools, self.rows, strict=True)]
        return ShootingBatch(joined(data), self._pool.draw(generator))

    def terms(self, model: EventSurrogate, batch: TrajectoryBatch | ShootingBatch) -> dict[str, Tensor]:
        """Of the first stage those of its objective; of the second data, shooting, and the model's own."""
        if isinstance(batch, TrajectoryBatch):
            return self.first.terms(model, batch)
        rows, count = joined([batch.data, batch.rollouts]), len(batch.data.t)
        x = model.states_forward_only(rows.t, rows.alpha, rows.t_c, routing(model, rows.member))
        misfit = self.first.misfit(x, rows.states)
        begin, end = self.decay
        decay = begin + self._done * (end - begin)
        return {
            "data": (weights_since_clearing(batch.data, decay) * misfit[:count]).mean(),
            "shooting": (weights_since_clearing(batch.rollouts, decay) * misfit[count:]).mean(),
        } | model.extra_terms_forward_only(batch.data)

    # --- rollouts -----------------------------------------------------------------------------

    def roll_out(self, generator: torch.Generator) -> RolloutPool:
        """New rollouts of both phases from the model's states as they are."""
        parts = []
        for member in range(len(self.model.members)):
            parts.append(self._after_clearing(member, *self.pairs(member, generator)))
            parts.append(self._during_fault(member, generator))
        sizes = torch.cat([sizes for _, sizes in parts])
        return RolloutPool(joined([rows for rows, _ in parts]), sizes.cumsum(0) - sizes, sizes)

    def pairs(self, member: int, generator: torch.Generator) -> tuple[Float, Float]:
        """Severities and clearing instants of post-clearing rollouts: close to the boundary, and anywhere."""
        operators, points, count = self.model.members[member], self._boundary[member], self.rollouts[member]
        near = round(self.boundary_share * count) if len(points) else 0
        u = torch.rand(count, 2, generator=generator, dtype=torch.float64)
        low = torch.tensor([operators.severity[0], operators.window.t_c[0]], dtype=torch.float64)
        high = torch.tensor([operators.severity[1], operators.window.t_c[1]], dtype=torch.float64)
        pairs = low + u * (high - low)
        if near:
            chosen = points[torch.randint(len(points), (near,), generator=generator)]
            closest, farthest = (math.log(offset) for offset in OFFSETS_S)
            offset = torch.exp(closest + u[:near, 0] * (farthest - closest)) * torch.sign(u[:near, 1] - 0.5)
            pairs[:near] = chosen + torch.stack([torch.zeros_like(offset), offset], dim=1)
        alpha, t_c = torch.minimum(torch.maximum(pairs, low), high).T.numpy()
        return alpha, t_c

    def _after_clearing(self, member: int, alpha: Float, t_c: Float) -> tuple[Rows, Tensor]:
        t, states = after_clearing(self.model.members[member], event_states(self.model, member, alpha, t_c), t_c)
        return self._samples(member, t, alpha, t_c, states)

    def _during_fault(self, member: int, generator: torch.Generator) -> tuple[Rows, Tensor]:
        operators, count = self.model.members[member], self.segments[member]
        (low, high), t_f, last = operators.severity, operators.window.t_f, operators.window.t_c[1]
        u = torch.rand(count, 2, generator=generator, dtype=torch.float64).numpy()
        seconds = min(SEGMENT_S, last - t_f)
        alpha, start = low + u[:, 0] * (high - low), t_f + u[:, 1] * (last - t_f - seconds)
        since, states = during_fault(operators, event_states(self.model, member, alpha, start), alpha, seconds)
        return self._samples(member, start[:, None] + since, alpha, np.full(count, last), states)

    def _samples(self, member: int, t: Float, alpha: Float, t_c: Float, states: Float) -> tuple[Rows, Tensor]:
        """Samples of rollouts (p, k) that are learned from, as rows, and how many each rollout has (p,)."""
        used = ~settled(states[..., : self.model.n_machines]) if self.decisive else np.ones(t.shape, dtype=bool)
        used[:, 0] = True  # a rollout that begins beyond 1.5 pi keeps its first sample
        rollout, sample = np.nonzero(used)
        columns = (self._tensor(c) for c in (t[rollout, sample], alpha[rollout], t_c[rollout], states[rollout, sample]))
        its_t, its_alpha, its_t_c, its_states = columns
        label = torch.full((len(rollout),), member, device=its_t.device)
        sizes = torch.as_tensor(used.sum(1), device=its_t.device)
        return Rows(its_t, its_alpha, its_t_c, label, its_states), sizes

    @property
    def rolled_out(self) -> int:
        """Post-clearing rollouts so far; those that look for the boundary are not learned from, and not counted."""
        return math.ceil(self._age / self.refresh_steps) * sum(self.rollouts)

    # --- what an interrupted training continues with ------------------------------------------

    def state(self) -> dict[str, Any]:
        """Age, boundary and rollouts: they come from states that the model had some steps ago."""
        pool = self._pool
        kept = None if pool is None else [*_fields(pool.samples), pool.begins, pool.sizes]
        return {"age": self._age, "boundary": self._boundary, "rollouts": kept}

    def restore(self, state: dict[str, Any]) -> None:
        """Take up the rollouts of an interrupted training."""
        self._age, self._boundary = state["age"], state["boundary"]
        if state["rollouts"] is not None:
            *samples, begins, sizes = (part.to(self._device) for part in state["rollouts"])
            self._pool = RolloutPool(Rows(*samples), begins, sizes)

    @property
    def _device(self) -> torch.device:
        return next(self.model.parameters()).device

    def _tensor(self, array: Float) -> Tensor:
        return torch.as_tensor(array, dtype=self.model.dtype, device=self._device)


def _fields(rows: Rows) -> Iterable[Tensor]:
    return rows.t, rows.alpha, rows.t_c, rows.member, rows.states

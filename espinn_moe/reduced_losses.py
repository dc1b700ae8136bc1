"""What chained models of many machines learn by: windows in the coordinates of their experts.

Members are worked off one after another, and of each only what training needs is kept: what its expert sees of a
window and the coordinates it should answer, some forty numbers where the states and targets of 54 machines are
four hundred. The swing equation is held to in windows without data as well: their coordinates are compared with
those that one more sweep of the equation along the predicted path gives (`Chained.sweep`). Its error is that of the
path times the small factor by which a sweep contracts, so what it gives is a target, not differentiated.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from espinn_moe.losses import check_count
from espinn_moe.phase_pools import PooledObjective, row_shares
from espinn_moe.phases import FAULT_ON, POST_CLEARING
from espinn_moe.reduced import ReducedMoE
from espinn_moe.reduced_basis import coordinates_of, set_basis
from espinn_moe.surrogate import Scenarios
from espinn_moe.window_data import ROWS_AT_ONCE, WindowSet, fitted_remainder, member_windows, starts
from espinn_moe.window_losses import LOST_SHARE, LOST_WEIGHT, ROWS, ROWS_PER_MEMBER

RESIDUAL_SHARE = 1 / 16  # windows without data per window with: each costs some ten evaluations of the field
RESIDUAL_WEIGHT = 0.1  # beside the misfit of windows with data
WINDOWS_PER_MEMBER = 8_000  # of each phase; the surface they lie on has two or three dimensions
NEARNESS = 0.2  # how far on the way from one state to another: the middle is a state that no trajectory comes near
STATES_PER_MEMBER = 1_000  # of each phase: starts of windows without data are mixtures of two of them


@dataclass(frozen=True, eq=False)
class ReducedRows:
    """One step's windows of one phase: r of each of K members with data, f of each without."""

    seen: Tensor  # (K, r, components)
    answer: Tensor  # (K, r, modes)
    weight: Tensor  # (K, r)
    free_x: Tensor  # (K, f, 2 n)
    free_alpha: Tensor  # (K, f)


class ReducedObjective(PooledObjective[ReducedMoE, ReducedRows]):
    """One-window pairs in the coordinates of the experts, and the swing equation in between.

    Parameters
    ----------
    model : ReducedMoE
        Is given its bases by this unless it has them.
    scenarios : sequence of Scenarios
        One entry per member; asked for one after another, so that they may be simulated when they are.
    rows : int
        Post-clearing windows per step, spread over the members (at least `ROWS_PER_MEMBER` each); half as many of
        the fault-on phase.
    residual_weight : float
        Relative to the data misfit.
    lost_share : float
        Part of the post-clearing rows taken after synchronism was lost.
    seed : int
        Of the choice of windows where there are more than enough.
    """

    def __init__(
        self,
        model: ReducedMoE,
        scenarios: Sequence[Scenarios],
        *,
        rows: int = 2 * ROWS,
        residual_weight: float = RESIDUAL_WEIGHT,
        lost_share: float = LOST_SHARE,
        seed: int = 0,
    ) -> None:
        check_count(model, scenarios)
        generator = np.random.default_rng(seed)
        kept: tuple[list[_Kept], list[_Kept]] = ([], [])
        for member, data in enumerate(scenarios):
            windows = member_windows(model, member, data, WINDOWS_PER_MEMBER, generator)
            for phase, cut in zip((FAULT_ON, POST_CLEARING), windows, strict=True):
                kept[phase].append(_keep(model, phase, member, cut))
        model.calibrated.fill_(True)
        shares = row_shares(rows, len(model.members), ROWS_PER_MEMBER, lost_share)
        pools = [
            _Pool(model, phase, parts, number, share)
            for phase, parts, (number, share) in zip((FAULT_ON, POST_CLEARING), kept, shares, strict=True)
        ]
        super().__init__(pools, residual_weight)


@dataclass(frozen=True, eq=False)
class _Kept:
    """What is kept of one member's windows of one phase, those before synchronism was lost first."""

    seen: Tensor  # (m, components)
    answer: Tensor  # (m, modes)
    weight: Tensor  # (m,)
    decisive: int  # how many come before synchronism was lost
    x: Tensor  # (s, 2 n) starts of some of these
    alpha: Tensor  # (s,)


@torch.no_grad()
def _keep(model: ReducedMoE, phase: int, member: int, data: WindowSet) -> _Kept:
    order = torch.argsort(data.lost.int(), stable=True)
    decisive = int((~data.lost).sum())
    inputs = model.described(phase, starts(model, phase, data), data.alpha, None)
    left = fitted_remainder(model, phase, data) - _swept(model, phase, data)
    if not model.calibrated:
        rows = order[: decisive or len(order)]
        set_basis(model, phase, member, inputs[rows], left[rows])
    answer, relative = coordinates_of(model, phase, member, left)
    weight = torch.where(data.lost, LOST_WEIGHT / (1.0 + relative), torch.ones_like(relative))
    some = order[: decisive or len(order)]
    some = some[torch.linspace(0, len(some) - 1, min(STATES_PER_MEMBER, len(some))).long()]
    seen = model.seen(phase, inputs, member)
    return _Kept(seen[order], answer[order], weight[order], decisive, data.x[some], data.alpha[some])


def _swept(model: ReducedMoE, phase: int, data: WindowSet) -> Tensor:
    """What one sweep says about the remainders of windows, (m, n, terms)."""
    parts = []
    for rows in torch.arange(len(data.x), device=data.x.device).split(ROWS_AT_ONCE):
        operator = model.operator(phase, data.alpha[rows], data.member[rows])
        parts.append(model.sweep(operator, model.physics.expand(operator, data.x[rows])))
    return torch.cat(parts)


class _Pool:
    """The kept windows of one phase, all members one after another."""

    def __init__(self, model: ReducedMoE, phase: int, kept: list[_Kept], per_member: int, lost_share: float) -> None:
        self.phase = phase
        self.seen, self.answer, self.weight, self.x, self.alpha = (
            torch.cat([getattr(each, name) for each in kept]) for name in ("seen", "answer", "weight", "x", "alpha")
        )
        device = self.seen.device
        total, decisive, states = (
            torch.tensor([number(each) for each in kept], device=device)
            for number in (lambda k: len(k.seen), lambda k: k.decisive, lambda k: len(k.x))
        )
        begins, self.state_begins, self.states = total.cumsum(0) - total, states.cumsum(0) - states, states
        of_lost = round(lost_share * per_member)
        lost = torch.arange(per_member, device=device) >= per_member - of_lost
        # A member without windows of one kind gives windows of the other instead.
        takes_lost = (lost & (decisive < total)[:, None]) | (decisive == 0)[:, None]  # (K, r)
        self.begins = begins[:, None] + torch.where(takes_lost, decisive[:, None], 0)
        self.sizes = torch.where(takes_lost, (total - decisive)[:, None], decisive[:, None])
        self.free = max(1, round(RESIDUAL_SHARE * per_member))
        self.power = model.shapes(phase).square().sum(-1)  # (K, modes), of each mode
        self.power = self.power / self.power.sum(-1, keepdim=True)
        self.summary = {"omega": float(model.scale(phase).mean())}

    def draw(self, generator: torch.Generator) -> ReducedRows:
        chosen = self.begins + (torch.rand(self.sizes.shape, generator=generator).to(self.seen) * self.sizes).long()
        shape = (3, len(self.states), self.free)
        first, second, mix = torch.rand(shape, generator=generator).to(self.x)
        begins, sizes = self.state_begins[:, None], self.states[:, None]
        mix = NEARNESS * mix
        one, other = (begins + (part * sizes).long().clamp(max=sizes - 1) for part in (first, second))
        return ReducedRows(
            seen=self.seen[chosen],
            answer=self.answer[chosen],
            weight=self.weight[chosen],
            free_x=torch.lerp(self.x[one], self.x[other], mix[..., None]),
            free_alpha=torch.lerp(self.alpha[one], self.alpha[other], mix),
        )

    def terms(self, model: ReducedMoE, rows: ReducedRows, with_residual: bool) -> dict[str, Tensor]:
        terms = {"data": (rows.weight * self.misfit(model, rows.seen, rows.answer)).mean()}
        if with_residual:
            terms["residual_omega"] = self.misfit(model, *self.free_windows(model, rows)).mean()
        return terms

    def misfit(self, model: ReducedMoE, seen: Tensor, answer: Tensor) -> Tensor:
        """Squared error (K, r) of what experts answer, in units of the usual remainder of their member."""
        return (self.power[:, None] * (model.all_coordinates(self.phase, seen) - answer).square()).sum(-1)

    @torch.no_grad()
    def free_windows(self, model: ReducedMoE, rows: ReducedRows) -> tuple[Tensor, Tensor]:
        """What experts see (K, f, components) of windows without data, and what a further sweep gives (K, f, modes)."""
        count, each = rows.free_alpha.shape
        x, alpha = rows.free_x.flatten(0, 1), rows.free_alpha.flatten()
        member = torch.arange(count, device=x.device).repeat_interleave(each)
        operator = model.operator(self.phase, alpha, member)
        start = model.physics.expand(operator, x)
        inputs = model.described(self.phase, start, alpha, None).unflatten(0, (count, each))
        seen = (inputs - model.center(self.phase)[:, None]) @ model.view(self.phase)
        shapes, scale = model.shapes(self.phase), model.scale(self.phase).flatten(1)
        learned = (model.all_coordinates(self.phase, seen) @ shapes) * scale[:, None]
        once = model.sweep(operator, start)
        again = model.sweep(operator, start, once + learned.flatten(0, 1).unflatten(-1, once.shape[1:]))
        left = (again - once).flatten(1).unflatten(0, (count, each)) / scale[:, None]
        return seen, left @ (shapes / shapes.square().sum(-1, keepdim=True)).mT

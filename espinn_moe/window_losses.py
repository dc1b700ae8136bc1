"""What chained models learn by: pairs of a state and what follows within one window.

There is no back-propagation through the chain. Terms are of order one for a model that has learned nothing, so that
one fixed weight per term balances them; scales and weights are recorded with the run.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from espinn_moe.chained import Chained
from espinn_moe.losses import check_count, routing
from espinn_moe.phase_pools import PooledObjective, row_shares
from espinn_moe.phases import FAULT_ON, POST_CLEARING
from espinn_moe.surrogate import Scenarios
from espinn_moe.window_data import WindowSet, calibrate, cut_windows, remainders, starts

WINDOW_RESIDUAL_WEIGHT = 0.1  # residuals of windows start at the size of the misfit, and reach states without data
ROWS = 1024  # windows per step
ROWS_PER_MEMBER = 48  # at least, in a family
WINDOWS_PER_MEMBER = 60_000  # of each phase; more windows of one member teach nothing new
WINDOWS_IN_ALL = 400_000  # memory: about 1 kB each on ten machines
LOST_SHARE = 0.05  # of the post-clearing rows: windows after synchronism was lost
LOST_WEIGHT = 0.1  # of their relative error; enough for trajectories that keep slipping, harmless for those that decide
RESIDUAL_SHARE = 0.25  # windows without data per window with; the field at every node costs as much as the network


@dataclass(frozen=True, eq=False)
class WindowRows:
    """One step's windows of one phase: m that are compared with data, r that are held to the swing equation."""

    inputs: Tensor  # (m, width) standardised
    remainder: Tensor  # (m, J, 2 n) in units of its size
    member: Tensor  # (m,)
    weight: Tensor  # (m,)
    free_x: Tensor  # (r, 2 n) states from which no trajectory need be known
    free_alpha: Tensor  # (r,)
    free_member: Tensor  # (r,)
    free_conditions: Tensor | None  # (r, d) operating points, of a model with conditions


class WindowObjective(PooledObjective[Chained, WindowRows]):
    """One-window pairs: the state at a start gives the states at the nodes, and the swing equation holds in between.

    Data windows are those of the training scenarios. Residuals need no trajectory: their windows start at mixtures
    of two states of a member, and of their severities. The angle's equation holds identically in a chained model, so
    only the speeds have a residual. Windows after synchronism was lost count by their relative error and little,
    the others by their absolute one.

    Parameters
    ----------
    model : Chained
        Is calibrated by this unless it has been.
    scenarios : sequence of Scenarios
        One entry per member.
    rows : int
        Post-clearing windows per step, spread over the members (at least `ROWS_PER_MEMBER` each); half as many of
        the fault-on phase.
    residual_weight : float
        Relative to the data misfit.
    lost_share : float
        Part of the post-clearing rows taken after synchronism was lost; 0 learns what decides stability only.
    seed : int
        Of the choice of windows where there are more than enough.
    """

    def __init__(
        self,
        model: Chained,
        scenarios: Sequence[Scenarios],
        *,
        rows: int = ROWS,
        residual_weight: float = WINDOW_RESIDUAL_WEIGHT,
        lost_share: float = LOST_SHARE,
        seed: int = 0,
    ) -> None:
        check_count(model, scenarios)
        count = len(model.members)
        per_member = min(WINDOWS_PER_MEMBER, WINDOWS_IN_ALL // count)
        windows = cut_windows(model, scenarios, per_member, np.random.default_rng(seed))
        calibrate(model, windows)
        shares = row_shares(rows, count, ROWS_PER_MEMBER, lost_share)
        pools = [
            _WindowPool(model, phase, data, number, share)
            for phase, data, (number, share) in zip((FAULT_ON, POST_CLEARING), windows, shares, strict=True)
        ]
        super().__init__(pools, residual_weight)


class _WindowPool:
    """The windows of one phase, with all that does not depend on the parameters."""

    def __init__(self, model: Chained, phase: int, data: WindowSet, per_member: int, lost_share: float) -> None:
        self.phase, self.nodes = phase, data.nodes
        self.x, self.alpha, self.member, self.decisive = data.x, data.alpha, data.member, ~data.lost
        self.conditions = data.conditions
        self.free_nodes = torch.arange(1, model.terms + 1).to(data.nodes) / model.terms
        self.decisive_rows = self.decisive.nonzero().squeeze(-1)
        self.decisive_sizes = torch.bincount(data.member[self.decisive], minlength=len(model.members))
        self.decisive_begins = self.decisive_sizes.cumsum(0) - self.decisive_sizes
        with torch.no_grad():
            self.inputs = model.described(phase, starts(model, phase, data), data.alpha, data.conditions)
            _, remainder = remainders(model, phase, data)
            self.sizes = torch.stack([_size(remainder, data, member) for member in range(len(model.members))])
            self.remainder = remainder / self.sizes[data.member][:, None]
            relative = self.remainder.square().mean((1, 2))
            self.weight = torch.where(data.lost, LOST_WEIGHT / (1.0 + relative), torch.ones_like(relative))
        self.begins, self.numbers = self._groups(data, len(model.members), per_member, lost_share)
        n = model.n_machines
        self.summary = {"delta": float(self.sizes[:, :n].mean()), "omega": float(self.sizes[:, n:].mean())}

    def _groups(
        self, data: WindowSet, members: int, per_member: int, lost_share: float
    ) -> tuple[list[Tensor], list[int]]:
        """Candidate rows and how many of them to draw, member by member, decisive windows first."""
        groups, numbers = [], []
        for member in range(members):
            mine = data.member == member
            decisive, lost = (mine & ~data.lost).nonzero().squeeze(-1), (mine & data.lost).nonzero().squeeze(-1)
            of_lost = round(lost_share * per_member) if len(lost) and len(decisive) else 0
            of_lost = per_member if not len(decisive) else of_lost
            for rows, number in ((decisive, per_member - of_lost), (lost, of_lost)):
                if number:
                    groups.append(rows)
                    numbers.append(number)
        return groups, numbers

    def draw(self, generator: torch.Generator) -> WindowRows:
        chosen = torch.cat(
            [
                rows[torch.randint(len(rows), (number,), generator=generator).to(rows.device)]
                for rows, number in zip(self.begins, self.numbers, strict=True)
            ]
        )
        free = chosen[self.decisive[chosen]][:: round(1 / RESIDUAL_SHARE)]
        other = self._partners(free, generator)
        mix = torch.rand(len(free), 1, generator=generator).to(self.x)
        return WindowRows(
            inputs=self.inputs[chosen],
            remainder=self.remainder[chosen],
            member=self.member[chosen],
            weight=self.weight[chosen],
            free_x=torch.lerp(self.x[free], self.x[other], mix),
            free_alpha=torch.lerp(self.alpha[free], self.alpha[other], mix.squeeze(-1)),
            free_member=self.member[free],
            free_conditions=None
            if self.conditions is None
            else torch.lerp(self.conditions[free], self.conditions[other], mix),
        )

    def _partners(self, rows: Tensor, generator: torch.Generator) -> Tensor:
        """For each of some decisive rows, another one of the same member."""
        begins, sizes = self.decisive_begins[self.member[rows]], self.decisive_sizes[self.member[rows]]
        along = torch.rand(len(rows), generator=generator).to(self.x)
        return self.decisive_rows[begins + (along * sizes).long().clamp(max=sizes - 1)]

    def terms(self, model: Chained, rows: WindowRows, with_residual: bool) -> dict[str, Tensor]:
        h, omega_b = model.window_s, model.physics.omega_b
        c = model.remainder(self.phase, rows.inputs, routing(model, rows.member))
        phi, _, integral = (part.mT for part in model.basis(self.nodes))  # (terms, J)
        learned = torch.cat([c @ (omega_b * h * integral), c @ phi], dim=1)  # (m, 2 n, J)
        misfit = (learned / self.sizes[rows.member][..., None] - rows.remainder.mT).square().mean((1, 2))
        terms = {"data": 2.0 * (rows.weight * misfit).mean()}
        if with_residual:
            terms["residual_omega"] = self.residual(model, rows).square().mean()
        return terms

    def residual(self, model: Chained, rows: WindowRows) -> Tensor:
        """d omega/dt minus the swing equation (r, J, n) at the nodes of free windows, in units of its size."""
        n, member = model.n_machines, routing(model, rows.free_member)
        operator = model.operator(self.phase, rows.free_alpha, member, rows.free_conditions)
        windows = model.begin(self.phase, operator, rows.free_x, rows.free_alpha, member, rows.free_conditions)
        x, rate = model.at_nodes(windows, self.free_nodes)
        field = model.physics.field(operator.for_samples(), x)
        size = 3.0 / model.window_s * self.sizes[rows.free_member, n:]  # a remainder that grows like s^3
        return (rate - field)[..., n:] / size[:, None]


def _size(remainder: Tensor, data: WindowSet, member: int) -> Tensor:
    """Root-mean-square remainder of each component over the decisive windows of a member, (2 n,)."""
    rows = (data.member == member) & ~data.lost
    rows = rows if rows.any() else data.member == member
    return remainder[rows].square().mean((0, 1)).sqrt().clamp(min=1e-12)

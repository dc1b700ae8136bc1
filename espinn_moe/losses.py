"""What whole trajectories are learned by: data misfit and pointwise swing residuals, each in units of its own size.

`TrajectoryObjective` serves every surrogate that answers for whole trajectories, through its interface alone;
`espinn_moe.shooting` adds a second stage, and `espinn_moe.window_losses` serves chained models. Terms are of order one
for a model that has learned nothing, so that one fixed weight per term balances them; scales and weights are
recorded with the run.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from contingencies.errors import UsageError
from espinn_moe.phases import SETTLED_RAD
from espinn_moe.physics import Physics
from espinn_moe.sampling import SamplePool, joined
from espinn_moe.surrogate import EventSurrogate, Rows, Scenarios, Surrogate

RESIDUAL_WEIGHT = 0.1  # of the data misfit, for whole trajectories
# How fast whole trajectories lose weight with the time since clearing, 1/s, when a training begins and when it ends.
# Near the boundary an error grows e-fold within 0.15 s, and lost trajectories slip by tens of radians: weighed alike,
# the late part of these counts most, although the early part decides.
DATA_DECAY = (6.0, 1.0)
RESIDUAL_DECAY = (8.0, 2.0)
SAMPLES = 256  # of trajectories per step, and as many instants; 512 make a third fewer steps in the same time
SMALLEST_SHARE = 0.25  # of a batch of whole trajectories, for a member of a family, against the largest


class TrajectoryObjective:
    """Data misfit at stored samples, swing residuals at random instants of the learned phases.

    Both weigh less the longer the fault has been cleared, and the less so the longer the training lasts: what
    comes early is learned first, and what follows from it afterwards.

    Parameters
    ----------
    model : Surrogate
        Is calibrated by this.
    scenarios : sequence of Scenarios
        One entry per member.
    rows, collocation_rows : int
        Samples and residual instants per step.
    residual_weight, extra_weight : float
        Of the residuals, and of the model's own soft penalties, relative to the data misfit.
    decisive : bool
        Learn only from samples before the separation first passes 1.5 pi, which decide stability; the swing equation
        does not count where the model itself says that synchronism is lost. Machines' distances from their inertia
        centre are then measured in units of their own spread, because the centre may drift much farther than they part.
    data_decay, residual_decay : (float, float)
        Rates at which samples and residuals lose weight with the time since clearing, 1/s, at the beginning and at the
        end of the training; zeros weigh all instants alike.
    forward_only : bool
        What is learned after clearing does not change the fault-on part; needs a model with event states.
    """

    def __init__(
        self,
        model: Surrogate,
        scenarios: Sequence[Scenarios],
        *,
        rows: int = SAMPLES,
        collocation_rows: int = SAMPLES,
        residual_weight: float = RESIDUAL_WEIGHT,
        extra_weight: float = 1.0,
        decisive: bool = False,
        data_decay: tuple[float, float] = DATA_DECAY,
        residual_decay: tuple[float, float] = RESIDUAL_DECAY,
        forward_only: bool = False,
    ) -> None:
        check_scenarios(model, scenarios)
        if forward_only and not isinstance(model, EventSurrogate):
            raise UsageError("a model without event states cannot be trained forward only; leave out forward_only.")
        self.forward_only = forward_only
        model.calibrate(scenarios)
        self._decays, self._done = (data_decay, residual_decay), 0.0
        self.rows, self.collocation_rows, self.decisive = rows, collocation_rows, decisive
        device = next(model.parameters()).device
        self.physics = Physics(model.members, model.dtype).to(device)
        self.pools = [SamplePool(data, model, member, decisive) for member, data in enumerate(scenarios)]
        n = model.n_machines
        x_0 = self.physics.x_0.double().numpy(force=True)
        self.shares = shares_of_rows([pool.samples[:, :n] - x_0[:n] for pool in self.pools])
        spread = np.concatenate([pool.samples for pool in self.pools]) - x_0
        parts = spread[:, :n], spread[:, n:]
        share = self.physics.inertia_share.double().numpy(force=True)
        delta, omega = (_size(part) for part in parts)
        self.scales = {
            "delta": delta,
            "omega": omega,
            "delta_rate": float(model.members[0].omega_b * omega),
            "omega_rate": 8.0 * omega,  # swings change speed by its own size in about 1/8 s
        }
        if decisive:
            apart = [_size(part - (part @ share)[:, None]) for part in parts]
            self.scales |= {"delta_apart": apart[0], "omega_apart": apart[1]}
        self.weights = {"data": 1.0}
        if residual_weight > 0:
            self.weights |= {"residual_delta": residual_weight, "residual_omega": residual_weight}
        probe = self.batch(torch.Generator().manual_seed(0)).data
        with torch.no_grad():
            self.weights |= dict.fromkeys(model.extra_terms(probe), extra_weight)

    def advance(self, done: float, stage: int = 0) -> None:
        """Move the weights on to where they are after a fraction of the training."""
        self._done = done

    def state(self) -> dict[str, Any]:
        """Batches depend on the generator alone."""
        return {}

    def restore(self, state: dict[str, Any]) -> None:
        """There is nothing to restore."""

    def batch(self, generator: torch.Generator) -> "TrajectoryBatch":
        """Samples and collocation instants; of a family, more from members whose machines part farther."""
        members = list(zip(self.pools, self.shares, strict=True))
        data = [pool.draw(math.ceil(share * self.rows), generator) for pool, share in members]
        free = [pool.collocation(math.ceil(share * self.collocation_rows), generator) for pool, share in members]
        return TrajectoryBatch(joined(data), joined(free))

    def terms(self, model: Surrogate, batch: "TrajectoryBatch") -> dict[str, Tensor]:
        """data, residual_delta, residual_omega, and the model's own."""
        asks_residual = "residual_delta" in self.weights
        rows, n = batch.data, model.n_machines
        asked = joined([batch.collocation, rows]) if asks_residual else rows
        rated = len(batch.collocation.t) if asks_residual else 0
        one_way = model if isinstance(model, EventSurrogate) and self.forward_only else None
        answer = model.states_and_first_rates if one_way is None else one_way.states_and_first_rates_forward_only
        x, rate = answer(asked.t, asked.alpha, asked.t_c, routing(model, asked.member), rated)
        of_data, of_residual = (begin + self._done * (end - begin) for begin, end in self._decays)
        terms = {"data": (weights_since_clearing(rows, of_data) * self.misfit(x[rated:], rows.states)).mean()}
        if asks_residual:
            residual = self.residuals(model, batch.collocation, x[:rated], rate)
            weights = weights_since_clearing(batch.collocation, of_residual)
            terms["residual_delta"] = (weights * (residual[:, :n] / self.scales["delta_rate"]).square()).mean()
            terms["residual_omega"] = (weights * (residual[:, n:] / self.scales["omega_rate"]).square()).mean()
        return terms | (model.extra_terms(rows) if one_way is None else one_way.extra_terms_forward_only(rows))

    def misfit(self, ours: Tensor, theirs: Tensor) -> Tensor:
        """Squared differences of states (m, 2 n), angles and speeds of a machine together, in units of their size."""
        angles, speeds = (ours - theirs).chunk(2, dim=-1)
        return self._squared(angles, "delta") + self._squared(speeds, "omega")

    def _squared(self, part: Tensor, name: str) -> Tensor:
        """Squares of differences (m, n) in units of their size: as they are, or of the inertia centre and from it."""
        if not self.decisive:
            return (part / self.scales[name]).square()
        common = part @ self.physics.inertia_share[:, None]
        return (common / self.scales[name]).square() + ((part - common) / self.scales[f"{name}_apart"]).square()

    def residuals(self, model: Surrogate, rows: Rows, x: Tensor, rate: Tensor) -> Tensor:
        """d x/dt - f_q(x) (m, 2 n) of states and rates of rows, each with the operator of its phase."""
        cleared = rows.t >= rows.t_c
        during, after = (~cleared).nonzero()[:, 0], cleared.nonzero()[:, 0]
        fields = [
            self.physics.field(
                self.physics.fault_on(rows.alpha[during], routing(model, rows.member[during])), x[during]
            ),
            self.physics.field(self.physics.post_clearing(routing(model, rows.member[after])), x[after]),
        ]
        out = rate.index_add(0, torch.cat([during, after]), torch.cat(fields), alpha=-1)
        return out * _undecided(x[:, : model.n_machines]) if self.decisive else out


@dataclass(frozen=True, eq=False)
class TrajectoryBatch:
    """Rows with targets, and rows whose `states` are unused."""

    data: Rows
    collocation: Rows


def shares_of_rows(deviations: Sequence[np.ndarray]) -> np.ndarray:
    """Part of the rows that each member gets, from the deviations of its angles (m, n) from the equilibrium, rad.

    In proportion to how far machines part from each other: a member that hardly swings is learned from few rows.
    """
    apart = np.array([math.sqrt(np.mean(np.var(angles, axis=1))) for angles in deviations])
    shares = np.maximum(apart, SMALLEST_SHARE * apart.max())
    return shares / shares.sum() if shares.any() else np.full(len(shares), 1.0 / len(shares))


def weights_since_clearing(rows: Rows, decay: float) -> Tensor:
    """Weights (m, 1) of mean one that fall with the time since clearing at this rate, 1/s."""
    weights = torch.exp(-decay * (rows.t - rows.t_c).clamp(min=0.0))
    return (weights / weights.mean())[:, None]


def _size(values: np.ndarray) -> float:
    """Root of the mean square."""
    return float(max(np.sqrt(np.mean(values**2)), 1e-9))


def _undecided(delta: Tensor) -> Tensor:
    """One where the separation of angles (m, n) is below 1.5 pi, else zero, (m, 1)."""
    angles = delta.detach()
    return (angles.amax(-1, keepdim=True) - angles.amin(-1, keepdim=True) < SETTLED_RAD).to(delta)


def routing(model: Surrogate, member: Tensor) -> int | Tensor:
    """The member of every row; one number for a single-contingency model, which then needs no routing."""
    return 0 if len(model.members) == 1 else member


def check_count(model: Surrogate, scenarios: Sequence[Scenarios]) -> None:
    """Refuse data of more or fewer members than the model has."""
    if len(scenarios) != len(model.members):
        raise UsageError(
            f"{len(scenarios)} sets of trajectories for {len(model.members)} contingencies; give one for each."
        )


def check_scenarios(model: Surrogate, scenarios: Sequence[Scenarios]) -> None:
    """Refuse data that do not fit the model's members, or leave one of them nothing to learn from."""
    check_count(model, scenarios)
    for operators, data in zip(model.members, scenarios, strict=True):
        if len(data.alpha) == 0:
            raise UsageError(f"{operators.name} has no training scenario left; use a larger data fraction.")

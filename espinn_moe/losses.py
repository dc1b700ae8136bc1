"""What is minimised: data misfit and phase-wise swing residuals, each in units of its own size.

`TrajectoryObjective` serves every surrogate that answers for whole trajectories, through its interface alone.
`WindowObjective` serves chained models: pairs of a state and what follows within one window, with no
back-propagation through the chain. Terms are of order one for a model that has learned nothing, so that one
fixed weight per term balances them; scales and weights are recorded with the run.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from contingencies.errors import UsageError
from espinn_moe.chained import Chained
from espinn_moe.phases import FAULT_ON, POST_CLEARING, SETTLED_RAD
from espinn_moe.physics import Physics
from espinn_moe.sampling import SamplePool, joined
from espinn_moe.surrogate import Rows, Scenarios, Surrogate
from espinn_moe.window_data import WindowSet, calibrate, cut_windows, remainders

RESIDUAL_WEIGHT = 0.1  # of the data misfit, for whole trajectories
# How fast whole trajectories lose weight with the time since clearing, 1/s, when a training begins and when it ends.
# Near the boundary an error grows e-fold within 0.15 s, and lost trajectories slip by tens of radians: weighed alike,
# the late part of these counts most, although the early part decides.
DATA_DECAY = (6.0, 1.0)
RESIDUAL_DECAY = (8.0, 2.0)
WINDOW_RESIDUAL_WEIGHT = 0.1  # residuals of windows start at the size of the misfit, and reach states without data
ROWS = 1024  # windows per step
SAMPLES = 512  # of whole trajectories per step, and as many instants; 1024 were no better in trainings of minutes
SMALLEST_SHARE = 0.25  # of a batch of whole trajectories, for a member of a family, against the largest
ROWS_PER_MEMBER = 48  # at least, in a family
WINDOWS_PER_MEMBER = 60_000  # of each phase; more windows of one member teach nothing new
WINDOWS_IN_ALL = 400_000  # memory: about 1 kB each on ten machines
LOST_SHARE = 0.05  # of the post-clearing rows: windows after synchronism was lost
LOST_WEIGHT = 0.1  # of their relative error; enough for trajectories that keep slipping, harmless for those that decide
RESIDUAL_SHARE = 0.25  # windows without data per window with; the field at every node costs as much as the network


# --- whole trajectories -----------------------------------------------------------------------


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
        does not count where the model itself says that synchronism is lost.
    data_decay, residual_decay : (float, float)
        Rates at which samples and residuals lose weight with the time since clearing, 1/s, at the beginning and at the
        end of the training; zeros weigh all instants alike.
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
    ) -> None:
        _check_scenarios(model, scenarios)
        model.calibrate(scenarios)
        self._decays, self._done = (data_decay, residual_decay), 0.0
        self.rows, self.collocation_rows, self.decisive = rows, collocation_rows, decisive
        device = next(model.parameters()).device
        self.physics = Physics(model.members, model.dtype).to(device)
        self._pool = [SamplePool(data, model, member, decisive) for member, data in enumerate(scenarios)]
        n = model.n_machines
        x_0 = self.physics.x_0.double().numpy(force=True)
        self._shares = _shares_of_rows([pool.samples[:, :n] - x_0[:n] for pool in self._pool])
        spread = np.concatenate([pool.samples for pool in self._pool]) - x_0
        sigma = np.sqrt(np.mean(spread**2, axis=0)).reshape(2, n)
        sigma = np.maximum(np.sqrt(np.mean(sigma**2, axis=1)), 1e-9)
        self.scales = {
            "delta": float(sigma[0]),
            "omega": float(sigma[1]),
            "delta_rate": float(model.members[0].omega_b * sigma[1]),
            "omega_rate": float(8.0 * sigma[1]),  # swings change speed by its own size in about 1/8 s
        }
        self.weights = {"data": 1.0}
        if residual_weight > 0:
            self.weights |= {"residual_delta": residual_weight, "residual_omega": residual_weight}
        probe = self.batch(torch.Generator().manual_seed(0)).data
        with torch.no_grad():
            self.weights |= dict.fromkeys(model.extra_terms(probe), extra_weight)

    def advance(self, done: float) -> None:
        """Move the weights on to where they are after a fraction of the training."""
        self._done = done

    def batch(self, generator: torch.Generator) -> "TrajectoryBatch":
        """Samples and collocation instants; of a family, more from members whose machines part farther."""
        members = list(zip(self._pool, self._shares, strict=True))
        data = [pool.draw(math.ceil(share * self.rows), generator) for pool, share in members]
        free = [pool.collocation(math.ceil(share * self.collocation_rows), generator) for pool, share in members]
        return TrajectoryBatch(joined(data), joined(free))

    def terms(self, model: Surrogate, batch: "TrajectoryBatch") -> dict[str, Tensor]:
        """data, residual_delta, residual_omega, and the model's own."""
        rows, n = batch.data, model.n_machines
        error = model.states(rows.t, rows.alpha, rows.t_c, _routing(model, rows.member)) - rows.states
        misfit = (error[:, :n] / self.scales["delta"]).square() + (error[:, n:] / self.scales["omega"]).square()
        of_data, of_residual = (begin + self._done * (end - begin) for begin, end in self._decays)
        terms = {"data": (_weights_since_clearing(rows, of_data) * misfit).mean()}
        if "residual_delta" in self.weights:
            residual = self.residuals(model, batch.collocation)
            weights = _weights_since_clearing(batch.collocation, of_residual)
            terms["residual_delta"] = (weights * (residual[:, :n] / self.scales["delta_rate"]).square()).mean()
            terms["residual_omega"] = (weights * (residual[:, n:] / self.scales["omega_rate"]).square()).mean()
        return terms | model.extra_terms(rows)

    def residuals(self, model: Surrogate, rows: Rows) -> Tensor:
        """d x/dt - f_q(x) (m, 2 n) with the operator of the phase that is active at each row."""
        x, rate = model.states_and_rates(rows.t, rows.alpha, rows.t_c, _routing(model, rows.member))
        out = torch.empty_like(x)
        for mask, phase in (
            (rows.t < rows.t_c, FAULT_ON),
            (rows.t >= rows.t_c, POST_CLEARING),
        ):
            member = _routing(model, rows.member[mask])
            operator = (
                self.physics.fault_on(rows.alpha[mask], member)
                if phase == FAULT_ON
                else self.physics.post_clearing(member)
            )
            out[mask] = rate[mask] - self.physics.field(operator, x[mask])
        return out * _undecided(x[:, : model.n_machines]) if self.decisive else out


@dataclass(frozen=True, eq=False)
class TrajectoryBatch:
    """Rows with targets, and rows whose `states` are unused."""

    data: Rows
    collocation: Rows


# --- windows ----------------------------------------------------------------------------------


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


class WindowObjective:
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
        _check_scenarios(model, scenarios)
        count = len(model.members)
        per_member = min(WINDOWS_PER_MEMBER, WINDOWS_IN_ALL // count)
        windows = cut_windows(model, scenarios, per_member, np.random.default_rng(seed))
        calibrate(model, windows)
        per_step = max(ROWS_PER_MEMBER, -(-rows // count))
        shares = (-(-per_step // 2), 0.0), (per_step, lost_share)
        self._phases = tuple(
            _WindowPool(model, phase, data, number, share)
            for phase, data, (number, share) in zip((FAULT_ON, POST_CLEARING), windows, shares, strict=True)
        )
        self.scales = {pool.name: pool.summary for pool in self._phases}
        self.weights = {"data": 1.0}
        if residual_weight > 0:
            self.weights["residual_omega"] = residual_weight

    def advance(self, done: float) -> None:
        """Windows weigh the same from beginning to end."""

    def batch(self, generator: torch.Generator) -> tuple[WindowRows, ...]:
        """Windows of both phases, the same number from every member."""
        return tuple(pool.draw(generator) for pool in self._phases)

    def terms(self, model: Chained, batch: tuple[WindowRows, ...]) -> dict[str, Tensor]:
        """data, residual_omega"""
        parts = [
            pool.terms(model, rows, "residual_omega" in self.weights)
            for pool, rows in zip(self._phases, batch, strict=True)
        ]
        return {name: torch.stack([part[name] for part in parts]).sum() for name in parts[0]}


class _WindowPool:
    """The windows of one phase, with all that does not depend on the parameters."""

    def __init__(self, model: Chained, phase: int, data: WindowSet, per_member: int, lost_share: float) -> None:
        self.phase, self.nodes = phase, data.nodes
        self.name = "fault_on" if phase == FAULT_ON else "post_clearing"
        self.x, self.alpha, self.member, self.decisive = data.x, data.alpha, data.member, ~data.lost
        self.free_nodes = torch.arange(1, model.terms + 1).to(data.nodes) / model.terms
        self.decisive_rows = self.decisive.nonzero().squeeze(-1)
        self.decisive_sizes = torch.bincount(data.member[self.decisive], minlength=len(model.members))
        self.decisive_begins = self.decisive_sizes.cumsum(0) - self.decisive_sizes
        with torch.no_grad():
            start = model.physics.expand(model.operator(phase, data.alpha, data.member), data.x)
            self.inputs = model.inputs(phase)(model.physics, start, data.alpha)
            self.expansion, remainder = remainders(model, phase, data)
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
        )

    def _partners(self, rows: Tensor, generator: torch.Generator) -> Tensor:
        """For each of some decisive rows, another one of the same member."""
        begins, sizes = self.decisive_begins[self.member[rows]], self.decisive_sizes[self.member[rows]]
        along = torch.rand(len(rows), generator=generator).to(self.x)
        return self.decisive_rows[begins + (along * sizes).long().clamp(max=sizes - 1)]

    def terms(self, model: Chained, rows: WindowRows, with_residual: bool) -> dict[str, Tensor]:
        h, omega_b = model.window_s, model.physics.omega_b
        c = model.remainder(self.phase, rows.inputs, _routing(model, rows.member))
        phi, _, integral = (part.mT for part in model.basis(self.nodes))  # (terms, J)
        learned = torch.cat([c @ (omega_b * h * integral), c @ phi], dim=1)  # (m, 2 n, J)
        misfit = (learned / self.sizes[rows.member][..., None] - rows.remainder.mT).square().mean((1, 2))
        terms = {"data": 2.0 * (rows.weight * misfit).mean()}
        if with_residual:
            terms["residual_omega"] = self.residual(model, rows).square().mean()
        return terms

    def residual(self, model: Chained, rows: WindowRows) -> Tensor:
        """d omega/dt minus the swing equation (r, J, n) at the nodes of free windows, in units of its size."""
        n, member = model.n_machines, _routing(model, rows.free_member)
        operator = model.operator(self.phase, rows.free_alpha, member)
        windows = model.begin(self.phase, operator, rows.free_x, rows.free_alpha, member)
        x, rate = model.at_nodes(windows, self.free_nodes)
        field = model.physics.field(operator.for_samples(), x)
        size = 3.0 / model.window_s * self.sizes[rows.free_member, n:]  # a remainder that grows like s^3
        return (rate - field)[..., n:] / size[:, None]


def _size(remainder: Tensor, data: WindowSet, member: int) -> Tensor:
    """Root-mean-square remainder of each component over the decisive windows of a member, (2 n,)."""
    rows = (data.member == member) & ~data.lost
    rows = rows if rows.any() else data.member == member
    return remainder[rows].square().mean((0, 1)).sqrt().clamp(min=1e-12)


def _shares_of_rows(deviations: Sequence[np.ndarray]) -> np.ndarray:
    """Part of the rows that each member gets, from the deviations of its angles (m, n) from the equilibrium, rad.

    In proportion to how far machines part from each other: a member that hardly swings is learned from few rows.
    """
    apart = np.array([math.sqrt(np.mean(np.var(angles, axis=1))) for angles in deviations])
    shares = np.maximum(apart, SMALLEST_SHARE * apart.max())
    return shares / shares.sum() if shares.any() else np.full(len(shares), 1.0 / len(shares))


def _weights_since_clearing(rows: Rows, decay: float) -> Tensor:
    """Weights (m, 1) of mean one that fall with the time since clearing at this rate, 1/s."""
    weights = torch.exp(-decay * (rows.t - rows.t_c).clamp(min=0.0))
    return (weights / weights.mean())[:, None]


def _undecided(delta: Tensor) -> Tensor:
    """One where the separation of angles (m, n) is below 1.5 pi, else zero, (m, 1)."""
    angles = delta.detach()
    return (angles.amax(-1, keepdim=True) - angles.amin(-1, keepdim=True) < SETTLED_RAD).to(delta)


def _routing(model: Surrogate, member: Tensor) -> int | Tensor:
    """The member of every row; one number for a single-contingency model, which then needs no routing."""
    return 0 if len(model.members) == 1 else member


def _check_scenarios(model: Surrogate, scenarios: Sequence[Scenarios]) -> None:
    if len(scenarios) != len(model.members):
        raise UsageError(
            f"{len(scenarios)} sets of trajectories for {len(model.members)} contingencies; give one for each."
        )
    for operators, data in zip(model.members, scenarios, strict=True):
        if len(data.alpha) == 0:
            raise UsageError(f"{operators.name} has no training scenario left; use a larger data fraction.")

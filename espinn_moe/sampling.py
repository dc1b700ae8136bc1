"""Where whole trajectories are learned from: stored samples, and instants at which only the swing equation is asked.

Trajectories on both sides of the stability boundary part within a fraction of a millisecond of the clearing instant,
while scenarios lie tens of milliseconds apart. Samples of scenarios near the boundary are therefore drawn more often,
and the swing equation is asked between scenarios, too; single trainings of some minutes do not show that this is
better than drawing evenly. Asking it at the boundary most of all was worse in two long trainings: the learned boundary
moved by 2 ms, where interpolation errs by about one.
"""

import numpy as np
import torch
from scipy.spatial import cKDTree
from torch import Tensor

from contingencies.separation import spread
from espinn_moe.one_shot import settled
from espinn_moe.surrogate import Rows, Scenarios, Surrogate

BOUNDARY_WEIGHT = 5.0  # how much more often a scenario at the boundary is drawn than one far from it
BOUNDARY_REACH = 2.0  # spacings of scenarios over which that falls by e


class SamplePool:
    """The samples of one member that are learned from.

    Parameters
    ----------
    data : Scenarios
        Its training trajectories.
    model : Surrogate
    member : int
        Which of the model's members.
    decisive : bool
        Leave out what comes after the separation first passes 1.5 pi, and draw samples near the boundary more often;
        otherwise every sample counts alike and the swing equation is asked all over the study.
    """

    def __init__(self, data: Scenarios, model: Surrogate, member: int, decisive: bool) -> None:
        operators, n = model.members[member], model.n_machines
        self.member, self.decisive = member, decisive
        self.severity, self.window = operators.severity, operators.window
        used = np.broadcast_to(data.t, data.states.shape[:2]) >= self.window.t_f
        lost = settled(data.states[..., :n])
        if decisive:
            used = used & ~lost
        scenario, sample = np.nonzero(used)
        self.device = next(model.parameters()).device
        self.samples = data.states[scenario, sample]

        def tensor(array: np.ndarray) -> Tensor:
            return torch.tensor(array, dtype=model.dtype, device=self.device)

        self.t, self.alpha = tensor(data.t[sample]), tensor(data.alpha[scenario])
        self.t_c, self.states = tensor(data.t_c[scenario]), tensor(self.samples)
        self.end = tensor(np.where(lost.any(1), data.t[lost.argmax(1)], self.window.T))  # when it is decided
        self.places = tensor(np.stack([data.alpha, data.t_c], axis=1))  # (s, 2)
        ranges = np.diff([self.severity, self.window.t_c], axis=1)[:, 0]
        self.spread = tensor(ranges / np.sqrt(len(data.alpha)))  # (2,) between neighbouring scenarios
        unstable = (spread(data.states[..., :n]) > operators.max_separation).any(axis=1)
        weight = np.ones(len(unstable))
        if decisive:
            weight += BOUNDARY_WEIGHT * np.exp(-np.maximum(self._to_boundary(unstable) - 1.0, 0.0) / BOUNDARY_REACH)
        # Double precision, whatever the model's: half a million samples are more than single precision can count.
        self.sample_shares = torch.as_tensor(np.cumsum(weight[scenario]) / weight[scenario].sum())
        self.scenario_shares = torch.as_tensor(np.cumsum(weight) / weight.sum())

    def _to_boundary(self, unstable: np.ndarray) -> np.ndarray:
        """How many spacings (s,) away from each scenario the nearest one on the other side of the boundary is."""
        places = (self.places / self.spread).double().numpy(force=True)
        distance = np.full(len(places), np.inf)
        if unstable.any() and not unstable.all():
            distance[unstable] = cKDTree(places[~unstable]).query(places[unstable])[0]
            distance[~unstable] = cKDTree(places[unstable]).query(places[~unstable])[0]
        return distance

    def draw(self, count: int, generator: torch.Generator) -> Rows:
        """Stored samples."""
        index = _chosen(self.sample_shares, count, generator).to(self.device)
        return Rows(self.t[index], self.alpha[index], self.t_c[index], self._label(count), self.states[index])

    def collocation(self, count: int, generator: torch.Generator) -> Rows:
        """Instants of the learned phases, without states."""
        return self._near_scenarios(count, generator) if self.decisive else self._anywhere(count, generator)

    def _anywhere(self, count: int, generator: torch.Generator) -> Rows:
        u = torch.rand(count, 3, generator=generator).to(self.t).unbind(-1)
        (low, high), (first, last), t_f = self.severity, self.window.t_c, self.window.t_f
        t = t_f + u[0] * (self.window.T - t_f)
        return self._rows(t, low + u[1] * (high - low), first + u[2] * (last - first))

    def _near_scenarios(self, count: int, generator: torch.Generator) -> Rows:
        """Within half a spacing of a scenario, until it is decided."""
        index = _chosen(self.scenario_shares, count, generator).to(self.device)
        u = torch.rand(count, 3, generator=generator).to(self.t)
        place = self.places[index] + (u[:, :2] - 0.5) * self.spread
        t = self.window.t_f + u[:, 2] * (self.end[index] - self.window.t_f)
        return self._rows(t, *place.unbind(-1))

    def _rows(self, t: Tensor, alpha: Tensor, t_c: Tensor) -> Rows:
        inside = alpha.clamp(*self.severity), t_c.clamp(*self.window.t_c)
        return Rows(t, *inside, self._label(len(t)), self.states[:0])

    def _label(self, count: int) -> Tensor:
        return torch.full((count,), self.member, device=self.device)


def joined(parts: list[Rows]) -> Rows:
    """Rows of several pools, or of several kinds, as one."""
    return Rows(*(torch.cat([getattr(p, name) for p in parts]) for name in ("t", "alpha", "t_c", "member", "states")))


def _chosen(shares: Tensor, count: int, generator: torch.Generator) -> Tensor:
    """Indices (count,) drawn by cumulative shares."""
    u = torch.rand(count, generator=generator, dtype=shares.dtype)
    return torch.searchsorted(shares, u).clamp(max=len(shares) - 1)

"""How far a surrogate's CCT is from the reference: a quick look during training, a full one after it.

Both compare hard CCTs of the learned boundary with the fast reduced ODE, which agrees with the
strict one within 1e-5 s. Training looks at severities of its own grid; the final error uses the
50 severities in between, which no training set contains. Over conditions, training looks at the case's own
operating point, and the final error uses random severities and operating points.
"""

import numpy as np
import torch

from contingencies.network import Float
from contingencies.ode import FastODE
from contingencies.operator_family import OperatorFamily
from contingencies.operators import PhaseOperators
from contingencies.point_references import reference_points
from contingencies.points import Axis, limits_of
from contingencies.references import reference_boundary
from contingencies.separation import spread
from contingencies.stability import TAU_ROOT_S, Boundary
from contingencies.trajectories import output_times
from espinn_moe.boundary import learned_boundary
from espinn_moe.chained import Chained
from espinn_moe.condition_boundary import point_boundary
from espinn_moe.margins import HARD
from espinn_moe.surrogate import Surrogate
from zoo.judging.metrics import CCTErrors, cct_errors
from zoo.surrogates.datasets import evaluation_grid, training_axes

POINTS = 60  # random severities and operating points of the final error, where there are conditions
POINTS_SEED = 7_001
LOOKS = 12  # severities of a look during training, over all members
REACH_S = 0.05  # how far from the true CCT a look searches
PARTS = 4  # into which an interval is cut at a time


def unseen_boundaries(surrogate: Surrogate, member: int = 0) -> tuple[Boundary, Boundary]:
    """Hard CCTs of one member and of the fast reference ODE on the 50 unseen severities."""
    operators = surrogate.members[member]
    if operators.family is not None:
        return unseen_points(surrogate, operators.family, member)
    alpha = evaluation_grid(operators).unseen_alpha
    return learned_boundary(surrogate, alpha, member, HARD), reference_boundary(operators, alpha)


def unseen_points(surrogate: Surrogate, family: OperatorFamily, member: int = 0) -> tuple[Boundary, Boundary]:
    """Hard CCTs of one member and of the fast ODE at random severities and operating points."""
    assert isinstance(surrogate, Chained)
    axes = (*family.axes, Axis("severity", *family.base.severity))
    drawn = np.random.default_rng(POINTS_SEED).uniform(*limits_of(axes), (POINTS, len(axes)))
    alpha, conditions = drawn[:, -1], drawn[:, :-1]
    return point_boundary(surrogate, alpha, conditions, member), reference_points(family, alpha, conditions)


def unseen_errors(surrogate: Surrogate, member: int = 0) -> CCTErrors:
    """Hard-CCT errors of one member against the fast reference ODE on the 50 unseen severities."""
    return cct_errors(*unseen_boundaries(surrogate, member))


class Validation:
    """The mean CCT error on a few training severities, as a callable without arguments.

    All severities are searched together, in an interval around the true CCT that is cut into parts until it is as short
    as the resolution of a root: far cheaper than extracting boundaries, and blind to what lies outside the interval. A
    surrogate that is wrong by more than the interval counts as wrong by all of it.
    """

    def __init__(self, surrogate: Surrogate) -> None:
        self.surrogate = surrogate
        members = surrogate.members
        chosen = sorted({round(k) for k in np.linspace(0, len(members) - 1, min(len(members), LOOKS))})
        each = max(1, LOOKS // len(chosen))
        looks = [(k, *_severities(members[k], each)) for k in chosen]
        self.member = np.concatenate([np.full(len(alpha), k) for k, alpha, _ in looks])
        self.alpha = np.concatenate([alpha for _, alpha, _ in looks])
        self.truth = np.concatenate([truth for _, _, truth in looks])
        self.t = output_times(members[0])
        self.limit = np.array([members[k].max_separation for k in self.member])

    def __call__(self) -> float:
        first, last = self.surrogate.members[0].window.t_c
        lower, upper = np.maximum(self.truth - REACH_S, first), np.minimum(self.truth + REACH_S, last)
        while (upper - lower).max() > TAU_ROOT_S:
            cuts = lower + (upper - lower) * np.linspace(0.0, 1.0, PARTS + 1)[:, None]  # (PARTS + 1, m)
            unstable = np.vstack([self.unstable(cuts[:-1]), np.ones((1, len(lower)), dtype=bool)])
            index, at = unstable.argmax(axis=0), np.arange(len(lower))
            lower, upper = cuts[np.maximum(index - 1, 0), at], cuts[index, at]
        return float(np.abs(upper - self.truth).mean())

    @torch.no_grad()
    def unstable(self, t_c: Float) -> np.ndarray:
        """Whether clearing at t_c (..., m) loses synchronism, by the hard margin on the output grid."""
        device, dtype = next(self.surrogate.parameters()).device, self.surrogate.dtype

        def tensor(value: Float) -> torch.Tensor:
            return torch.as_tensor(value, dtype=dtype, device=device)

        member = torch.as_tensor(self.member, device=device)[:, None] if len(self.surrogate.members) > 1 else 0
        x = self.surrogate.states(tensor(self.t), tensor(self.alpha)[:, None], tensor(t_c)[..., None], member)
        delta = x[..., : self.surrogate.n_machines]
        peak = spread(delta).amax(-1).double().numpy(force=True)
        beyond: np.ndarray = ~(peak < self.limit)  # what is not a number is not stable either
        return beyond


def _severities(operators: PhaseOperators, count: int) -> tuple[Float, Float]:
    """Severities of the training grid, with finite CCT where there are such, and the true CCTs.

    Where a fault that is cleared last is lost, there is a CCT: one trajectory per severity tells which are worth a
    search.
    """
    alpha, (first, last) = training_axes(operators)[0], operators.window.t_c
    lost = np.array([FastODE(operators, float(a)).margins(np.array([last]), True)[0] >= 0 for a in alpha])
    pool = np.flatnonzero(lost) if lost.any() else np.arange(len(alpha))
    chosen = pool[np.unique(np.linspace(0, len(pool) - 1, min(count, len(pool))).round().astype(int))]
    boundary = reference_boundary(operators, alpha[chosen])
    ends = np.array([first if status == "left-censored" else last for status in boundary.status])
    return boundary.alpha, np.where(boundary.finite, boundary.cct, ends)

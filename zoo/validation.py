"""How far a surrogate's CCT is from the reference: a quick look during training, a full one after it.

Both compare hard CCTs of the learned boundary with the fast reduced ODE, which agrees with the
strict one within 1e-5 s. Training looks at severities of its own grid; the final error uses the
50 severities in between, which no training set contains.
"""

import numpy as np

from contingencies.network import Float
from contingencies.operators import PhaseOperators
from contingencies.stability import Boundary, reference_boundary
from espinn_moe.boundary import learned_boundary
from espinn_moe.margins import HARD
from espinn_moe.surrogate import Surrogate
from zoo.datasets import evaluation_grid, training_axes
from zoo.metrics import CCTErrors, cct_errors

LOOKS = 12  # severities of a look during training, over all members: each costs some ten milliseconds


def unseen_errors(surrogate: Surrogate, member: int = 0) -> CCTErrors:
    """Hard-CCT errors of one member against the fast reference ODE on the 50 unseen severities."""
    operators = surrogate.members[member]
    alpha = evaluation_grid(operators).unseen_alpha
    return cct_errors(learned_boundary(surrogate, alpha, member, HARD), reference_boundary(operators, alpha))


class Validation:
    """The mean CCT error on a few training severities, as a callable without arguments.

    A censored answer counts as the end of the clearing window it points to, so that a model without
    any finite CCT has a large error rather than none.
    """

    def __init__(self, surrogate: Surrogate) -> None:
        self.surrogate = surrogate
        members = range(len(surrogate.members))
        chosen = sorted({round(k) for k in np.linspace(0, len(members) - 1, min(len(members), LOOKS))})
        each = max(1, LOOKS // len(chosen))
        self.looks = [(k, *_severities(surrogate.members[k], each)) for k in chosen]

    def __call__(self) -> float:
        errors = []
        for member, alpha, truth in self.looks:
            boundary = learned_boundary(self.surrogate, alpha, member, HARD)
            errors.append(np.abs(_clipped(boundary, self.surrogate.members[member]) - truth))
        return float(np.concatenate(errors).mean())


def _severities(operators: PhaseOperators, count: int) -> tuple[Float, Float]:
    """Severities of the training grid, with finite CCT where there are such, and the true CCTs."""
    boundary = reference_boundary(operators, training_axes(operators)[0])
    pool = np.flatnonzero(boundary.finite) if boundary.finite.any() else np.arange(len(boundary.alpha))
    chosen = pool[np.unique(np.linspace(0, len(pool) - 1, min(count, len(pool))).round().astype(int))]
    return boundary.alpha[chosen], _clipped(boundary, operators)[chosen]


def _clipped(boundary: Boundary, operators: PhaseOperators) -> Float:
    first, last = operators.window.t_c
    ends = np.array([first if status == "left-censored" else last for status in boundary.status])
    return np.where(boundary.finite, boundary.cct, ends)

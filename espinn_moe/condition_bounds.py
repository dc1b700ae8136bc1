"""What a head over conditions is worth: its errors, and a bound that is local in two ways, theory.md eqs. (75)-(76).

A small network says where errors are usually large: near the edge, where the first crossing bends or jumps, in corners.
Rows drawn like queries, which no fit has seen, are then put into bins of equal size by their distance to the edge, and
each bin gets the split-conformal quantile of errors in units of what is usual there. So the bound is wide only where
the head is poor, and covers as promised at every distance.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from contingencies.points import Axis, limits_of
from contingencies.stability import Boundary
from espinn_moe.condition_head import ConditionHead, unit_conditions
from espinn_moe.condition_head_fit import Loss, fit_readout
from espinn_moe.head import STATUSES, UNCERTAIN, Array
from espinn_moe.head_errors import Errors, conformal_bound

BINS = 10  # of equal size, by distance to the edge
LEVEL = 0.965  # of every bin: 600 scores scatter by 0.8 %, and each is to cover 94 to 99 %
LEAST = 60  # rows of a bin; fewer make no quantile at this level
SPREAD_HIDDEN = (24,)
SPREAD_LEVEL = 0.9  # the quantile of errors that the network follows
FLOOR = 0.1  # of the median error: smaller errors are luck, not skill
BAND_LEVEL = 0.99  # of the edge's errors: what lies farther from it has the right status
JUMP_S = 2e-3  # an error so large is that of a fit across a jump
BESIDE = 0.02  # of each range: how far from a row beside a jump others are drawn
CHUNK, CHUNKS = 4096, 64  # rows drawn at a time, and how often, to find those that a head answers with a number


def draw_rows(head: ConditionHead, count: int, seed: int, stretch: float = 1.0) -> tuple[Array, Array]:
    """Severities (m,) and conditions (m, d), uniform over the domain as queries are.

    With a `stretch` above 1 they are spread farther about its middle and put back on its faces, so that some lie there.
    """
    low, high = limits_of((*head.axes, Axis("severity", *head.severity)))
    reach = 0.5 * (stretch - 1.0) * (high - low)
    drawn = np.clip(np.random.default_rng(seed).uniform(low - reach, high + reach, (count, len(low))), low, high)
    return drawn[:, -1], drawn[:, :-1]


def draw_answered(head: ConditionHead, count: int, seed: int, stretch: float = 1.0) -> tuple[Array, Array]:
    """As `draw_rows`, those only to which the head answers with a number; fewer where it hardly ever does."""
    rng = np.random.default_rng(seed)
    alpha, conditions = np.empty(0), np.empty((0, len(head.axes)))
    for _ in range(CHUNKS):
        severities, points = draw_rows(head, CHUNK, int(rng.integers(2**31)), stretch)
        answered = head.answers(severities, points)[1] == 0
        alpha = np.concatenate([alpha, severities[answered]])
        conditions = np.concatenate([conditions, points[answered]])
        if len(alpha) >= count:
            break
    return alpha[:count], conditions[:count]


def draw_beside(head: ConditionHead, conditions: Array, truth: Boundary, count: int, seed: int) -> tuple[Array, Array]:
    """Answered rows close to those of a boundary at conditions (m, d) where the head is off as far as beside a jump.

    A jump of the first crossing takes up little of a domain: few rows of an even draw tell how wide it is.
    """
    error = np.abs(head.answers(truth.alpha, conditions)[0] - truth.cct)
    jumps = np.flatnonzero(error > JUMP_S)
    if not jumps.size:
        return truth.alpha[:0], conditions[:0]
    low, high = limits_of((*head.axes, Axis("severity", *head.severity)))
    rng = np.random.default_rng(seed)
    known = np.column_stack([conditions, truth.alpha])[rng.choice(jumps, count)]
    drawn = np.clip(known + BESIDE * (high - low) * rng.standard_normal(known.shape), low, high)
    answered = head.answers(drawn[:, -1], drawn[:, :-1])[1] == 0
    return drawn[answered, -1], drawn[answered, :-1]


def with_spread(
    head: ConditionHead, measured: Sequence[tuple[Array, Boundary]], steps: int, seed: int = 0
) -> ConditionHead:
    """The head with a network for the size of its errors, learned from conditions (m, d) and what is true there."""
    alpha = np.concatenate([truth.alpha for _, truth in measured])
    conditions = np.concatenate([points for points, _ in measured])
    error = np.abs(head.answers(alpha, conditions)[0] - np.concatenate([truth.cct for _, truth in measured]))
    known = np.isfinite(error)
    if known.sum() < LEAST:
        return head
    usual = max(float(np.median(error[known])), 1e-12)
    inputs = head.inputs(alpha, conditions)[0]
    target = np.log(np.maximum(error[known], FLOOR * usual))
    spread = fit_readout(inputs[known], target, SPREAD_HIDDEN, steps, seed, _pinball(SPREAD_LEVEL))
    return replace(head, spread=spread)


def with_band(head: ConditionHead, conditions: Array, edges: Array) -> ConditionHead:
    """The head with a band around its edge, from true edges (m,) at conditions (m, d) drawn like queries."""
    low, high = head.severity
    inside = np.flatnonzero((edges >= low) & (edges <= high))
    if not inside.size:
        return head
    error = np.abs(head.edge(unit_conditions(head.axes, conditions[inside])) - edges[inside])
    band = conformal_bound(error, BAND_LEVEL)
    return replace(head, band=float(error.max()) if band is None else band)


def calibrated(head: ConditionHead, conditions: Array, truth: Boundary) -> ConditionHead:
    """The head with bounds from rows drawn like queries: one quantile for each bin of distances, one for all."""
    cct, code = head.answers(truth.alpha, conditions)
    answered = code == 0
    error = np.where(np.isfinite(truth.cct), np.abs(cct - truth.cct), np.inf)[answered]
    if not error.size:
        return head
    inputs, distance = (values[answered] for values in head.inputs(truth.alpha, conditions))
    score = error if head.spread is None else error * np.exp(-head.spread(inputs))
    bins = max(1, min(BINS, error.size // LEAST))
    distances = np.quantile(distance, np.linspace(0.0, 1.0, bins + 1)[1:-1])
    place = np.searchsorted(distances, distance, side="right")
    bounds = [conformal_bound(score[place == k], LEVEL) for k in range(bins)]
    overall = conformal_bound(error)
    known = [bound for bound in bounds if bound is not None]
    if overall is None or not known:
        return replace(head, spread=None)
    largest = max(known)
    local = tuple(largest if bound is None else bound for bound in bounds)
    return replace(head, distances=tuple(distances.tolist()), bounds=local, error_bound_s=overall)


def with_gap(head: ConditionHead, gap_s: float) -> ConditionHead:
    """The head with bounds that hold for a reference which differs by so much from the one it was calibrated on."""
    if head.error_bound_s is None:
        return head
    wider = replace(head, error_bound_s=head.error_bound_s + gap_s)
    if head.spread is None:
        return replace(wider, bounds=tuple(bound + gap_s for bound in head.bounds))
    return replace(wider, gap_s=gap_s)


def point_errors(head: ConditionHead, conditions: Array, truth: Boundary) -> Errors:
    """Errors of a head against a boundary at its severities and at conditions (m, d)."""
    cct, code = head.answers(truth.alpha, conditions)
    both = (code == 0) & truth.finite
    error = np.abs(cct - truth.cct)
    names = np.array(STATUSES)[code]
    return Errors(
        count=len(code), finite=int(both.sum()),
        mae_s=float(error[both].mean()) if both.any() else None,
        max_s=float(error[both].max()) if both.any() else None,
        bound_s=conformal_bound(np.where(both, error, np.inf)[code == 0]),
        disagreements=int(((names != np.array(truth.status)) & (code != UNCERTAIN)).sum()),
    )  # fmt: skip


def _pinball(level: float) -> Loss:
    """The loss whose minimum is a quantile."""

    def loss(output: Tensor, wanted: Tensor) -> Tensor:
        above = wanted - output
        return torch.maximum(level * above, (level - 1.0) * above).mean()

    return loss

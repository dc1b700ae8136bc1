"""Fitting a head over conditions to any source of censoring edges and CCTs: the reference or a surrogate.

First the edge alpha_e(conditions), then the CCT in the coordinate in which it is smooth up to the edge, theory.md
eqs. (73)-(74); each is a small tanh network in double precision, fitted on the full batch by SOAP. Samples fill the
domain evenly in the conditions and in u = sqrt(alpha - alpha_e). The bound is split-conformal and local: rows drawn
like queries, which no fit has seen, are put into bins of equal size by their distance to the edge, and every bin gets
its own quantile, theory.md eq. (75).
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from contingencies.errors import UsageError
from contingencies.points import Axis, limits_of, sample_points
from contingencies.stability import Boundary
from espinn_moe.condition_head import ConditionHead, Readout
from espinn_moe.head import STATUSES, Array
from espinn_moe.head_errors import Errors, conformal_bound
from espinn_moe.soap import BatchedSOAP

EDGE_POINTS, EDGE_HIDDEN, EDGE_STEPS = 512, (64,), 3000
ROOT_POINTS, ROOT_HIDDEN, ROOT_STEPS = 2400, (48, 48), 6000
STRETCH = 1.06  # of samples about the middle of the ranges, so that some lie on faces and corners
LEARNING_RATE, FINAL_RATE = 1e-2, 1e-3  # the second as a fraction of the first
BINS = 10  # of equal size, by distance to the edge
LEVEL = 0.965  # of every bin: 200 scores scatter by 1.3 %, and each is to cover 94 to 99 %

Report = Callable[[int, int], None]


@dataclass(frozen=True, eq=False)
class PointSource:
    """Where a head over conditions comes from; rows have severities (m,) and conditions (m, d)."""

    edges: Callable[[Array], Array]  # conditions (m, d) -> severities (m,); -inf always unstable, inf never
    roots: Callable[[Array, Array], Boundary]


@dataclass(frozen=True)
class Domain:
    """What a head is to answer for."""

    severity: tuple[float, float]
    t_f: float
    window: tuple[float, float]  # clearing instants, s
    axes: tuple[Axis, ...]
    own: tuple[float, ...]


def fit_condition_head(source: PointSource, domain: Domain, seed: int = 0, points: int = ROOT_POINTS) -> ConditionHead:
    """A head without bounds; see `calibrated`.

    Parameters
    ----------
    source : PointSource
    domain : Domain
    seed : int
        Of samples and initial weights.
    points : int
        CCTs that are asked for.
    """
    low, high = limits_of(domain.axes)
    at = _stretched(domain.axes, EDGE_POINTS, seed)
    edge = _fit_edge(_unit(at, low, high), source.edges(at), domain.severity[1], seed)
    drawn = _stretched((*domain.axes, Axis("u", 0.0, 1.0)), points, seed + 1)
    rows, x = drawn[:, :-1], _unit(drawn[:, :-1], low, high)
    alpha_e = edge(x)
    start = np.maximum(alpha_e, domain.severity[0])
    usable = start < domain.severity[1]
    reach = np.sqrt(np.maximum(domain.severity[1] - alpha_e, 0.0))
    first = np.sqrt(np.maximum(start - alpha_e, 0.0))
    alpha = np.clip(alpha_e + (first + (reach - first) * drawn[:, -1]) ** 2, start, domain.severity[1])
    if not usable.any():
        raise UsageError("no operating point has a finite CCT at any severity; there is no head to fit.")
    found = source.roots(alpha[usable], rows[usable])
    finite = found.finite
    inputs = np.column_stack([x, np.sqrt(np.maximum(alpha - alpha_e, 0.0)), alpha_e])[usable][finite]
    root = _fit(inputs, found.cct[finite], ROOT_HIDDEN, ROOT_STEPS, seed)
    return ConditionHead(domain.severity, domain.t_f, domain.window, domain.axes, domain.own, edge, root)


def draw_rows(head: ConditionHead, count: int, seed: int) -> tuple[Array, Array]:
    """Severities (m,) and conditions (m, d), uniform over the domain as queries are."""
    axes = (*head.axes, Axis("severity", *head.severity))
    drawn = np.random.default_rng(seed).uniform(*limits_of(axes), (count, len(axes)))
    return drawn[:, -1], drawn[:, :-1]


def calibrated(head: ConditionHead, conditions: Array, truth: Boundary) -> ConditionHead:
    """The head with bounds from rows drawn like queries: one quantile for each bin of distances, one for all."""
    cct, code = head.answers(truth.alpha, conditions)
    answered = code == 0
    error = np.where(np.isfinite(truth.cct), np.abs(cct - truth.cct), np.inf)[answered]
    distance = (truth.alpha - edges_of(head, conditions))[answered]
    if not error.size:
        return head
    bins = max(1, min(BINS, error.size // 60))  # fewer rows make no quantile at this level
    distances = np.quantile(distance, np.linspace(0.0, 1.0, bins + 1)[1:-1])
    place = np.searchsorted(distances, distance, side="right")
    bounds = [conformal_bound(error[place == k], LEVEL) for k in range(bins)]
    overall = conformal_bound(error)
    known = [bound for bound in bounds if bound is not None]
    if overall is None or not known:
        return head
    largest = max(known)
    local = tuple(largest if bound is None else bound for bound in bounds)
    return replace(head, distances=tuple(distances.tolist()), bounds=local, error_bound_s=overall)


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
        disagreements=int((names != np.array(truth.status)).sum()),
    )  # fmt: skip


def edges_of(head: ConditionHead, conditions: Array) -> Array:
    """Censoring severities (m,) of a head at conditions (m, d)."""
    return head.edge(_unit(np.asarray(conditions, dtype=float), *limits_of(head.axes)))


def _stretched(axes: tuple[Axis, ...], count: int, seed: int) -> Array:
    low, high = limits_of(axes)
    middle = 0.5 * (low + high)
    return np.clip(middle + STRETCH * (sample_points(axes, count, seed) - middle), low, high)


def _unit(values: Array, low: Array, high: Array) -> Array:
    scaled: Array = (2.0 * values - low - high) / (high - low)
    return scaled


def _fit_edge(x: Array, edge: Array, most: float, seed: int) -> Readout:
    """Where no edge was found, the network only has to be on the right side."""
    found = np.isfinite(edge)
    if not found.any():  # one status everywhere
        constant = 2.0 * most if (edge > 0).all() else -1.0
        return Readout((np.zeros((x.shape[1], 1)),), (np.array([constant]),))
    limit = float(edge[found].max()), float(edge[found].min())
    target = np.where(found, edge, np.where(edge > 0, limit[0], limit[1]))
    side = torch.tensor(np.where(found, 0.0, np.sign(edge)))

    def residual(output: Tensor, wanted: Tensor) -> Tensor:
        difference = output - wanted
        free = ((side > 0) & (difference > 0)) | ((side < 0) & (difference < 0))
        return torch.where(free, torch.zeros_like(difference), difference)

    return _fit(x, target, EDGE_HIDDEN, EDGE_STEPS, seed, residual)


def _fit(x: Array, y: Array, hidden: tuple[int, ...], steps: int, seed: int, residual: Any = torch.sub) -> Readout:
    """A tanh network through samples x (m, in), y (m,), by SOAP on the full batch."""
    centre, spread = x.mean(0), np.maximum(x.std(0), 1e-9)
    middle, size = float(y.mean()), max(float(y.std()), 1e-9)
    inputs, wanted = torch.tensor((x - centre) / spread), torch.tensor((y - middle) / size)
    generator = torch.Generator().manual_seed(seed)
    weights, biases = [], []
    for before, after in itertools.pairwise([x.shape[1], *hidden, 1]):
        weights.append(torch.randn(before, after, dtype=torch.float64, generator=generator) / before**0.5)
        biases.append(0.5 * torch.randn(after, dtype=torch.float64, generator=generator))
    parameters = [tensor.requires_grad_() for tensor in (*weights, *biases)]
    optimiser = BatchedSOAP(parameters, lr=LEARNING_RATE)
    decay = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps, eta_min=FINAL_RATE * LEARNING_RATE)
    for _ in range(steps):
        h = inputs
        for W, b in zip(weights[:-1], biases[:-1], strict=True):
            h = torch.tanh(torch.addmm(b, h, W))
        loss = residual((h @ weights[-1])[:, 0] + biases[-1], wanted).square().mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        decay.step()
    return _folded([W.detach().numpy() for W in weights], [b.detach().numpy() for b in biases], (centre, spread),
                   (middle, size))  # fmt: skip


def _folded(
    weights: list[Array], biases: list[Array], inputs: tuple[Array, Array], output: tuple[float, float]
) -> Readout:
    """The network of unscaled inputs and output."""
    (centre, spread), (middle, size) = inputs, output
    first = weights[0] / spread[:, None]
    W, b = [first, *weights[1:]], [biases[0] - centre @ first, *biases[1:]]
    W[-1], b[-1] = W[-1] * size, b[-1] * size + middle
    return Readout(tuple(map(np.ascontiguousarray, W)), tuple(b))

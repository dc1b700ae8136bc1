"""Fitting a head over conditions to any source of censoring edges and CCTs: the reference or a surrogate.

First the edge alpha_e(conditions), then the CCT in the coordinate in which it is smooth up to the edge, theory.md
eqs. (73)-(74); each is a small tanh network in double precision, fitted on the full batch by SOAP. Samples fill the
domain evenly in the conditions and in u = sqrt(alpha - alpha_e). Where clearing at the end of the window is stable
again although an earlier instant is not, the edge is the lowest severity with any loss of synchronism, so that no
such severity is called stable. Bounds come afterwards, in `espinn_moe.condition_bounds`.
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from contingencies.points import Axis, limits_of, sample_points
from contingencies.stability import Boundary
from espinn_moe.condition_head import ConditionHead, unit_conditions
from espinn_moe.head import Array
from espinn_moe.readout import Readout
from espinn_moe.soap import BatchedSOAP

STRETCH = 1.06  # of samples about the middle of the ranges, so that some lie on faces and corners
LEARNING_RATE, FINAL_RATE = 1e-2, 1e-3  # the second as a fraction of the first
BELOW = (0.985, 0.9, 0.7)  # of an edge: where an earlier loss of synchronism is looked for
HALVINGS = 15  # to 3e-5 of the severity

Loss = Callable[[Tensor, Tensor], Tensor]  # outputs and targets (m,), scaled -> one number


@dataclass(frozen=True)
class HeadBudget:
    """What a head over conditions is fitted to and measured on, and for how long."""

    edge_points: int = 512
    edge_hidden: tuple[int, ...] = (64,)
    edge_steps: int = 3000
    root_points: int = 2400
    root_hidden: tuple[int, ...] = (48, 48)
    root_steps: int = 6000
    spread_points: int = 1500  # rows from which is learned where errors are large
    beside_jumps: int = 400  # more such rows where the first crossing jumps
    spread_steps: int = 1000
    calibration: int = 6000  # rows behind the bounds, 600 for each of ten distances to the edge
    looks: int = 600  # rows anywhere in the domain, at which statuses are compared


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


def fit_condition_head(
    source: PointSource, domain: Domain, seed: int = 0, budget: HeadBudget | None = None
) -> ConditionHead:
    """A head without bounds; see `espinn_moe.condition_bounds`. Where nothing is ever lost it answers with that status.

    Parameters
    ----------
    source : PointSource
    domain : Domain
    seed : int
        Of samples and initial weights.
    budget : HeadBudget, optional
    """
    budget = budget or HeadBudget()
    at = _stretched(domain.axes, budget.edge_points, seed)
    edges = lowest_edges(source, at, domain.severity[1])
    edge = _fit_edge(unit_conditions(domain.axes, at), edges, domain.severity[1], seed, budget)
    drawn = _stretched((*domain.axes, Axis("u", 0.0, 1.0)), budget.root_points, seed + 1)
    rows, x = drawn[:, :-1], unit_conditions(domain.axes, drawn[:, :-1])
    alpha_e = edge(x)
    start = np.maximum(alpha_e, domain.severity[0])
    usable = start < domain.severity[1]
    reach = np.sqrt(np.maximum(domain.severity[1] - alpha_e, 0.0))
    first = np.sqrt(np.maximum(start - alpha_e, 0.0))
    alpha = np.clip(alpha_e + (first + (reach - first) * drawn[:, -1]) ** 2, start, domain.severity[1])
    inputs = np.column_stack([x, np.sqrt(np.maximum(alpha - alpha_e, 0.0)), alpha_e])
    root = _constant(inputs.shape[1], domain.window[1])  # never asked where no severity reaches an edge
    if usable.any():
        root = _fit_root(inputs[usable], source.roots(alpha[usable], rows[usable]), domain, seed, budget)
    return ConditionHead(domain.severity, domain.t_f, domain.window, domain.axes, domain.own, edge, root)


def lowest_edges(source: PointSource, conditions: Array, most: float) -> Array:
    """Lowest severities (m,) with any loss of synchronism within the window, up to `most` beyond the source's own.

    The source's edges are those of clearing at the end of the window. Below them synchronism may be lost at earlier
    clearing instants and kept again at the end: there the edge is found by halving, with whole searches.
    """
    edges = source.edges(conditions)
    top = np.minimum(edges, most)
    asked = np.outer(BELOW, np.maximum(top, 0.0))
    found = source.roots(asked.ravel(), np.tile(conditions, (len(BELOW), 1)))
    lost = (np.array(found.status) != "right-censored").reshape(asked.shape) & (top > 0)
    earlier = np.flatnonzero(lost.any(0))
    if not earlier.size:
        return edges
    high = np.where(lost, asked, np.inf)[:, earlier].min(0)
    low = np.where(~lost & (asked < np.where(lost, asked, np.inf).min(0)), asked, 0.0)[:, earlier].max(0)
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        beyond = np.array(source.roots(middle, conditions[earlier]).status) != "right-censored"
        low, high = np.where(beyond, low, middle), np.where(beyond, middle, high)
    edges = edges.copy()
    edges[earlier] = high
    return edges


def _stretched(axes: tuple[Axis, ...], count: int, seed: int) -> Array:
    low, high = limits_of(axes)
    middle = 0.5 * (low + high)
    return np.clip(middle + STRETCH * (sample_points(axes, count, seed) - middle), low, high)


def _fit_edge(x: Array, edge: Array, most: float, seed: int, budget: HeadBudget) -> Readout:
    """Where no edge was found, the network only has to be on the right side."""
    found = np.isfinite(edge)
    if not found.any():  # one status everywhere
        return _constant(x.shape[1], 2.0 * most if (edge > 0).all() else -1.0)
    limit = float(edge[found].max()), float(edge[found].min())
    target = np.where(found, edge, np.where(edge > 0, limit[0], limit[1]))
    side = np.where(found, 0.0, np.sign(edge))
    return fit_readout(x, target, budget.edge_hidden, budget.edge_steps, seed, one_sided(side))


def _fit_root(inputs: Array, found: Boundary, domain: Domain, seed: int, budget: HeadBudget) -> Readout:
    """Where the first clearing instant is too late already, the network only has to stay below it."""
    early = np.array(found.status) == "left-censored"
    used = found.finite | early
    if not used.any():
        return _constant(inputs.shape[1], domain.window[1])
    target = np.where(early, domain.window[0], found.cct)[used]
    side = np.where(early, -1.0, 0.0)[used]
    return fit_readout(inputs[used], target, budget.root_hidden, budget.root_steps, seed, one_sided(side))


def _constant(inputs: int, value: float) -> Readout:
    return Readout((np.zeros((inputs, 1)),), (np.array([value]),))


def one_sided(side: Array) -> Loss:
    """Squares of what is above (side -1) or below (side 1) the targets; of every difference where side is 0."""
    signs = torch.tensor(np.asarray(side, dtype=float))

    def loss(output: Tensor, wanted: Tensor) -> Tensor:
        difference = output - wanted
        return torch.where(signs * difference > 0, torch.zeros_like(difference), difference).square().mean()

    return loss


def fit_readout(x: Array, y: Array, hidden: tuple[int, ...], steps: int, seed: int, loss: Loss) -> Readout:
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
        misfit = loss((h @ weights[-1])[:, 0] + biases[-1], wanted)
        optimiser.zero_grad()
        misfit.backward()
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

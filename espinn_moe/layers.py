"""Networks that carry the time derivative along with the value, and experts that run as one tensor.

A derivative pushed forward through the layers costs about one more forward pass, however many
outputs there are; a backward pass would be needed for each output.
"""

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from espinn_moe.network_pass import Activation, NetworkPass

SINE_FREQUENCY = 5.0  # w0 of the paper


def common_shape(*shapes: Sequence[int]) -> torch.Size:
    """The shape that tensors of these shapes have together; torch's own imports half a second of symbolic algebra."""
    return torch.Size(np.broadcast_shapes(*map(tuple, shapes)))


class Stack(nn.Module):
    """Fully connected layers for `groups` experts at once, or one plain network.

    Parameters
    ----------
    widths : sequence of int
        From input to output.
    dtype : torch.dtype
    activation : "sine" or "tanh"
    groups : int, optional
        Number of experts; weights are then (groups, in, out). Without it a plain network, (in, out).
    first : bool
        Whether the input is the coordinates themselves, for which sine layers start wider.
    last_linear : bool
        Whether the last layer is the output rather than another hidden layer.
    """

    def __init__(
        self,
        widths: Sequence[int],
        dtype: torch.dtype,
        activation: Activation,
        *,
        groups: int | None = None,
        first: bool = True,
        last_linear: bool = True,
        w0: float = SINE_FREQUENCY,
    ) -> None:
        super().__init__()
        self.activation, self.w0 = activation, w0
        self.hidden = len(widths) - 1 - int(last_linear)
        lead = () if groups is None else (groups,)
        self.weights = nn.ParameterList()
        self.biases = nn.ParameterList()
        for index, (fan_in, fan_out) in enumerate(pairwise(widths)):
            if activation == "sine":
                bound = 1.0 / fan_in if first and index == 0 else math.sqrt(6.0 / fan_in) / w0
            else:
                bound = math.sqrt(6.0 / (fan_in + fan_out))
            weight = torch.empty(*lead, fan_in, fan_out, dtype=dtype).uniform_(-bound, bound)
            bias = torch.empty(*lead, fan_out, dtype=dtype)
            bias.uniform_(-bound, bound) if activation == "sine" else bias.zero_()
            self.weights.append(nn.Parameter(weight))
            self.biases.append(nn.Parameter(bias))

    def forward(self, x: Tensor, rate: Tensor | None = None, group: int | None = None) -> tuple[Tensor, Tensor | None]:
        """Values, and their derivative along `rate`.

        Parameters
        ----------
        x : Tensor
            (..., in) for a plain network or one `group`; (groups, m, in) for all experts at once.
        rate : Tensor, optional
            Time derivative of x: one vector (in,) for all rows, or rows of their own, (r, in) or (groups, r, in), for
            the first r of x.
        group : int, optional
            Which expert.
        """
        weights, biases = list(self.weights), list(self.biases)
        if group is not None:
            weights, biases = [weight[group] for weight in weights], [bias[group] for bias in biases]
        if rate is None and not torch.is_grad_enabled():
            return self._values(x, weights, biases), None
        lead, grouped = x.shape[:-1], weights[0].ndim == 3
        rows = x if grouped else x.reshape(-1, x.shape[-1])
        if rate is None or rate.ndim == 1:
            rates = None if rate is None else rate.expand_as(rows)
        else:
            rates = rate if grouped else rate.reshape(-1, rate.shape[-1])
        value, slope = NetworkPass.apply(rows, rates, self.activation, self.w0, self.hidden, *weights, *biases)
        if grouped or len(lead) == 1:
            return value, slope
        return value.reshape(*lead, -1), None if slope is None else slope.reshape(*lead, -1)

    def _values(self, x: Tensor, weights: list[Tensor], biases: list[Tensor]) -> Tensor:
        """Values alone, where nothing is learned from them."""
        for index, (weight, bias) in enumerate(zip(weights, biases, strict=True)):
            x = torch.baddbmm(bias[:, None], x, weight) if weight.ndim == 3 else linear(x, weight.T, bias)
            if index < self.hidden:
                x = x.mul_(self.w0).sin_() if self.activation == "sine" else x.tanh_()
        return x


class Experts(nn.Module):
    """One small network per expert; every row is answered by exactly one of them.

    Rows of a mixed batch are sorted into equal groups, so that all experts run as one batched
    product whose cost hardly grows with their number.
    """

    def __init__(
        self, count: int, widths: Sequence[int], dtype: torch.dtype, activation: Activation, w0: float = SINE_FREQUENCY
    ) -> None:
        super().__init__()
        self.count = count
        self.stack = Stack(widths, dtype, activation, groups=count, first=False, w0=w0)

    def forward(self, x: Tensor, rate: Tensor | None, expert: int | Tensor) -> tuple[Tensor, Tensor | None]:
        """Values and derivatives of rows x (..., in); an expert per row (...), or one for all.

        Rates are (..., in), or (r, in) of the first r rows (m, in).
        """
        if isinstance(expert, int):
            out: tuple[Tensor, Tensor | None] = self.stack(x, rate, group=expert)
            return out
        lead = common_shape(x.shape[:-1], expert.shape)
        x, expert = x.expand(*lead, -1), expert.expand(lead).reshape(-1)
        places, depth = group_places(expert, self.count)
        rows = self._grouped(x, places, depth)
        if rate is None:
            return self.stack(rows)[0].flatten(0, 1)[places].reshape(*lead, -1), None
        # Groups keep the order of the rows, so that the first rows of all are also the first of each.
        rates = rate.expand_as(x) if rate.ndim == 1 else rate
        rated = rates[..., 0].numel()
        its_places, its_depth = group_places(expert[:rated], self.count)
        value, slope = self.stack(rows, self._grouped(rates, its_places, its_depth))
        return (
            value.flatten(0, 1)[places].reshape(*lead, -1),
            slope.flatten(0, 1)[its_places].reshape(*rates.shape[:-1], -1),
        )

    def _grouped(self, rows: Tensor, places: Tensor, depth: int) -> Tensor:
        flat = rows.reshape(-1, rows.shape[-1])
        padded = flat.new_zeros(self.count * depth, flat.shape[-1])
        return padded.index_copy(0, places, flat).unflatten(0, (self.count, depth))


def routed_product(rows: Tensor, matrices: Tensor, expert: int | Tensor) -> Tensor:
    """Rows (..., in) times the matrix of their expert, out of (experts, in, out); an expert per row, or one for all."""
    if isinstance(expert, int):
        return rows @ matrices[expert]
    lead = common_shape(rows.shape[:-1], expert.shape)
    places, depth = group_places(expert.expand(lead).reshape(-1), len(matrices))
    flat = rows.expand(*lead, -1).reshape(-1, rows.shape[-1])
    table = flat.new_zeros(len(matrices) * depth, flat.shape[-1]).index_copy(0, places, flat)
    return (table.unflatten(0, (len(matrices), depth)) @ matrices).flatten(0, 1)[places].reshape(*lead, -1)


def group_places(expert: Tensor, count: int) -> tuple[Tensor, int]:
    """Where each row (m,) goes in a (count, depth) table with one line per expert, and that depth."""
    order = torch.argsort(expert, stable=True)
    sizes = torch.bincount(expert, minlength=count)
    begins = sizes.cumsum(0) - sizes
    depth = int(sizes.max())
    place = torch.empty_like(order)
    ranks = torch.arange(len(expert), device=expert.device)
    place[order] = expert[order] * depth + ranks - begins[expert[order]]
    return place, depth

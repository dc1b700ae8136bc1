"""All layers of a network as one operation: values of rows, and time derivatives of the first of them.

Rows and rates are laid beside each other, because both meet the same weights, so that a layer is one product. What the
way back needs of an activation is made once, on the way there. Left to autograd, layer by layer, a training step of the
paper's networks is spent on calls rather than on products.
"""

from typing import Any, Literal

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

Activation = Literal["sine", "tanh"]


class NetworkPass(torch.autograd.Function):
    """Values (..., m, out) of rows (..., m, in), and derivatives (..., r, out) of the first r along rates (..., r, in).

    Leading axes are groups with weights of their own, (groups, in, out). The first `hidden` layers have activations;
    of a sine, `w0` is the frequency. Can be differentiated once.
    """

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, rate: Tensor | None, activation: Activation, w0: float, hidden: int, *parameters: Tensor
    ) -> tuple[Tensor, Tensor | None]:
        count, m = len(parameters) // 2, x.shape[-2]
        y = x if rate is None else torch.cat([x, rate], dim=-2)
        kept = [y]
        for index in range(count):
            weight, bias = parameters[index], parameters[count + index].unsqueeze(-2)
            if index < hidden and activation == "sine":  # sin(w0 z): there are fewer weights to scale than rows
                weight, bias = w0 * weight, w0 * bias
            z = y @ weight
            values, z_rate = z[..., :m, :].add_(bias), z[..., m:, :]
            if index == hidden:
                y, slope = z, z[..., :0, :]
            else:
                y, slope = _activated(activation, values, z_rate)
            kept += [weight, slope, z_rate, y]
        ctx.save_for_backward(*kept)
        ctx.description = activation, w0, hidden, m
        return y[..., :m, :], None if rate is None else y[..., m:, :]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, of_value: Tensor, of_rate: Tensor | None) -> tuple[Any, ...]:
        activation, w0, hidden, m = ctx.description
        kept = list(ctx.saved_tensors)
        g: Tensor | None = of_value if of_rate is None else torch.cat([of_value, of_rate], dim=-2)
        of_weights, of_biases = list[Tensor](), list[Tensor]()
        for index in reversed(range((len(kept) - 1) // 4)):
            before, weight, slope, z_rate, y = kept[4 * index : 4 * index + 5]
            assert g is not None
            if index < hidden:
                g = _through_activation(activation, g, slope, z_rate, y)
            of_weight, of_bias = before.mT @ g, g[..., :m, :].sum(-2)
            if index < hidden and activation == "sine":
                of_weight, of_bias = of_weight.mul_(w0), of_bias.mul_(w0)
            of_weights.append(of_weight)
            of_biases.append(of_bias)
            g = g @ weight.mT if index or ctx.needs_input_grad[0] or ctx.needs_input_grad[1] else None
        of_x = None if g is None else g[..., :m, :]
        of_x_rate = None if g is None or of_rate is None else g[..., m:, :]
        return of_x, of_x_rate, None, None, None, *reversed(of_weights), *reversed(of_biases)


def _activated(activation: Activation, values: Tensor, z_rate: Tensor) -> tuple[Tensor, Tensor]:
    """Activations of values (..., m, width), then of rates (..., r, width); and the slopes (..., m, width)."""
    m, rated = values.shape[-2], z_rate.shape[-2]
    y = values.new_empty(*values.shape[:-2], m + rated, values.shape[-1])
    out = y[..., :m, :]
    if activation == "sine":
        torch.sin(values, out=out)
        slope = values.cos()
    else:
        torch.tanh(values, out=out)
        slope = 1.0 - out.square()
    if rated:
        torch.mul(slope[..., :rated, :], z_rate, out=y[..., m:, :])
    return y, slope


def _through_activation(activation: Activation, g: Tensor, slope: Tensor, z_rate: Tensor, y: Tensor) -> Tensor:
    """Gradient before the activation from that behind it (..., m + r, width)."""
    m, rated = slope.shape[-2], z_rate.shape[-2]
    if not rated:
        return slope * g
    before = torch.empty_like(g)
    torch.mul(slope, g[..., :m, :], out=before[..., :m, :])
    of_rate, first = g[..., m:, :], y[..., :rated, :]
    torch.mul(slope[..., :rated, :], of_rate, out=before[..., m:, :])
    # Slopes change with the values: by -sin, or by -2 tanh (1 - tanh^2).
    bend, factor = (first, -1.0) if activation == "sine" else (first * slope[..., :rated, :], -2.0)
    before[..., :rated, :].addcmul_(bend, z_rate * of_rate, value=factor)
    return before

"""A network as one operation is the network layer by layer, for values, rates and all gradients."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from espinn_moe.layers import Experts, Stack

DTYPE = torch.float64


def layer_by_layer(stack: Stack, x: Tensor, rate: Tensor, group: int | None = None) -> tuple[Tensor, Tensor]:
    """What autograd makes of the same network; rates of all rows."""
    for index, (weight, bias) in enumerate(zip(stack.weights, stack.biases, strict=True)):
        if group is not None:
            weight, bias = weight[group], bias[group]
        x, rate = x @ weight + bias.unsqueeze(-2), rate @ weight
        if index < stack.hidden:
            x, slope = (
                ((stack.w0 * x).sin(), stack.w0 * (stack.w0 * x).cos())
                if stack.activation == "sine"
                else (x.tanh(), 1.0 - x.tanh().square())
            )
            rate = slope * rate
    return x, rate


def gradients(loss: Tensor, stack: torch.nn.Module, *inputs: Tensor) -> list[Tensor]:
    return list(torch.autograd.grad(loss, [*inputs, *stack.parameters()]))


@given(
    activation=st.sampled_from(["sine", "tanh"]),
    last_linear=st.booleans(),
    groups=st.sampled_from([None, 3]),
    rows=st.integers(1, 6),
    rated=st.integers(0, 6),
    seed=st.integers(0, 2**16),
)
def test_values_rates_and_gradients_are_those_of_the_layers(activation, last_linear, groups, rows, rated, seed):
    torch.manual_seed(seed)
    rated = min(rated, rows)
    stack = Stack([3, 5, 4, 2], DTYPE, activation, groups=groups, last_linear=last_linear)
    lead = () if groups is None else (groups,)
    x = torch.randn(*lead, rows, 3, dtype=DTYPE, requires_grad=True)
    rate = torch.randn(*lead, rated, 3, dtype=DTYPE, requires_grad=True)
    value, slope = stack(x, rate if rated else None)
    padded = torch.cat([rate, torch.zeros(*lead, rows - rated, 3, dtype=DTYPE)], dim=-2)
    expected, expected_slope = layer_by_layer(stack, x, padded)
    torch.testing.assert_close(value, expected)
    weights, slope_weights = torch.randn_like(expected), torch.randn_like(expected_slope[..., :rated, :])
    loss, expected_loss = (value * weights).sum(), (expected * weights).sum()
    inputs = [x]
    if rated:
        torch.testing.assert_close(slope, expected_slope[..., :rated, :])
        loss = loss + (slope * slope_weights).sum()
        expected_loss = expected_loss + (expected_slope[..., :rated, :] * slope_weights).sum()
        inputs.append(rate)
    else:
        assert slope is None
    for ours, theirs in zip(gradients(loss, stack, *inputs), gradients(expected_loss, stack, *inputs), strict=True):
        torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("activation", ["sine", "tanh"])
def test_values_are_the_same_whether_or_not_anything_is_learned_from_them(activation):
    stack = Stack([2, 6, 6, 3], DTYPE, activation)
    x = torch.randn(4, 5, 2, dtype=DTYPE)
    with torch.no_grad():
        alone, _ = stack(x)
    together, rate = stack(x, torch.tensor([1.0, 0.0], dtype=DTYPE))
    torch.testing.assert_close(together, alone)
    assert rate.shape == together.shape == (4, 5, 3)


@given(experts=st.lists(st.integers(0, 2), min_size=1, max_size=9), rated=st.integers(1, 9))
def test_experts_give_each_row_the_value_and_rate_of_its_own_network(experts, rated):
    torch.manual_seed(len(experts))
    mixture = Experts(3, [2, 4, 3], DTYPE, "sine")
    x = torch.randn(len(experts), 2, dtype=DTYPE)
    rate = torch.randn(min(rated, len(experts)), 2, dtype=DTYPE)
    value, slope = mixture(x, rate, torch.tensor(experts))
    assert len(slope) == len(rate)
    for row, expert in enumerate(experts):
        its_rate = rate[row : row + 1] if row < len(rate) else torch.zeros(1, 2, dtype=DTYPE)
        own, own_slope = layer_by_layer(mixture.stack, x[row : row + 1], its_rate, group=expert)
        torch.testing.assert_close(value[row], own[0])
        if row < len(rate):
            torch.testing.assert_close(slope[row], own_slope[0])

"""SOAP on stacks of matrices: the library's algorithm, expert by expert."""

import pytest
import torch
from torch import Tensor, nn

from espinn_moe.soap import BatchedSOAP

torch.set_num_threads(1)
SIZE = 4  # of the layers


def regression(network: nn.Module, seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(32, SIZE, generator=generator, dtype=torch.float64)
    return (network(x) - torch.sin(x.cumsum(-1))).square().mean()


def square_network() -> nn.Module:
    """Layers whose gradients have full rank: the basis of a null space would be a matter of round-off."""
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(SIZE, SIZE), nn.Tanh(), nn.Linear(SIZE, SIZE)).double()


def test_batched_soap_takes_the_steps_of_the_library():
    from pytorch_optimizer import SOAP

    ours, theirs = square_network(), square_network()
    optimizers = BatchedSOAP(ours.parameters(), lr=1e-2), SOAP(theirs.parameters(), lr=1e-2, weight_decay=0.0)
    for step in range(25):
        for network, optimizer in zip((ours, theirs), optimizers, strict=True):
            optimizer.zero_grad()
            regression(network, step).backward()
            optimizer.step()
    for a, b in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=0.0, atol=1e-5)  # the library rounds its bases to float32


def test_experts_in_one_tensor_are_stepped_as_if_each_stood_alone():
    torch.manual_seed(1)
    start, x = torch.randn(3, 4, 5, dtype=torch.float64), torch.randn(3, 9, 4, dtype=torch.float64)
    target = torch.randn(3, 9, 5, dtype=torch.float64)
    stack = start.clone().requires_grad_()
    alone = [start[k].clone().requires_grad_() for k in range(3)]
    together, apart = BatchedSOAP([stack]), [BatchedSOAP([p]) for p in alone]
    for _ in range(25):
        together.zero_grad()
        (torch.tanh(x @ stack) - target).square().sum().backward()
        together.step()
        for k in range(3):
            apart[k].zero_grad()
            (torch.tanh(x[k] @ alone[k]) - target[k]).square().sum().backward()
            apart[k].step()
    torch.testing.assert_close(stack.detach(), torch.stack([p.detach() for p in alone]), rtol=0.0, atol=1e-6)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_parameters_without_a_gradient_stay_as_they_are(dtype):
    frozen = torch.ones(3, 3, dtype=dtype, requires_grad=True)
    moving = torch.ones(3, 3, dtype=dtype, requires_grad=True)
    optimizer = BatchedSOAP([frozen, moving])
    for _ in range(5):
        optimizer.zero_grad()
        moving.square().sum().backward()
        optimizer.step()
    assert torch.equal(frozen, torch.ones(3, 3, dtype=dtype))
    assert not torch.equal(moving, torch.ones(3, 3, dtype=dtype))

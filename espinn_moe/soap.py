"""SOAP for stacks of matrices: Adam in the eigenbasis of Shampoo's preconditioner.

The algorithm is that of `pytorch_optimizer.SOAP` (Vyas et al. 2024), and a test holds the two
equal. Three things differ. The first moment is kept in the eigenbasis and turned with it, which saves
a quarter of the products. A tensor (K, m, n) is K matrices, each with preconditioners of its own: experts of
a mixture must not share curvature, and a preconditioner along the expert axis would mix them. And
matrices of one shape are stepped together, so that the cost hardly grows with their number.
"""

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

ROUNDING = 1e-30  # added to the diagonal before the first eigendecomposition, as in the library


class BatchedSOAP(torch.optim.Optimizer):
    """SOAP without weight decay.

    Parameters
    ----------
    parameters : iterable of Tensor, or groups of them
        Matrices (m, n), stacks of them (K, m, n), or anything else, which is stepped by Adam, as is all of a
        group with "elementwise": True (biases of K experts are no matrix).
    lr : float
        Learning rate.
    betas : (float, float)
        Decay of the first moment, and of the second moment and preconditioner.
    precondition_frequency : int
        Steps between updates of the eigenbases.
    eps : float
        Added to the root of the second moment.
    """

    def __init__(
        self,
        parameters: Iterable[Any],
        lr: float = 3e-3,
        betas: tuple[float, float] = (0.95, 0.95),
        precondition_frequency: int = 10,
        eps: float = 1e-8,
    ) -> None:
        defaults = {
            "lr": lr,
            "betas": betas,
            "precondition_frequency": precondition_frequency,
            "eps": eps,
            "step": 0,
            "elementwise": False,
        }
        super().__init__(parameters, defaults)

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        """One step from the gradients as they are; the first only starts the preconditioners."""
        assert closure is None
        for group in self.param_groups:
            group["step"] += 1
            for matrices, bucket in _buckets(group["params"], group["elementwise"]):
                self._step_bucket(bucket, matrices, group)

    def _step_bucket(self, bucket: list[Tensor], matrices: bool, group: dict[str, Any]) -> None:
        gradient = _stacked(bucket, matrices)
        state = self.state[bucket[0]]  # of the whole bucket
        if not state:
            state["exp_avg"], state["exp_avg_sq"] = torch.zeros_like(gradient), torch.zeros_like(gradient)
            if matrices:
                _start_preconditioner(state, gradient, group["betas"][1])
        step = group["step"] - 1
        if step == 0:
            return
        beta1, beta2 = group["betas"]
        size = group["lr"] * (1.0 - beta2**step) ** 0.5 / (1.0 - beta1**step)
        turned = state["Q_left"].mT @ gradient @ state["Q_right"] if matrices else gradient
        average = state["exp_avg"].lerp_(turned, 1.0 - beta1)
        second = state["exp_avg_sq"].mul_(beta2).addcmul_(turned, turned, value=1.0 - beta2)
        update = average / second.sqrt().add_(group["eps"])
        if matrices:
            update = state["Q_left"] @ update @ state["Q_right"].mT
        begin = 0
        for parameter in bucket:
            count = parameter.numel() // gradient[0].numel()
            parameter.add_(update[begin : begin + count].view_as(parameter), alpha=-size)
            begin += count
        if matrices:
            _update_preconditioner(state, gradient, beta2, step % group["precondition_frequency"] == 0)


def _is_stack(parameter: Tensor) -> bool:
    return parameter.ndim in (2, 3)


def _buckets(parameters: list[Tensor], elementwise: bool) -> list[tuple[bool, list[Tensor]]]:
    """What is stepped together: matrices of one shape (True), and all that are no matrices (False)."""
    found: dict[tuple[int, ...], list[Tensor]] = {}
    for parameter in parameters:
        key = () if elementwise or not _is_stack(parameter) else tuple(parameter.shape[-2:])
        found.setdefault(key, []).append(parameter)
    return [(key != (), bucket) for key, bucket in found.items() if any(p.grad is not None for p in bucket)]


def _stacked(bucket: list[Tensor], matrices: bool) -> Tensor:
    """Gradients as one tensor (B, m, n), or (B,) for what are no matrices."""
    shape = (-1, *bucket[0].shape[-2:]) if matrices else (-1,)
    gradients = [(torch.zeros_like(p) if p.grad is None else p.grad).reshape(shape) for p in bucket]
    return gradients[0].clone() if len(gradients) == 1 else torch.cat(gradients)


def _start_preconditioner(state: dict[str, Tensor], gradient: Tensor, beta2: float) -> None:
    for side, product in (("left", gradient @ gradient.mT), ("right", gradient.mT @ gradient)):
        state[f"G_{side}"] = (1.0 - beta2) * product
        identity = torch.eye(product.shape[-1], dtype=product.dtype, device=product.device)
        _, Q = torch.linalg.eigh(state[f"G_{side}"] + ROUNDING * identity)
        state[f"Q_{side}"] = Q.flip(-1).contiguous()


def _update_preconditioner(state: dict[str, Tensor], gradient: Tensor, beta2: float, new_basis: bool) -> None:
    state["G_left"].lerp_(gradient @ gradient.mT, 1.0 - beta2)
    state["G_right"].lerp_(gradient.mT @ gradient, 1.0 - beta2)
    if new_basis:
        for side, axis in (("left", 1), ("right", 2)):
            _turn_basis(state, side, axis)


def _turn_basis(state: dict[str, Tensor], side: str, axis: int) -> None:
    """One power iteration of the eigenbasis, largest eigenvalue first; both moments follow."""
    G, Q = state[f"G_{side}"], state[f"Q_{side}"]
    product = G @ Q
    order = (Q * product).sum(dim=1).argsort(dim=-1, descending=True)  # (B, size)
    second = state["exp_avg_sq"]
    along = order[:, :, None] if axis == 1 else order[:, None, :]
    state["exp_avg_sq"] = second.gather(axis, along.expand_as(second))
    sorted_product = product.gather(2, order[:, None, :].expand_as(product))
    new = torch.linalg.qr(sorted_product)[0].contiguous()
    turn, average = new.mT @ Q, state["exp_avg"]
    state["exp_avg"] = turn @ average if axis == 1 else average @ turn.mT
    state[f"Q_{side}"] = new

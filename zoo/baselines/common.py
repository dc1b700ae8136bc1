"""What the baselines share: one scaled contingency, and networks that carry the time derivative along.

A baseline sees time, severity and clearing instant scaled to [-1, 1] over the study, and predicts
deviations from the pre-fault state in units of their spread over the training trajectories.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from contingencies.errors import UsageError
from contingencies.operators import PhaseOperators
from espinn_moe.surrogate import Rows, Scenarios, Surrogate


class TanhNetwork(nn.Module):
    """Fully connected tanh network; `widths` from input to output, the last layer linear."""

    def __init__(self, widths: Sequence[int], dtype: torch.dtype) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(m, n, dtype=dtype) for m, n in pairwise(widths))
        for layer in self.linear:
            nn.init.xavier_uniform_(layer.weight)
            nn.init.zeros_(layer.bias)

    @property
    def linear(self) -> list[nn.Linear]:
        """The layers, of the type they have."""
        return cast(list[nn.Linear], list(self.layers))

    def forward(self, x: Tensor) -> Tensor:
        *hidden, last = self.linear
        for layer in hidden:
            x = torch.tanh(layer(x))
        out: Tensor = last(x)
        return out

    def with_tangent(self, x: Tensor, x_dot: Tensor) -> tuple[Tensor, Tensor]:
        """Values, and their derivative along the input velocity `x_dot`."""
        *hidden, last = self.linear
        for layer in hidden:
            x = torch.tanh(layer(x))
            x_dot = (1.0 - x.square()) * (x_dot @ layer.weight.T)
        return last(x), x_dot @ last.weight.T


class Baseline(Surrogate):
    """A surrogate of one contingency with scaled inputs and outputs."""

    x_0: Tensor
    scale: Tensor

    def __init__(self, members: Sequence[PhaseOperators], dtype: str) -> None:
        if len(members) != 1:
            raise UsageError(f"{type(self).__name__} learns one contingency, not {len(members)}; use moe for a family.")
        super().__init__(members, getattr(torch, dtype))
        (operators,) = members
        n, window = operators.n_machines, operators.window
        equilibrium = np.concatenate([operators.delta_0, np.ones(n)])
        self.register_buffer("x_0", torch.tensor(equilibrium, dtype=self.dtype), persistent=False)
        self.register_buffer("scale", torch.ones(2 * n, dtype=self.dtype))
        self.t_range, self.alpha_range, self.t_c_range = (0.0, window.T), operators.severity, window.t_c

    def calibrate(self, scenarios: Sequence[Scenarios]) -> None:
        """Output scales: root-mean-square deviation of each state from its pre-fault value."""
        deviation = scenarios[0].states - self.x_0.numpy(force=True).astype(float)
        spread = np.sqrt(np.mean(deviation**2, axis=(0, 1)))
        self.scale.copy_(torch.as_tensor(np.maximum(spread, 1e-6)))

    def settings(self) -> dict[str, Any]:
        return {"dtype": str(self.dtype).removeprefix("torch.")}

    def scaled(self, t: Tensor, alpha: Tensor, t_c: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Inputs broadcast against each other and scaled to [-1, 1]."""
        t, alpha, t_c = torch.broadcast_tensors(t, alpha, t_c)
        return _unit(t, self.t_range), _unit(alpha, self.alpha_range), _unit(t_c, self.t_c_range)

    @property
    def scaled_time_rate(self) -> float:
        """d(scaled t)/dt, 1/s."""
        return 2.0 / (self.t_range[1] - self.t_range[0])

    def initial_misfit(self, rows: Rows) -> Tensor:
        """Mean-squared deviation from the pre-fault state at t = 0, in units of the output scales."""
        start = self.states(torch.zeros_like(rows.t), rows.alpha, rows.t_c)
        return ((start - self.x_0) / self.scale).square().mean()


def _unit(value: Tensor, limits: tuple[float, float]) -> Tensor:
    low, high = limits
    return 2.0 * (value - low) / (high - low) - 1.0

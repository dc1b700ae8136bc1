"""What the baselines share: one contingency with scaled inputs and outputs.

A baseline sees time, severity and clearing instant scaled to [-1, 1] over the study, and predicts
deviations from the pre-fault state in units of their size over the training trajectories.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from contingencies.errors import UsageError
from contingencies.operators import PhaseOperators
from espinn_moe.one_shot import settled
from espinn_moe.surrogate import Rows, Scenarios, Surrogate


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
        """Output scales: root-mean-square deviation of each state before synchronism is lost, as in the ES-PINN."""
        states = scenarios[0].states
        kept = ~settled(states[..., : self.n_machines])
        spread = np.sqrt(np.mean((states[kept] - self.x_0.numpy(force=True).astype(float)) ** 2, axis=0))
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
        """Mean-squared deviation from the initial state, which lasts until the fault, in units of the output scales."""
        instants = torch.linspace(
            0.0, self.members[0].window.t_f, len(rows.t), dtype=rows.t.dtype, device=rows.t.device
        )
        return self.misfit(self.states(instants, rows.alpha, rows.t_c), self.x_0)

    def misfit(self, ours: Tensor, theirs: Tensor) -> Tensor:
        """Mean-squared difference of states (..., 2 n) in units of the output scales."""
        return ((ours - theirs) / self.scale).square().mean()


def _unit(value: Tensor, limits: tuple[float, float]) -> Tensor:
    low, high = limits
    return 2.0 * (value - low) / (high - low) - 1.0

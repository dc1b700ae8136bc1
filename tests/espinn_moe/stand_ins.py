"""Surrogates without a network: the swing field itself, exact or deliberately a little wrong.

They answer the shared interface, are differentiable in all three arguments, and their true error is known.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from contingencies.ode import FastODE
from contingencies.operators import PhaseOperators
from contingencies.severity import fault_coefficient
from contingencies.swing import swing_field
from espinn_moe.surrogate import Surrogate

STEP_S = 1e-2


class IntegratingSurrogate(Surrogate):
    """RK4 of the swing field of `physics`, offered as a model of `operators`.

    With both the same the surrogate is the reduced ODE; otherwise the difference of the two fields along its
    trajectory is exactly its residual.
    """

    def __init__(self, operators: PhaseOperators, physics: PhaseOperators | None = None) -> None:
        super().__init__([operators], torch.float64)
        self.physics = physics or operators
        ops = self.physics
        self.E, self.H, self.D, self.delta_0, self.P_pre, self.P_slope, self.P_post = (
            torch.tensor(x, dtype=self.dtype)
            for x in (ops.E, ops.H, ops.D, ops.delta_0, ops.P_m_pre, ops.P_m_slope, ops.P_m_post)
        )
        self.Y_pre, self.Y_post, self.w, self.u = (
            torch.tensor(x) for x in (ops.Y_pre, ops.Y_post, ops.fault_from, ops.fault_to)
        )

    def settings(self) -> dict[str, Any]:
        return {}

    def field(self, x: Tensor, alpha: Tensor | None) -> Tensor:
        """Fault-on field at severities alpha (...), or the post-clearing field, at states (..., 2n)."""
        n, ops = self.n_machines, self.physics
        if alpha is None:
            Y, P_m = self.Y_post, self.P_post
        else:
            c = fault_coefficient(alpha.to(torch.complex128), ops.fault_gain, ops.fault_bend)
            Y = self.Y_pre + c[..., None, None] * torch.outer(self.w, self.u)
            P_m = self.P_pre + alpha[..., None] * self.P_slope
        rates = swing_field(x[..., :n], x[..., n:], P_m, self.E, Y.real, Y.imag, self.H, self.D, ops.omega_b)
        return torch.cat(rates, dim=-1)

    def advance(self, x: Tensor, start: Tensor, end: Tensor, alpha: Tensor | None) -> Tensor:
        """States at `end` (...) from states x (..., 2n) at `start`; rows with end <= start stay as they are."""
        span = (end - start).clamp(min=0.0)
        steps = max(1, int(torch.ceil(span.max().detach() / STEP_S - 1e-9)))
        h = (span / steps)[..., None]
        for _ in range(steps):
            k_1 = self.field(x, alpha)
            k_2 = self.field(x + 0.5 * h * k_1, alpha)
            k_3 = self.field(x + 0.5 * h * k_2, alpha)
            k_4 = self.field(x + h * k_3, alpha)
            x = x + h / 6.0 * (k_1 + 2.0 * k_2 + 2.0 * k_3 + k_4)
        return x

    def states(self, t: Tensor, alpha: Tensor, t_c: Tensor, member: Any = 0) -> Tensor:
        if not torch.is_grad_enabled() and alpha.ndim == t_c.ndim == 0:  # one scenario: the compiled integrator
            return self.trajectories(t.flatten(), alpha[None], t_c[None]).reshape(*t.shape, -1)
        t, t_c, _ = torch.broadcast_tensors(t, t_c, alpha)  # alpha as it comes: one admittance per severity
        t_f = torch.full_like(t, self.physics.window.t_f)
        x_0 = torch.cat([self.delta_0, torch.ones_like(self.delta_0)]).expand(*t.shape, -1)
        return self.advance(self.advance(x_0, t_f, torch.minimum(t, t_c), alpha), t_c, t, None)

    def states_and_rates(self, t: Tensor, alpha: Tensor, t_c: Tensor, member: Any = 0) -> tuple[Tensor, Tensor]:
        x = self.states(t, alpha, t_c)
        t, t_c, _ = torch.broadcast_tensors(t, t_c, alpha)
        rates = torch.where((t < t_c)[..., None], self.field(x, alpha), self.field(x, None))
        return x, torch.where((t < self.physics.window.t_f)[..., None], torch.zeros_like(x), rates)

    def trajectories(
        self, t: Tensor, alpha: Tensor, t_c: Tensor, member: int = 0, limit: float | None = None
    ) -> Tensor:
        times, instants = (x.expand(len(alpha), -1).numpy() for x in (t, t_c))
        states = [FastODE(self.physics, float(a)).states(*its) for a, *its in zip(alpha, instants, times, strict=True)]
        return torch.from_numpy(np.stack(states))

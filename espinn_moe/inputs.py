"""What the networks see; the only place that scales inputs.

One-shot networks see time, severity and clearing instant over their study ranges; after clearing,
time counts from the event, so that a swing keeps its shape when the clearing instant moves.
Networks of chained windows see the state at the window's start in terms that a common shift of
all angles, or a whole turn of one machine, does not change: sine and cosine of angle differences,
speeds, and the local derivatives of the swing equation there.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from contingencies.operators import PhaseOperators
from espinn_moe.physics import Expansion, Physics

SMALLEST_SPREAD = 1e-9  # an input that does not vary is left at its mean


class EventInputs:
    """(t, alpha, t_c) to [-1, 1] for the two learned phases, with the time derivative of the inputs."""

    def __init__(self, members: Sequence[PhaseOperators]) -> None:
        window = members[0].window
        self.alpha = (min(m.severity[0] for m in members), max(m.severity[1] for m in members))
        self.t_c = window.t_c
        self.since_fault = (0.0, window.t_c[1] - window.t_f)
        self.since_clearing = (0.0, window.T - window.t_c[0])
        self.t_f = window.t_f

    def fault_on(self, t: Tensor, alpha: Tensor) -> tuple[Tensor, Tensor]:
        """Inputs (..., 2) and their time derivative (2,), 1/s."""
        scaled = (_unit(t - self.t_f, self.since_fault), _unit(alpha, self.alpha))
        return torch.stack(torch.broadcast_tensors(*scaled), dim=-1), t.new_tensor([_slope(self.since_fault), 0.0])

    def post_clearing(self, t: Tensor, alpha: Tensor, t_c: Tensor) -> tuple[Tensor, Tensor]:
        """Inputs (..., 3) and their time derivative (3,), 1/s."""
        scaled = (_unit(t - t_c, self.since_clearing), _unit(alpha, self.alpha), _unit(t_c, self.t_c))
        rate = t.new_tensor([_slope(self.since_clearing), 0.0, 0.0])
        return torch.stack(torch.broadcast_tensors(*scaled), dim=-1), rate


class StateInputs(nn.Module):
    """Standardised description of the state at a window's start.

    Parameters
    ----------
    physics : Physics
    with_severity : bool
        Whether the phase's operator depends on alpha.
    dtype : torch.dtype
    conditions : tuple of int
        Places of the conditions on which the phase's operator depends.
    """

    mean: Tensor
    spread: Tensor
    others: Tensor

    def __init__(
        self, physics: Physics, with_severity: bool, dtype: torch.dtype, conditions: tuple[int, ...] = ()
    ) -> None:
        super().__init__()
        n = len(physics.H)
        self.with_severity, self.conditions = with_severity, list(conditions)
        self.reference = int(physics.H.argmax())  # the heaviest machine moves least
        others = torch.tensor([i for i in range(n) if i != self.reference])
        self.register_buffer("others", others, persistent=False)
        # How many inputs are of one kind: angles, speeds, that of the centre, their derivatives, and the rest.
        self.kinds = (2 * (n - 1), n, 1, n, n, *[1] * (int(with_severity) + len(conditions)))
        self.width = sum(self.kinds)
        self.register_buffer("mean", torch.zeros(self.width, dtype=dtype))
        self.register_buffer("spread", torch.ones(self.width, dtype=dtype))

    def raw(self, physics: Physics, start: Expansion, alpha: Tensor, conditions: Tensor | None = None) -> Tensor:
        """Unscaled inputs (..., width); alpha (...) is ignored where the operator does not depend on it.

        Models with conditions get them as `conditions` (..., d) in [-1, 1].
        """
        angles = start.delta.index_select(-1, self.others) - start.delta[..., self.reference, None]
        common = (start.omega * physics.inertia_share).sum(-1, keepdim=True)
        parts = [angles.sin(), angles.cos(), start.omega - common, common - 1.0, start.a, start.b]
        if self.with_severity:
            parts.append(alpha[..., None].expand_as(common))
        if self.conditions:
            assert conditions is not None
            parts.append(conditions[..., self.conditions])
        return torch.cat(parts, dim=-1)

    def forward(self, physics: Physics, start: Expansion, alpha: Tensor, conditions: Tensor | None = None) -> Tensor:
        """Standardised inputs (..., width)."""
        return (self.raw(physics, start, alpha, conditions) - self.mean) / self.spread

    @torch.no_grad()
    def calibrate(self, raw: Tensor) -> None:
        """Take mean and spread from unscaled training inputs (m, width)."""
        self.mean.copy_(raw.mean(0))
        spread = raw.std(0, correction=0)
        self.spread.copy_(torch.where(spread > SMALLEST_SPREAD, spread, torch.ones_like(spread)))


def _unit(value: Tensor, limits: tuple[float, float]) -> Tensor:
    low, high = limits
    return 2.0 * (value - low) / (high - low) - 1.0


def _slope(limits: tuple[float, float]) -> float:
    return 2.0 / (limits[1] - limits[0])

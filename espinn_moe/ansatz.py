"""How a learned phase begins: local Taylor expansion, gates, and what they fix at the event.

Every form returns states and right-hand time derivatives together, (..., 2 n) each; without the
derivative of the correction, the states alone.
"""

import torch
from torch import Tensor

from espinn_moe.physics import Expansion


def taylor(start: Expansion, s: Tensor, omega_b: float) -> tuple[Tensor, Tensor]:
    """Swing-equation expansion a time s (...) after the start, and its derivative: cubic in delta, square in omega."""
    s = s[..., None]
    a, b = start.a, start.b
    omega = start.omega + s * (a + 0.5 * s * b)
    delta = start.delta + s * (start.v + omega_b * s * (0.5 * a + s * b / 6.0))
    omega_rate = a + s * b
    delta_rate = start.v + omega_b * s * (a + 0.5 * s * b)
    return torch.cat([delta, omega], dim=-1), torch.cat([delta_rate, omega_rate], dim=-1)


def taylor_gated(
    start: Expansion, s: Tensor, length: float, omega_b: float, A: Tensor, A_rate: Tensor | None
) -> tuple[Tensor, Tensor | None]:
    """x_bd + g A + (1 - g)(T - x_bd) with g = 1 - exp(-(s/length)^2).

    g and its derivative vanish at the event, so state and right-hand derivative there are those of
    the active phase, whatever the correction A (..., 2 n).
    """
    scaled = (s / length)[..., None]
    outside = torch.exp(-scaled.square())  # 1 - g
    g, g_rate = -torch.expm1(-scaled.square()), 2.0 / length * scaled * outside
    x_bd = torch.cat([start.delta, start.omega], dim=-1)
    expansion, expansion_rate = taylor(start, s, omega_b)
    state = x_bd + g * A + outside * (expansion - x_bd)
    if A_rate is None:
        return state, None
    rate = g_rate * (A - (expansion - x_bd)) + g * A_rate + outside * expansion_rate
    return state, rate


def state_gated(
    x_bd: Tensor, s: Tensor, length: float, A: Tensor, A_rate: Tensor | None
) -> tuple[Tensor, Tensor | None]:
    """x_bd + g A with g = 1 - exp(-s/length): fixes the event state and leaves the derivative to the correction."""
    scaled = (s / length)[..., None]
    g, g_rate = -torch.expm1(-scaled), torch.exp(-scaled) / length
    return x_bd + g * A, None if A_rate is None else g_rate * A + g * A_rate

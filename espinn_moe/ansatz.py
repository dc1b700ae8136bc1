"""How a learned phase begins: local Taylor expansion, gates, and what they fix at the event.

Every form returns states and right-hand time derivatives together, (..., 2 n) each; without the
derivative of the correction, the states alone.
"""

import torch
from torch import Tensor

from espinn_moe.physics import Expansion


def taylor(start: Expansion, s: Tensor, omega_b: float) -> Tensor:
    """Swing-equation expansion a time s (...) after the start: cubic in delta, square in omega."""
    s = s[..., None]
    omega = start.omega + s * (start.a + 0.5 * s * start.b)
    delta = start.delta + s * (start.v + omega_b * s * (0.5 * start.a + s * start.b / 6.0))
    return torch.cat([delta, omega], dim=-1)


def taylor_rate(start: Expansion, s: Tensor, omega_b: float) -> Tensor:
    """Time derivative of the expansion."""
    s = s[..., None]
    return torch.cat([start.v + omega_b * s * (start.a + 0.5 * s * start.b), start.a + s * start.b], dim=-1)


def taylor_gated(
    start: Expansion, s: Tensor, length: float, omega_b: float, A: Tensor, A_rate: Tensor | None
) -> tuple[Tensor, Tensor | None]:
    """x_bd + g A + (1 - g)(T - x_bd) with g = 1 - exp(-(s/length)^2).

    g and its derivative vanish at the event, so state and right-hand derivative there are those of
    the active phase, whatever the correction A (..., 2 n). With rates of the first r rows only, (r, 2 n), so is the
    derivative.
    """
    scaled = (s / length)[..., None]
    outside = torch.exp(-scaled.square())  # 1 - g
    g = -torch.expm1(-scaled.square())
    x_bd = torch.cat([start.delta, start.omega], dim=-1)
    change = taylor(start, s, omega_b) - x_bd
    state = x_bd + g * A + outside * change
    if A_rate is None:
        return state, None
    if A_rate.shape != A.shape:
        first = slice(len(A_rate))
        start, s, A, change = start[first], s[first], A[first], change[first]
        scaled, outside, g = scaled[first], outside[first], g[first]
    g_rate = 2.0 / length * scaled * outside
    return state, g_rate * (A - change) + g * A_rate + outside * taylor_rate(start, s, omega_b)


def state_gated(
    x_bd: Tensor, s: Tensor, length: float, A: Tensor, A_rate: Tensor | None
) -> tuple[Tensor, Tensor | None]:
    """x_bd + g A with g = 1 - exp(-s/length): fixes the event state and leaves the derivative to the correction.

    Rates as in `taylor_gated`.
    """
    scaled = (s / length)[..., None]
    state = x_bd - torch.expm1(-scaled) * A
    if A_rate is None:
        return state, None
    if A_rate.shape != A.shape:
        A, scaled = A[: len(A_rate)], scaled[: len(A_rate)]
    return state, torch.exp(-scaled) / length * A - torch.expm1(-scaled) * A_rate

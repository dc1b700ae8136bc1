"""dCCT/dalpha of a learned boundary, by the implicit function theorem through the surrogate's whole graph.

This is theory.md eq. (23). A derivative is compared with centred differences of the same boundary only
where the comparison means something; every row that is left out says why, as the paper's protocol asks.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch

from contingencies.network import Float
from contingencies.stability import TAU_ROOT_S, Boundary
from espinn_moe.boundary import learned_boundary
from espinn_moe.margins import MarginProbe, MarginRule, default_rule, smooth_margin, surrogate_angles
from espinn_moe.surrogate import Surrogate

Exclusion = Literal["censored", "censored-neighbour", "end-of-range", "ill-conditioned", "event-on-grid"]

MIN_SLOPE_RAD_PER_S = 1.0  # below it, a margin wrong by a milliradian moves the CCT by more than a millisecond


@dataclass(frozen=True, eq=False)
class Sensitivity:
    """Derivatives of a learned boundary, row by row; NaN where there is none.

    `implicit` and `centred` are in s per unit of severity, `by_alpha` in rad, `by_t_c` in rad/s. A row with
    an entry in `excluded` takes no part in comparisons; its derivatives are kept where they exist.
    """

    alpha: Float  # (m,)
    cct: Float  # (m,) s
    implicit: Float  # (m,)
    centred: Float  # (m,)
    by_alpha: Float  # (m,) dM/dalpha
    by_t_c: Float  # (m,) dM/dt_c
    excluded: tuple[Exclusion | None, ...]

    @property
    def valid(self) -> np.ndarray:
        """(m,) bool: rows that may be compared"""
        return np.array([reason is None for reason in self.excluded], dtype=bool)


def margin_derivatives(
    surrogate: Surrogate, alpha: float, t_c: float, member: int = 0, rule: MarginRule | None = None
) -> tuple[float, float]:
    """dM/dalpha (rad) and dM/dt_c (rad/s) of one scenario, through the complete graph.

    Samples without weight in the smooth maximum are left out of the graph; the hard margin is
    differentiated at its peak, whose own motion contributes nothing.
    """
    operators, n, rule = surrogate.members[member], surrogate.n_machines, rule or default_rule(surrogate)
    probe = MarginProbe(surrogate_angles(surrogate, np.array([alpha]), member), operators, rule)
    device = next((parameter.device for parameter in surrogate.parameters()), torch.device("cpu"))
    severity, instant = (
        torch.tensor(value, dtype=surrogate.dtype, device=device, requires_grad=True) for value in (alpha, t_c)
    )
    if rule.kind == "smooth":
        times = torch.as_tensor(probe.t[probe.kept_samples(t_c)], dtype=surrogate.dtype, device=device)
        delta = surrogate.states(times, severity, instant, member)[..., :n].double()
        margin = smooth_margin(delta, operators.max_separation, rule.beta, rule.epsilon)
    else:
        t_peak, high, low = probe.peak_instant(t_c)
        time = torch.tensor(t_peak, dtype=surrogate.dtype, device=device)
        delta = surrogate.states(time, severity, instant, member).double()
        margin = delta[high] - delta[low]
    by_alpha, by_t_c = torch.autograd.grad(margin, (severity, instant), allow_unused=True)
    return (0.0 if by_alpha is None else float(by_alpha)), (0.0 if by_t_c is None else float(by_t_c))


def learned_sensitivity(
    surrogate: Surrogate,
    alpha: Float,
    member: int = 0,
    rule: MarginRule | None = None,
    boundary: Boundary | None = None,
    difference_step: float | None = None,
    report: Callable[[int], None] | None = None,
) -> Sensitivity:
    """Implicit and centred-difference derivatives of a learned boundary.

    Parameters
    ----------
    surrogate : Surrogate
    alpha : array (m,)
        Ordered severities.
    member : int
        Which contingency.
    rule : MarginRule, optional
        The margin whose boundary is differentiated; by default the surrogate's own.
    boundary : Boundary, optional
        The learned boundary at these severities, if it is known already.
    difference_step : float, optional
        Centred differences over alpha -+ this step, from further extractions; by default over the
        neighbouring severities of the grid, as the paper does.
    report : callable, optional
        Told how many severities are done.
    """
    alpha, rule = np.asarray(alpha, dtype=float), rule or default_rule(surrogate)
    boundary = learned_boundary(surrogate, alpha, member, rule) if boundary is None else boundary
    centred = _centred_differences(surrogate, boundary, member, rule, difference_step)
    by_alpha, by_t_c = np.full(len(alpha), np.nan), np.full(len(alpha), np.nan)
    excluded: list[Exclusion | None] = []
    for k, (value, cct) in enumerate(zip(alpha, boundary.cct, strict=True)):
        reason: Exclusion | None = None
        if np.isfinite(cct):
            by_alpha[k], by_t_c[k] = margin_derivatives(surrogate, float(value), float(cct), member, rule)
            if not by_t_c[k] >= MIN_SLOPE_RAD_PER_S:
                reason = "ill-conditioned"
            elif not np.isfinite(centred[k]):
                at_end = difference_step is None and k in (0, len(alpha) - 1)
                reason = "end-of-range" if at_end else "censored-neighbour"
            elif rule.kind == "smooth" and abs(cct - rule.h_t * round(cct / rule.h_t)) <= TAU_ROOT_S:
                reason = "event-on-grid"
        else:
            reason = "censored"
        excluded.append(reason)
        if report:
            report(k + 1)
    usable = by_t_c >= MIN_SLOPE_RAD_PER_S
    implicit = np.where(usable, -by_alpha / np.where(usable, by_t_c, 1.0), np.nan)
    return Sensitivity(alpha, boundary.cct, implicit, centred, by_alpha, by_t_c, tuple(excluded))


def _centred_differences(
    surrogate: Surrogate, boundary: Boundary, member: int, rule: MarginRule, step: float | None
) -> Float:
    differences = np.full(len(boundary.alpha), np.nan)
    if step is None:
        differences[1:-1] = (boundary.cct[2:] - boundary.cct[:-2]) / (boundary.alpha[2:] - boundary.alpha[:-2])
        return differences
    rows = np.flatnonzero(boundary.finite & (boundary.alpha >= step))
    centre = boundary.alpha[rows]
    both = learned_boundary(surrogate, np.concatenate([centre - step, centre + step]), member, rule)
    below, above = both.cct[: len(rows)], both.cct[len(rows) :]
    differences[rows] = (above - below) / (2.0 * step)
    return differences

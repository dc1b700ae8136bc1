"""The stability boundary that a surrogate implies: first crossing of its margin, severity by severity.

The search is the one that serves the reference simulators (`contingencies.stability.first_crossing`): a scan of
the clearing window, a second look into the crossing cell, a root. Only the source of margins differs.
"""

from collections.abc import Callable, Iterator

import numpy as np
import torch
from torch import Tensor

from contingencies.network import Float
from contingencies.operators import PhaseOperators
from contingencies.stability import CCT, Boundary, boundary_of, candidates, check_scenario, first_crossing
from espinn_moe.margins import SMOOTH, MarginProbe, MarginRule, default_rule, ode_angles, surrogate_angles
from espinn_moe.surrogate import Surrogate

SECTION_POINTS = 16  # clearing instants per call of the root search for hard margins: two calls reach its tolerance
SCAN_VALUES = 4_000_000  # numbers in one batch of scanned trajectories: about 32 MB in float64


def learned_boundary(
    surrogate: Surrogate,
    alpha: Float,
    member: int = 0,
    rule: MarginRule | None = None,
    report: Callable[[int], None] | None = None,
) -> Boundary:
    """CCT over severities as a surrogate's trajectories imply it.

    Parameters
    ----------
    surrogate : Surrogate
    alpha : array (m,)
        Severities.
    member : int
        Which contingency of the surrogate.
    rule : MarginRule, optional
        Smooth (the paper's) or hard margin; by default the surrogate's own.
    report : callable, optional
        Told how many severities are done.

    Returns
    -------
    Boundary
        With `reference` "learned-smooth" or "learned-hard".
    """
    operators, rule = surrogate.members[member], rule or default_rule(surrogate)
    alpha = _checked_severities(operators, alpha)
    t_c = candidates(operators)
    answers: list[CCT] = []
    for value, first_look in zip(alpha, _scans(surrogate, alpha, t_c, member, rule), strict=True):
        probe = MarginProbe(surrogate_angles(surrogate, float(value), member), operators, rule)
        answers.append(_cct(probe, float(value), t_c, first_look))
        if report:
            report(len(answers))
    return boundary_of(answers, f"learned-{rule.kind}")


def ode_boundary(operators: PhaseOperators, alpha: Float, rule: MarginRule = SMOOTH) -> Boundary:
    """CCT over severities of the fast reduced ODE under the same margin, to tell smoothing from surrogate error."""
    t_c = candidates(operators)
    answers = []
    for value in _checked_severities(operators, alpha):
        probe = MarginProbe(ode_angles(operators, float(value)), operators, rule)
        answers.append(_cct(probe, float(value), t_c))
    return boundary_of(answers, f"ode-{rule.kind}")


def margin_map(
    surrogate: Surrogate, alpha: Float, t_c: Float, member: int = 0, rule: MarginRule | None = None
) -> Float:
    """Margins (a, c) of the grid of severities (a,) and ordered clearing instants (c,), rad.

    Signs are right, and so are values near zero; elsewhere they are peaks among coarse samples.
    """
    operators, rule = surrogate.members[member], rule or default_rule(surrogate)
    alpha = _checked_severities(operators, alpha)
    rows = []
    for value, first_look in zip(alpha, _scans(surrogate, alpha, t_c, member, rule), strict=True):
        probe = MarginProbe(surrogate_angles(surrogate, float(value), member), operators, rule)
        rows.append(probe.signs(t_c, first_look))
    return np.stack(rows)


def _cct(probe: MarginProbe, alpha: float, t_c: Float, first_look: Tensor | None = None) -> CCT:
    def scan(instants: Float) -> Float:
        return probe.signs(instants, first_look if instants is t_c else None)

    known: dict[float, Float] = {}

    def value(instant: Float) -> Float:
        key = float(instant[0])  # the search asks for the ends of its bracket more than once
        if key not in known:
            known[key] = probe.values(instant)
        return known[key]

    # A hard margin needs few samples, so that calls are what costs; a smooth one many, so that few instants are best.
    if probe.rule.kind == "hard":
        crossing = first_crossing(scan, t_c, points_per_call=SECTION_POINTS)
    else:
        crossing = first_crossing(scan, t_c, refine=value)
    return CCT(
        alpha,
        crossing.status,
        crossing.t_c,
        crossing.restabilises,
        probe.operators.window.t_f,
        f"learned-{probe.rule.kind}",
    )


def _scans(surrogate: Surrogate, alpha: Float, t_c: Float, member: int, rule: MarginRule) -> Iterator[Tensor]:
    """Angles (c, k, n) at the coarse samples of every candidate, severity by severity, computed in batches."""
    probe = MarginProbe(surrogate_angles(surrogate, 0.0, member), surrogate.members[member], rule)
    device = next((parameter.device for parameter in surrogate.parameters()), torch.device("cpu"))
    t, instants = (torch.as_tensor(x, dtype=surrogate.dtype, device=device) for x in (probe.t[probe.coarse], t_c))
    block = max(1, SCAN_VALUES // (len(t) * len(t_c) * 2 * surrogate.n_machines))
    for begin in range(0, len(alpha), block):
        severities = torch.as_tensor(alpha[begin : begin + block], dtype=surrogate.dtype, device=device)
        with torch.no_grad():
            states = surrogate.trajectories(t, severities, instants, member)
        yield from states[..., : surrogate.n_machines].double()


def _checked_severities(operators: PhaseOperators, alpha: Float) -> Float:
    alpha = np.atleast_1d(np.asarray(alpha, dtype=float)).ravel()
    for value in alpha:
        check_scenario(operators, float(value))
    return alpha

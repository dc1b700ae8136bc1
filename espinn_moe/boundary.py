"""The stability boundary that a surrogate implies: first crossing of its margin at every severity.

The search is the one that serves the reference simulators (`contingencies.search`): a scan of the clearing window,
a closer look into suspicious cells, a root. Only the source of margins differs; and all severities search
together, because a surrogate answers many scenarios in hardly more time than one.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from contingencies.looks import Look, look_of_margins
from contingencies.network import Float
from contingencies.operators import PhaseOperators
from contingencies.search import SPARING, Vicinity, run_together, search
from contingencies.stability import Boundary, Crossing, boundary_of, cct_of, check_scenario
from espinn_moe.margins import (
    BATCH_VALUES,
    DECIDED_RAD,
    SMOOTH,
    MarginProbe,
    MarginRule,
    default_rule,
    hard_margin,
    ode_angles,
    sample_times,
    surrogate_angles,
)
from espinn_moe.surrogate import Surrogate

# Clearing instants per round of the root search for hard margins. Few severities: calls are what costs, and two rounds
# reach the tolerance. Many: margins are what costs, and three rounds do with half as many.
SECTION_POINTS, SECTION_POINTS_OF_MANY = 14, 5
MANY = 12
NEAR_POINTS = 7  # a margin saturates beside its root, so that interpolation is no better than halves
# Samples of a trajectory followed once: a parabola through the three about the peak of a swing, which lasts tenths of a
# second, is off by less than 5e-4 rad, and margins change by thousands of rad/s at a crossing.
DIRECT_SAMPLE_S = 0.03


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
    alpha = checked_severities(operators, alpha)
    probe = MarginProbe(surrogate_angles(surrogate, alpha, member), operators, rule)
    return boundary_of_probe(probe, alpha, f"learned-{rule.kind}", report)


def learned_near(surrogate: Surrogate, alpha: Float, near: Vicinity, member: int = 0) -> Boundary:
    """The learned hard boundary over severities (m,), looked for where it is expected."""
    alpha = checked_severities(surrogate.members[member], alpha)
    margins = _direct_margins(surrogate, alpha, member)

    def source(row: np.ndarray, instants: Float, values: bool) -> Look:
        return look_of_margins(margins(row, instants))

    crossings = run_together(near.searches(NEAR_POINTS), source)
    return _answers(crossings, alpha, surrogate.members[member].window.t_f, "learned-hard")


def learned_margins(surrogate: Surrogate, alpha: Float, t_c: float, member: int = 0) -> Float:
    """Hard margins (m,) of severities (m,) at one clearing instant, s; far from zero only the sign is right, rad."""
    row = np.arange(len(alpha))
    return _direct_margins(surrogate, alpha, member)(row, np.full((len(row), 1), t_c))[:, 0]


def _direct_margins(surrogate: Surrogate, alpha: Float, member: int) -> Callable[[np.ndarray, Float], Float]:
    """Hard margins of severities by position (s,) at clearing instants (s, c), every trajectory followed once."""
    operators = surrogate.members[member]
    angles, t = surrogate_angles(surrogate, alpha, member), sample_times(operators, DIRECT_SAMPLE_S)
    limit = operators.max_separation

    def margins(row: np.ndarray, t_c: Float) -> Float:
        size = max(1, BATCH_VALUES // (t_c.shape[1] * len(t) * 2 * operators.n_machines))
        parts = [
            hard_margin(angles(row[k : k + size], t, t_c[k : k + size], limit + DECIDED_RAD), limit)
            for k in range(0, len(row), size)
        ]
        return np.concatenate([part.cpu().numpy() for part in parts])

    return margins


def ode_boundary(operators: PhaseOperators, alpha: Float, rule: MarginRule = SMOOTH) -> Boundary:
    """CCT over severities of the fast reduced ODE under the same margin, to tell smoothing from surrogate error."""
    alpha = checked_severities(operators, alpha)
    return boundary_of_probe(MarginProbe(ode_angles(operators, alpha), operators, rule), alpha, f"ode-{rule.kind}")


def margin_map(
    surrogate: Surrogate, alpha: Float, t_c: Float, member: int = 0, rule: MarginRule | None = None
) -> Float:
    """Margins (a, c) of the grid of severities (a,) and ordered clearing instants (c,), rad.

    Signs are right, and so are values near zero; elsewhere they are peaks among coarse samples.
    """
    operators, rule = surrogate.members[member], rule or default_rule(surrogate)
    alpha = checked_severities(operators, alpha)
    probe = MarginProbe(surrogate_angles(surrogate, alpha, member), operators, rule)
    return probe.signs(np.tile(t_c, (len(alpha), 1)))


def boundary_of_probe(
    probe: MarginProbe, alpha: Float, reference: str, report: Callable[[int], None] | None = None
) -> Boundary:
    """CCT of the severities (m,) of a probe, all searched together."""
    points = 1  # a smooth margin needs so many samples that interpolating one at a time is best
    if probe.rule.kind == "hard":
        points = SECTION_POINTS if len(alpha) < MANY else SECTION_POINTS_OF_MANY
    plan = replace(SPARING, points_per_call=points).within(probe.operators.max_separation)

    def source(row: np.ndarray, instants: Float, values: bool) -> Look:
        # Values of a hard margin are right wherever a section comes to lie; a smooth one needs every sample.
        if values and probe.rule.kind == "smooth":
            return look_of_margins(probe.values(instants, row))
        return probe.look(instants, row)

    crossings = run_together([search(probe.operators.window.t_c, plan) for _ in alpha], source, report)
    return _answers(crossings, alpha, probe.operators.window.t_f, reference)


def _answers(crossings: list[Crossing], alpha: Float, t_f: float, reference: str) -> Boundary:
    """Crossings of severities (m,) as one boundary."""
    answers = [cct_of(crossing, float(value), t_f, reference) for value, crossing in zip(alpha, crossings, strict=True)]
    return boundary_of(answers, reference)


def checked_severities(operators: PhaseOperators, alpha: Float) -> Float:
    """Severities as an array (m,), refused where no simulator can take them."""
    alpha = np.atleast_1d(np.asarray(alpha, dtype=float)).ravel()
    for value in alpha:
        check_scenario(operators, float(value))
    return alpha

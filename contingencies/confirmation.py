"""The strict ODE's CCT where the fast one has an answer already: two strict simulations instead of a search.

Both references solve the same equation, to tolerances that move a crossing by less than 1e-5 s. So the strict ODE need
only be stable shortly before the fast root and unstable shortly after it; the root lies between, where the margin is
nearly straight. Where it is not so, and wherever a status turns out other than the fast one's, the strict ODE searches
the whole window itself.
"""

from collections.abc import Callable

import numpy as np

from contingencies.network import Float
from contingencies.operators import PhaseOperators
from contingencies.references import reference_cct, reference_margin
from contingencies.stability import CCT, Boundary, boundary_of

REACHES_S = (2e-6, 2e-5, 2e-4)  # on either side of the fast root, which is known to 1e-6 s; then further tries


def confirmed_cct(operators: PhaseOperators, fast: CCT) -> CCT:
    """Hard CCT of the strict ODE at the severity of the fast ODE's answer."""
    if fast.cct is not None:
        strict = _between(operators, fast.alpha, fast.cct)
        if strict is not None:
            return CCT(fast.alpha, "finite", strict, fast.restabilises, fast.t_f, "strict", fast.resolution)
    else:
        first, last = operators.window.t_c
        unstable = reference_margin(operators, fast.alpha, first if fast.status == "left-censored" else last, "strict")
        if (unstable >= 0) == (fast.status == "left-censored"):
            return CCT(fast.alpha, fast.status, None, fast.restabilises, fast.t_f, "strict", fast.resolution)
    return reference_cct(operators, fast.alpha, "strict")


def confirmed_boundaries(
    operators: PhaseOperators, alpha: Float, report: Callable[[int], None] | None = None
) -> tuple[Boundary, Boundary]:
    """The strict boundary over severities (m,), confirmed, and the fast one; `report` is told how many are done."""
    strict, fast = [], []
    for value in np.asarray(alpha, dtype=float).ravel():
        fast.append(reference_cct(operators, float(value), "fast"))
        strict.append(confirmed_cct(operators, fast[-1]))
        if report:
            report(len(strict))
    return boundary_of(strict, "strict"), boundary_of(fast, "fast")


def _between(operators: PhaseOperators, alpha: float, cct: float) -> float | None:
    """The strict root near a fast one, s; None where stability does not change there."""
    first, last = operators.window.t_c
    for reach in REACHES_S:
        before, after = max(first, cct - reach), min(last, cct + reach)
        at_before, at_after = (reference_margin(operators, alpha, t_c, "strict") for t_c in (before, after))
        if at_before < 0 <= at_after:
            return before + (after - before) * at_before / (at_before - at_after)
    return None

"""Bounds of a learned CCT's error: the paper's theorem, and the same with the logarithmic norm along the trajectory."""

import numpy as np

from contingencies.network import Complex
from contingencies.ode import FastODE
from contingencies.operators import PhaseOperators
from contingencies.references import reference_cct
from contingencies.sensitivity import field_jacobian
from contingencies.stability import TAU_ROOT_S
from espinn_moe.learned_leg import Leg

SWING_RATE = 10.0  # rad/s; speeds count omega_b/10 times as much as angles, which balances a swing of this rate
BRANCH_S = 0.05  # rho of the theorem: how far around the CCT the margin must keep growing


def branch_growth(operators: PhaseOperators, alpha: float) -> float:
    """mu: slowest growth of the reference margin around the true CCT, as a secant over up to BRANCH_S, rad/s."""
    truth = reference_cct(operators, alpha, "fast").cct
    if truth is None:
        return 0.0
    reach = min(BRANCH_S, truth - operators.window.t_c[0], operators.window.t_c[1] - truth)
    steps = max(reach, 0.0) * np.linspace(0.05, 1.0, 20)
    if steps[0] <= 2.0 * TAU_ROOT_S:
        return 0.0
    instants = np.concatenate([truth - steps[::-1], truth + steps])
    margins = FastODE(operators, alpha).margins(instants)
    return float(max(0.0, (margins / (instants - truth)).min()))


def paper_log10(operators: PhaseOperators, alpha: float, fault: float, post: float, mu: float) -> float:
    """log10 of the paper's bound in s, largest-component norm, theory.md eq. (29); infinite when mu is 0.

    The smooth-margin terms do not enter: the certified boundary is that of the hard margin.
    """
    if mu <= 0.0:
        return float("inf")
    window = operators.window
    lipschitz = [_lipschitz(operators, Y) for Y in (operators.Y_fault(alpha), operators.Y_post)]
    log_c3 = lipschitz[1] * (window.T - window.t_c[0])
    log_c2 = lipschitz[0] * (window.t_c[1] - window.t_f) + log_c3
    terms = [log + np.log(max(norm, 1e-300)) for log, norm in ((log_c2, fault), (log_c3, post))]
    return float((np.logaddexp(*terms) + np.log(2.0 / mu)) / np.log(10.0))


def _lipschitz(operators: PhaseOperators, Y: Complex) -> float:
    """Lipschitz constant of a phase's field in the largest-component norm, valid everywhere, 1/s."""
    coupling = np.abs(Y) * np.outer(operators.E, operators.E)
    np.fill_diagonal(coupling, 0.0)
    speeds = (2.0 * coupling.sum(1) + operators.D) / (2.0 * operators.H)
    return float(max(operators.omega_b, speeds.max()))


def log_norm_error(operators: PhaseOperators, fault: Leg, post: Leg, t_peak: float) -> float:
    """Bound of the state error at the peak by Gronwall with the logarithmic norm, theory.md eq. (30).

    Euclidean norm of (delta, sigma omega) with sigma = omega_b / SWING_RATE; the logarithmic norm is taken along the
    learned trajectory, not over a tube around it.
    """
    n = operators.n_machines
    scale = np.concatenate([np.ones(n), np.full(n, operators.omega_b / SWING_RATE)])
    error = 0.0
    for leg in (fault, post):
        J = scale[:, None] * field_jacobian(operators, leg.half[1::2, :n], leg.Y) / scale
        growth = np.linalg.eigvalsh(0.5 * (J + np.swapaxes(J, -1, -2)))[:, -1]
        norms = np.linalg.norm(leg.residual * scale, axis=-1).mean(-1)
        for rate, norm, h, end in zip(growth, norms, leg.widths, leg.t[2::2], strict=True):
            if end > t_peak:
                break
            error = float(np.exp(rate * h) * (error + h * norm))
    return error

"""How far a learned CCT can be from the reduced ODE's, judged from the surrogate alone.

The estimate (`espinn_moe.dual_weighted`) is made twice: with the Jacobian along the learned trajectory, then half-way
to the true one as the first pass predicts it, which removes the leading nonlinear error. Three bounds of the same error
stand beside it: the absolute-value form of the same integral, the paper's theorem with its uniform Lipschitz constants,
and the theorem with the logarithmic norm along the trajectory (`espinn_moe.error_bounds`). All are about the hard
margin.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from contingencies.network import Float
from contingencies.stability import TAU_ROOT_S, Boundary
from espinn_moe.boundary import learned_boundary
from espinn_moe.dual_weighted import dual_weighted
from espinn_moe.error_bounds import branch_growth, log_norm_error, paper_log10
from espinn_moe.learned_leg import l1_norm, learned_leg
from espinn_moe.margins import HARD
from espinn_moe.surrogate import Surrogate

NONLINEAR_FACTOR = 2.0  # times the change between both passes, which is the leading term of what linearising leaves out
ROUNDING_S = 2.0 * TAU_ROOT_S + 1e-6  # both roots' tolerance, and what separates the strict integrator from exact


@dataclass(frozen=True)
class CertificateRow:
    """What is known about the error of one learned CCT; times in s."""

    alpha: float
    cct: float
    t_peak: float  # when the separation reaches its limit
    slope: float  # rad/s, how fast the margin passes zero
    estimate: float  # of learned - true, dual-weighted residual
    first_pass: float  # the same, linearised along the learned trajectory only
    bound: float  # of |learned - true|: absolute-value form, plus allowance for nonlinearity and rounding
    residual_fault: float  # L1 norm over the fault of the residual's largest component
    residual_post: float
    mu: float  # rad/s, the theorem's growth of the margin around the CCT
    paper_log10: float  # log10 of the paper's bound in s; the bound itself overflows
    log_norm: float  # the theorem's bound with the logarithmic norm along the trajectory and the local slope
    true_cct: float | None = None

    @property
    def error(self) -> float | None:
        """Learned - true, where the truth is known."""
        return None if self.true_cct is None else self.cct - self.true_cct

    @property
    def corrected(self) -> float:
        """The learned CCT less its estimated error, s."""
        return self.cct - self.estimate

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self) | {"error": self.error}


def certify(
    surrogate: Surrogate,
    alpha: Float,
    member: int = 0,
    boundary: Boundary | None = None,
    truth: Boundary | None = None,
    report: Callable[[int], None] | None = None,
) -> list[CertificateRow]:
    """Error estimates and bounds at every severity whose learned hard CCT is finite.

    Parameters
    ----------
    surrogate : Surrogate
    alpha : array (m,)
        Severities.
    member : int
        Which contingency.
    boundary : Boundary, optional
        The learned boundary under the hard margin at these severities, if known already.
    truth : Boundary, optional
        Reference boundary at these severities; its CCT enters the rows and nothing else.
    report : callable, optional
        Told how many severities are done.
    """
    alpha = np.asarray(alpha, dtype=float)
    boundary = learned_boundary(surrogate, alpha, member, HARD) if boundary is None else boundary
    assert boundary.reference == "learned-hard", "certificates are about the hard margin"
    rows = []
    for k, (value, cct) in enumerate(zip(alpha, boundary.cct, strict=True)):
        if np.isfinite(cct):
            row = certify_one(surrogate, float(value), float(cct), member)
            if truth is not None and np.isfinite(truth.cct[k]):
                row = replace(row, true_cct=float(truth.cct[k]))
            rows.append(row)
        if report:
            report(k + 1)
    return rows


def certify_one(surrogate: Surrogate, alpha: float, cct: float, member: int = 0) -> CertificateRow:
    """Error estimate and bounds of one learned CCT, an instant in s."""
    operators = surrogate.members[member]
    fault = learned_leg(surrogate, member, alpha, cct, operators.window.t_f, cct, True)
    post = learned_leg(surrogate, member, alpha, cct, cct, operators.window.T, False)
    first, step = dual_weighted(operators, fault, post)
    second, _ = dual_weighted(operators, fault, post, step)
    allowance = NONLINEAR_FACTOR * abs(second.shift - first.shift) + ROUNDING_S
    mu = branch_growth(operators, alpha)
    return CertificateRow(
        alpha=alpha,
        cct=cct,
        t_peak=second.t_peak,
        slope=second.slope,
        estimate=-second.shift,
        first_pass=-first.shift,
        bound=second.absolute + allowance,
        residual_fault=l1_norm(fault),
        residual_post=l1_norm(post),
        mu=mu,
        paper_log10=paper_log10(operators, alpha, l1_norm(fault), l1_norm(post), mu),
        log_norm=2.0 * log_norm_error(operators, fault, post, second.t_peak) / second.slope + ROUNDING_S,
    )

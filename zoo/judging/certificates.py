"""Certificates of a surrogate's CCT errors: rows, what they say together, and what a checkpoint carries of them."""

from dataclasses import replace
from typing import Any

import numpy as np

from contingencies.network import Float
from contingencies.references import Reference
from contingencies.stability import Boundary
from espinn_moe.boundary import learned_boundary
from espinn_moe.certificate import CertificateRow, certify, certify_one
from espinn_moe.margins import HARD
from espinn_moe.surrogate import Surrogate
from zoo.judging.assessment import reference_boundary_of
from zoo.work.reporting import Report, silent, within

CERTIFIED_SEVERITIES = 5  # per member and checkpoint; a tenth of a second each


def certify_boundary(
    surrogate: Surrogate,
    alpha: Float,
    member: int = 0,
    reference: Reference | None = "strict",
    report: Report = silent,
) -> list[CertificateRow]:
    """Certificates of the hard boundary; with a reference the true errors stand beside them."""
    operators, alpha = surrogate.members[member], np.asarray(alpha, dtype=float)
    learned = learned_boundary(surrogate, alpha, member, HARD, within(report, "learned boundary", len(alpha)))
    rows = learned.finite  # where the surrogate has no CCT there is nothing to certify
    finite = replace(
        learned,
        alpha=learned.alpha[rows],
        cct=learned.cct[rows],
        status=tuple(status for status in learned.status if status == "finite"),
        restabilises=learned.restabilises[rows],
    )
    truth = None if reference is None else reference_boundary_of(operators, finite.alpha, reference, report)
    count = within(report, "certificates", len(finite.alpha))
    return certify(surrogate, finite.alpha, member, finite, truth, count)


def certificate_summary(rows: list[CertificateRow], window: float) -> dict[str, Any]:
    """What certificates say together; `window` is the length of the clearing window in s.

    A bound as long as the clearing window says nothing: any answer would satisfy it.
    """
    compared = [row for row in rows if row.error is not None]
    errors = np.array([row.error for row in compared], dtype=float)
    estimates = np.array([row.estimate for row in compared])
    bounds = np.array([row.bound for row in compared])
    large = np.abs(errors) > 2e-5
    return {
        "rows": len(rows),
        "largest_estimate_ms": _largest([1e3 * row.estimate for row in rows]),
        "largest_bound_ms": _largest([1e3 * row.bound for row in rows]),
        "mean_error_ms": float(1e3 * np.abs(errors).mean()) if compared else None,
        "mean_error_after_correction_ms": float(1e3 * np.abs(errors - estimates).mean()) if compared else None,
        "rows_with_error_above_0.02_ms": int(large.sum()),
        "worst_relative_error_of_estimate": (
            float(np.abs(estimates / errors - 1.0)[large].max()) if large.any() else None
        ),
        "bound_covers": int((np.abs(errors) <= bounds).sum()) if compared else None,
        "vacuous": {
            "dual_weighted_bound": sum(row.bound >= window for row in rows),
            "theorem_with_logarithmic_norm": sum(row.log_norm >= window for row in rows),
            "theorem_of_the_paper": sum(bool(row.paper_log10 >= np.log10(window)) for row in rows),
        },
    }


def certificate_metrics(surrogate: Surrogate, learned: Boundary, member: int = 0) -> dict[str, float]:
    """What a checkpoint carries of certificates, without any reference; empty without a finite CCT.

    `learned` is the member's boundary under the hard margin; a few of its finite severities are certified.
    """
    finite = np.flatnonzero(learned.finite)
    if not len(finite):
        return {}
    chosen = finite[np.unique(np.linspace(0, len(finite) - 1, CERTIFIED_SEVERITIES).round().astype(int))]
    rows = [certify_one(surrogate, float(learned.alpha[k]), float(learned.cct[k]), member) for k in chosen]
    estimates, bounds = np.abs([row.estimate for row in rows]), np.array([row.bound for row in rows])
    return {
        "certified_severities": float(len(rows)),
        "estimated_mae_s": float(estimates.mean()),
        "estimated_max_s": float(estimates.max()),
        "certified_max_s": float(bounds.max()),
    }


def certificate_prefix(expert: int) -> str:
    """How the certificates of an expert are named among a checkpoint's metrics."""
    return f"expert_{expert}_"


def member_certificate(surrogate: Surrogate, learned: Boundary, member: int) -> dict[str, float]:
    """Estimated CCT errors of a member, which need no reference; none over conditions, where rows differ in more."""
    if surrogate.members[member].family is not None:
        return {}
    metrics = certificate_metrics(surrogate, learned, member)
    return {f"{certificate_prefix(member)}{name}": value for name, value in metrics.items()}


def _largest(values: list[float]) -> float | None:
    return max(map(abs, values), default=None)

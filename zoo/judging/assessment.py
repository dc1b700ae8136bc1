"""A surrogate's boundary beside the truth: one value with all that the table, the file and the figure show."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from contingencies.network import Float
from contingencies.operators import PhaseOperators
from contingencies.references import Reference, reference_cct
from contingencies.sensitivity import reference_sensitivity
from contingencies.stability import CCT, Boundary, boundary_of, candidates
from espinn_moe.boundary import learned_boundary, margin_map, ode_boundary
from espinn_moe.margins import SMOOTH, MarginRule, default_rule
from espinn_moe.sensitivity import Sensitivity, learned_sensitivity
from espinn_moe.surrogate import Surrogate
from zoo.judging.metrics import CCTErrors, Consistency, ErrorSplit, cct_errors, consistency, error_split
from zoo.work.reporting import Report, silent, within

DAE_SEVERITIES = 21  # of the paper's targeted full-network sweep
MAP_SEVERITIES = 101


@dataclass(frozen=True, eq=False)
class Assessment:
    """A learned boundary, the boundaries it is compared with at the same severities, and the errors."""

    operators: PhaseOperators
    rule: MarginRule
    learned: Boundary
    truth: Boundary  # hard CCT of the reduced ODE
    ode_smooth: Boundary
    sensitivity: Sensitivity
    true_sensitivity: Float  # (m,) s per unit of severity, of the reduced ODE at its own CCT
    errors: CCTErrors
    split: ErrorSplit
    implicit_and_centred: Consistency
    implicit_and_true: Consistency
    dae: Boundary | None  # of the full network, at some of the severities

    def rows(self) -> list[dict[str, Any]]:
        """One record per severity; what is not a number is None."""
        columns: dict[str, Any] = {
            "alpha": self.learned.alpha,
            "status": self.learned.status,
            "cct_s": self.learned.cct,
            "true_status": self.truth.status,
            "true_cct_s": self.truth.cct,
            "error_ms": 1e3 * (self.learned.cct - self.truth.cct),
            "ode_smooth_cct_s": self.ode_smooth.cct,
            "dcct_dalpha_s": self.sensitivity.implicit,
            "centred_difference_s": self.sensitivity.centred,
            "true_dcct_dalpha_s": self.true_sensitivity,
            "slope_rad_per_s": self.sensitivity.by_t_c,
            "excluded": self.sensitivity.excluded,
        }
        if self.dae is not None:
            full = dict(zip(self.dae.alpha, zip(self.dae.status, self.dae.cct, strict=True), strict=True))
            columns["dae_status"], columns["dae_cct_s"] = zip(
                *(full.get(alpha, (None, None)) for alpha in self.learned.alpha), strict=True
            )
        return [dict(zip(columns, map(_plain, row), strict=True)) for row in zip(*columns.values(), strict=True)]

    def summary(self) -> dict[str, Any]:
        """The errors as plain values."""
        excluded = [reason for reason in self.sensitivity.excluded if reason is not None]
        return {
            "contingency": self.operators.name,
            "margin": asdict(self.rule),
            "reference": self.truth.reference,
            "cct_errors": self.errors.to_dict(),
            "error_split": self.split.to_dict(),
            "implicit_against_centred": self.implicit_and_centred.to_dict(),
            "implicit_against_reference_ode": self.implicit_and_true.to_dict(),
            "excluded_sensitivities": {reason: excluded.count(reason) for reason in sorted(set(excluded))},
        }


def assess_boundary(
    surrogate: Surrogate,
    alpha: Float,
    member: int = 0,
    rule: MarginRule | None = None,
    reference: Reference = "strict",
    dae: bool = False,
    report: Report = silent,
) -> Assessment:
    """Extract a surrogate's boundary and compare it.

    Parameters
    ----------
    surrogate : Surrogate
    alpha : array (m,)
        Ordered severities.
    member : int
        Which contingency.
    rule : MarginRule, optional
        The margin that defines the learned boundary; by default the surrogate's own.
    reference : {"strict", "fast"}
        Which reduced ODE is the truth.
    dae : bool
        Also simulate the full network, at 21 of the severities or at all if they are fewer.
    report : callable
        Told the stage and how far it is.
    """
    operators, rule = surrogate.members[member], rule or default_rule(surrogate)
    alpha = np.asarray(alpha, dtype=float)
    learned = learned_boundary(surrogate, alpha, member, rule, within(report, "learned boundary", len(alpha)))
    truth = reference_boundary_of(operators, alpha, reference, report)
    ode_smooth = ode_boundary(operators, alpha, rule if rule.kind == "smooth" else SMOOTH)
    learned_smooth = learned if rule.kind == "smooth" else learned_boundary(surrogate, alpha, member, SMOOTH)
    sensitivity = learned_sensitivity(
        surrogate, alpha, member, rule, learned, report=within(report, "sensitivity", len(alpha))
    )
    true_sensitivity = reference_sensitivity(operators, alpha, truth.cct)
    full = None
    if dae:
        chosen = np.unique(np.linspace(0, len(alpha) - 1, min(len(alpha), DAE_SEVERITIES)).round().astype(int))
        full = reference_boundary_of(operators, alpha[chosen], "dae", report)
    return Assessment(
        operators=operators,
        rule=rule,
        learned=learned,
        truth=truth,
        ode_smooth=ode_smooth,
        sensitivity=sensitivity,
        true_sensitivity=true_sensitivity,
        errors=cct_errors(learned, truth),
        split=error_split(learned_smooth, ode_smooth, truth),
        implicit_and_centred=consistency(sensitivity.implicit, sensitivity.centred, sensitivity.valid),
        implicit_and_true=consistency(sensitivity.implicit, true_sensitivity),
        dae=full,
    )


def margin_picture(surrogate: Surrogate, member: int = 0, rule: MarginRule | None = None) -> tuple[Float, Float, Float]:
    """Severities (a,), clearing instants (c,) and learned margins (a, c), for a map of the whole domain."""
    operators = surrogate.members[member]
    alpha, t_c = np.linspace(*operators.severity, MAP_SEVERITIES), candidates(operators)
    return alpha, t_c, margin_map(surrogate, alpha, t_c, member, rule)


def reference_boundary_of(operators: PhaseOperators, alpha: Float, reference: Reference, report: Report) -> Boundary:
    """A reference boundary, reported severity by severity."""
    answers: list[CCT] = []
    for value in alpha:
        answers.append(reference_cct(operators, float(value), reference))
        report(f"{reference} reference", len(answers), len(alpha))
    return boundary_of(answers, reference)


def _plain(value: Any) -> Any:
    if isinstance(value, float | np.floating):
        return float(value) if np.isfinite(value) else None
    return value

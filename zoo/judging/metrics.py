"""Errors of surrogates as pure functions of arrays: trajectories, stability maps, boundaries, sensitivities.

States are (..., k, 2n): angles in rad, then speeds in pu, at k times.
"""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from contingencies.network import Float
from contingencies.separation import lost, spread
from contingencies.stability import Boundary

DECISIVE_RAD = 1.5 * np.pi  # once the reference separation has passed this, stability is decided


# --- trajectories -----------------------------------------------------------------------------


@dataclass(frozen=True)
class TrajectoryErrors:
    """Pooled over scenarios, times and machines; the second pair only before separation passes 1.5 pi."""

    rmse_delta: float  # rad
    rmse_omega: float  # pu
    rmse_delta_decisive: float  # rad
    rmse_omega_decisive: float  # pu
    separation_mae: float  # rad, over scenarios and times
    scenarios: int

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self)


def separation(states: Float) -> Float:
    """Largest pairwise angle separation (..., k) of states (..., k, 2n), rad."""
    delta = states[..., : states.shape[-1] // 2]
    largest: Float = spread(delta)
    return largest


def decisive_part(reference: Float, limit: float = DECISIVE_RAD) -> np.ndarray:
    """Samples (..., k) up to the first at which the reference separation passes `limit`; that one is left out."""
    part: np.ndarray = ~lost(reference[..., : reference.shape[-1] // 2], limit)
    return part


@dataclass(frozen=True)
class TrajectoryTotals:
    """Sums behind `TrajectoryErrors`; totals of blocks of scenarios add up to those of all of them."""

    delta: float = 0.0  # sums of squares
    omega: float = 0.0
    delta_decisive: float = 0.0
    omega_decisive: float = 0.0
    separation: float = 0.0  # sum of absolute values
    machines: int = 0
    samples: int = 0
    samples_decisive: int = 0
    scenarios: int = 0

    def __add__(self, other: "TrajectoryTotals") -> "TrajectoryTotals":
        sums = {name: value + getattr(other, name) for name, value in asdict(self).items()}
        return TrajectoryTotals(**(sums | {"machines": max(self.machines, other.machines)}))

    def errors(self) -> TrajectoryErrors:
        """Means of the sums; of nothing they are 0."""
        full, decisive = (max(1, count * self.machines) for count in (self.samples, self.samples_decisive))
        return TrajectoryErrors(
            rmse_delta=float(np.sqrt(self.delta / full)),
            rmse_omega=float(np.sqrt(self.omega / full)),
            rmse_delta_decisive=float(np.sqrt(self.delta_decisive / decisive)),
            rmse_omega_decisive=float(np.sqrt(self.omega_decisive / decisive)),
            separation_mae=self.separation / max(1, self.samples),
            scenarios=self.scenarios,
        )


def trajectory_totals(predicted: Float, reference: Float, limit: float = DECISIVE_RAD) -> TrajectoryTotals:
    """Sums of errors of predicted states against reference states, both (..., k, 2n)."""
    n = reference.shape[-1] // 2
    squares, part = np.square(predicted - reference), decisive_part(reference, limit)
    return TrajectoryTotals(
        delta=float(squares[..., :n].sum()),
        omega=float(squares[..., n:].sum()),
        delta_decisive=float(squares[part][:, :n].sum()),
        omega_decisive=float(squares[part][:, n:].sum()),
        separation=float(np.abs(separation(predicted) - separation(reference)).sum()),
        machines=n,
        samples=part.size,
        samples_decisive=int(part.sum()),
        scenarios=part.size // part.shape[-1],
    )


def trajectory_errors(predicted: Float, reference: Float, limit: float = DECISIVE_RAD) -> TrajectoryErrors:
    """Errors of predicted states against reference states, both (..., k, 2n)."""
    return trajectory_totals(predicted, reference, limit).errors()


# --- stability maps ---------------------------------------------------------------------------


def mean_iou(predicted_unstable: np.ndarray, reference_unstable: np.ndarray) -> float:
    """Mean over the stable and the unstable class of intersection over union; a class that neither has counts as 1."""
    scores = []
    for label in (False, True):
        ours, theirs = predicted_unstable == label, reference_unstable == label
        union = np.logical_or(ours, theirs).sum()
        scores.append(np.logical_and(ours, theirs).sum() / union if union else 1.0)
    return float(np.mean(scores))


# --- boundaries -------------------------------------------------------------------------------


@dataclass(frozen=True)
class CCTErrors:
    """Errors over severities where both boundaries are finite; None when there is no such severity."""

    mae: float | None  # s
    p95: float | None  # s
    maximum: float | None  # s
    bias: float | None  # s, mean of learned - reference
    finite: int  # severities compared
    reference_finite: int
    missed: int  # reference finite, learned censored
    invented: int  # reference censored, learned finite
    wrong_side: int  # censored on opposite sides

    @property
    def mismatches(self) -> int:
        """Severities whose status disagrees."""
        return self.missed + self.invented + self.wrong_side

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self)


def cct_errors(learned: Boundary, reference: Boundary) -> CCTErrors:
    """Errors of a boundary against a reference at the same severities."""
    _same_severities(learned, reference)
    both = learned.finite & reference.finite
    difference = learned.cct[both] - reference.cct[both]
    size = np.abs(difference)
    pairs = list(zip(learned.status, reference.status, strict=True))
    return CCTErrors(
        mae=float(size.mean()) if both.any() else None,
        p95=float(np.percentile(size, 95)) if both.any() else None,
        maximum=float(size.max()) if both.any() else None,
        bias=float(difference.mean()) if both.any() else None,
        finite=int(both.sum()),
        reference_finite=int(reference.finite.sum()),
        missed=sum(theirs == "finite" and ours != "finite" for ours, theirs in pairs),
        invented=sum(ours == "finite" and theirs != "finite" for ours, theirs in pairs),
        wrong_side=sum({ours, theirs} == {"left-censored", "right-censored"} for ours, theirs in pairs),
    )


@dataclass(frozen=True)
class ErrorSplit:
    """Where a learned smooth boundary's error comes from, mean absolute errors in s (theory.md eq. (31))."""

    smoothing: float | None  # E_sm: ODE smooth against ODE hard
    surrogate: float | None  # E_sur: learned smooth against ODE smooth
    end_to_end: float | None  # E_end: learned smooth against ODE hard
    rows: int

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self)


def error_split(learned_smooth: Boundary, ode_smooth: Boundary, ode_hard: Boundary) -> ErrorSplit:
    """The three discrepancies on the severities where all three boundaries are finite."""
    _same_severities(learned_smooth, ode_hard)
    _same_severities(ode_smooth, ode_hard)
    rows = learned_smooth.finite & ode_smooth.finite & ode_hard.finite
    if not rows.any():
        return ErrorSplit(None, None, None, 0)

    def mae(ours: Boundary, theirs: Boundary) -> float:
        return float(np.abs(ours.cct[rows] - theirs.cct[rows]).mean())

    return ErrorSplit(
        mae(ode_smooth, ode_hard), mae(learned_smooth, ode_smooth), mae(learned_smooth, ode_hard), int(rows.sum())
    )


def _same_severities(ours: Boundary, theirs: Boundary) -> None:
    if ours.alpha.shape != theirs.alpha.shape or not np.allclose(ours.alpha, theirs.alpha, rtol=0.0, atol=1e-12):
        raise ValueError("boundaries are compared at the same severities only")


# --- sensitivities ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Consistency:
    """Agreement of two derivatives of a boundary; s per unit of severity."""

    mae: float | None
    correlation: float | None  # None below two rows, or when one of both is constant
    rows: int

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self)


def consistency(ours: Float, theirs: Float, valid: np.ndarray | None = None) -> Consistency:
    """Mean absolute difference and correlation of derivatives (m,) on valid rows where both are numbers."""
    rows = np.isfinite(ours) & np.isfinite(theirs)
    if valid is not None:
        rows &= valid
    x, y = ours[rows], theirs[rows]
    if not len(x):
        return Consistency(None, None, 0)
    constant = np.ptp(x) == 0.0 or np.ptp(y) == 0.0  # their standard deviations need not be 0, by round-off
    spread = 0.0 if constant else float(x.std() * y.std())
    correlation = None
    if spread > 1e-300:
        correlation = float(np.clip(np.mean((x - x.mean()) * (y - y.mean())) / spread, -1.0, 1.0))
    return Consistency(float(np.abs(x - y).mean()), correlation, len(x))

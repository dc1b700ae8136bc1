"""Stability margins of rotor-angle trajectories, evaluated no more finely than their use requires.

The smooth margin is the paper's, theory.md eqs. (smooth-separation), (smooth-margin); the hard margin is the peak
separation less its limit, the peak refined by a parabola. Both are defined on samples h_t apart. A `MarginProbe`
first looks at every fortieth sample and then only at those that can still matter: where it decides anything, the
answer is that of the full grid to 1e-6 rad.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from contingencies.network import Float
from contingencies.ode import FastODE
from contingencies.operators import PhaseOperators
from espinn_moe.surrogate import Surrogate

MarginKind = Literal["smooth", "hard"]
Angles = Callable[[Float, Float], Tensor]  # times (k,), clearing instants (c,) -> rotor angles (c, k, n), float64

COARSE_FACTOR = 40  # samples of the first look: every fortieth, 40 ms apart by default; swings last a second
COARSE_SLACK_RAD = 0.3  # most that a separation rises between them: covers 1500 rad/s2, ten times a close-in fault
LEAST_SLACK_RAD = 0.02  # however straight it looks: a smooth maximum over coarse samples is no better than that
RESOLUTION_RAD = 1e-4  # to which margins far from zero are told: above the rounding of single precision
WEIGHT_CUTOFF = 20.0  # samples with exp(-20) of the largest weight change a smooth maximum by less than 1e-6 rad


@dataclass(frozen=True)
class MarginRule:
    """How a trajectory becomes one margin; the defaults are the paper's."""

    kind: MarginKind = "smooth"
    beta: float = 50.0  # 1/rad, sharpness of the smooth maximum
    epsilon: float = 1e-6  # rad, rounding of the absolute value
    h_t: float = 1e-3  # s, sampling of trajectories

    def bias(self, operators: PhaseOperators) -> float:
        """Largest excess of the smooth over the sampled hard margin, rad (theory.md eq. (smooth-bias))."""
        if self.kind == "hard":
            return 0.0
        n = operators.n_machines
        return self.epsilon + float(np.log(len(sample_times(operators, self.h_t)) * n * (n - 1) / 2)) / self.beta


SMOOTH = MarginRule("smooth")
HARD = MarginRule("hard")


def default_rule(surrogate: Surrogate) -> MarginRule:
    """The rule by which a surrogate's boundary is read unless told otherwise."""
    return MarginRule(surrogate.margin_kind)


def sample_times(operators: PhaseOperators, h_t: float = SMOOTH.h_t) -> Float:
    """Trajectory samples 0, h_t, ..., T, s."""
    return np.linspace(0.0, operators.window.T, round(operators.window.T / h_t) + 1)


def smooth_margin(
    delta: Tensor, max_separation: float, beta: float = SMOOTH.beta, epsilon: float = SMOOTH.epsilon
) -> Tensor:
    """Smooth margin of sampled trajectories, theory.md eq. (smooth-margin).

    Parameters
    ----------
    delta : Tensor (..., k, n)
        Rotor angles at k samples, rad.
    max_separation : float
        Delta_max, rad.
    beta, epsilon : float
        Sharpness of the maximum, 1/rad, and rounding of the absolute value, rad.

    Returns
    -------
    Tensor (...)
        Log-sum-exp over all samples and unordered pairs of machines, less the limit, rad.
    """
    high, low = torch.triu_indices(delta.shape[-1], delta.shape[-1], offset=1, device=delta.device)
    difference = delta[..., high] - delta[..., low]
    separation = torch.sqrt(difference * difference + epsilon * epsilon)
    return torch.logsumexp(beta * separation.flatten(-2), dim=-1) / beta - max_separation


def hard_margin(delta: Tensor, max_separation: float) -> Tensor:
    """Peak separation of evenly sampled angles (..., k, n) less its limit, rad (...); peaks refined by a parabola."""
    return _refined_peak(_separation(delta))[0] - max_separation


def surrogate_angles(surrogate: Surrogate, alpha: float, member: int = 0) -> Angles:
    """Rotor angles of a surrogate at one severity, for a `MarginProbe`."""
    device = next((parameter.device for parameter in surrogate.parameters()), torch.device("cpu"))
    severity = torch.tensor([alpha], dtype=surrogate.dtype, device=device)

    def angles(t: Float, t_c: Float) -> Tensor:
        with torch.no_grad():
            states = surrogate.trajectories(
                torch.as_tensor(t, dtype=surrogate.dtype, device=device),
                severity,
                torch.as_tensor(t_c, dtype=surrogate.dtype, device=device),
                member,
            )
        return states[0, ..., : surrogate.n_machines].double()

    return angles


def ode_angles(operators: PhaseOperators, alpha: float) -> Angles:
    """Rotor angles of the fast reduced ODE at one severity, for a `MarginProbe`."""
    ode, n = FastODE(operators, alpha), operators.n_machines
    return lambda t, t_c: torch.from_numpy(ode.states(np.asarray(t_c, dtype=float), t)[..., :n])


class MarginProbe:
    """Margins of one severity over clearing instants.

    Parameters
    ----------
    angles : callable
        Rotor angles at given times for given clearing instants.
    operators : PhaseOperators
    rule : MarginRule
    """

    def __init__(self, angles: Angles, operators: PhaseOperators, rule: MarginRule) -> None:
        self.angles, self.operators, self.rule = angles, operators, rule
        self.t = sample_times(operators, rule.h_t)
        self.coarse = np.unique(np.append(np.arange(0, len(self.t), COARSE_FACTOR), len(self.t) - 1))

    def signs(self, t_c: Float, first_look: Tensor | None = None) -> Float:
        """Margins (c,) whose sign is right, and whose value is right where it is near zero, rad.

        `first_look` are the angles (c, k, n) at the coarse samples, when they are known already.
        """
        delta = self.angles(self.t[self.coarse], t_c) if first_look is None else first_look
        limit, rule = self.operators.max_separation, self.rule
        separation = _separation(delta)
        if rule.kind == "smooth":  # every coarse sample stands for as many as it replaces
            about = smooth_margin(delta, limit, rule.beta, rule.epsilon) + np.log(COARSE_FACTOR) / rule.beta
        else:
            about = _refined_peak(separation)[0] - limit
        # A coarse peak beyond the limit decides. So does a margin that no rise between two samples takes across zero;
        # its value only tells the search where margins of neighbouring instants peak.
        margins = RESOLUTION_RAD * np.rint(about.cpu().numpy() / RESOLUTION_RAD)
        beyond = (separation.amax(-1) >= limit).cpu().numpy()
        margins[beyond] = np.maximum(margins[beyond], RESOLUTION_RAD)
        unsure = ~beyond & (np.abs(margins) < _rise_between(separation).cpu().numpy())
        if unsure.any():
            margins[unsure] = self._refined(t_c[unsure], delta[torch.from_numpy(unsure)])
        return margins

    def values(self, t_c: Float) -> Float:
        """Margins (c,) as the full grid of samples gives them, rad."""
        return self._refined(t_c, self.angles(self.t[self.coarse], t_c))

    def kept_samples(self, delta: Tensor) -> np.ndarray:
        """Indices of the samples that can contribute to any margin of coarse angles (c, k, n)."""
        separation = _separation(delta)
        reach = _rise_between(separation)
        if self.rule.kind == "smooth":
            reach = reach.clamp(min=WEIGHT_CUTOFF / self.rule.beta)
        near = separation >= (separation.amax(-1) - reach)[:, None]
        cells = (near[:, 1:] | near[:, :-1]).any(0).cpu().numpy()
        kept = np.zeros(len(self.t), dtype=bool)
        for cell in np.flatnonzero(cells):
            kept[self.coarse[cell] : self.coarse[cell + 1] + 1] = True
        return np.flatnonzero(kept)

    def peak_instant(self, t_c: float) -> tuple[float, int, int]:
        """When the separation of one clearing instant peaks, s, and which machines lead and lag there."""
        kept = self.kept_samples(self.angles(self.t[self.coarse], np.array([t_c])))
        delta = self.angles(self.t[kept], np.array([t_c]))[0]
        position = float(_refined_peak(self._on_grid(_separation(delta)[None], kept))[1][0])
        nearest = delta[int(np.abs(kept - position).argmin())]
        return position * float(self.t[1]), int(nearest.argmax()), int(nearest.argmin())

    def _refined(self, t_c: Float, coarse_delta: Tensor) -> Float:
        kept = self.kept_samples(coarse_delta)
        delta = self.angles(self.t[kept], t_c)
        limit = self.operators.max_separation
        if self.rule.kind == "smooth":
            return smooth_margin(delta, limit, self.rule.beta, self.rule.epsilon).cpu().numpy()
        return (_refined_peak(self._on_grid(_separation(delta), kept))[0] - limit).cpu().numpy()

    def _on_grid(self, separation: Tensor, kept: np.ndarray) -> Tensor:
        """Kept separations (c, m) on the full grid of samples (c, k), the rest below every peak."""
        full = torch.full((len(separation), len(self.t)), -torch.inf, dtype=separation.dtype, device=separation.device)
        full[:, torch.from_numpy(kept).to(separation.device)] = separation
        return full


def _separation(delta: Tensor) -> Tensor:
    """Largest pairwise separation (..., k) of angles (..., k, n): largest minus smallest angle."""
    return delta.amax(-1) - delta.amin(-1)


def _rise_between(separation: Tensor) -> Tensor:
    """Generous bound (...) of how far separations (..., k) can rise between two of their samples, rad."""
    bend = (separation[..., 2:] + separation[..., :-2] - 2.0 * separation[..., 1:-1]).abs().amax(-1)
    return (0.5 * bend).clamp(LEAST_SLACK_RAD, COARSE_SLACK_RAD)  # a parabola rises by an eighth of its bend


def _refined_peak(separation: Tensor) -> tuple[Tensor, Tensor]:
    """Peak (...) of evenly sampled separations (..., k), and its position in samples, by the parabola through three."""
    last = separation.shape[-1] - 1
    peak, k = separation.max(-1)
    before, after = (
        separation.gather(-1, (k + shift).clamp(0, last)[..., None])[..., 0].clamp(min=-1e6) for shift in (-1, 1)
    )
    curvature = 2.0 * peak - before - after
    inside = (k > 0) & (k < last) & (curvature > 0)
    slope = torch.where(inside, after - before, torch.zeros_like(peak))
    curvature = torch.where(inside, curvature, torch.ones_like(peak))
    return peak + slope * slope / (8.0 * curvature), k + 0.5 * slope / curvature

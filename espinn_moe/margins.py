"""Stability margins of rotor-angle trajectories, evaluated no more finely than their use requires.

The smooth margin is the paper's, theory.md eq. (21); the hard margin is the peak
separation less its limit, the peak refined by a parabola. Both are defined on samples h_t apart. A `MarginProbe`
first looks at every fortieth sample and then only at those that can still matter: where it decides anything, the
answer is that of the full grid to 1e-6 rad. It answers for many severities at once, in batches of bounded size: a
chain of windows takes hardly longer for fifty short batches' worth of scenarios than for one.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from contingencies.looks import Look, joined, look_of_samples
from contingencies.network import Float
from contingencies.ode import FastODE
from contingencies.operators import PhaseOperators
from contingencies.separation import peak, spread
from espinn_moe.surrogate import Surrogate

MarginKind = Literal["smooth", "hard"]
Rows = np.ndarray  # (s,) positions in the severities of a probe; one may come several times
# Severities by position (s,), times (k,) or (s, k), clearing instants (s, c), a separation in rad beyond which a
# trajectory need not be followed, or none -> rotor angles (s, c, k, n), float64
Angles = Callable[[Rows, Float, Float, float | None], Tensor]

COARSE_FACTOR = 40  # samples of the first look: every fortieth, 40 ms apart by default; swings last a second
COARSE_SLACK_RAD = 0.3  # most that a separation rises between them: covers 1500 rad/s2, ten times a close-in fault
LEAST_SLACK_RAD = 0.02  # however straight it looks: a smooth maximum over coarse samples is no better than that
RESOLUTION_RAD = 1e-4  # to which margins far from zero are told: above the rounding of single precision
DECIDED_RAD = 2.0  # a trajectory this far beyond the limit need not be followed to tell its sign; figures end here too
WEIGHT_CUTOFF = 20.0  # samples with exp(-20) of the largest weight change a smooth maximum by less than 1e-6 rad
BATCH_VALUES = 1_000_000  # numbers in one batch of trajectories: more outgrow the caches, fewer wait for calls
SMALL_BATCH = 4000  # samples of trajectories that take no longer than a call does anyway


@dataclass(frozen=True)
class MarginRule:
    """How a trajectory becomes one margin; the defaults are the paper's."""

    kind: MarginKind = "smooth"
    beta: float = 50.0  # 1/rad, sharpness of the smooth maximum
    epsilon: float = 1e-6  # rad, rounding of the absolute value
    h_t: float = 1e-3  # s, sampling of trajectories

    def bias(self, operators: PhaseOperators) -> float:
        """Largest excess of the smooth over the sampled hard margin, rad (theory.md eq. (22))."""
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
    """Smooth margin of sampled trajectories, theory.md eq. (21).

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
    return peak(spread(delta))[0] - max_separation


def surrogate_angles(surrogate: Surrogate, alpha: Float, member: int = 0) -> Angles:
    """Rotor angles of a surrogate at severities (a,), for a `MarginProbe`."""
    device = next((parameter.device for parameter in surrogate.parameters()), torch.device("cpu"))

    def tensor(values: Float) -> Tensor:
        return torch.as_tensor(values, dtype=surrogate.dtype, device=device)

    with torch.inference_mode():
        follow = surrogate.follow(tensor(alpha), member)

    def angles(row: Rows, t: Float, t_c: Float, limit: float | None) -> Tensor:
        with torch.inference_mode():
            states = follow(torch.as_tensor(row, device=device), tensor(t), tensor(t_c), limit)
        return states[..., : surrogate.n_machines].double()

    return angles


def ode_angles(operators: PhaseOperators, alpha: Float) -> Angles:
    """Rotor angles of the fast reduced ODE at severities (a,), for a `MarginProbe`."""
    odes, n = [FastODE(operators, float(value)) for value in alpha], operators.n_machines

    def angles(row: Rows, t: Float, t_c: Float, limit: float | None) -> Tensor:
        times = np.broadcast_to(t, (len(row), t.shape[-1]))
        states = [odes[k].states(instants, its) for k, its, instants in zip(row, times, t_c, strict=True)]
        return torch.from_numpy(np.stack(states)[..., :n])

    return angles


class MarginProbe:
    """Margins of severities over clearing instants.

    Parameters
    ----------
    angles : callable
        Rotor angles of given severities at given times for given clearing instants.
    operators : PhaseOperators
    rule : MarginRule
    """

    def __init__(self, angles: Angles, operators: PhaseOperators, rule: MarginRule) -> None:
        self.angles, self.operators, self.rule = angles, operators, rule
        self.t = sample_times(operators, rule.h_t)
        self.coarse = np.unique(np.append(np.arange(0, len(self.t), COARSE_FACTOR), len(self.t) - 1))

    def signs(self, t_c: Float, row: Rows | None = None) -> Float:
        """Margins whose sign is right, and whose value is right where it is near zero, rad.

        Parameters
        ----------
        t_c : array (s, c)
            Clearing instants of each severity in order, s.
        row : int array (s,), optional
            Which severities; default the first s.

        Returns
        -------
        array (s, c)
        """
        return self.look(t_c, row).margin

    def look(self, t_c: Float, row: Rows | None = None) -> Look:
        """What a search sees of clearing instants (s, c); arguments and margins as for `signs`."""
        row = np.arange(len(t_c)) if row is None else row
        size = self._batch(t_c.shape[1] * len(self.coarse))
        parts = [self._look(t_c[k : k + size], row[k : k + size]) for k in range(0, len(row), size)]
        return joined(parts, np.arange(len(row)))

    def values(self, t_c: Float, row: Rows | None = None) -> Float:
        """Margins (s, c) as the full grid of samples gives them, rad; arguments as for `signs`."""
        row = np.arange(len(t_c)) if row is None else row
        size = self._batch(t_c.shape[1] * len(self.coarse))
        return np.concatenate([self._values(t_c[k : k + size], row[k : k + size]) for k in range(0, len(row), size)])

    def kept_samples(self, t_c: float, row: int = 0) -> np.ndarray:
        """Indices of the samples that can contribute to the margin of one scenario."""
        separation = spread(self.angles(np.array([row]), self.t[self.coarse], np.array([[t_c]]), None))
        return np.flatnonzero(self._kept(separation, np.array([[True]]))[0])

    def peak_instant(self, t_c: float, row: int = 0) -> tuple[float, int, int]:
        """When the separation of one scenario peaks, s, and which machines lead and lag there."""
        kept = self.kept_samples(t_c, row)
        delta = self.angles(np.array([row]), self.t[kept], np.array([[t_c]]), None)[0, 0]
        separation = spread(delta)
        highest = int(separation.argmax())
        past = float(peak(separation)[1]) - highest
        at_peak = delta[highest]
        return (float(kept[highest]) + past) * float(self.t[1]), int(at_peak.argmax()), int(at_peak.argmin())

    def _batch(self, samples: int) -> int:
        """How many trajectories, or sets of them, of that many samples make a batch."""
        return max(1, BATCH_VALUES // (samples * 2 * self.operators.n_machines))

    def _look(self, t_c: Float, row: Rows) -> Look:
        limit, rule = self.operators.max_separation, self.rule
        delta = self.angles(row, self.t[self.coarse], t_c, limit + DECIDED_RAD)
        separation = spread(delta)
        if rule.kind == "smooth":  # every coarse sample stands for as many as it replaces
            about = smooth_margin(delta, limit, rule.beta, rule.epsilon) + np.log(COARSE_FACTOR) / rule.beta
        else:
            about = peak(separation)[0] - limit
        # A coarse peak beyond the limit decides. So does a margin that no rise between two samples takes across zero;
        # its value only tells the search where margins of neighbouring instants peak.
        margins = RESOLUTION_RAD * np.rint(about.cpu().numpy() / RESOLUTION_RAD)
        beyond = (separation.amax(-1) >= limit).cpu().numpy()
        margins[beyond] = np.maximum(margins[beyond], RESOLUTION_RAD)
        unsure = ~beyond & (np.abs(margins) < _rise_between(separation).cpu().numpy())
        self._refine(margins, unsure, t_c, row, separation)
        return look_of_samples(self.t[self.coarse], separation.cpu().numpy(), limit, margins)

    def _values(self, t_c: Float, row: Rows) -> Float:
        separation = spread(self.angles(row, self.t[self.coarse], t_c, None))
        margins = np.empty(t_c.shape)
        self._refine(margins, np.ones(t_c.shape, dtype=bool), t_c, row, separation)
        return margins

    def _refine(self, margins: Float, chosen: np.ndarray, t_c: Float, row: Rows, separation: Tensor) -> None:
        """Set the `chosen` of margins (s, c) to those of the full grid, by separations (s, c, k) at coarse samples."""
        some = np.flatnonzero(chosen.any(1))
        if not some.size:
            return
        kept = self._kept(separation[torch.from_numpy(some)], chosen[some])
        limit, rule = self.operators.max_separation, self.rule
        for batch in self._batches(chosen[some].sum(1), kept.sum(1)):
            here = some[batch]
            instants, samples = _filled_up(chosen[here]), _filled_up(kept[batch])
            delta = self.angles(row[here], self.t[samples], np.take_along_axis(t_c[here], instants, axis=1), None)
            if rule.kind == "smooth":
                found = smooth_margin(delta, limit, rule.beta, rule.epsilon)
            else:
                found = hard_margin(delta, limit)
            margins[here[:, None], instants] = np.where(
                np.take_along_axis(chosen[here], instants, axis=1),
                found.cpu().numpy(),
                np.take_along_axis(margins[here], instants, axis=1),
            )

    def _kept(self, separation: Tensor, chosen: np.ndarray) -> np.ndarray:
        """Which samples (s, m) of the full grid can contribute to a chosen margin (s, c) of each severity.

        Parameters
        ----------
        separation : Tensor (s, c, k)
            At the coarse samples, rad.
        chosen : bool array (s, c)

        Returns
        -------
        bool array (s, m)
            Both neighbours of a margin's largest sample are always kept, so that a parabola through the three is the
            full grid's.
        """
        reach = _rise_between(separation)
        if self.rule.kind == "smooth":
            reach = reach.clamp(min=WEIGHT_CUTOFF / self.rule.beta)
        near = (separation >= (separation.amax(-1) - reach)[..., None]).cpu().numpy()
        cells = ((near[..., 1:] | near[..., :-1]) & chosen[..., None]).any(1)
        kept = np.zeros((len(cells), len(self.t)), dtype=bool)
        kept[:, :-1] = np.repeat(cells, np.diff(self.coarse), axis=1)
        kept[:, self.coarse[1:]] |= cells  # a cell's right end as well
        return kept

    def _batches(self, instants: np.ndarray, samples: np.ndarray) -> Iterator[np.ndarray]:
        """Severities with similar numbers of instants (s,) and samples (s,): all of a batch get those of the most."""
        order = np.lexsort((samples, instants))
        begin = 0
        for end in range(1, len(order) + 1):
            batch = order[begin : end + 1]
            size = len(batch) * instants[batch].max() * samples[batch].max()
            worthwhile = size <= SMALL_BATCH + 2 * (instants[batch] * samples[batch]).sum()
            if end == len(order) or not worthwhile or size > self._batch(1):
                yield order[begin:end]
                begin = end


def _filled_up(chosen: np.ndarray) -> np.ndarray:
    """Indices (s, m) of what is chosen in each row (s, k), in order; rows with fewer than the most get others too.

    Others do no harm: margins of further instants are not asked for, and further samples, the earliest that are not
    kept, only make a margin more like that of the full grid.
    """
    most = int(chosen.sum(1).max())
    return np.sort(np.argsort(~chosen, axis=1, kind="stable")[:, :most], axis=1)


def _rise_between(separation: Tensor) -> Tensor:
    """Generous bound (...) of how far separations (..., k) can rise between two of their samples, rad."""
    bend = (separation[..., 2:] + separation[..., :-2] - 2.0 * separation[..., 1:-1]).abs().amax(-1)
    return (0.5 * bend).clamp(LEAST_SLACK_RAD, COARSE_SLACK_RAD)  # a parabola rises by an eighth of its bend

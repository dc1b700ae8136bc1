"""The error of a learned CCT, to first order, from its residual and the adjoint of the swing equation.

Along the learned trajectory at its own critical instant the residual r = dx/dt - f(x) is known, and the adjoint
tells what each moment of it does to the separation that decides (theory.md eqs. (27)-(28)):

    lambda' = -J^T lambda,  lambda(t*) = e_i - e_j,
    true - learned CCT  =  integral lambda^T r dt / slope,   slope = lambda(t_c)^T [f_fault - f_post](x(t_c)).

t* and the pair (i, j) are those at which the true separation is predicted to reach its limit for the earliest
clearing; where the learned one falls short of the limit there, the gap is added to the integral.
"""

from dataclasses import dataclass, replace

import numpy as np

from contingencies.errors import SolverError
from contingencies.network import Float
from contingencies.operators import PhaseOperators
from contingencies.sensitivity import field_jacobian, phase_field
from espinn_moe.learned_leg import GAUSS, Leg
from espinn_moe.sensitivity import MIN_SLOPE_RAD_PER_S

CELLS_AT_ONCE = 200  # of the linearised flow; on 54 machines about 100 MB


@dataclass(frozen=True, eq=False)
class Step:
    """From the learned to the true critical trajectory, to first order: clearing instant, and states on both legs."""

    shift: float  # s
    fault: Float  # (2k+1, 2n)
    post: Float


@dataclass(frozen=True)
class DualWeighted:
    """What the adjoint says about one learned CCT."""

    shift: float  # true - learned CCT, s
    absolute: float  # the same with absolute values, s
    slope: float  # rad/s
    t_peak: float  # s, when the true separation reaches its limit


def dual_weighted(
    operators: PhaseOperators, fault: Leg, post: Leg, step: Step | None = None
) -> tuple[DualWeighted, Step]:
    """theory.md eq. (28), linearised along the learned trajectory or, given a step, half-way along it."""
    n = operators.n_machines
    learned, x, later = post.half[::2, :n], fault.half[-1], 0.0
    if step is not None:
        # Between both clearing instants the true trajectory is still faulted (or no longer is): mid-way values.
        later = 0.5 * step.shift
        x = x + step.fault[-1] + later * phase_field(operators, x, fault.Y, fault.P_m)
        fault, post = (replace(leg, half=leg.half + 0.5 * by) for leg, by in ((fault, step.fault), (post, step.post)))
    jump = phase_field(operators, x, fault.Y, fault.P_m) - phase_field(operators, x, post.Y, post.P_m)
    jump = jump - later * (field_jacobian(operators, post.half[0, :n], post.Y) @ jump)

    through_fault, through_post = _propagators(operators, fault), _propagators(operators, post)
    on_fault = through_fault.forwards(np.zeros((2 * n, 1)))
    on_post = through_post.forwards(np.stack([on_fault[-1, :, 0], jump], axis=-1))
    cell, high, low = _first_to_reach(operators, learned, on_post[::2, :n])
    direction = np.zeros(2 * n)
    direction[high], direction[low] = 1.0, -1.0
    gap = operators.max_separation - float(learned[cell, high] - learned[cell, low])

    at_clearing, signed_post, absolute_post = _weighted_residual(operators, post, through_post, direction, cell)
    _, signed_fault, absolute_fault = _weighted_residual(operators, fault, through_fault, at_clearing)
    slope = float(at_clearing @ jump)
    shift = (gap + signed_fault + signed_post) / slope
    found = DualWeighted(shift, (abs(gap) + absolute_fault + absolute_post) / slope, slope, float(post.t[2 * cell]))
    return found, Step(shift, on_fault[..., 0], on_post[..., 0] + shift * on_post[..., 1])


def _first_to_reach(operators: PhaseOperators, learned: Float, response: Float) -> tuple[int, int, int]:
    """At which cell end, and between which machines, the separation reaches its limit for the earliest clearing.

    `learned` (k, n) are angles, `response` (k, n, 2) their first-order change by the residual, and by
    a unit of clearing time. The true separation need not peak when the learned one does.
    """
    n = operators.n_machines
    separation, change = learned[:, :, None] - learned[:, None], response[:, :, None] - response[:, None]
    growth = change[..., 1]
    usable = growth >= MIN_SLOPE_RAD_PER_S
    if not usable.any():
        raise SolverError(
            f"{operators.name}: clearing later hardly moves the learned trajectory; its CCT error cannot be judged."
        )
    shift = (operators.max_separation - separation - change[..., 0]) / np.where(usable, growth, 1.0)
    cell, pair = divmod(int(np.where(usable, shift, np.inf).argmin()), n * n)
    return cell, *divmod(pair, n)


@dataclass(frozen=True, eq=False)
class _Propagators:
    """Linearised flow of a leg cell by cell: e -> P e + q, with q the response to the residual."""

    P: Float  # (k, 2n, 2n)
    q: Float  # (k, 2n)

    def forwards(self, start: Float) -> Float:
        """Solutions (2k+1, 2n, m) of e' = J e on cell ends and middles from start (2n, m); the first also has -r."""
        ends = np.empty((len(self.P) + 1, *start.shape))
        ends[0] = start
        for k, P in enumerate(self.P):
            np.matmul(P, ends[k], out=ends[k + 1])
            ends[k + 1, :, 0] += self.q[k]
        out = np.empty((2 * len(self.P) + 1, *start.shape))
        out[::2], out[1::2] = ends, 0.5 * (ends[1:] + ends[:-1])
        return out

    def backwards(self, end: Float) -> Float:
        """Solutions (k+1, 2n) of lambda' = -J^T lambda on cell ends, lambda = end (2n,) at the last."""
        out = np.empty((len(self.P) + 1, len(end)))
        out[-1] = end
        for k in range(len(self.P) - 1, -1, -1):
            np.matmul(out[k + 1], self.P[k], out=out[k])
        return out


def _propagators(operators: PhaseOperators, leg: Leg) -> _Propagators:
    """One Runge-Kutta step per cell, for all cells at once (a few at a time, to save memory)."""
    cells, size = len(leg.widths), 2 * operators.n_machines
    P, q, unit = np.empty((cells, size, size)), np.empty((cells, size)), np.eye(size)
    for begin in range(0, cells, CELLS_AT_ONCE):
        part = slice(begin, begin + CELLS_AT_ONCE)
        h = leg.widths[part, None, None]
        span = leg.half[2 * begin : 2 * (begin + len(h)) + 1, : operators.n_machines]
        J = field_jacobian(operators, span, leg.Y)
        left, middle, right = J[:-1:2], J[1::2], J[2::2]
        source = -leg.residual[part].mean(1)[..., None]  # within a cell the residual is as good as constant
        # Columns: the unit matrix, which gives P, and one that starts at zero and is driven by the residual.
        start = np.broadcast_to(np.concatenate([unit, np.zeros((size, 1))], axis=1), (len(h), size, size + 1))
        drive = np.concatenate([np.zeros((len(h), size, size)), source], axis=-1)
        k_1 = left @ start + drive
        k_2 = middle @ (start + 0.5 * h * k_1) + drive
        k_3 = middle @ (start + 0.5 * h * k_2) + drive
        k_4 = right @ (start + h * k_3) + drive
        end = start + h / 6.0 * (k_1 + 2.0 * k_2 + 2.0 * k_3 + k_4)
        P[part], q[part] = end[..., :size], end[..., size]
    return _Propagators(P, q)


def _weighted_residual(
    operators: PhaseOperators, leg: Leg, through: _Propagators, at_end: Float, cells: int | None = None
) -> tuple[Float, float, float]:
    """The adjoint at the leg's start, and the integrals of lambda^T r and of its absolute value.

    lambda equals `at_end` (2n,) after the given number of cells, by default after all.
    """
    cells = len(leg.widths) if cells is None else cells
    adjoint = _Propagators(through.P[:cells], through.q[:cells]).backwards(at_end)
    J = field_jacobian(operators, leg.half[: 2 * cells + 1 : 2, : operators.n_machines], leg.Y)
    h = leg.widths[:cells, None]
    rate = -np.einsum("kij,ki->kj", J, adjoint)
    weights = _between(adjoint[:-1], adjoint[1:], h * rate[:-1], h * rate[1:])
    moments = (weights * leg.residual[:cells]).sum(-1)
    return adjoint[0], float((0.5 * h * moments).sum()), float((0.5 * h * np.abs(moments)).sum())


def _between(left: Float, right: Float, left_rate: Float, right_rate: Float) -> Float:
    """Cubic Hermite values (k, 2, m) at the Gauss points of cells with end values (k, m); rates are per cell."""
    s = GAUSS[:, None]
    return (
        (1 + 2 * s) * (1 - s) ** 2 * left[:, None]
        + s * (1 - s) ** 2 * left_rate[:, None]
        + s * s * (3 - 2 * s) * right[:, None]
        + s * s * (s - 1) * right_rate[:, None]
    )

"""How far a learned CCT can be from the reduced ODE's, judged from the surrogate alone.

Along the learned trajectory at its own critical instant the residual r = dx/dt - f(x) is known, and the adjoint
of the swing equation tells what each moment of it does to the separation that decides (theory.md eqs. (27)-(28)):

    lambda' = -J^T lambda,  lambda(t*) = e_i - e_j,
    true - learned CCT  =  integral lambda^T r dt / slope,   slope = lambda(t_c)^T [f_fault - f_post](x(t_c)).

t* and the pair (i, j) are those at which the true separation is predicted to reach its limit for the earliest
clearing; where the learned one falls short of the limit there, the gap is added to the integral. The estimate is
made twice: with J along the learned trajectory, then half-way to the true one as the first pass predicts it,
which removes the leading nonlinear error. Three bounds of the same error stand beside it: the
absolute-value form of the same integral, the paper's theorem with its uniform Lipschitz constants, and the theorem
with the logarithmic norm along the trajectory. All are about the hard margin. Windows of a chained surrogate need
no care, because its states are continuous and residuals are never taken at the end of a cell.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import torch

from contingencies.errors import SolverError
from contingencies.network import Complex, Float
from contingencies.ode import FastODE
from contingencies.operators import PhaseOperators
from contingencies.references import reference_cct
from contingencies.sensitivity import field_jacobian, phase_field
from contingencies.stability import TAU_ROOT_S, Boundary
from espinn_moe.boundary import learned_boundary
from espinn_moe.margins import HARD
from espinn_moe.sensitivity import MIN_SLOPE_RAD_PER_S
from espinn_moe.surrogate import Surrogate

CELL_S = 1e-3  # quadrature cells, counted from each event so that windows of whole milliseconds end on them
GAUSS = np.array([0.5 - 0.5 / np.sqrt(3.0), 0.5 + 0.5 / np.sqrt(3.0)])  # exact to third order within a cell
CELLS_AT_ONCE = 200  # of the linearised flow; on 54 machines about 100 MB
SWING_RATE = 10.0  # rad/s; speeds count omega_b/10 times as much as angles, which balances a swing of this rate
BRANCH_S = 0.05  # rho of the theorem: how far around the CCT the margin must keep growing
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
    fault = _leg(surrogate, member, alpha, cct, operators.window.t_f, cct, True)
    post = _leg(surrogate, member, alpha, cct, cct, operators.window.T, False)
    first, step = _dual_weighted(operators, fault, post)
    second, _ = _dual_weighted(operators, fault, post, step)
    allowance = NONLINEAR_FACTOR * abs(second.shift - first.shift) + ROUNDING_S
    mu = _branch_growth(operators, alpha)
    return CertificateRow(
        alpha=alpha,
        cct=cct,
        t_peak=second.t_peak,
        slope=second.slope,
        estimate=-second.shift,
        first_pass=-first.shift,
        bound=second.absolute + allowance,
        residual_fault=_l1(fault),
        residual_post=_l1(post),
        mu=mu,
        paper_log10=_paper_log10(operators, alpha, _l1(fault), _l1(post), mu),
        log_norm=2.0 * _log_norm_error(operators, fault, post, second.t_peak) / second.slope + ROUNDING_S,
    )


# --- the learned trajectory -------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Leg:
    """One phase of the learned trajectory on k cells; `half` holds states at cell ends and middles alternately."""

    t: Float  # (2k+1,)
    half: Float  # (2k+1, 2n)
    residual: Float  # (k, 2, 2n) at the Gauss points of the cells
    Y: Complex
    P_m: Float

    @property
    def widths(self) -> Float:
        """(k,) s"""
        return np.diff(self.t[::2])


def _leg(surrogate: Surrogate, member: int, alpha: float, t_c: float, start: float, end: float, faulted: bool) -> _Leg:
    operators = surrogate.members[member]
    whole = int((end - start) / CELL_S + 1e-9)
    nodes = start + CELL_S * np.arange(whole + 1)
    if end - nodes[-1] > 1e-9:
        nodes = np.append(nodes, end)
    widths = np.diff(nodes)
    t = np.empty(2 * len(nodes) - 1)
    t[::2], t[1::2] = nodes, nodes[:-1] + 0.5 * widths
    inner = nodes[:-1, None] + GAUSS * widths[:, None]
    Y, P_m = (
        (operators.Y_fault(alpha), operators.P_m_fault(alpha)) if faulted else (operators.Y_post, operators.P_m_post)
    )
    device = next((parameter.device for parameter in surrogate.parameters()), torch.device("cpu"))
    severity, instant, times, points = (
        torch.as_tensor(x, dtype=surrogate.dtype, device=device) for x in (alpha, t_c, t, inner)
    )
    with torch.no_grad():
        half = surrogate.states(times, severity, instant, member).double().cpu().numpy()
        states, rates = (
            x.double().cpu().numpy() for x in surrogate.states_and_rates(points, severity, instant, member)
        )
    return _Leg(t, half, rates - phase_field(operators, states, Y, P_m), Y, P_m)


def _l1(leg: _Leg) -> float:
    return float((np.abs(leg.residual).max(-1).mean(-1) * leg.widths).sum())


# --- estimate ---------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Step:
    """From the learned to the true critical trajectory, to first order: clearing instant, and states on both legs."""

    shift: float  # s
    fault: Float  # (2k+1, 2n)
    post: Float


@dataclass(frozen=True)
class _DualWeighted:
    shift: float  # true - learned CCT, s
    absolute: float  # the same with absolute values, s
    slope: float  # rad/s
    t_peak: float  # s, when the true separation reaches its limit


def _dual_weighted(
    operators: PhaseOperators, fault: _Leg, post: _Leg, step: _Step | None = None
) -> tuple[_DualWeighted, _Step]:
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
    found = _DualWeighted(shift, (abs(gap) + absolute_fault + absolute_post) / slope, slope, float(post.t[2 * cell]))
    return found, _Step(shift, on_fault[..., 0], on_post[..., 0] + shift * on_post[..., 1])


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


def _propagators(operators: PhaseOperators, leg: _Leg) -> _Propagators:
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
    operators: PhaseOperators, leg: _Leg, through: _Propagators, at_end: Float, cells: int | None = None
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


# --- bounds -----------------------------------------------------------------------------------


def _branch_growth(operators: PhaseOperators, alpha: float) -> float:
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


def _paper_log10(operators: PhaseOperators, alpha: float, fault: float, post: float, mu: float) -> float:
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


def _log_norm_error(operators: PhaseOperators, fault: _Leg, post: _Leg, t_peak: float) -> float:
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

"""How the hard CCT of the reduced ODE moves with severity, by variational equations.

The tangents dx/dalpha and dx/dt_c are integrated with the trajectory itself, theory.md eqs.
(24)-(25); at the instant t* and the pair of machines where the separation
peaks they give both derivatives of the hard margin, and their ratio gives dCCT/dalpha by eq. (26).
The peak may be differentiated at a fixed t* because its own motion contributes nothing at a maximum
(envelope theorem), whether t* is inside the window or at its end.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.integrate import solve_ivp

from contingencies.errors import SolverError
from contingencies.network import Complex, Float, Int
from contingencies.ode import ATOL, RTOL
from contingencies.operators import PhaseOperators
from contingencies.separation import peak, spread
from contingencies.severity import fault_coefficient_slope
from contingencies.stability import check_scenario
from contingencies.swing import swing_field
from contingencies.trajectories import SAMPLE_S

Field = Callable[[float, Float], Float]
Solution = Callable[[float | Float], Float]  # instants () or (k,) -> components (m,) or (m, k)


@dataclass(frozen=True)
class MarginGradient:
    """The hard margin of one scenario and how it moves; `high` and `low` index the pair that separates most."""

    margin: float  # rad
    t_peak: float  # s
    high: int
    low: int
    by_alpha: float  # rad per unit of severity
    by_t_c: float  # rad/s

    @property
    def cct_by_alpha(self) -> float:
        """dCCT/dalpha where the margin is zero, s per unit of severity."""
        return -self.by_alpha / self.by_t_c


def synchronising_matrix(delta: Float, E: Float, Y: Complex) -> Float:
    """dP_e/d delta (..., n, n) at angles delta (..., n), pu/rad."""
    V = E * np.exp(1j * np.asarray(delta))
    K: Float = (V[..., :, None] * np.conj(Y * V[..., None, :])).imag
    n = K.shape[-1]
    K[..., range(n), range(n)] = 0.0
    K[..., range(n), range(n)] = -K.sum(axis=-1)  # a common shift of all angles moves no power
    return K


def field_jacobian(operators: PhaseOperators, delta: Float, Y: Complex) -> Float:
    """Jacobian (..., 2n, 2n) of the swing field of a phase at angles delta (..., n); states are (delta, omega)."""
    n, H = operators.n_machines, operators.H
    J = np.zeros((*np.shape(delta)[:-1], 2 * n, 2 * n))
    J[..., range(n), range(n, 2 * n)] = operators.omega_b
    J[..., n:, :n] = -synchronising_matrix(delta, operators.E, Y) / (2.0 * H)[:, None]
    J[..., range(n, 2 * n), range(n, 2 * n)] = -operators.D / (2.0 * H)
    return J


def phase_field(operators: PhaseOperators, states: Float, Y: Complex, P_m: Float) -> Float:
    """Swing field (..., 2n) of a phase at states (..., 2n)."""
    n = operators.n_machines
    rates = swing_field(
        states[..., :n], states[..., n:], P_m, operators.E, Y.real, Y.imag, operators.H, operators.D, operators.omega_b
    )
    return np.concatenate(rates, axis=-1)


def fault_field_by_alpha(operators: PhaseOperators, delta: Float, alpha: float) -> Float:
    """Derivative (..., 2n) of the fault-on field by severity at angles delta (..., n)."""
    slope = fault_coefficient_slope(alpha, operators.fault_gain, operators.fault_bend)
    V = operators.E * np.exp(1j * np.asarray(delta))
    power = (V * np.conj(slope * operators.fault_from * (V @ operators.fault_to)[..., None])).real
    by_speed = (operators.P_m_slope - power) / (2.0 * operators.H)
    return np.concatenate([np.zeros_like(by_speed), by_speed], axis=-1)


def margin_gradient(operators: PhaseOperators, alpha: float, t_c: float) -> MarginGradient:
    """Hard margin of one scenario and its derivatives by severity and clearing instant."""
    check_scenario(operators, alpha, t_c)
    window, size = operators.window, 2 * operators.n_machines
    n = operators.n_machines
    fault, P_fault = operators.Y_fault(alpha), operators.P_m_fault(alpha)
    post, P_post = operators.Y_post, operators.P_m_post

    def fault_on(_: float, y: Float) -> Float:
        x, by_alpha = y.reshape(2, size)
        J = field_jacobian(operators, x[:n], fault)
        rate = J @ by_alpha + fault_field_by_alpha(operators, x[:n], alpha)
        return np.concatenate([phase_field(operators, x, fault, P_fault), rate])

    def cleared(_: float, y: Float) -> Float:
        x, by_alpha, by_t_c = y.reshape(3, size)
        J = field_jacobian(operators, x[:n], post)
        return np.concatenate([phase_field(operators, x, post, P_post), J @ by_alpha, J @ by_t_c])

    start = np.concatenate([operators.delta_0, np.ones(n), np.zeros(size)])
    leg = _integrate(operators, fault_on, start, window.t_f, t_c)
    x = leg(t_c)[:size]
    # Clearing one instant later keeps the fault-on field for that instant: dx/dt_c starts as f_2 - f_3.
    jump = phase_field(operators, x, fault, P_fault) - phase_field(operators, x, post, P_post)
    tail = _integrate(operators, cleared, np.concatenate([leg(t_c), jump]), t_c, window.T)

    everyone = counted = np.arange(n)
    peak_on = _peak(leg, window.t_f, t_c, everyone)
    peak_off = _peak(tail, t_c, window.T, operators.counted_machines)
    if peak_on[1] > peak_off[1]:
        # The clearing instant cannot move a peak before it, unless it cuts short the rise of a machine that it trips.
        t_peak = peak_on[0]
        cut_short = phase_field(operators, x, fault, P_fault) if t_peak >= t_c else np.zeros(size)
        tangents = np.stack([leg(t_peak)[size:], cut_short])
        delta = leg(t_peak)[:n]
    else:
        t_peak, counted = peak_off[0], operators.counted_machines
        tangents = tail(t_peak).reshape(3, size)[1:]
        delta = tail(t_peak)[:n]
    high, low = int(counted[delta[counted].argmax()]), int(counted[delta[counted].argmin()])
    by_alpha, by_t_c = tangents[:, high] - tangents[:, low]
    separation = float(delta[high] - delta[low])
    return MarginGradient(
        separation - operators.max_separation, float(t_peak), high, low, float(by_alpha), float(by_t_c)
    )


def reference_sensitivity(operators: PhaseOperators, alpha: Float, cct: Float) -> Float:
    """dCCT/dalpha (m,) of the reduced ODE at severities (m,) with critical instants cct (m,), s per unit of severity.

    NaN where the CCT is not finite.
    """
    answers = [
        margin_gradient(operators, float(a), float(t)).cct_by_alpha if np.isfinite(t) else np.nan
        for a, t in zip(np.asarray(alpha), np.asarray(cct), strict=True)
    ]
    return np.array(answers, dtype=float)


def _integrate(operators: PhaseOperators, field: Field, y: Float, start: float, end: float) -> Solution:
    solution = solve_ivp(field, (start, end), y, method="DOP853", rtol=RTOL, atol=ATOL, dense_output=True)
    if not solution.success or not np.isfinite(solution.y).all():
        raise SolverError(
            f"{operators.name}: the variational equations could not be integrated between {start} and {end} s "
            f"({solution.message}); the sensitivity of this scenario is unknown."
        )
    dense: Solution = solution.sol
    return dense


def _peak(solution: Solution, start: float, end: float, counted: Int) -> tuple[float, float]:
    """When the separation of machines (q,) peaks in a phase, and its value: by milliseconds, then by a parabola."""
    t = np.linspace(start, end, max(3, int(np.ceil((end - start) / SAMPLE_S)) + 1))
    t_peak = float(peak(spread(solution(t)[counted].T), t)[1])
    return t_peak, float(spread(solution(t_peak)[counted]))

"""The swing equation and the electrical power that drives it.

Classical machines behind a Kron-reduced network, theory.md eqs. (1)-(4). Nothing here knows about
events: a phase enters only through its reduced admittance Y_red = G + jB and its P_m. The functions
take NumPy arrays or torch tensors with any batch shape in front; the compiled integrator compiles
`angle_rate`, `acceleration` and `air_gap_power` from this very source.
"""

from typing import Any

import numpy as np

Array = Any  # numpy.ndarray or torch.Tensor; both sides of a call use the same one


def angle_rate(omega: Array, omega_b: float) -> Array:
    """d delta / dt, rad/s, theory.md eq. (1)."""
    return omega_b * (omega - 1.0)


def acceleration(P_m: Array, P_e: Array, omega: Array, H: Array, D: Array) -> Array:
    """d omega / dt, pu/s, theory.md eq. (1)."""
    return (P_m - P_e - D * (omega - 1.0)) / (2.0 * H)


def air_gap_power(c: Array, s: Array, I_re: Array, I_im: Array) -> Array:
    """Re(V conj(I)) of V = c + js, theory.md eq. (2)."""
    return c * I_re + s * I_im


def electrical_power(delta: Array, E: Array, G: Array, B: Array) -> Array:
    """Active power each machine sends into the reduced network, theory.md eq. (2).

    Parameters
    ----------
    delta : array (..., n)
        Rotor angles, rad.
    E : array (n,)
        Internal voltage magnitudes, pu.
    G, B : array (n, n) or (..., n, n)
        Real and imaginary part of the reduced admittance of the current phase, pu.

    Returns
    -------
    array (..., n)
        Electrical power P_e, pu on the system base.
    """
    c, s = _voltages(delta, E)
    return air_gap_power(c, s, *_currents(c, s, G, B))


def electrical_power_rate(delta: Array, rate: Array, E: Array, G: Array, B: Array) -> Array:
    """d P_e / dt along angle velocities `rate` (..., n) in rad/s, theory.md eq. (3)."""
    c, s = _voltages(delta, E)
    return _power_rate(c, s, *_currents(c, s, G, B), rate, G, B)


def swing_field(
    delta: Array, omega: Array, P_m: Array, E: Array, G: Array, B: Array, H: Array, D: Array, omega_b: float
) -> tuple[Array, Array]:
    """Right-hand side of the swing equation: (d delta/dt, d omega/dt), each (..., n), theory.md eq. (1)."""
    P_e = electrical_power(delta, E, G, B)
    return angle_rate(omega, omega_b), acceleration(P_m, P_e, omega, H, D)


def taylor_coefficients(
    delta: Array, omega: Array, P_m: Array, E: Array, G: Array, B: Array, H: Array, D: Array, omega_b: float
) -> tuple[Array, Array, Array]:
    """Local expansion at a state: v = d delta/dt, a = d omega/dt, b = d2 omega/dt2, theory.md eq. (4)."""
    c, s = _voltages(delta, E)
    I_re, I_im = _currents(c, s, G, B)
    v, a = angle_rate(omega, omega_b), acceleration(P_m, air_gap_power(c, s, I_re, I_im), omega, H, D)
    return v, a, -(_power_rate(c, s, I_re, I_im, v, G, B) + D * a) / (2.0 * H)


def _voltages(delta: Array, E: Array) -> tuple[Array, Array]:
    """Real and imaginary part of the internal voltages."""
    if isinstance(delta, np.ndarray):
        return E * np.cos(delta), E * np.sin(delta)
    return E * delta.cos(), E * delta.sin()


def _currents(c: Array, s: Array, G: Array, B: Array) -> tuple[Array, Array]:
    """Real and imaginary part of Y_red V for V = c + js."""
    return _times(G, c) - _times(B, s), _times(B, c) + _times(G, s)


def _power_rate(c: Array, s: Array, I_re: Array, I_im: Array, rate: Array, G: Array, B: Array) -> Array:
    c_dot, s_dot = -s * rate, c * rate
    return air_gap_power(c_dot, s_dot, I_re, I_im) + air_gap_power(c, s, *_currents(c_dot, s_dot, G, B))


def _times(matrix: Array, vector: Array) -> Array:
    """Matrix times (..., n) vectors; a matrix per vector, or (..., 1, n, n) per row of vectors, is allowed.

    Matrices that are not arrays bring their own product.
    """
    if hasattr(matrix, "times"):
        return matrix.times(vector)
    if matrix.ndim == 2:
        return vector @ matrix.T
    if matrix.shape[-3] == 1 and vector.ndim >= matrix.ndim - 1:
        return vector @ matrix[..., 0, :, :].swapaxes(-1, -2)
    return (matrix @ vector[..., None])[..., 0]

"""Two laws of severity: how the coefficient of the rank-one fault grows with alpha.

In Y_fault = Y_pre + c(alpha) w u^T both laws are c(alpha) = gain alpha / (1 + bend alpha). The paper scales a
reference admittance y, theory.md eq. (9): gain = y, bend = y z_th. A fault through an impedance z_f is linear,
theory.md eq. (34): gain = 1 / (z_th + z_f), bend = 0. Then alpha = 1 is the fault as given, and for a bolted one
alpha is the depth of the voltage dip at the fault point: at 0.4, 60 % of the voltage is left.
"""

from typing import Any


def admittance_law(y: complex, z_th: complex) -> tuple[complex, complex]:
    """Gain and bend (pu, 1) of a shunt alpha * y where the network has the Thevenin impedance z_th, pu."""
    return y, y * z_th


def impedance_law(z_f: complex, z_th: complex) -> tuple[complex, complex]:
    """Gain and bend (pu, 1) of a fault through the impedance z_f, pu; z_f = 0 is a bolted fault."""
    return 1.0 / (z_th + z_f), 0j


def fault_coefficient(alpha: Any, gain: Any, bend: Any) -> Any:
    """c(alpha), exactly 0 at alpha = 0; arrays or tensors."""
    return alpha * gain / (1.0 + alpha * bend)


def fault_coefficient_slope(alpha: Any, gain: Any, bend: Any) -> Any:
    """dc/dalpha; arrays or tensors."""
    return gain / (1.0 + alpha * bend) ** 2

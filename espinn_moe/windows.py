"""Windows of the chained form and chains of them: polynomials in local time, found again by row and time.

Everything in a window is linear in what is known at its start, with weights that are polynomials of
the fraction tau: so all machines of a row are evaluated by one small product, and the step from one
window to the next is one product with a constant matrix.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from espinn_moe.physics import Expansion

LOCAL = 5  # parts of a window beside its remainder: delta, omega, v, a, b


@dataclass(frozen=True, eq=False)
class Windows:
    """Starts and remainders of windows."""

    start: Expansion  # (..., n)
    remainder: Tensor  # (..., n, terms), pu

    def parts(self) -> Tensor:
        """All that a window is made of, one under the other: delta, omega, v, a, b and remainders, (..., parts, n)."""
        start = self.start
        local = torch.stack([start.delta, start.omega, start.v, start.a, start.b], dim=-2)
        return torch.cat([local, self.remainder.mT], dim=-2)


class RemainderBasis:
    """Polynomials tau^3 p_j(tau), orthonormal over a window: omega, its derivative and its integral."""

    def __init__(self, terms: int) -> None:
        self.powers = np.arange(3, 3 + terms)
        gram = 1.0 / (self.powers[:, None] + self.powers + 1.0)
        self.mix = np.linalg.inv(np.linalg.cholesky(gram)).T  # (powers, terms)

    def __call__(self, tau: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """phi, d phi/d tau and the integral of phi from 0, each (..., terms), at tau (...)."""
        p, mix = tau.new_tensor(self.powers), tau.new_tensor(self.mix)
        powers = [tau.square()]
        for _ in self.powers:
            powers.append(powers[-1] * tau)
        slope, value = torch.stack(powers[:-1], dim=-1), torch.stack(powers[1:], dim=-1)
        return value @ mix, (p * slope) @ mix, (value * tau[..., None] / (p + 1)) @ mix

    def collocation(self, h: float) -> tuple[np.ndarray, np.ndarray]:
        """Fractions (terms,) of a window of length h, s, and the matrix (terms, terms) that fits a remainder there.

        What d omega/dt exceeds a + b s by at these nodes, times the matrix, gives the coefficients.
        """
        nodes = 0.5 * (np.polynomial.legendre.leggauss(len(self.powers))[0] + 1.0)
        slopes = (self.powers * nodes[:, None] ** (self.powers - 1)) @ self.mix
        return nodes, h * np.linalg.inv(slopes).T

    def polynomials(self, h: float, omega_b: float) -> np.ndarray:
        """Weights of a window's parts in delta, omega and their time derivatives, by power of tau.

        Parameters
        ----------
        h : float
            Length of a window, s.
        omega_b : float
            Base angular frequency, rad/s.

        Returns
        -------
        array (powers, 4, parts)
            Such that a sum over powers, times the parts (parts, n), is d, w, d', w' (4, n).
        """
        p, omega = self.powers, np.zeros((self.powers[-1] + 2, LOCAL + len(self.powers)))
        omega[0, 1], omega[1, 3], omega[2, 4] = 1.0, h, 0.5 * h * h
        omega[p, LOCAL:] = self.mix
        k = np.arange(1, len(omega))[:, None]
        angle, speed = np.zeros_like(omega), np.zeros_like(omega)
        # v stands for omega_b (omega - 1) at the start, so that angles grow by small numbers.
        deviation = omega_b * omega
        deviation[0, 1], deviation[0, 2] = 0.0, 1.0
        angle[0, 0], angle[1:] = 1.0, h * deviation[:-1] / k
        speed[:-1] = k * omega[1:] / h
        return np.stack([angle, omega, deviation, speed], axis=1)


@dataclass(frozen=True, eq=False)
class Chains:
    """Windows one after another, for several rows of different lengths."""

    windows: Tensor  # (all windows, parts, n)
    where: Tensor  # (longest, m) position of each row's windows among them
    lengths: Tensor  # (m,) windows of each row

    def __getitem__(self, row: Tensor) -> "Chains":
        """The chains `row` (k,); one may come several times."""
        return Chains(self.windows, self.where[:, row], self.lengths[row])

    def find(self, row: Tensor, s: Tensor, window_s: float) -> tuple[Tensor, Tensor]:
        """Windows (k, parts, n) that hold times s (k,) since the beginning of chains `row` (k,), and how far into them.

        A time after the end of a chain is placed beyond its last window.
        """
        place = torch.minimum((s.detach() / window_s).floor().long().clamp(min=0), self.lengths[row] - 1)
        return self.windows.index_select(0, self.where[place, row]), s / window_s - place

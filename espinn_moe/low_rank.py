"""Matrices that differ from row to row by little: one for all, plus a product of thin ones for each row.

A fault changes the reduced admittance by rank one, the removal of a line by rank two, theory.md eqs. (9)-(11). With
many machines it pays to keep it that way: a batch then costs one matrix product and a few sums, where a matrix per row
would have to be formed, stored and read again.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class LowRank:
    """base + left right^T."""

    base: Tensor  # (n, n)
    left: Tensor  # (..., n, q)
    right: Tensor  # (..., n, q)

    @property
    def ndim(self) -> int:
        return self.left.ndim

    def times(self, vector: Tensor) -> Tensor:
        """The product with vectors (..., n), or with rows of several (..., k, n) where there is an axis for them."""
        if self.ndim > 2 and self.left.shape[-3] == 1 and vector.ndim >= self.ndim - 1:
            inner = vector @ self.right[..., 0, :, :]
            return vector @ self.base.T + inner @ self.left[..., 0, :, :].mT
        inner = (vector[..., None] * self.right).sum(-2, keepdim=True)
        return vector @ self.base.T + (self.left * inner).sum(-1)

    def unsqueeze(self, axis: int) -> "LowRank":
        """One more axis before the machines', for several samples of a row."""
        return LowRank(self.base, self.left.unsqueeze(axis), self.right.unsqueeze(axis))

    def __getitem__(self, rows: Any) -> "LowRank":
        return LowRank(self.base, self.left[rows], self.right[rows])


def admittances(G: Tensor, B: Tensor, left: Tensor, right: Tensor) -> tuple[LowRank, LowRank]:
    """Real and imaginary part of Y + W U^T.

    Parameters
    ----------
    G, B : Tensor (n, n)
        Of Y = G + jB.
    left, right : Tensor (..., n, 2 q)
        Real parts of W and of U (..., n, q), followed by the imaginary ones.
    """
    real, imaginary = left.chunk(2, dim=-1)
    return (
        LowRank(G, torch.cat([real, -imaginary], dim=-1), right),
        LowRank(B, torch.cat([imaginary, real], dim=-1), right),
    )


def padded(factors: Sequence[np.ndarray]) -> np.ndarray:
    """Thin complex matrices (n, q_k) of several members as one real array (members, n, 2 q) with the widest's q."""
    widest = max(1, *(factor.shape[1] for factor in factors))
    wide = np.stack([np.pad(factor, ((0, 0), (0, widest - factor.shape[1]))) for factor in factors])
    return np.concatenate([wide.real, wide.imag], axis=-1)

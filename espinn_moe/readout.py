"""A small tanh network in NumPy: what heads over conditions are made of, without torch."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from espinn_moe.head import Array


@dataclass(frozen=True, eq=False)
class Readout:
    """A tanh network with one output; scales of inputs and output are part of its first and last layer."""

    weights: tuple[Array, ...]  # (in, out) each
    biases: tuple[Array, ...]

    @staticmethod
    def from_card(card: Mapping[str, Any]) -> "Readout":
        """A network from parsed JSON; wrong content is an error of some kind, which the caller words."""
        return Readout(
            tuple(np.array(W, dtype=np.float64) for W in card["weights"]),
            tuple(np.array(b, dtype=np.float64) for b in card["biases"]),
        )

    def card(self) -> dict[str, Any]:
        """Plain numbers for JSON."""
        return {"weights": [W.tolist() for W in self.weights], "biases": [b.tolist() for b in self.biases]}

    @property
    def size(self) -> int:
        """How many numbers it holds."""
        return sum(array.size for array in (*self.weights, *self.biases))

    def __call__(self, x: Array) -> Array:
        """Outputs (m,) of inputs (m, in)."""
        for W, b in zip(self.weights[:-1], self.biases[:-1], strict=True):
            x = x @ W
            x += b
            np.tanh(x, out=x)
        out: Array = (x @ self.weights[-1])[:, 0] + self.biases[-1][0]
        return out

    @cached_property
    def _layers(self) -> tuple[list[tuple[Array, Array]], Array, float]:
        hidden = list(zip(self.weights[:-1], self.biases[:-1], strict=True))
        return hidden, self.weights[-1][:, 0].copy(), float(self.biases[-1][0])

    def one(self, x: Array) -> float:
        """Output of one row of inputs (in,)."""
        hidden, last, bias = self._layers
        for W, b in hidden:
            x = np.dot(x, W)
            x += b
            np.tanh(x, x)
        return float(np.dot(x, last)) + bias

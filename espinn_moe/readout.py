"""A small tanh network in NumPy: what heads over conditions are made of, without torch."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from espinn_moe.head import Array

SATURATED = 20.0  # its tanh is 1 to the last bit


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


def row_function(readouts: Sequence[Readout]) -> Callable[[list[float]], list[float]]:
    """One function for the outputs of several networks at one row of the same inputs, (in,) -> (networks,).

    Calls of NumPy are what costs at a single row. So networks of one depth stand side by side in one matrix per layer,
    which takes in the biases as well: a hidden unit at tanh(20) = 1 carries a constant from layer to layer.
    """
    if len({len(readout.weights) for readout in readouts}) > 1:
        apart = [row_function([readout]) for readout in readouts]
        return lambda x: [value for one in apart for value in one(x)]
    matrices = [_side_by_side(readouts, k) for k in range(len(readouts[0].weights))]
    dot, tanh = np.dot, np.tanh

    def outputs(x: list[float]) -> list[float]:
        y = np.array([*x, 1.0])
        for matrix in matrices[:-1]:
            y = dot(y, matrix)
            tanh(y, y)
        found: list[float] = dot(y, matrices[-1]).tolist()
        return found

    return outputs


def _side_by_side(readouts: Sequence[Readout], layer: int) -> Array:
    """The matrix of one layer of several networks: the last row holds biases, the last column makes the constant."""
    weights, biases = zip(*((each.weights[layer], each.biases[layer]) for each in readouts), strict=True)
    first, last = layer == 0, layer == len(readouts[0].weights) - 1
    rows = weights[0].shape[0] if first else sum(W.shape[0] for W in weights)
    matrix = np.zeros((rows + 1, sum(W.shape[1] for W in weights) + (not last)))
    row = column = 0
    for W, b in zip(weights, biases, strict=True):
        matrix[row : row + W.shape[0], column : column + W.shape[1]] = W
        matrix[-1, column : column + W.shape[1]] = b
        row, column = row + (0 if first else W.shape[0]), column + W.shape[1]
    if not last:
        matrix[-1, -1] = SATURATED
    return matrix

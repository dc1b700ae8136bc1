"""Objectives over windows: one pool of windows per phase, drawn from and judged alike."""

from collections.abc import Sequence
from typing import Any, Generic, Protocol, TypeVar

import torch
from torch import Tensor

Model = TypeVar("Model", contravariant=True)
Rows = TypeVar("Rows")

PHASES = "fault_on", "post_clearing"


class Pool(Protocol[Model, Rows]):
    """The windows of one phase."""

    summary: dict[str, float]  # sizes that the terms are measured in

    def draw(self, generator: torch.Generator) -> Rows:
        """One step's windows."""

    def terms(self, model: Model, rows: Rows, residual: bool) -> dict[str, Tensor]:
        """Their data term and, if asked for, their residual."""


class PooledObjective(Generic[Model, Rows]):
    """Two pools, fault-on and post-clearing, whose terms are added up.

    Parameters
    ----------
    pools : sequence of two pools
    residual_weight : float
        Relative to the data misfit; 0 leaves the residual out.
    """

    def __init__(self, pools: Sequence[Pool[Model, Rows]], residual_weight: float) -> None:
        self._pools = tuple(pools)
        self.scales = {name: pool.summary for name, pool in zip(PHASES, self._pools, strict=True)}
        self.weights = {"data": 1.0}
        if residual_weight > 0:
            self.weights["residual_omega"] = residual_weight

    def advance(self, done: float, stage: int = 0) -> None:
        """Windows weigh the same from beginning to end."""

    def state(self) -> dict[str, Any]:
        """Batches depend on the generator alone."""
        return {}

    def restore(self, state: dict[str, Any]) -> None:
        """There is nothing to restore."""

    def batch(self, generator: torch.Generator) -> tuple[Rows, ...]:
        """Windows of both phases, the same number from every member."""
        return tuple(pool.draw(generator) for pool in self._pools)

    def terms(self, model: Model, batch: tuple[Rows, ...]) -> dict[str, Tensor]:
        """data, residual_omega"""
        parts = [
            pool.terms(model, rows, "residual_omega" in self.weights)
            for pool, rows in zip(self._pools, batch, strict=True)
        ]
        return {name: torch.stack([part[name] for part in parts]).sum() for name in parts[0]}


def row_shares(
    rows: int, members: int, at_least: int, lost_share: float
) -> tuple[tuple[int, float], tuple[int, float]]:
    """For both phases the rows per member and step, and which part of them comes after synchronism was lost.

    `rows` post-clearing windows are spread over the members, at least `at_least` for each; the fault-on phase has half.
    """
    per_step = max(at_least, -(-rows // members))
    return (-(-per_step // 2), 0.0), (per_step, lost_share)

"""CCT on a grid over one or two conditions at one severity: by the reduced ODE, a deployed head or a surrogate."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from contingencies.errors import UsageError
from contingencies.network import Float
from contingencies.points import Axis, Point, check_names
from contingencies.stability import Boundary
from espinn_moe.condition_head import ConditionHead
from espinn_moe.head import STATUSES


@dataclass(frozen=True, eq=False)
class Surface:
    """CCT over one or two conditions, the others as at a point; arrays have one axis for each condition."""

    contingency: str
    alpha: float
    source: str
    point: Point
    t_f: float
    axes: tuple[Axis, ...]  # one or two
    values: tuple[Float, ...]  # of each of them
    cct: Float  # s, NaN unless finite
    status: np.ndarray
    bound: Float | None  # s, of a head

    @property
    def duration_ms(self) -> Float:
        """How long the fault may last, ms; NaN unless finite."""
        duration: Float = 1e3 * (self.cct - self.t_f)
        return duration

    @property
    def fixed(self) -> str:
        """The conditions that do not vary."""
        over = {axis.name for axis in self.axes}
        left = [(name, value) for name, value in self.point.to_dict().items() if name not in over]
        return str(Point(tuple(name for name, _ in left), tuple(value for _, value in left)))

    def rows(self) -> list[dict[str, Any]]:
        """One record per point of the grid."""
        grid = np.meshgrid(*self.values, indexing="ij")
        columns: dict[str, Any] = {axis.name: x.ravel() for axis, x in zip(self.axes, grid, strict=True)}
        columns |= {"status": self.status.ravel(), "cct_s": self.cct.ravel()}
        columns["duration_s"] = columns["cct_s"] - self.t_f
        columns["error_bound_s"] = np.full(self.cct.size, np.nan) if self.bound is None else self.bound.ravel()
        return [dict(zip(columns, map(_plain, row), strict=True)) for row in zip(*columns.values(), strict=True)]


def chosen_axes(name: str, axes: tuple[Axis, ...], over: Sequence[str]) -> tuple[int, ...]:
    """Places of the one or two conditions that a surface goes over."""
    check_names(name, axes, over)
    if len(over) not in (1, 2) or len(set(over)) != len(over):
        raise UsageError(
            f"--over {','.join(over)[:60]!r} is not one condition or two different ones, as load,position."
        )
    known = [axis.name for axis in axes]
    return tuple(known.index(one) for one in over)


def grid_rows(axes: tuple[Axis, ...], places: tuple[int, ...], point: Point, points: int) -> tuple[Any, Float]:
    """Values of the conditions that vary, `points` of each, and the rows (m, d) of their grid."""
    values = tuple(np.linspace(axes[place].low, axes[place].high, points) for place in places)
    grid = np.meshgrid(*values, indexing="ij")
    rows = np.broadcast_to(np.array(point.values), (grid[0].size, len(axes))).copy()
    for place, column in zip(places, grid, strict=True):
        rows[:, place] = column.ravel()
    return values, rows


def boundary_answers(boundary: Boundary) -> tuple[Float, np.ndarray, None]:
    """A boundary's CCTs and statuses as a surface wants them."""
    return boundary.cct, np.array(boundary.status), None


def head_answers(head: ConditionHead, alpha: float, rows: Float) -> tuple[Float, np.ndarray, Float]:
    """A head's CCTs, statuses and bounds as a surface wants them."""
    cct, code, bound = head.bounded_answers(np.array(alpha), rows)
    return cct, np.array(STATUSES)[code], bound


def _plain(value: Any) -> Any:
    if isinstance(value, float | np.floating):
        return float(value) if np.isfinite(value) else None
    return str(value)

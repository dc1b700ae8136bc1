"""The plain network that every format is read into, and its conversion to another base.

Whatever a format has beyond the tables (unit codes, three windings, closed switches) is worked into them by
its reader, so that nothing later needs to know where a network came from. A three-winding transformer is three
branches to a star bus with a number of its own; buses joined by a closed switch or a jumper share one row, and
`merged` says which printed numbers have no row of their own.
"""

from dataclasses import dataclass, replace
from typing import Any

from contingencies.formats.checks import check_case
from contingencies.formats.tables import Branches, Buses, Loads, Shunts, Units


@dataclass(frozen=True, eq=False)
class Case:
    """A network as its file describes it, checked; per unit on base_mva."""

    name: str
    base_mva: float
    buses: Buses
    loads: Loads
    shunts: Shunts
    branches: Branches
    units: Units
    merged: tuple[tuple[int, int], ...] = ()  # printed number without a row, position of the bus it is joined to

    def __post_init__(self) -> None:
        check_case(self)

    def on_base(self, base_mva: float) -> "Case":
        """The same network per unit on another base."""
        ratio = self.base_mva / base_mva  # powers and admittances scale by it, impedances inversely
        scaled: dict[str, dict[str, Any]] = {
            "loads": {key: getattr(self.loads, key) * ratio for key in ("S_power", "S_current", "S_impedance")},
            "shunts": {"y": self.shunts.y * ratio},
            "branches": {key: getattr(self.branches, key) * ratio for key in ("g", "b", "y_start", "y_end")}
            | {key: getattr(self.branches, key) / ratio for key in ("r", "x")},
            "units": {key: getattr(self.units, key) * ratio for key in ("P", "Q", "q_min", "q_max")},
        }
        tables = {key: replace(getattr(self, key), **columns) for key, columns in scaled.items()}
        return replace(self, base_mva=float(base_mva), **tables)

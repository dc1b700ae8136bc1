"""Trajectories of the rotor angles and speeds: the value, its output grid, and the table it is written as."""

import math
from dataclasses import dataclass

import numpy as np

from contingencies.network import Float
from contingencies.operators import PhaseOperators
from contingencies.separation import separation
from contingencies.tables import csv_text

SAMPLE_S = 1e-3  # h_t, the paper's trajectory sampling
OUTPUT_S = 1e-2  # grid on which trajectories are shown and learned


@dataclass(frozen=True, eq=False)
class Trajectory:
    """States over time; delta (k, n) in rad, omega (k, n) in pu; machines may leave at clearing."""

    t: Float
    delta: Float
    omega: Float
    t_c: float = math.inf  # s
    tripped: tuple[int, ...] = ()

    @property
    def separation(self) -> Float:
        """Largest pairwise angle separation d(t), rad (k,)."""
        largest: Float = separation(self.t, self.delta, self.t_c, self.tripped)
        return largest

    def crossing(self, limit: float) -> float | None:
        """The instant at which the separation first reaches `limit` (rad), between two samples on a line; s."""
        d = self.separation
        beyond = d >= limit
        if not beyond.any():
            return None
        k = int(beyond.argmax())
        if k == 0:
            return float(self.t[0])
        part = (limit - d[k - 1]) / (d[k] - d[k - 1])
        return float(self.t[k - 1] + part * (self.t[k] - self.t[k - 1]))


def output_times(operators: PhaseOperators, spacing: float = OUTPUT_S) -> Float:
    """The output grid 0, spacing, ..., T."""
    return np.linspace(0.0, operators.window.T, round(operators.window.T / spacing) + 1)


def trajectory_columns(operators: PhaseOperators, trajectory: Trajectory) -> dict[str, Float]:
    """Time, angles and speeds of all machines by name, each (k,)."""
    buses = operators.machine_buses
    angles = {f"delta_{bus}_rad": trajectory.delta[:, k] for k, bus in enumerate(buses)}
    speeds = {f"omega_{bus}_pu": trajectory.omega[:, k] for k, bus in enumerate(buses)}
    return {"t_s": trajectory.t, **angles, **speeds}


def trajectory_csv(operators: PhaseOperators, trajectory: Trajectory) -> str:
    """Time, angles and speeds of all machines as CSV with a header, one row per sample."""
    columns = trajectory_columns(operators, trajectory)
    rows = ([f"{value:.12g}" for value in row] for row in zip(*columns.values(), strict=True))
    return csv_text(list(columns), (dict(zip(columns, row, strict=True)) for row in rows))

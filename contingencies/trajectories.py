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


def output_times(operators: PhaseOperators, spacing: float = OUTPUT_S) -> Float:
    """The output grid 0, spacing, ..., T."""
    return np.linspace(0.0, operators.window.T, round(operators.window.T / spacing) + 1)


def trajectory_csv(operators: PhaseOperators, trajectory: Trajectory) -> str:
    """Time, angles and speeds of all machines as CSV with a header, one row per sample."""
    buses = operators.machine_buses
    fields = ["t_s", *(f"delta_{bus}_rad" for bus in buses), *(f"omega_{bus}_pu" for bus in buses)]
    table = np.column_stack([trajectory.t, trajectory.delta, trajectory.omega])
    rows = ([f"{value:.12g}" for value in row] for row in table)
    return csv_text(fields, (dict(zip(fields, row, strict=True)) for row in rows))

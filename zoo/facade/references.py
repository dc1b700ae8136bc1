"""Asking the reference simulators from Python: one scenario, one CCT, a whole boundary."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from contingencies import references
from contingencies.library import Contingency
from contingencies.network import Float
from contingencies.operators import PhaseOperators, compile_contingency
from contingencies.point_networks import axes_of, point_of
from contingencies.protection import required_time
from contingencies.references import Reference
from contingencies.reports import cct_sentence, describe_cct, in_domain
from contingencies.stability import CCT, Boundary, boundary_of, check_scenario
from contingencies.trajectories import Trajectory, trajectory_columns
from zoo.facade.frames import to_frame
from zoo.lookup import find_contingency
from zoo.plots import plot_boundary, plot_separations, plot_trajectory
from zoo.work.reporting import Report, silent

CURVE_POINTS = 101  # severities of a whole boundary
BESIDE_S = 5e-3  # from the CCT: clearing instants that a figure of one answer draws


def operators_of(contingency: str | Path | Contingency, at: Mapping[str, float] | None = None) -> PhaseOperators:
    """What a contingency compiles to at an operating point.

    Parameters
    ----------
    contingency : str, Path or Contingency
        A registered or shipped name, the path of a YAML file, or a contingency that was loaded before.
    at : mapping, optional
        Conditions by name, as `{"load": 1.1}`; default: the case's own values.
    """
    if not isinstance(contingency, Contingency):
        contingency = find_contingency(str(contingency))
    point = point_of(contingency, dict(at or {})) if at or axes_of(contingency) else None
    return compile_contingency(contingency, point)


@dataclass(frozen=True, eq=False)
class Simulation:
    """One scenario and whether it stays in step."""

    operators: PhaseOperators
    trajectory: Trajectory
    alpha: float
    t_c: float  # s, instant on the simulation clock
    reference: str

    @property
    def stable(self) -> bool:
        """Whether the separation stays below the limit throughout the window."""
        return self.margin < 0

    @property
    def margin(self) -> float:
        """Largest separation minus the limit, rad; negative where synchronism is kept."""
        return float(self._separation.max() - self.operators.max_separation)

    @property
    def largest_separation(self) -> tuple[float, float]:
        """Instant, s, and value, rad, of the largest separation between two machines."""
        peak = int(self._separation.argmax())
        return float(self.trajectory.t[peak]), float(self._separation[peak])

    @property
    def crossing(self) -> float | None:
        """The instant at which the separation first reaches the limit, s; None where it never does."""
        return self.trajectory.crossing(self.operators.max_separation)

    @cached_property
    def _separation(self) -> Float:
        return self.trajectory.separation

    def report(self) -> dict[str, Any]:
        """Plain values for JSON."""
        at_s, largest = self.largest_separation
        return {
            "contingency": self.operators.name,
            "alpha": self.alpha,
            "t_c_s": self.t_c,
            "duration_s": round(self.t_c - self.operators.window.t_f, 12),
            "reference": self.reference,
            "in_domain": in_domain(self.operators, self.alpha),
            "stable": self.stable,
            "margin_rad": self.margin,
            "separation_rad": largest,
            "max_separation_rad": self.operators.max_separation,
            "at_s": at_s,
            "crossing_s": self.crossing,
            "machines": list(self.operators.machine_buses),
            "final_delta_rad": self.trajectory.delta[-1].tolist(),
            "final_omega_pu": self.trajectory.omega[-1].tolist(),
            **({"at": self.operators.point.to_dict()} if self.operators.point.names else {}),
        }

    def to_frame(self) -> Any:
        """A pandas table with one row per sample: time, angles, speeds and separation."""
        import pandas

        columns = trajectory_columns(self.operators, self.trajectory)
        return pandas.DataFrame(columns | {"separation_rad": self._separation})

    def plot(self) -> Any:
        """A matplotlib figure of angles, separation and speeds."""
        return plot_trajectory(self.operators, self.trajectory, self.alpha, self.t_c)


def simulate(
    contingency: str | Path | Contingency,
    alpha: float,
    t_c: float,
    at: Mapping[str, float] | None = None,
    reference: Reference = "fast",
) -> Simulation:
    """Simulate one scenario.

    Parameters
    ----------
    contingency, at
        As for `boundary`.
    alpha : float
        Severity.
    t_c : float
        Clearing instant on the simulation clock, s.
    reference : {"fast", "strict", "dae"}
        Compiled ODE, the paper's SciPy protocol, or the full network.
    """
    operators = operators_of(contingency, at)
    trajectory = references.reference_trajectory(operators, alpha, t_c, reference)
    return Simulation(operators, trajectory, alpha, t_c, reference)


@dataclass(frozen=True, eq=False)
class ReferenceCCT:
    """How long one fault may last, by a reference simulator."""

    operators: PhaseOperators
    answer: CCT

    @property
    def cct(self) -> float | None:
        """Critical clearing instant on the simulation clock, s; None unless finite."""
        return self.answer.cct

    @property
    def duration(self) -> float | None:
        """How long the fault may last, s; None unless finite."""
        return self.answer.duration

    @property
    def status(self) -> str:
        """`finite`, `right-censored` or `left-censored`."""
        return self.answer.status

    def __str__(self) -> str:
        return cct_sentence(self.operators, self.answer)

    def report(self) -> dict[str, Any]:
        """The answer with everything it depends on, as plain values."""
        return describe_cct(self.operators, self.answer)

    def to_frame(self) -> Any:
        """A pandas table with one row."""
        return to_frame([self.report()])

    def plot(self) -> Any:
        """Separation over time when cleared 5 ms before and after the CCT, or at the edge of the window."""
        window, alpha = self.operators.window, self.answer.alpha
        edge = window.t_c[0 if self.status == "left-censored" else 1]
        instants = (edge,) if self.cct is None else (self.cct - BESIDE_S, self.cct + BESIDE_S)
        followed = {t_c: references.reference_trajectory(self.operators, alpha, t_c, "fast") for t_c in instants}
        return plot_separations(self.operators, followed, alpha)


@dataclass(frozen=True, eq=False)
class ReferenceBoundary:
    """CCT over severities by a reference simulator."""

    operators: PhaseOperators
    answers: tuple[CCT, ...]
    reference: str
    required: float | None = None  # s, the duration that protection needs, where the description states it

    @cached_property
    def values(self) -> Boundary:
        """All answers as arrays."""
        return boundary_of(list(self.answers), self.reference)

    @property
    def alpha(self) -> Float:
        """Severities (m,)."""
        return self.values.alpha

    @property
    def cct(self) -> Float:
        """Critical clearing instants (m,), s; NaN unless finite."""
        return self.values.cct

    @property
    def duration(self) -> Float:
        """How long the fault may last (m,), s; NaN unless finite."""
        lasting: Float = self.values.cct - self.operators.window.t_f
        return lasting

    @property
    def status(self) -> tuple[str, ...]:
        """Status of each severity."""
        return self.values.status

    def reports(self) -> list[dict[str, Any]]:
        """Each answer with everything it depends on, as plain values."""
        return [describe_cct(self.operators, answer) for answer in self.answers]

    def to_frame(self) -> Any:
        """A pandas table with one row per severity."""
        return to_frame(self.reports())

    def plot(self) -> Any:
        """A matplotlib figure of CCT over severity."""
        return plot_boundary(self.operators, self.values, self.required)


def reference_cct(
    contingency: str | Path | Contingency,
    alpha: float,
    at: Mapping[str, float] | None = None,
    reference: Reference = "fast",
    intervals: bool = False,
) -> ReferenceCCT:
    """The critical clearing time of one severity by a reference simulator.

    Parameters
    ----------
    contingency, at, reference, intervals
        As for `boundary`.
    alpha : float
        Severity.
    """
    found = boundary(contingency, [alpha], at, reference, intervals)
    return ReferenceCCT(found.operators, found.answers[0])


def boundary(
    contingency: str | Path | Contingency,
    alpha: ArrayLike | None = None,
    at: Mapping[str, float] | None = None,
    reference: Reference = "fast",
    intervals: bool = False,
    report: Report = silent,
) -> ReferenceBoundary:
    """CCT over severities by a reference simulator.

    Parameters
    ----------
    contingency : str, Path or Contingency
        A registered or shipped name, the path of a YAML file, or a contingency that was loaded before.
    alpha : array, optional
        Severities; default: 101 over the range of the contingency.
    at : mapping, optional
        Operating point, as `{"load": 1.1}`; default: the case's own values.
    reference : {"fast", "strict", "dae"}
        Compiled ODE, the paper's SciPy protocol, or the full network.
    intervals : bool
        Find every stable interval of clearing instants, not only the first.
    report : callable
        Called with stage, severities done, severities in all.
    """
    found = contingency if isinstance(contingency, Contingency) else find_contingency(str(contingency))
    operators = operators_of(found, at)
    severities = np.linspace(*operators.severity, CURVE_POINTS) if alpha is None else _severities(alpha)
    for value in severities:
        check_scenario(operators, value)
    answers: list[CCT] = []
    for value in severities:
        answers.append(references.reference_cct(operators, float(value), reference, intervals=intervals))
        report(f"{reference} reference", len(answers), len(severities))
    return ReferenceBoundary(operators, tuple(answers), reference, required_time(found.spec))


def _severities(alpha: ArrayLike) -> Sequence[float]:
    values: list[float] = np.asarray(alpha, dtype=float).ravel().tolist()
    return values

"""Training and evaluation scenarios: grids, splits, data fractions, seeds.

A scenario is one (alpha, t_c) with its complete trajectory from the fast reduced ODE. Training uses
a 51 x 51 grid; evaluation the nested 101 x 101 grid without the training pairs. A data fraction keeps
complete scenarios; which ones depends on the contingency, the seed and the grid alone, so
every method sees the same subset, and a smaller fraction is part of a larger one.
"""

import hashlib
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np

from contingencies.errors import SolverError, UsageError
from contingencies.network import Float
from contingencies.ode import scenario_states
from contingencies.operator_family import OperatorFamily
from contingencies.operators import PhaseOperators
from contingencies.trajectories import output_times
from zoo.surrogates.condition_data import PER_AXIS, scenario_places, simulate_places

TRAINING_POINTS = 51  # per axis; 2,601 scenarios
EVALUATION_POINTS = 101  # per axis; 7,600 held-out scenarios once the training pairs are removed


@dataclass(frozen=True)
class ScenarioRecord:
    """What is recorded of a scenario set once its trajectories have served."""

    digest: str
    description: dict[str, float | int]
    fraction: float
    seed: int


@dataclass(frozen=True, eq=False)
class ScenarioSet:
    """Complete trajectories of scenarios of one contingency, in ascending order of alpha and then t_c."""

    contingency: str
    alpha: Float  # (s,)
    t_c: Float  # (s,) s
    t: Float  # (k,) s
    states: Float  # (s, k, 2 n): angles in rad, then speeds in pu
    fraction: float
    seed: int
    points: int  # of the full grid, per axis
    conditions: Float | None = None  # (s, d) operating points, of a contingency with conditions

    @property
    def digest(self) -> str:
        """SHA-256 of what a model can learn from."""
        content = hashlib.sha256(self.contingency.encode())
        where = () if self.conditions is None else (self.conditions,)
        for array in (self.alpha, self.t_c, self.t, self.states, *where):
            content.update(repr(array.shape).encode())
            content.update(np.ascontiguousarray(array, dtype="<f8").data)
        return content.hexdigest()

    @property
    def description(self) -> dict[str, float | int]:
        """The grid in plain values, for records."""
        return {"points_per_axis": self.points, "scenarios": len(self.alpha), "times": len(self.t)}

    @property
    def record(self) -> ScenarioRecord:
        """What is left of the set when its trajectories have served."""
        return ScenarioRecord(self.digest, self.description, self.fraction, self.seed)


class ScenarioStream(Sequence[ScenarioSet]):
    """The scenario sets of a family, each simulated when it is asked for; only the latest is kept.

    Families of many machines do not fit into memory as trajectories; what a model learns from them does.

    Parameters
    ----------
    members : sequence of PhaseOperators
    fraction, seed
        As for `training_set`.
    report : callable
        Told how many members have been simulated, from the beginning (0) on.
    """

    def __init__(
        self, members: Sequence[PhaseOperators], fraction: float, seed: int, report: Callable[[int], None]
    ) -> None:
        self.members, self.fraction, self.seed, self.report = members, fraction, seed, report
        for operators in members:  # a fraction that leaves nothing is refused before any time is spent
            if operators.family is None:
                chosen_scenarios(operators.name, fraction, seed)
        self._records: dict[int, ScenarioRecord] = {}
        self._latest: tuple[int, ScenarioSet] | None = None
        report(0)

    def __len__(self) -> int:
        return len(self.members)

    @overload
    def __getitem__(self, place: int) -> ScenarioSet: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[ScenarioSet]: ...
    def __getitem__(self, place: int | slice) -> ScenarioSet | Sequence[ScenarioSet]:
        if isinstance(place, slice):
            return [self[k] for k in range(len(self))[place]]
        place = range(len(self))[place]
        if self._latest is None or self._latest[0] != place:
            self._latest = None
            data = training_set(self.members[place], self.fraction, self.seed)
            self._records[place] = data.record
            self._latest = place, data
            self.report(len(self._records))
        return self._latest[1]

    def records(self) -> tuple[ScenarioRecord, ...]:
        """What is recorded of each set; those that nobody has asked for are simulated now. Trajectories are dropped."""
        for place in range(len(self)):
            if place not in self._records:
                self[place]
        self._latest = None
        return tuple(self._records[place] for place in range(len(self)))


@dataclass(frozen=True, eq=False)
class EvaluationGrid:
    """The dense grid; `held_out` (a, c) marks the pairs that no training set contains."""

    alpha: Float  # (a,)
    t_c: Float  # (c,) s
    held_out: np.ndarray  # (a, c) bool

    @property
    def unseen_alpha(self) -> Float:
        """Severities between those of the training grid, where CCT errors are measured."""
        return self.alpha[1::2]


def training_axes(operators: PhaseOperators, points: int = TRAINING_POINTS) -> tuple[Float, Float]:
    """Severities and clearing instants (points,) each of the training grid."""
    return np.linspace(*operators.severity, points), np.linspace(*operators.window.t_c, points)


def evaluation_grid(operators: PhaseOperators) -> EvaluationGrid:
    """The nested 101 x 101 grid with its 7,600 held-out pairs."""
    alpha, t_c = training_axes(operators, EVALUATION_POINTS)
    held_out = np.ones((len(alpha), len(t_c)), dtype=bool)
    held_out[::2, ::2] = False
    return EvaluationGrid(alpha, t_c, held_out)


def chosen_scenarios(contingency: str, fraction: float, seed: int, total: int = TRAINING_POINTS**2) -> np.ndarray:
    """Indices (s,) of the scenarios of a full set (row-major, of a grid) that a fraction keeps, ascending."""
    if not 0.0 < fraction <= 1.0:  # also refuses NaN
        raise UsageError(f"fraction {fraction} is not in (0, 1]; give the part of the scenarios to learn from, as 0.1.")
    count = int(np.floor(fraction * total + 0.5))
    if count == 0:
        raise UsageError(
            f"fraction {fraction} of {total} scenarios leaves none for {contingency}; use at least {1.0 / total:.1g}."
        )
    order = np.random.default_rng([seed, zlib.crc32(contingency.encode())]).permutation(total)
    return np.sort(order[:count])


def training_set(
    operators: PhaseOperators, fraction: float = 1.0, seed: int = 0, points: int = TRAINING_POINTS
) -> ScenarioSet:
    """Simulate the scenarios that `fraction` of the training grid keeps.

    Parameters
    ----------
    operators : PhaseOperators
    fraction : float
        Part of the complete scenarios, in (0, 1].
    seed : int
        Of the choice; the same for every method that is to be compared.
    points : int
        Grid points per axis.
    """
    if operators.family is not None:
        return _over_conditions(operators, operators.family, fraction, seed)
    chosen = chosen_scenarios(operators.name, fraction, seed, points * points)
    alphas, t_cs = training_axes(operators, points)
    t = output_times(operators)
    rows, columns = np.divmod(chosen, points)
    states = scenario_states(operators, alphas[rows], t_cs[columns], t)
    if not np.isfinite(states).all():
        raise SolverError(
            f"{operators.name}: the fast integrator failed on a training scenario; check the machine data."
        )
    return ScenarioSet(operators.name, alphas[rows], t_cs[columns], t, states, fraction, seed, points)


def _over_conditions(operators: PhaseOperators, family: OperatorFamily, fraction: float, seed: int) -> ScenarioSet:
    alpha, t_c, conditions = scenario_places(operators, family, seed)
    kept = chosen_scenarios(operators.name, fraction, seed, len(alpha))
    t, states = simulate_places(operators, family, alpha[kept], t_c[kept], conditions[kept])
    return ScenarioSet(operators.name, alpha[kept], t_c[kept], t, states, fraction, seed, PER_AXIS, conditions[kept])

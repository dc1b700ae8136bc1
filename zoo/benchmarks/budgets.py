"""What each budget of the benchmarks may cost, as data.

Minutes are those of one training on one core. One-shot models need far more of them than chained ones, so that
a hurried table shows what a budget buys rather than what a method can do; the report names the budget of every row.
"""

from dataclasses import dataclass

from contingencies.errors import UsageError
from contingencies.stability import Reference
from zoo.schedules import FRACTIONS, Form


@dataclass(frozen=True)
class Budget:
    """How long to train and how much to measure."""

    name: str
    one_shot: float  # minutes of one training of a model that predicts whole trajectories
    chained: float  # minutes of one training of a chained model
    family: float  # minutes for each member of a family of one model
    family_sizes: tuple[int, ...]
    fractions: tuple[float, ...]  # of the scenarios, for low-data tables
    reference: Reference  # truth of CCT errors; both agree within 1e-5 s
    timed: int  # severities timed with the slow simulators
    distilled: tuple[str, ...]  # models whose boundaries become heads
    dae_step: float  # s, of the full-network sweep over severities

    def minutes(self, form: Form) -> float:
        """Of one training of a model of this form."""
        return self.chained if form == "chained" else self.one_shot


BUDGETS = {
    budget.name: budget
    for budget in (
        Budget("quick", 0.3, 0.3, 0.06, (1, 4, 8), FRACTIONS, "fast", 3, ("es-pinn-chained",), 5e-3),
        Budget(
            "standard", 3.0, 1.5, 0.25, (1, 4, 16, 33), FRACTIONS, "fast", 8, ("es-pinn", "es-pinn-chained"), 2.5e-3
        ),
        Budget(
            "paper", 60.0, 10.0, 1.0, (1, 4, 16, 33), FRACTIONS, "strict", 50, ("es-pinn", "es-pinn-chained"), 2.5e-3
        ),
    )
}


def budget_of(name: str) -> Budget:
    """The budget of a name."""
    if name not in BUDGETS:
        raise UsageError(f"budget {name[:40]!r} is not known; use one of {', '.join(BUDGETS)}.")
    return BUDGETS[name]

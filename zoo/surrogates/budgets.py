"""Budgets and data-fraction schedules as data.

A budget says how long a kind of model may train on one core. Models that predict whole trajectories
at once need far longer than chained ones, which learn a short, smooth map.
"""

from dataclasses import dataclass, replace
from typing import Literal

from contingencies.errors import UsageError
from espinn_moe.plan import Clock, Restart, TrainingPlan

BudgetName = Literal["quick", "standard", "paper"]
Form = Literal["chained", "one-shot"]
Residual = Literal["pointwise", "shooting"]

BUDGETS: tuple[BudgetName, ...] = ("quick", "standard", "paper")
RESIDUALS: tuple[Residual, ...] = ("pointwise", "shooting")  # the paper's, and the one that draws the boundary sharply
COMPARED_BY: Clock = "processor"  # minutes of trainings that are compared: the same work, however busy the machine
FRACTIONS = (0.1, 0.2, 0.5, 1.0)  # the paper's data-fraction schedule


@dataclass(frozen=True)
class Budget:
    """Minutes on one core: for one contingency, and for each further member of a family."""

    minutes: float
    per_further_member: float

    def total(self, members: int) -> float:
        """Minutes for a model of so many contingencies."""
        return self.minutes + self.per_further_member * (members - 1)


# quick: an acceptable model while one waits; standard: the accuracy the zoo is built for;
# paper: no time pressure, for the tables.
TIMES: dict[tuple[Form, BudgetName], Budget] = {
    # Members of a chained family hardly cost time: experts run as one product, and every row teaches the shared part.
    ("chained", "quick"): Budget(1.0, 0.05),
    ("chained", "standard"): Budget(4.0, 0.01),
    ("chained", "paper"): Budget(10.0, 1.0),
    ("one-shot", "quick"): Budget(3.0, 1.5),
    ("one-shot", "standard"): Budget(28.0, 14.0),
    ("one-shot", "paper"): Budget(60.0, 30.0),
}

PLANS: dict[Form, TrainingPlan] = {  # how the minutes are spent
    "chained": TrainingPlan(minutes=1.0, learning_rate=1e-2),  # smooth regression: 3e-3 converges several times slower
    "one-shot": TrainingPlan(minutes=1.0, learning_rate=3e-3),
}
# The shooting residual needs a model that has learned its trajectories roughly; its error falls in the last fifth.
SHOOTING = Restart(at=0.25, learning_rate=1.5e-3, warmup=0.03)


def plan_for(
    form: Form,
    members: int = 1,
    budget: str = "standard",
    *,
    residual: Residual = "pointwise",
    minutes: float | None = None,
    steps: int | None = None,
    seed: int = 0,
    clock: Clock = "wall",
) -> TrainingPlan:
    """The plan of a budget; `minutes` or `steps` replace its time, `clock` says which minutes count.

    With the shooting residual it has two stages.
    """
    if budget not in BUDGETS:
        raise UsageError(f"budget {budget!r} is not known; use one of {', '.join(BUDGETS)}.")
    if steps is not None and minutes is not None:
        raise UsageError("give either --minutes or --steps, not both.")
    plan = replace(PLANS[form], seed=seed, restart=SHOOTING if residual == "shooting" else None)
    if steps is not None:
        return replace(plan, minutes=None, steps=steps)
    chosen = TIMES[form, budget].total(members) if minutes is None else minutes
    return replace(plan, minutes=chosen, clock=clock)


def parse_schedule(text: str) -> tuple[float, ...]:
    """Growing data fractions from `0.1,0.2,0.5`; refused unless they grow within (0, 1]."""
    try:
        fractions = tuple(float(part) for part in text.split(","))
    except ValueError:
        raise UsageError(f"schedule {text[:60]!r} is not a list of fractions; write it like 0.1,0.2,0.5,1.0.") from None
    if not all(0 < f <= 1 for f in fractions) or list(fractions) != sorted(set(fractions)):
        raise UsageError(f"schedule {text[:60]!r} does not grow within (0, 1]; write it like 0.1,0.2,0.5,1.0.")
    return fractions

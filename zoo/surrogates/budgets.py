"""Budgets and data-fraction schedules as data.

A budget says how long a kind of model may train on one core. Models that predict whole trajectories
at once need far longer than chained ones, which learn a short, smooth map.
"""

import math
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


@dataclass(frozen=True)
class Length:
    """How long a stage is, in minutes or in steps, whichever its plan counts."""

    minutes: float
    steps: int


# Up to these lengths a one-shot stage learns at its full rate. A step of SOAP is as large as the rate, however small
# the gradient, so that weights wander with the root of the number of steps: at the full rate for half an hour the loss
# fell to 1e-3, rose from 3,000 steps on to 0.5, and never came back.
FULL_RATE = (Length(2.0, 8_000), Length(4.0, 16_000))  # of the first stage, and of the second at its lower rate


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

    With the shooting residual it has two stages. One-shot stages that are longer than `FULL_RATE` have rates that fall
    with the root of their length, so that weights wander as far as in a shorter training and no farther.
    """
    if budget not in BUDGETS:
        raise UsageError(f"budget {budget!r} is not known; use one of {', '.join(BUDGETS)}.")
    if steps is not None and minutes is not None:
        raise UsageError("give either --minutes or --steps, not both.")
    plan = replace(PLANS[form], seed=seed, restart=SHOOTING if residual == "shooting" else None)
    if steps is not None:
        plan = replace(plan, minutes=None, steps=steps)
    else:
        plan = replace(plan, minutes=TIMES[form, budget].total(members) if minutes is None else minutes, clock=clock)
    return _steadied(plan) if form == "one-shot" else plan


def _steadied(plan: TrainingPlan) -> TrainingPlan:
    """The plan with lower rates for its longer stages."""

    def factor(full: Length, share: float) -> float:
        length = plan.steps / full.steps if plan.steps is not None else (plan.minutes or 0.0) / full.minutes
        return 1.0 if share * length <= 1.0 else 1.0 / math.sqrt(share * length)

    first, second = FULL_RATE
    if plan.restart is None:
        return replace(plan, learning_rate=plan.learning_rate * factor(first, 1.0))
    later = replace(plan.restart, learning_rate=plan.restart.learning_rate * factor(second, 1.0 - plan.restart.at))
    return replace(plan, learning_rate=plan.learning_rate * factor(first, plan.restart.at), restart=later)


def parse_schedule(text: str) -> tuple[float, ...]:
    """Growing data fractions from `0.1,0.2,0.5`; refused unless they grow within (0, 1]."""
    try:
        fractions = tuple(float(part) for part in text.split(","))
    except ValueError:
        raise UsageError(f"schedule {text[:60]!r} is not a list of fractions; write it like 0.1,0.2,0.5,1.0.") from None
    if not all(0 < f <= 1 for f in fractions) or list(fractions) != sorted(set(fractions)):
        raise UsageError(f"schedule {text[:60]!r} does not grow within (0, 1]; write it like 0.1,0.2,0.5,1.0.")
    return fractions

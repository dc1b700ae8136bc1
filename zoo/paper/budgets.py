"""What each budget of the benchmarks may cost, as data.

Minutes are those of one training on one core, of its work rather than of the wall clock. One-shot models need far
more of them than chained ones, so that a hurried table shows what a budget buys rather than what a method can do; the
report names the budget of every row.
"""

from dataclasses import dataclass

from contingencies.errors import UsageError
from contingencies.references import Reference
from zoo.surrogates.budgets import FRACTIONS, Form


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
    thin: int  # trajectory errors use one in so many severities of a grid; odd, or it would be those of the training
    betas: tuple[float, ...]  # 1/rad, sharpness of the smooth maximum
    per_dae_severity: int  # severities of a cross-system boundary for each of the full network's
    longer: float  # minutes of a training that shows what more time does to the paper's form
    shooting: float  # minutes of one training with the shooting residual for one contingency
    shooting_family: float  # the same for a family of two
    shooting_steps: int  # of every training that is compared at equal steps

    def minutes(self, form: Form) -> float:
        """Of one training of a model of this form."""
        return self.chained if form == "chained" else self.one_shot


BOTH_FORMS = ("es-pinn", "es-pinn-chained")
SHARPNESS = (5.0, 10.0, 20.0, 50.0, 100.0, 200.0)

BUDGETS = {
    budget.name: budget
    for budget in (
        Budget(
            "quick", one_shot=0.2, chained=0.25, family=0.05, family_sizes=(2, 4, 8), fractions=FRACTIONS,
            reference="fast", timed=3, distilled=BOTH_FORMS[1:], dae_step=5e-3, thin=5, betas=(10.0, 50.0, 200.0),
            per_dae_severity=2, longer=0.4, shooting=0.1, shooting_family=0.1, shooting_steps=60,
        ),
        Budget(
            "standard", one_shot=1.0, chained=0.5, family=0.2, family_sizes=(2, 8, 33), fractions=FRACTIONS,
            reference="fast", timed=8, distilled=BOTH_FORMS, dae_step=2.5e-3, thin=3, betas=SHARPNESS,
            per_dae_severity=5, longer=30.0, shooting=4.0, shooting_family=2.5, shooting_steps=2_000,
        ),
        Budget(
            "paper", one_shot=60.0, chained=10.0, family=1.0, family_sizes=(2, 4, 8, 16, 33), fractions=FRACTIONS,
            reference="strict", timed=50, distilled=BOTH_FORMS, dae_step=2.5e-3, thin=1, betas=SHARPNESS,
            per_dae_severity=5, longer=240.0, shooting=60.0, shooting_family=120.0, shooting_steps=100_000,
        ),
    )
}  # fmt: skip


def budget_of(name: str) -> Budget:
    """The budget of a name."""
    if name not in BUDGETS:
        raise UsageError(f"budget {name[:40]!r} is not known; use one of {', '.join(BUDGETS)}.")
    return BUDGETS[name]

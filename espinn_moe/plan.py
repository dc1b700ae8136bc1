"""How a training is to be run, and how it tells where it stands; values without torch."""

import math
from dataclasses import dataclass
from typing import Literal

from contingencies.errors import UsageError

Clock = Literal["wall", "processor"]


@dataclass(frozen=True)
class Restart:
    """A second stage: the objective may change, and the optimiser begins anew with a schedule of its own."""

    at: float  # fraction of the budget
    learning_rate: float
    warmup: float = 0.01  # fraction of the stage

    def __post_init__(self) -> None:
        if not 0 < self.at < 1:
            raise UsageError(f"a second stage at {self.at} is not within the training; choose between 0 and 1.")


@dataclass(frozen=True)
class TrainingPlan:
    """How to minimise: budget, optimiser and schedule.

    Exactly one of `steps` and `minutes` is the budget; minutes are those of the clock on the wall, or of the
    processor's work for this process, which does not pass faster while others use it. `polish_share` of it goes
    to L-BFGS on large batches; its history is dropped at every resample, and a round that does not lower the loss
    of its batch is undone. `validations` are spread evenly over the budget. With a `restart` the training has two
    stages before it is polished.
    """

    steps: int | None = None
    minutes: float | None = None
    clock: Clock = "wall"
    optimizer: Literal["soap", "adam"] = "soap"
    learning_rate: float = 3e-3
    final_rate: float = 1e-3  # fraction of the learning rate that is left at the end of the cosine
    warmup: float = 0.01  # fraction of the budget over which the rate grows linearly
    clip_norm: float = 1.0
    polish_share: float = 0.0
    polish_iterations: int = 40  # L-BFGS iterations on one sample
    polish_batches: int = 8  # batches that make up one sample
    validations: int = 10
    keep: Literal["last", "best"] = "last"  # "best": the state with the smallest validated error
    seed: int = 0
    restart: Restart | None = None

    def __post_init__(self) -> None:
        if (self.steps is None) == (self.minutes is None):
            raise UsageError("a training needs either a number of steps or a number of minutes.")
        if self.steps is not None and self.steps < 1:
            raise UsageError(f"steps must be at least 1, not {self.steps}.")
        if self.minutes is not None and not (math.isfinite(self.minutes) and self.minutes > 0):
            raise UsageError(f"minutes must be a positive number, not {self.minutes}.")
        if not 0 <= self.polish_share <= 1:
            raise UsageError(f"polish_share = {self.polish_share} is not between 0 and 1.")
        if self.restart is not None and self.restart.at + self.polish_share >= 1:
            raise UsageError(f"polish_share = {self.polish_share} leaves the second stage no time; lower it.")

    def stage_at(self, done: float) -> tuple[int, float]:
        """The stage that a fraction of the budget belongs to, and the fraction of that stage; polishing comes after."""
        if self.restart is not None and done < self.restart.at:
            return 0, done / self.restart.at
        stage, begin = (0, 0.0) if self.restart is None else (1, self.restart.at)
        return stage, min(1.0, (done - begin) / max(1e-12, 1.0 - self.polish_share - begin))

    def rate_at(self, done: float) -> float:
        """Learning rate: in each stage linear warm-up, then half a cosine down to the final rate."""
        stage, along = self.stage_at(done)
        settings = self.restart if stage and self.restart else self
        if along < settings.warmup:
            return settings.learning_rate * max(along / settings.warmup, 0.01)
        falling = 0.5 * (1.0 + math.cos(math.pi * (along - settings.warmup) / (1.0 - settings.warmup)))
        return settings.learning_rate * (self.final_rate + (1.0 - self.final_rate) * falling)


@dataclass(frozen=True)
class Progress:
    """Where a training stands; `validation` is the latest validated error, None before the first."""

    step: int
    done: float  # fraction of the budget
    loss: float
    terms: dict[str, float]
    validation: float | None
    elapsed_s: float
    left_s: float
    learning_rate: float

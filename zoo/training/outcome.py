"""What comes of a training: the model, its checkpoint, and its errors on severities that it has not seen."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from contingencies.stability import Boundary
from espinn_moe.surrogate import Surrogate
from espinn_moe.train import TrainingError, TrainingResult
from registry.records import CheckpointRecord
from zoo.judging.metrics import CCTErrors, cct_errors


@dataclass(frozen=True, eq=False)
class Trained:
    """A finished training."""

    run_id: int
    checkpoint: CheckpointRecord
    surrogate: Surrogate  # as it is kept
    result: TrainingResult
    boundaries: Mapping[int, tuple[Boundary, Boundary]]  # learned and reference, of each member that was trained

    @property
    def errors(self) -> tuple[CCTErrors, ...]:
        """Of each member that was trained, on unseen severities."""
        return tuple(cct_errors(*pair) for pair in self.boundaries.values())

    @property
    def metrics(self) -> dict[str, float]:
        """What the run's record shows."""
        return training_metrics(self.errors, self.result)


class TooBriefError(TrainingError):
    """A finished training whose model has no finite CCT although the reference has; its checkpoint is kept."""

    def __init__(self, trained: Trained) -> None:
        super().__init__(
            f"the trained model has no finite CCT although the reference has: it was trained too briefly "
            f"({trained.result.elapsed_s:.0f} s); it is kept as checkpoint {trained.checkpoint.id}, "
            "train again with a larger --budget or more --minutes."
        )
        self.trained = trained


def training_metrics(errors: Sequence[CCTErrors], result: TrainingResult) -> dict[str, float]:
    """Loss, time, steps and CCT errors of a training as plain numbers."""
    measured = [(e.mae, e.maximum) for e in errors if e.mae is not None and e.maximum is not None]
    metrics = {"loss": result.loss, "train_s": result.used_s, "steps": float(result.steps)}
    if measured:
        metrics["cct_mae_ms"] = 1e3 * sum(mae for mae, _ in measured) / len(measured)
        metrics["cct_max_ms"] = 1e3 * max(largest for _, largest in measured)
    metrics["status_errors"] = float(sum(e.mismatches for e in errors))
    return metrics

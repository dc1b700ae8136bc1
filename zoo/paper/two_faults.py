"""What tables of the paper's two faults share: two separate models or one mixture of experts, on the same terms."""

from collections.abc import Sequence
from dataclasses import dataclass

from zoo.judging.metrics import TrajectoryTotals
from zoo.paper.common import CALIBRATED
from zoo.paper.entry import Findings, Setting, Task, Training, task
from zoo.paper.tables import Cell, Published, Quantity, cell
from zoo.studies.sweep import METHODS as SWEEP_METHODS
from zoo.studies.sweep import trained_together
from zoo.studies.sweep_table import SweepRow
from zoo.surrogates.budgets import Residual
from zoo.surrogates.catalogue import entry_of

MEMBERS = ("ieee30-bus-7-remove-4-6", "ieee30-line-3-4-remove")
METHODS = {
    "separate": "Separate",
    "moe": "MoE",
    "separate-chained": "Separate chained (ours)",
    "moe-chained": "MoE chained (ours)",
}
WHOLE_WINDOW = (Quantity("RMSE delta", "rad"), Quantity("RMSE omega", "1e-4 pu"))  # not of what was never learned
DECISIVE = (
    Quantity("decisive RMSE delta", "rad"),
    Quantity("decisive RMSE omega", "1e-4 pu"),
    Quantity("CCT MAE", "ms"),
    Quantity("largest CCT error", "ms"),
    Quantity("other status", "of 100"),
)
WHOSE = (
    "CCT errors are those of the line fault, by the hard margin; the bus fault has no finite CCT; 'other status' "
    "counts severities of both. 'Decisive' errors end when the separation passes 1.5 pi."
)


@dataclass(frozen=True)
class Terms:
    """How long and on what every method of a table learns: minutes for both members together, or steps for each."""

    one_shot: float = 0.0  # minutes
    chained: float = 0.0  # minutes
    steps: int | None = None
    focus: bool = False  # of one-shot models; chained ones always learn what decides stability
    residual: Residual = "pointwise"  # of one-shot models

    def trainings(self, method: str, fraction: float, seed: int) -> list[Training]:
        """The trainings of a method: all members at once, or each for its share of the same time."""
        model, groups = SWEEP_METHODS[method][0], trained_together(method, MEMBERS)
        one_shot = entry_of(model).form == "one-shot"
        minutes = (self.one_shot if one_shot else self.chained) / len(groups)
        focus, residual = (self.focus, self.residual) if one_shot else (False, "pointwise")
        return [Training(model, tuple(group), minutes, seed, fraction, focus, residual, self.steps) for group in groups]

    def tasks(self, setting: Setting, method: str, fraction: float, seed: int) -> list[Task]:
        """Errors of the states of each training."""
        trainings = self.trainings(method, fraction, seed)
        return [task("measurements:held_out", each, thin=setting.budget.thin) for each in trainings]

    def why(self, method: str) -> str:
        """Why a method's numbers may differ from the paper's."""
        chained = entry_of(SWEEP_METHODS[method][0]).form == "chained"
        decisive = self.focus or chained
        learned = "what decides stability" if decisive else "whole trajectories"
        minutes = self.chained if chained else self.one_shot
        length = f"{self.steps:,} steps" if self.steps else f"{minutes:g} min on one CPU core for both faults"
        return f"{'not in the paper; ' if chained else ''}{CALIBRATED}; {learned}, {length}"


def method_row(
    setting: Setting, findings: Findings, terms: Terms, method: str, fraction: float, seed: int
) -> SweepRow | None:
    """One method at one fraction and seed, pooled over both faults; CCT errors are those its trainings recorded."""
    pooled, trained = TrajectoryTotals(), []
    for wanted in terms.tasks(setting, method, fraction, seed):
        judged, training = findings.get(wanted), findings.get(wanted.training) if wanted.training else None
        if judged is None or training is None:
            return None
        pooled = sum((TrajectoryTotals(**member) for member in judged["members"]), pooled)
        trained.append(training)
    metrics = [training["metrics"] for training in trained]
    means = [m["cct_mae_ms"] for m in metrics if "cct_mae_ms" in m]  # of the one member with a boundary
    errors = pooled.errors()
    return SweepRow(
        method,
        fraction,
        seed,
        rmse_delta=errors.rmse_delta,
        rmse_omega=errors.rmse_omega,
        rmse_delta_decisive=errors.rmse_delta_decisive,
        rmse_omega_decisive=errors.rmse_omega_decisive,
        cct_mae_ms=means[0] if means else None,
        cct_max_ms=max((m["cct_max_ms"] for m in metrics if "cct_max_ms" in m), default=None),
        status_errors=int(sum(m["status_errors"] for m in metrics)),
        parameters=sum(training["parameters"] for training in trained),
        training_s=sum(m["train_s"] for m in metrics),
        steps=int(sum(m["steps"] for m in metrics)),
    )


def whole_window_cells(
    rows: Sequence[SweepRow], angles: Published | None, speeds: Published | None
) -> tuple[Cell, ...]:
    """Cells of `WHOLE_WINDOW` over seeds, beside the published errors."""
    return (cell([row.rmse_delta for row in rows], angles), cell([row.rmse_omega for row in rows], speeds, 1e4))


def decisive_cells(rows: Sequence[SweepRow], critical: Published | None) -> tuple[Cell, ...]:
    """Cells of `DECISIVE` over seeds, beside the published error of the CCT."""
    return (
        cell([row.rmse_delta_decisive for row in rows]),
        cell([row.rmse_omega_decisive for row in rows], factor=1e4),
        cell([row.cct_mae_ms for row in rows], critical),
        cell([row.cct_max_ms for row in rows]),
        cell([float(row.status_errors) for row in rows]),
    )

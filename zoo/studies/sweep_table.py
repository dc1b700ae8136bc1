"""What a sweep shows: one row per method, fraction and seed; means and spreads over seeds; a table and a figure."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from contingencies.tables import csv_text
from zoo.judging.metrics import TrajectoryTotals
from zoo.plots import new_figure


@dataclass(frozen=True)
class SweepRow:
    """One method at one fraction and seed; errors on held-out scenarios and unseen severities."""

    method: str
    fraction: float
    seed: int
    rmse_delta: float  # rad, pooled over members
    rmse_omega: float  # pu
    rmse_delta_decisive: float  # rad, before the separation passes 1.5 pi
    rmse_omega_decisive: float  # pu
    cct_mae_ms: float | None  # over severities with a finite reference; None when no member has one
    cct_max_ms: float | None
    status_errors: int  # severities that are finite in one boundary and censored in the other
    parameters: int
    training_s: float  # of all members' trainings together
    steps: int


def sweep_row(cell: tuple[str, float, int], parts: list[dict[str, Any]]) -> SweepRow:
    """The row of a cell from the results of its trainings."""
    members = [member for part in parts for member in part["members"]]
    pooled = sum((TrajectoryTotals(**member["trajectories"]) for member in members), TrajectoryTotals()).errors()
    finite = [member["cct"] for member in members if member["cct"]["mae"] is not None]
    count = sum(cct["finite"] for cct in finite)
    return SweepRow(
        *cell,
        pooled.rmse_delta, pooled.rmse_omega, pooled.rmse_delta_decisive, pooled.rmse_omega_decisive,
        1e3 * sum(cct["mae"] * cct["finite"] for cct in finite) / count if count else None,
        1e3 * max(cct["maximum"] for cct in finite) if count else None,
        sum(member["cct"]["mismatches"] for member in members),
        sum(part["parameters"] for part in parts),
        sum(part["training_s"] for part in parts),
        sum(part["steps"] for part in parts),
    )  # fmt: skip


@dataclass(frozen=True)
class Summary:
    """A method at one fraction, over its seeds: mean and sample standard deviation."""

    method: str
    fraction: float
    seeds: int
    rmse_delta: float
    rmse_delta_std: float
    rmse_omega: float
    rmse_omega_std: float
    rmse_delta_decisive: float  # means only
    rmse_omega_decisive: float
    cct_mae_ms: float | None
    cct_mae_ms_std: float | None
    cct_max_ms: float | None  # the largest of all seeds
    status_errors: float
    parameters: int
    training_s: float
    steps: float


def summarise(rows: Sequence[SweepRow]) -> list[Summary]:
    """One entry per method and fraction, in the order they appear."""
    groups: dict[tuple[str, float], list[SweepRow]] = {}
    for row in rows:
        groups.setdefault((row.method, row.fraction), []).append(row)
    return [_summary(group) for group in groups.values()]


def _summary(rows: list[SweepRow]) -> Summary:
    def spread(values: Sequence[float]) -> float:
        return float(np.std(values, ddof=1)) if len(values) > 1 else 0.0

    delta, omega = [row.rmse_delta for row in rows], [row.rmse_omega for row in rows]
    cct = [row.cct_mae_ms for row in rows if row.cct_mae_ms is not None]
    largest = [row.cct_max_ms for row in rows if row.cct_max_ms is not None]
    return Summary(
        rows[0].method, rows[0].fraction, len(rows),
        float(np.mean(delta)), spread(delta), float(np.mean(omega)), spread(omega),
        float(np.mean([row.rmse_delta_decisive for row in rows])),
        float(np.mean([row.rmse_omega_decisive for row in rows])),
        float(np.mean(cct)) if cct else None, spread(cct) if cct else None, max(largest) if largest else None,
        float(np.mean([row.status_errors for row in rows])), rows[0].parameters,
        float(np.mean([row.training_s for row in rows])), float(np.mean([row.steps for row in rows])),
    )  # fmt: skip


def table_text(summaries: Sequence[Summary]) -> str:
    """The table for people; 'decisive' errors end when the separation passes 1.5 pi."""
    lines = [
        f"{'method':17} {'fraction':>8} {'seeds':>5} {'RMSE delta rad':>20} {'RMSE omega 1e-4 pu':>20} "
        f"{'decisive':>15} {'CCT MAE ms':>18} {'max ms':>8} "
        f"{'status':>6} {'parameters':>10} {'train s':>8} {'steps':>7}"
    ]
    for s in summaries:
        cct = "-" if s.cct_mae_ms is None else _over_seeds(s.cct_mae_ms, s.cct_mae_ms_std, 4, s.seeds)
        decisive = f"{s.rmse_delta_decisive:.4f} {1e4 * s.rmse_omega_decisive:.3f}"
        largest = "-" if s.cct_max_ms is None else f"{s.cct_max_ms:.3f}"
        lines.append(
            f"{s.method:17} {s.fraction:8g} {s.seeds:5} {_over_seeds(s.rmse_delta, s.rmse_delta_std, 4, s.seeds):>20} "
            f"{_over_seeds(1e4 * s.rmse_omega, 1e4 * s.rmse_omega_std, 3, s.seeds):>20} "
            f"{decisive:>15} {cct:>18} {largest:>8} "
            f"{s.status_errors:6.1f} {s.parameters:10} {s.training_s:8.0f} {s.steps:7.0f}"
        )
    return "\n".join(lines)


def _over_seeds(mean: float, deviation: float | None, digits: int, seeds: int) -> str:
    """A mean with its spread, which one seed does not have."""
    return f"{mean:.{digits}f} +- {deviation:.{digits}f}" if seeds > 1 else f"{mean:.{digits}f}"


def table_csv(rows: Sequence[SweepRow]) -> str:
    """One line per method, fraction and seed."""
    return csv_text(list(SweepRow.__dataclass_fields__), map(asdict, rows))


def plot_sweep(summaries: Sequence[Summary], title: str) -> Any:
    """Errors over data fraction, one line per method, bars for the spread over seeds."""
    figure, axes = new_figure(1, 3, width=11.0, height=3.6)
    quantities = (
        ("rmse_delta", "rmse_delta_std", 1.0, "RMSE of angles (rad)"),
        ("rmse_omega", "rmse_omega_std", 1.0, "RMSE of speeds (pu)"),
        ("cct_mae_ms", "cct_mae_ms_std", 1.0, "mean CCT error (ms)"),
    )
    for panel, (name, spread, factor, label) in zip(axes, quantities, strict=True):
        for method in dict.fromkeys(s.method for s in summaries):
            mine = [s for s in summaries if s.method == method and getattr(s, name) is not None]
            panel.errorbar(
                [s.fraction for s in mine], [factor * getattr(s, name) for s in mine],
                [factor * getattr(s, spread) for s in mine], marker="o", ms=4, capsize=3, lw=1.4, label=method,
            )  # fmt: skip
        panel.set_xscale("log")
        panel.set_yscale("log")
        panel.set_xlabel("part of the scenarios")
        panel.set_ylabel(label)
        panel.grid(alpha=0.3, which="both")
    axes[0].legend(fontsize=8)
    figure.suptitle(title, fontsize=10)
    return figure

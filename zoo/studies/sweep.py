"""The data-fraction schedule: every method at every fraction and seed, judged alike, resumable.

A method is one model for all members (`moe`, `moe-chained`) or one model per member (`separate`,
`separate-chained`); all see the same scenarios at a given fraction and seed. One training is one job. The
members' trainings of a separate method share the time that one model for all of them gets, so that methods are
compared at equal time (of the processor, which is that of the wall on an idle core); with a number of steps, at
equal epochs. Both are in the table.
"""

import csv
import io
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from contingencies.errors import UsageError
from contingencies.library import Contingency, System
from zoo.work.executor import Executor
from zoo.work.jobs import Done, Job, Report, run_jobs

if TYPE_CHECKING:
    from espinn_moe.plan import Clock
    from espinn_moe.surrogate import Surrogate

Member = TypeVar("Member")

RESULTS = "results"  # of a sweep's folder
STATES = "states"  # of unfinished trainings
BLOCK = 8  # severities evaluated at once

METHODS: dict[str, tuple[str, bool]] = {  # name -> model, whether one model serves all members
    "moe": ("moe", True),
    "separate": ("es-pinn", False),
    "moe-chained": ("moe-chained", True),
    "separate-chained": ("es-pinn-chained", False),
}


@dataclass(frozen=True)
class SweepPlan:
    """What is compared."""

    methods: tuple[str, ...]
    fractions: tuple[float, ...]
    seeds: tuple[int, ...]
    budget: str = "standard"
    minutes: float | None = None  # for all members together
    steps: int | None = None  # of each training
    focus: bool | None = None  # default: chained models learn what decides stability, others whole trajectories

    def __post_init__(self) -> None:
        for method in self.methods:
            if method not in METHODS:
                raise UsageError(f"method {method[:40]!r} is not known; use {', '.join(METHODS)}.")
        for fraction in self.fractions:
            if not 0 < fraction <= 1:
                raise UsageError(f"fraction {fraction} is not in (0, 1]; give fractions like 0.1,0.2,0.5,1.0.")
        for name, values in (("method", self.methods), ("fraction", self.fractions), ("seed", self.seeds)):
            if not values or len(set(values)) != len(values):
                raise UsageError(f"give every {name} once, and at least one.")
        if self.minutes is not None and self.steps is not None:
            raise UsageError("give either minutes (equal time) or steps (equal epochs), not both.")


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


def run_sweep(
    plan: SweepPlan,
    contingencies: Sequence[Contingency],
    executor: Executor,
    folder: Path,
    report: Report | None = None,
) -> tuple[list[SweepRow], list[Done]]:
    """Train and judge whatever the folder does not hold yet.

    Parameters
    ----------
    plan : SweepPlan
    contingencies : sequence of Contingency
        The members.
    executor : Executor
    folder : Path
        Results, and states of unfinished trainings.
    report : callable, optional
        Told about each training.

    Returns
    -------
    rows : list of SweepRow
        Complete ones only, in the order of methods, fractions and seeds.
    done : list of Done
        Every training, failed ones included.
    """
    from contingencies.operators import compile_members
    from espinn_moe.surrogate import check_members
    from zoo.surrogates.datasets import chosen_scenarios

    check_members(compile_members(contingencies))
    for contingency in contingencies:  # a fraction that leaves nothing is refused before any time is spent
        chosen_scenarios(contingency.name, min(plan.fractions), seed=0)
    cells = [(m, f, s) for m in plan.methods for f in plan.fractions for s in plan.seeds]
    jobs = {cell: _jobs(plan, cell, contingencies, folder) for cell in cells}
    flat = [job for cell in cells for job in jobs[cell]]
    # Long ones first: a family's training must not be the last to start.
    flat.sort(key=lambda job: -len(job.inputs["members"]))
    done = run_jobs(flat, executor, folder / RESULTS, report or (lambda item, count, total: None))
    results = {item.job.key: item.result for item in done}
    rows = []
    for cell in cells:
        parts = [results[job.key] for job in jobs[cell]]
        if all(part is not None for part in parts):
            rows.append(_row(cell, [part for part in parts if part is not None]))
    return rows, done


def trained_together(method: str, members: Sequence[Member]) -> list[list[Member]]:
    """Who shares a model of a method: all members, or each has its own; the models share the method's time."""
    return [list(members)] if METHODS[method][1] else [[member] for member in members]


def _jobs(plan: SweepPlan, cell: tuple[str, float, int], members: Sequence[Contingency], folder: Path) -> list[Job]:
    from zoo.surrogates.budgets import COMPARED_BY, plan_for
    from zoo.surrogates.catalogue import entry_of

    method, fraction, seed = cell
    model, groups = METHODS[method][0], trained_together(method, members)
    minutes = None
    if plan.steps is None:
        minutes = plan_for(entry_of(model).form, len(members), plan.budget, minutes=plan.minutes).minutes
        assert minutes is not None
        minutes /= len(groups)
    focus = entry_of(model).form == "chained" if plan.focus is None else plan.focus
    system = members[0].system
    states = str((folder / STATES).resolve())
    return [
        Job(
            "zoo.studies.sweep:train_and_judge",
            {"model": model, "members": [member.sha256 for member in group], "fraction": fraction, "seed": seed,
             "minutes": minutes, "clock": COMPARED_BY, "steps": plan.steps, "focus": focus},
            {"specs": [member.to_json() for member in group], "system": system.to_json(),
             "network": system.network_file, "states": states},
        )
        for group in groups
    ]  # fmt: skip


def train_and_judge(
    model: str,
    members: list[str],
    fraction: float,
    seed: int,
    minutes: float | None,
    clock: "Clock",
    steps: int | None,
    focus: bool,
    specs: list[str],
    system: str,
    network: bytes | None,
    states: str,
) -> dict[str, Any]:
    """In a worker: one training and its errors.

    Parameters
    ----------
    model : str
        Name in the catalogue.
    members : list of str
        SHA-256 of the contingencies.
    fraction, seed, minutes, clock, steps, focus
        As in `TrainingRequest`.
    specs : list of str
        The members' descriptions as JSON.
    system : str
        Their system's description as JSON; `network` is its network file, if it has one.
    states : str
        Folder for the state of an unfinished training.
    """
    from espinn_moe.train import train
    from zoo.surrogates.catalogue import make_objective
    from zoo.training.session import TrainingRequest, prepare

    described = System.from_json(system, network)
    contingencies = [Contingency.from_json(spec, described) for spec in specs]
    assert [contingency.sha256 for contingency in contingencies] == members
    request = TrainingRequest(model, fraction, seed, minutes=minutes, steps=steps, clock=clock, focus=focus)
    prepared = prepare(contingencies, request)
    surrogate = prepared.surrogate
    objective = make_objective(model, surrogate, prepared.scenarios, focus=focus)
    state = Path(states) / f"{prepared.identity[:24]}.safetensors"
    result = train(surrogate, objective, prepared.plan, state_path=state, identity=prepared.identity)
    surrogate.eval()
    judged = [judge(surrogate, member) for member in range(len(contingencies))]
    state.unlink(missing_ok=True)
    return {
        "parameters": surrogate.n_parameters,
        "training_s": result.used_s,
        "steps": result.steps,
        "loss": result.loss,
        "members": judged,
    }


def judge(surrogate: "Surrogate", member: int = 0) -> dict[str, Any]:
    """Errors of one member: trajectories on the held-out pairs, hard CCT on the unseen severities."""
    import torch

    from contingencies.ode import trajectory_grid
    from contingencies.trajectories import output_times
    from zoo.judging.metrics import TrajectoryTotals, trajectory_totals
    from zoo.judging.unseen import unseen_errors
    from zoo.surrogates.datasets import evaluation_grid

    operators = surrogate.members[member]
    grid, t = evaluation_grid(operators), output_times(operators)
    totals = TrajectoryTotals()
    for begin in range(0, len(grid.alpha), BLOCK):
        alpha, held_out = grid.alpha[begin : begin + BLOCK], grid.held_out[begin : begin + BLOCK]
        with torch.no_grad():
            times, severities, instants = (torch.as_tensor(x, dtype=surrogate.dtype) for x in (t, alpha, grid.t_c))
            learned = surrogate.trajectories(times, severities, instants, member).double().numpy()
        truth = trajectory_grid(operators, alpha, grid.t_c, t)
        totals += trajectory_totals(learned[held_out], truth[held_out])
    errors = unseen_errors(surrogate, member)
    cct = errors.to_dict() | {"mismatches": errors.mismatches}
    return {"contingency": operators.name, "trajectories": asdict(totals), "cct": cct}


def _row(cell: tuple[str, float, int], parts: list[dict[str, Any]]) -> SweepRow:
    from zoo.judging.metrics import TrajectoryTotals

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


# --- table and figure -------------------------------------------------------------------------


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
        float(np.mean(cct)) if cct else None, spread(cct) if cct else None, max(largest) if largest else None,
        float(np.mean([row.status_errors for row in rows])), rows[0].parameters,
        float(np.mean([row.training_s for row in rows])), float(np.mean([row.steps for row in rows])),
    )  # fmt: skip


def table_text(summaries: Sequence[Summary]) -> str:
    """The table for people."""
    lines = [
        f"{'method':17} {'fraction':>8} {'seeds':>5} {'RMSE delta rad':>20} {'RMSE omega 1e-4 pu':>20} "
        f"{'CCT MAE ms':>18} {'max ms':>8} {'status':>6} {'parameters':>10} {'train s':>8} {'steps':>7}"
    ]
    for s in summaries:
        cct = "-" if s.cct_mae_ms is None else _over_seeds(s.cct_mae_ms, s.cct_mae_ms_std, 4, s.seeds)
        largest = "-" if s.cct_max_ms is None else f"{s.cct_max_ms:.3f}"
        lines.append(
            f"{s.method:17} {s.fraction:8g} {s.seeds:5} {_over_seeds(s.rmse_delta, s.rmse_delta_std, 4, s.seeds):>20} "
            f"{_over_seeds(1e4 * s.rmse_omega, 1e4 * s.rmse_omega_std, 3, s.seeds):>20} {cct:>18} {largest:>8} "
            f"{s.status_errors:6.1f} {s.parameters:10} {s.training_s:8.0f} {s.steps:7.0f}"
        )
    return "\n".join(lines)


def _over_seeds(mean: float, deviation: float | None, digits: int, seeds: int) -> str:
    """A mean with its spread, which one seed does not have."""
    return f"{mean:.{digits}f} +- {deviation:.{digits}f}" if seeds > 1 else f"{mean:.{digits}f}"


def table_csv(rows: Sequence[SweepRow]) -> str:
    """One line per method, fraction and seed."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(SweepRow.__dataclass_fields__), lineterminator="\n")
    writer.writeheader()
    writer.writerows(asdict(row) for row in rows)
    return text.getvalue()


def plot_sweep(summaries: Sequence[Summary], title: str) -> Any:
    """Errors over data fraction, one line per method, bars for the spread over seeds."""
    from zoo.plots import new_figure

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

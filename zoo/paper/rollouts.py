"""Beyond the paper: how few rollouts of the shooting residual still draw the boundary."""

from typing import Any

from contingencies.references import reference_boundary
from espinn_moe.boundary import learned_boundary
from espinn_moe.shooting import REFRESH_STEPS, ShootingObjective
from espinn_moe.train import train
from zoo.judging.metrics import cct_errors
from zoo.judging.trajectories import held_out_totals
from zoo.judging.unseen import Validation
from zoo.paper.case30_accuracy import PAPER
from zoo.paper.common import CALIBRATED, PRIMARY
from zoo.paper.entry import Findings, Setting, Task, entry, task
from zoo.paper.members import operators_of
from zoo.paper.tables import Drawing, Presentation, Quantity, Row, Table, cell
from zoo.plots import new_figure
from zoo.surrogates.budgets import COMPARED_BY, plan_for
from zoo.surrogates.catalogue import create_model, make_objective
from zoo.surrogates.datasets import evaluation_grid, training_set

MODEL = "es-pinn"
REFRESHED = (REFRESH_STEPS, 300, 600, 1_200, 2_400)  # steps that learn from the same rollouts
SEEDS = 1  # at most: the curve is over numbers of rollouts


def measure(contingency: str, refresh_steps: int, minutes: float, seed: int, thin: int) -> dict[str, Any]:
    """Train on what decides stability, with rollouts renewed every so many steps, and judge on unseen severities.

    Returns
    -------
    dict
        Post-clearing `rollouts` that were learned from, `steps`, mean and largest CCT error (s) against the fast
        reduced ODE, and the error of angles before 1.5 pi (rad) on held-out pairs of every `thin`-th severity.
    """
    operators = operators_of(contingency)
    scenarios = training_set(operators, 1.0, seed)
    surrogate = create_model(MODEL, [operators], seed)
    surrogate.calibrate([scenarios])
    objective = make_objective(MODEL, surrogate, [scenarios], residual="shooting", refresh_steps=refresh_steps)
    assert isinstance(objective, ShootingObjective)
    plan = plan_for("one-shot", minutes=minutes, seed=seed, clock=COMPARED_BY, residual="shooting")
    result = train(surrogate, objective, plan, validate=Validation(surrogate))
    surrogate.eval()
    alpha = evaluation_grid(operators).unseen_alpha
    errors = cct_errors(learned_boundary(surrogate, alpha), reference_boundary(operators, alpha))
    return {
        "rollouts": objective.rolled_out,
        "steps": result.steps,
        "cct_mae_s": errors.mae,
        "cct_max_s": errors.maximum,
        "rmse_delta_decisive": held_out_totals(surrogate, thin=thin).errors().rmse_delta_decisive,
    }


def _of(setting: Setting, refresh_steps: int) -> list[Task]:
    budget = setting.budget
    return [
        task(
            "rollouts:measure", contingency=PRIMARY, refresh_steps=refresh_steps, minutes=budget.shooting, seed=seed,
            thin=budget.thin,
        )
        for seed in setting.seeds[:SEEDS]
    ]  # fmt: skip


def tasks(setting: Setting) -> list[Task]:
    """One training for each number of rollouts."""
    return [each for steps in REFRESHED for each in _of(setting, steps)]


def present(setting: Setting, findings: Findings) -> Presentation:
    """Errors over the number of rollouts."""
    rows, points = [], []
    for steps in REFRESHED:
        results = findings.of(_of(setting, steps))
        cells = (
            cell([float(each["rollouts"]) for each in results]),
            cell([each["cct_mae_s"] for each in results], PAPER[MODEL][2], 1e3),
            cell([each["cct_max_s"] for each in results], factor=1e3),
            cell([each["rmse_delta_decisive"] for each in results], factor=1e2),
            cell([float(each["steps"]) for each in results]),
        )
        why = findings.why(_of(setting, steps), CALIBRATED, "the paper learns from no rollouts")
        rows.append(Row(f"renewed every {steps} steps", cells, why))
        points += [(each["rollouts"], each["cct_mae_s"]) for each in results if each["cct_mae_s"] is not None]
    table = Table(
        "rollouts",
        f"ES-PINN, shooting residual, {setting.budget.shooting:g} processor minutes, what decides stability",
        "Table 1",
        (
            Quantity("rollouts"),
            Quantity("CCT MAE", "ms"),
            Quantity("largest", "ms"),
            Quantity("decisive RMSE delta", "1e-2 rad"),
            Quantity("steps of training"),
        ),
        tuple(rows),
    )
    note = (
        "Rollouts are post-clearing ones that were learned from; 2,601 trajectories are supervised beside them. "
        "One seed; errors are against the fast reduced ODE on the unseen severities where both have a number."
    )
    return Presentation((table,), (_drawing(points),), (note,))


def _drawing(points: list[tuple[int, float]]) -> Drawing:
    figure, axes = new_figure(height=3.4)
    if points:
        rollouts, errors = zip(*sorted(points), strict=True)
        axes.plot(rollouts, [1e3 * error for error in errors], "o-", label="ES-PINN, shooting residual")
    axes.axhline(PAPER[MODEL][2].mean, ls=":", lw=1.0, color="k", label="the paper's ES-PINN, no rollouts")
    axes.axvline(2601, ls="--", lw=0.8, color="0.6", label="supervised trajectories")
    axes.set(xscale="log", yscale="log", xlabel="rollouts", ylabel="mean CCT error (ms)")
    axes.grid(alpha=0.3, which="both")
    axes.legend(fontsize=7)
    return Drawing("curve", "Mean CCT error over the number of rollouts.", figure)


BENCHMARK = entry("rollouts", tasks, present)

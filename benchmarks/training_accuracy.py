"""CCT error and training time of a surrogate on the primary benchmark, seed by seed, on one core.

Each seed draws its own data subset and weights, trains for the given time, and is judged on the 50 severities
that no training set contains, by the hard CCT of the strict SciPy ODE. The time of one boundary extraction is
shown beside that of its rivals: the strict protocol and the compiled ODE, which needs no training at all. Minutes are
those of the processor, so that figures do not depend on how busy the machine is.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from contingencies.library import load_contingency
from contingencies.operators import PhaseOperators, compile_members
from contingencies.references import reference_boundary
from contingencies.stability import Boundary
from espinn_moe.boundary import learned_boundary
from espinn_moe.margins import HARD, SMOOTH, MarginRule
from espinn_moe.plan import Progress
from espinn_moe.shooting import ShootingObjective
from espinn_moe.train import train
from zoo.judging.metrics import CCTErrors, TrajectoryErrors, cct_errors
from zoo.judging.trajectories import held_out_totals
from zoo.judging.unseen import Validation
from zoo.surrogates.budgets import COMPARED_BY, RESIDUALS, Residual, plan_for
from zoo.surrogates.catalogue import create_model, entry_of, list_models, make_objective, residual_of
from zoo.surrogates.datasets import evaluation_grid, training_set

MINUTES = {"chained": 4.5, "one-shot": 8.0}  # of the processor, by form
THIN = 3  # trajectory errors use one severity in so many; odd, or it would be those of the training
TIMED = 8  # severities of the timing comparison; the strict protocol needs seconds for each


@dataclass(frozen=True)
class SeedResult:
    """One training."""

    seed: int
    errors: CCTErrors
    trajectories: TrajectoryErrors  # on held-out pairs
    rollouts: int  # post-clearing ones that were learned from
    train_s: float  # of the processor
    steps: int
    extraction_s: float  # per severity
    parameters: int


@dataclass(frozen=True)
class Study:
    """What is trained, on what, and how."""

    model: str
    operators: PhaseOperators
    residual: Residual
    fraction: float
    minutes: float
    focus: bool
    options: dict[str, Any] = field(default_factory=dict)  # of the objective, beside the catalogue's


def run_seed(study: Study, seed: int, truth: Boundary, rule: MarginRule) -> SeedResult:
    """Train one seed and compare its boundary with the truth."""
    scenarios = training_set(study.operators, study.fraction, seed)
    surrogate = create_model(study.model, [study.operators], seed)
    surrogate.calibrate([scenarios])
    objective = make_objective(
        study.model, surrogate, [scenarios], focus=study.focus, residual=study.residual, **study.options
    )
    plan = plan_for(
        entry_of(study.model).form, minutes=study.minutes, seed=seed, clock=COMPARED_BY, residual=study.residual
    )

    def report(progress: Progress) -> None:
        if progress.validation is not None and int(progress.elapsed_s) % 20 == 0:
            print(
                f"    {progress.elapsed_s:6.0f} s  step {progress.step}  loss {progress.loss:.2e}  "
                f"training severities {1e3 * progress.validation:.4f} ms",
                flush=True,
            )

    result = train(surrogate, objective, plan, report=report, validate=Validation(surrogate))
    surrogate.eval()
    started = time.perf_counter()
    learned = learned_boundary(surrogate, truth.alpha, 0, rule)
    extraction = (time.perf_counter() - started) / len(truth.alpha)
    errors = cct_errors(learned, truth)
    trajectories = held_out_totals(surrogate, thin=THIN).errors()
    rollouts = objective.rolled_out if isinstance(objective, ShootingObjective) else 0
    return SeedResult(
        seed, errors, trajectories, rollouts, result.used_s, result.steps, extraction, surrogate.n_parameters
    )


def reference_times(operators: PhaseOperators, alpha: np.ndarray) -> tuple[float, float]:
    """Seconds per severity of the strict and of the fast ODE."""
    reference_boundary(operators, alpha[:1])  # compiled code is loaded before the clock starts
    chosen = alpha[np.linspace(0, len(alpha) - 1, TIMED).astype(int)]
    seconds = []
    for reference, severities in (("strict", chosen), ("fast", alpha)):
        started = time.perf_counter()
        reference_boundary(operators, severities, reference)  # type: ignore[arg-type]
        seconds.append((time.perf_counter() - started) / len(severities))
    return seconds[0], seconds[1]


def main() -> None:
    """Print one row per seed, the means, and the figures that are followed over time."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, help="of the processor; by default 4.5, and 8 for one-shot models")
    parser.add_argument("--model", choices=list_models(), default="es-pinn-chained")
    parser.add_argument("--residual", choices=RESIDUALS, help="by default the model's own")
    parser.add_argument("--contingency", default="ieee30-line-3-4-restore")
    parser.add_argument("--fraction", type=float, default=1.0)
    parser.add_argument("--no-focus", action="store_true", help="learn whole trajectories, as the paper does")
    parser.add_argument("--forward-only", action="store_true", help="pointwise: the event state does not follow")
    parser.add_argument("--refresh-steps", type=int, help="shooting: steps that learn from the same rollouts")
    parser.add_argument("--reference", choices=["strict", "fast"], default="strict", help="truth of the errors")
    parser.add_argument("--no-rivals", action="store_true", help="leave out the times of the reference simulators")
    parser.add_argument("--margin", choices=["hard", "smooth"], default="hard")
    arguments = parser.parse_args()
    torch.set_num_threads(1)

    (operators,) = compile_members([load_contingency(arguments.contingency)])
    alpha = evaluation_grid(operators).unseen_alpha
    truth = reference_boundary(operators, alpha, arguments.reference)
    rule = HARD if arguments.margin == "hard" else SMOOTH
    residual, form = residual_of(arguments.model, arguments.residual), entry_of(arguments.model).form
    minutes = MINUTES[form] if arguments.minutes is None else arguments.minutes
    options: dict[str, Any] = {"forward_only": True} if arguments.forward_only else {}
    if arguments.refresh_steps is not None:
        options["refresh_steps"] = arguments.refresh_steps
    study = Study(arguments.model, operators, residual, arguments.fraction, minutes, not arguments.no_focus, options)
    print(
        f"{arguments.model} on {arguments.contingency}, {residual} residual, fraction {arguments.fraction:g}, "
        f"{minutes:g} processor min, {'whole trajectories' if arguments.no_focus else 'focus'}, "
        f"{''.join(f'{name} {value}, ' for name, value in options.items())}"
        f"{arguments.margin} margin; "
        f"truth: {arguments.reference} ODE, {int(truth.finite.sum())} of {len(alpha)} severities finite"
    )
    rows = []
    for seed in range(arguments.first_seed, arguments.first_seed + arguments.seeds):
        row = run_seed(study, seed, truth, rule)
        rows.append(row)
        print_row(row)
    if not arguments.no_rivals:
        print_rivals(arguments.model, operators, alpha, float(np.mean([row.extraction_s for row in rows])))
    print_figures(arguments.model, rows)


def print_row(row: SeedResult) -> None:
    """Errors of one seed."""
    mae, p95, largest = (np.nan if e is None else 1e3 * e for e in (row.errors.mae, row.errors.p95, row.errors.maximum))
    print(
        f"  seed {row.seed}: CCT MAE {mae:.4f} ms  P95 {p95:.4f}  max {largest:.4f}  "
        f"({row.errors.finite} of {row.errors.reference_finite} finite, {row.errors.mismatches} of other status)  "
        f"{row.steps} steps in {row.train_s:.0f} processor s  {row.parameters:,} parameters  "
        f"{row.rollouts:,} rollouts",
        flush=True,
    )
    states = row.trajectories
    print(
        f"    held-out pairs, whole {states.rmse_delta:.5f} rad {states.rmse_omega:.3e} pu, "
        f"decisive {states.rmse_delta_decisive:.5f} rad {states.rmse_omega_decisive:.3e} pu",
        flush=True,
    )


def print_rivals(model: str, operators: PhaseOperators, alpha: np.ndarray, ours_s: float) -> None:
    """One extraction beside the reference simulators."""
    strict_s, fast_s = reference_times(operators, alpha)
    print(
        f"one CCT: {model} {1e3 * ours_s:.1f} ms; rivals: strict SciPy ODE {1e3 * strict_s:.0f} ms "
        f"({strict_s / ours_s:.1f}x), fast compiled ODE {1e3 * fast_s:.1f} ms ({fast_s / ours_s:.2f}x, no training)"
    )


def print_figures(model: str, rows: list[SeedResult]) -> None:
    """Means over seeds and the largest error of all, by name."""
    found = [row.errors for row in rows if row.errors.mae is not None and row.errors.maximum is not None]
    name = model.removeprefix("es-pinn-").replace("-", "_")
    errors = "oneshot" if model == "es-pinn" else f"{name}_cct"
    if found:
        print(f"figure {errors}_mae_ms {1e3 * np.mean([e.mae for e in found]):.5f} ms")
        print(f"figure {errors}_max_ms {1e3 * max(e.maximum or 0.0 for e in found):.5f} ms")
    print(f"figure {name}_train_s {np.mean([row.train_s for row in rows]):.1f} s")


if __name__ == "__main__":
    main()

"""CCT error and training time of a surrogate on the primary benchmark, seed by seed, on one core.

Each seed draws its own data subset and weights, trains for the given time, and is judged on the 50 severities
that no training set contains, by the hard CCT of the strict SciPy ODE. The time of one boundary extraction is
shown beside that of its rivals: the strict protocol and the compiled ODE, which needs no training at all.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import time
from dataclasses import dataclass

import numpy as np
import torch

from contingencies.library import load_contingency
from contingencies.references import reference_boundary
from contingencies.stability import Boundary
from espinn_moe.boundary import learned_boundary
from espinn_moe.margins import HARD, SMOOTH, MarginRule
from espinn_moe.plan import Progress
from espinn_moe.train import train
from zoo.judging.metrics import CCTErrors, cct_errors
from zoo.judging.unseen import Validation
from zoo.surrogates.catalogue import make_objective
from zoo.surrogates.datasets import evaluation_grid
from zoo.training.session import TrainingRequest, prepare

TIMED = 8  # severities of the timing comparison; the strict protocol needs seconds for each


@dataclass(frozen=True)
class SeedResult:
    """One training."""

    seed: int
    errors: CCTErrors
    train_s: float
    steps: int
    extraction_s: float  # per severity
    parameters: int


def run_seed(request: TrainingRequest, contingency: str, truth: Boundary, rule: MarginRule) -> SeedResult:
    """Train one seed and compare its boundary with the truth."""
    prepared = prepare([load_contingency(contingency)], request)
    objective = make_objective(request.model, prepared.surrogate, prepared.scenarios, focus=request.focus)

    def report(progress: Progress) -> None:
        if progress.validation is not None and int(progress.elapsed_s) % 20 == 0:
            print(
                f"    {progress.elapsed_s:6.0f} s  step {progress.step}  loss {progress.loss:.2e}  "
                f"training severities {1e3 * progress.validation:.4f} ms",
                flush=True,
            )

    result = train(prepared.surrogate, objective, prepared.plan, report=report, validate=Validation(prepared.surrogate))
    prepared.surrogate.eval()
    started = time.perf_counter()
    learned = learned_boundary(prepared.surrogate, truth.alpha, 0, rule)
    extraction = (time.perf_counter() - started) / len(truth.alpha)
    errors = cct_errors(learned, truth)
    return SeedResult(request.seed, errors, result.elapsed_s, result.steps, extraction, prepared.surrogate.n_parameters)


def reference_times(contingency: str, alpha: np.ndarray) -> tuple[float, float]:
    """Seconds per severity of the strict and of the fast ODE."""
    from contingencies.operators import compile_members

    (operators,) = compile_members([load_contingency(contingency)])
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
    parser.add_argument("--minutes", type=float, default=4.5)
    parser.add_argument("--model", default="es-pinn-chained")
    parser.add_argument("--contingency", default="ieee30-line-3-4-restore")
    parser.add_argument("--fraction", type=float, default=1.0)
    parser.add_argument("--no-focus", action="store_true", help="learn whole trajectories, as the paper does")
    parser.add_argument("--reference", choices=["strict", "fast"], default="strict", help="truth of the errors")
    parser.add_argument("--margin", choices=["hard", "smooth"], default="hard")
    arguments = parser.parse_args()
    torch.set_num_threads(1)

    from contingencies.operators import compile_members

    (operators,) = compile_members([load_contingency(arguments.contingency)])
    alpha = evaluation_grid(operators).unseen_alpha
    truth = reference_boundary(operators, alpha, arguments.reference)
    rule = HARD if arguments.margin == "hard" else SMOOTH
    print(
        f"{arguments.model} on {arguments.contingency}, fraction {arguments.fraction:g}, {arguments.minutes:g} min, "
        f"{'whole trajectories' if arguments.no_focus else 'focus'}, {arguments.margin} margin; "
        f"truth: {arguments.reference} ODE, {int(truth.finite.sum())} of {len(alpha)} severities finite"
    )
    rows = []
    for seed in range(arguments.seeds):
        request = TrainingRequest(
            arguments.model, arguments.fraction, seed, minutes=arguments.minutes, focus=not arguments.no_focus
        )
        row = run_seed(request, arguments.contingency, truth, rule)
        rows.append(row)
        mae, p95, largest = (
            np.nan if e is None else 1e3 * e for e in (row.errors.mae, row.errors.p95, row.errors.maximum)
        )
        print(
            f"  seed {seed}: CCT MAE {mae:.4f} ms  P95 {p95:.4f}  max {largest:.4f}  "
            f"({row.errors.finite} of {row.errors.reference_finite} finite, {row.errors.mismatches} of other status)  "
            f"{row.steps} steps in {row.train_s:.0f} s  {row.parameters:,} parameters",
            flush=True,
        )
    strict_s, fast_s = reference_times(arguments.contingency, alpha)
    ours_s = float(np.mean([row.extraction_s for row in rows]))
    print(
        f"one CCT: {arguments.model} {1e3 * ours_s:.1f} ms; rivals: strict SciPy ODE {1e3 * strict_s:.0f} ms "
        f"({strict_s / ours_s:.1f}x), fast compiled ODE {1e3 * fast_s:.1f} ms ({fast_s / ours_s:.2f}x, no training)"
    )
    found = [row.errors for row in rows if row.errors.mae is not None and row.errors.maximum is not None]
    figure = arguments.model.removeprefix("es-pinn-").replace("-", "_")
    if found:
        print(f"figure {figure}_cct_mae_ms {1e3 * np.mean([e.mae for e in found]):.5f} ms")
        print(f"figure {figure}_cct_max_ms {1e3 * max(e.maximum or 0.0 for e in found):.5f} ms")
    print(f"figure {figure}_train_s {np.mean([row.train_s for row in rows]):.1f} s")


if __name__ == "__main__":
    main()

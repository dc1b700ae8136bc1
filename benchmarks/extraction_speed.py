"""Time of one boundary extraction, severity by severity on one core: strict ODE, fast ODE, and two surrogates.

All four search alike: 101 candidates, a second look into the crossing cell, a root to 1e-6 s. The surrogates are
trained for a short time first (or taken from stored checkpoints), long enough that their margins cross zero where the
true ones do; how accurate they are does not change how long an extraction takes.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from contingencies.library import Contingency, load_contingency
from contingencies.operators import compile_contingency
from contingencies.references import reference_boundary
from contingencies.stability import Boundary
from espinn_moe.boundary import learned_boundary
from espinn_moe.margins import MarginRule, default_rule
from espinn_moe.surrogate import Surrogate
from espinn_moe.train import train
from zoo.surrogates import checkpoints
from zoo.training.request import TrainingRequest, prepare

MODELS = ("es-pinn", "es-pinn-chained")


def quickly_trained(model: str, contingency: Contingency, seconds: float) -> Surrogate:
    """A surrogate whose margins cross zero, for timing only."""
    prepared = prepare([contingency], TrainingRequest(model, minutes=seconds / 60.0))
    train(prepared.surrogate, prepared.objective, prepared.plan)
    return prepared.surrogate.eval()


def seconds_per_severity(extract: Callable[[np.ndarray], Boundary], alpha: np.ndarray, repeats: int) -> float:
    """Median processor time over severities and repetitions: wall time on shared cores favours whoever repeats more."""
    extract(alpha[:1])
    times = []
    for value in np.repeat(alpha, repeats):
        started = time.process_time()
        extract(np.array([value]))
        times.append(time.process_time() - started)
    return float(statistics.median(times))


def main() -> None:
    """Print a table and the figures that are tracked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--contingency", default="ieee30-line-3-4-restore")
    parser.add_argument("--alpha", type=float, nargs="*", default=[0.55, 0.63, 0.71, 0.79, 0.87, 0.95])
    parser.add_argument("--train-seconds", type=float, default=30.0, help="per surrogate")
    parser.add_argument("--checkpoint", action="append", default=[], metavar="MODEL=FILE", help="instead of training")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--strict-repeats", type=int, default=1)
    options = parser.parse_args()

    torch.set_num_threads(1)
    contingency, alpha = load_contingency(options.contingency), np.array(options.alpha)
    operators = compile_contingency(contingency)
    files = dict(entry.split("=", 1) for entry in options.checkpoint)
    strict = seconds_per_severity(lambda a: reference_boundary(operators, a, "strict"), alpha, options.strict_repeats)
    fast = seconds_per_severity(lambda a: reference_boundary(operators, a, "fast"), alpha, options.repeats)
    truth = reference_boundary(operators, alpha)
    print(f"{options.contingency}, {len(alpha)} severities, median processor time per severity, one core")
    print(f"  {'strict SciPy ODE':34} {1e3 * strict:9.2f} ms")
    print(f"  {'fast compiled ODE':34} {1e3 * fast:9.2f} ms")
    figures = []
    for model in MODELS:
        if model in files:
            surrogate = checkpoints.from_bytes(Path(files[model]).read_bytes(), contingency).surrogate
        else:
            surrogate = quickly_trained(model, contingency, options.train_seconds)

        def extract(a: np.ndarray, surrogate: Surrogate = surrogate, rule: MarginRule | None = None) -> Boundary:
            return learned_boundary(surrogate, a, 0, rule)

        seconds = seconds_per_severity(extract, alpha, options.repeats)
        learned = extract(alpha)
        rule = default_rule(surrogate)
        print(f"  {f'{model}, {rule.kind} margin':34} {1e3 * seconds:9.2f} ms", end="   ")
        print(f"{strict / seconds:.1f} x faster than strict, {seconds / fast:.1f} x slower than fast", end="; ")
        print(f"finite {int(learned.finite.sum())} of {int(truth.finite.sum())}")
        figures += [
            (f"extraction_over_strict_{model}", strict / seconds),
            (f"fast_over_extraction_{model}", fast / seconds),
        ]
    for name, value in figures:
        print(f"figure {name} {value:.4g} x")


if __name__ == "__main__":
    main()

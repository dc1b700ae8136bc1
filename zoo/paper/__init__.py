"""Every table and figure of the paper as an entry that can be run: one small file each."""

import importlib
from typing import TYPE_CHECKING

from contingencies.errors import NotFoundError

if TYPE_CHECKING:
    from zoo.paper.entry import Benchmark

NAMES = (  # in the order of the paper; the module is the name with underscores
    "case30-accuracy",
    "case30-matched",
    "case30-extrapolation",
    "sensitivity",
    "trajectory",
    "cross-system",
    "beta-sweep",
    "distillation",
    "runtime",
    "moe-low-data",
    "family-scaling",
    "time-sampling",
    "dae-convergence",
)


def load_benchmark(name: str) -> "Benchmark":
    """The entry of a name."""
    if name not in NAMES:
        raise NotFoundError(f"benchmark {name[:60]!r} is not known; use all, or some of {', '.join(NAMES)}.")
    benchmark: Benchmark = importlib.import_module(f"zoo.paper.{name.replace('-', '_')}").BENCHMARK
    return benchmark

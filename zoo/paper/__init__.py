"""Every table and figure of the paper as an entry that can be run: one small file each."""

import importlib
from typing import TYPE_CHECKING, NamedTuple

from contingencies.errors import NotFoundError, did_you_mean

if TYPE_CHECKING:
    from zoo.paper.entry import Benchmark


class Listed(NamedTuple):
    """What is shown of an entry before it is loaded."""

    title: str
    source: str  # where the published numbers stand


BEYOND = "beyond the paper"  # source of what the paper has no counterpart of
ENTRIES = {  # in the order of the paper; the module is the name with underscores
    "case30-accuracy": Listed("Accuracy of methods and ablations on the primary benchmark", "Table 1"),
    "case30-longer": Listed("Longer trainings of the paper's form", BEYOND),
    "rollouts": Listed("How few rollouts are enough", BEYOND),
    "shooting-systems": Listed("The paper's form with the shooting residual on all systems", BEYOND),
    "case30-matched": Listed("Training-grid reconstruction of the primary benchmark", "Table 6"),
    "case30-extrapolation": Listed("Mild extrapolation in severity", "Table 7"),
    "sensitivity": Listed("Consistency of the boundary's derivative", "Table 8"),
    "trajectory": Listed("A supercritical trajectory: critical pair and all machines", "Figures 2 and 6"),
    "cross-system": Listed("Boundaries across systems, faults and clearing actions", "Figure 3"),
    "beta-sweep": Listed("Sharpness of the smooth maximum", "Figure 5"),
    "distillation": Listed("Heads distilled from learned boundaries", "Figure 4"),
    "runtime": Listed("What one CCT costs", "Table 2"),
    "moe-low-data": Listed("One model for two faults, with few data", "Table 3"),
    "moe-shooting": Listed("One model for two faults, with the shooting residual", BEYOND),
    "family-scaling": Listed("Families of growing size", BEYOND),
    "time-sampling": Listed("Spacing of trajectory samples", "Appendix, temporal sampling"),
    "dae-convergence": Listed("Step of the full-network DAE", "Table 5"),
}
NAMES = tuple(ENTRIES)


def load_benchmark(name: str) -> "Benchmark":
    """The entry of a name, with all that it imports."""
    check_name(name)
    benchmark: Benchmark = importlib.import_module(f"zoo.paper.{name.replace('-', '_')}").BENCHMARK
    return benchmark


def check_name(name: str) -> None:
    """Refuse a name that no entry has."""
    if name not in ENTRIES:
        raise NotFoundError(
            f"benchmark {name[:60]!r} is not known; use all, or some of {', '.join(NAMES)}.{did_you_mean(name, NAMES)}"
        )

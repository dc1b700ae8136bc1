"""How fast a deployed head answers, against the strict ODE for the same severities.

Run: python benchmarks/head_latency.py [--severities 5]

Both sides are measured in one run on one core. A single query is everything that
`Registry.cct(name, alpha)` does: noticing whether a deployment changed, finding the loaded
head, the status, the number, its bound and its provenance. Medians over repetitions; the head
is timed in batches of 2,000 calls per severity, as in the paper. The rate of many severities is per second of CPU time,
which other work on the machine changes little; by the clock it was once read as half of what it is.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from contingencies.library import load_contingency
from contingencies.operators import compile_contingency
from contingencies.references import reference_cct
from registry import Registry
from registry.home import Home
from zoo.heads.distill import HeadSettings, distill
from zoo.lookup import find_registered

NAME = "ieee30-line-3-4-restore"
CALLS = 2000
VECTOR = 2_000_000


def main() -> None:
    """Distill, deploy, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--severities", type=int, default=5, help="severities asked of the strict ODE")
    severities = np.random.default_rng(0).uniform(0.56, 1.0, parser.parse_args().severities)
    operators = compile_contingency(load_contingency(NAME))
    with tempfile.TemporaryDirectory() as folder:
        with Home.open(folder) as home:
            distill(home, find_registered(home, NAME), settings=HeadSettings(strict=2))
            home.deploy(NAME, reason="benchmark")
        with Registry.open(folder) as registry:
            reference_cct(operators, 0.9, "fast")  # compiles
            strict, fast, single = [], [], []
            for alpha in map(float, severities):
                started = time.perf_counter()
                truth = reference_cct(operators, alpha, "strict")
                strict.append(time.perf_counter() - started)
                started = time.perf_counter()
                reference_cct(operators, alpha, "fast")
                fast.append(time.perf_counter() - started)
                cct = registry.cct
                cct(NAME, alpha)
                repetitions = []
                for _ in range(5):
                    started = time.perf_counter()
                    for _ in range(CALLS):
                        cct(NAME, alpha)
                    repetitions.append((time.perf_counter() - started) / CALLS)
                single.append(statistics.median(repetitions))
                print(
                    f"alpha {alpha:.4f}  strict ODE {strict[-1]:.3f} s  compiled ODE {1e3 * fast[-1]:.2f} ms  "
                    f"head {1e6 * single[-1]:.2f} us  difference {1e3 * (cct(NAME, alpha).cct - truth.cct):+.5f} ms"
                )
            alpha = np.random.default_rng(1).uniform(0.0, 1.0, VECTOR)
            registry.cct(NAME, alpha)
            vector = []
            for _ in range(7):
                started = time.process_time()
                registry.cct(NAME, alpha)
                vector.append(VECTOR / (time.process_time() - started))
        cold = []
        for _ in range(5):
            command = [sys.executable, str(Path(__file__).parents[1] / "cli.py"), "cct", NAME, "--alpha", "0.9"]
            started = time.perf_counter()
            subprocess.run([*command, "--home", folder], check=True, capture_output=True)
            cold.append(time.perf_counter() - started)
    head = statistics.median(single)
    print(f"compiled ODE over head: {statistics.median(fast) / head:.0f} x")
    print(f"figure head_cold_process_s {statistics.median(cold):.3f} s")
    print(f"figure head_single_us {1e6 * head:.2f} us")
    print(f"figure head_over_strict {statistics.median(strict) / head:.0f} x")
    print(f"figure head_vector_per_s {statistics.median(vector):.3g} 1/s")


if __name__ == "__main__":
    main()

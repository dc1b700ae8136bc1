"""The fast ODE against the strict SciPy protocol: one CCT, whole boundaries, training data.

Both sides answer the same question (101 candidates, second look, root) on the same core in the same
run; the paper's surrogate reached 1.9x on a CPU and 12.8x on CUDA against such a protocol.
"""

import argparse
import time

import numpy as np

from contingencies.library import load_contingency
from contingencies.ode import trajectory_grid
from contingencies.operators import compile_contingency
from contingencies.references import reference_cct

PRIMARY = "ieee30-line-3-4-restore"
BOUNDARIES = ("ieee9-mech-g2-restore", "ieee14-line-4-5-remove", "ieee30-bus-3-trip", "ieee30-line-3-4-remove")
UNSEEN = np.linspace(0.0, 1.0, 101)[1::2]


def seconds(task, repeats):
    """Median wall time of a task, s."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        task()
        times.append(time.perf_counter() - start)
    return float(np.median(times))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--all-boundaries", action="store_true", help="compare every finite severity of every benchmark"
    )
    arguments = parser.parse_args()

    operators = compile_contingency(load_contingency(PRIMARY))
    reference_cct(operators, 0.9)  # compile before timing
    finite = [float(a) for a in UNSEEN if reference_cct(operators, float(a)).status == "finite"]
    print(f"{PRIMARY}: {len(finite)} of {len(UNSEEN)} unseen severities are finite")

    header = {"alpha": 6, "strict s": 12, "fast s": 12, "difference s": 13, "strict ms": 10, "fast ms": 9, "ratio": 7}
    print(" ".join(f"{title:>{width}}" for title, width in header.items()))
    ratios, differences = [], []
    for alpha in finite if arguments.all_boundaries else finite[:: max(1, len(finite) // 6)]:
        answers = {}

        def ask(reference, alpha=alpha, answers=answers):
            answers[reference] = reference_cct(operators, alpha, reference).cct

        strict_s, fast_s = seconds(lambda ask=ask: ask("strict"), 1), seconds(lambda ask=ask: ask("fast"), 15)
        differences.append(abs(answers["strict"] - answers["fast"]))
        ratios.append(strict_s / fast_s)
        print(
            f"{alpha:6.2f} {answers['strict']:12.7f} {answers['fast']:12.7f} {differences[-1]:13.1e} "
            f"{strict_s * 1e3:10.0f} {fast_s * 1e3:9.2f} {ratios[-1]:7.0f}"
        )

    for name in BOUNDARIES if arguments.all_boundaries else ():
        other = compile_contingency(load_contingency(name))
        worst = 0.0
        for alpha in UNSEEN:
            fast = reference_cct(other, float(alpha))
            if fast.cct is not None:
                strict = reference_cct(other, float(alpha), "strict")
                assert strict.cct is not None, f"{name} at {alpha}: strict is {strict.status}, fast is finite"
                worst = max(worst, abs(strict.cct - fast.cct))
        differences.append(worst)
        print(f"{name}: largest difference {worst:.1e} s")

    grid = (np.linspace(0, 1, 51), np.linspace(0.25, 1.25, 51))
    data_s = seconds(lambda: trajectory_grid(operators, *grid), 3)
    print(f"training data 51 x 51 x 201: {data_s:.2f} s")
    print(f"figure fast_over_strict {np.median(ratios):.0f} x")
    print(f"figure fast_minus_strict_max_s {max(differences):.1e} s")
    print(f"figure training_data_s {data_s:.2f} s")


if __name__ == "__main__":
    main()

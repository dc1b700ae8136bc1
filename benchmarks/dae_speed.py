"""Seconds for one hard CCT of IEEE 30 on the full network at a 2.5 ms step, beside the paper's DAE.

As in the paper: the median over the 50 unseen severities of the primary benchmark, one core, after
warm-up, without loading and compiling. Ours scans 101 clearing instants, looks again into the
crossing cell, and refines to a microsecond.
"""

import time

import numpy as np

from contingencies.dae import ZipLoads, dae_cct
from contingencies.library import load_contingency
from contingencies.operators import compile_contingency
from contingencies.stability import CCT

PAPER_S = 202.1878  # median of the paper's full-network DAE, CPU
STEP_S = 2.5e-3
UNSEEN = np.arange(0.01, 1.0, 0.02)  # between the 51 training severities


def timed(name: str, alphas: np.ndarray, loads: ZipLoads | None = None) -> tuple[np.ndarray, list[CCT]]:
    """Seconds for each severity, and the answers."""
    operators = compile_contingency(load_contingency(name))
    dae_cct(operators, float(alphas[-1]), 1e-2, loads)  # warm-up
    seconds, answers = [], []
    for alpha in alphas:
        start = time.perf_counter()
        answers.append(dae_cct(operators, float(alpha), STEP_S, loads))
        seconds.append(time.perf_counter() - start)
    return np.array(seconds), answers


def main() -> None:
    """Print the times and their figures."""
    print(f"{'IEEE 30 at 2.5 ms':44}{'severities':>11}{'finite':>8}{'median, s':>11}{'slowest, s':>12}")
    print(f"{'paper, full-network DAE':44}{50:11d}{'':8}{PAPER_S:11.4f}")
    rows = {
        "ieee30-line-3-4-restore": timed("ieee30-line-3-4-restore", UNSEEN),
        "ieee30-bus-3-trip": timed("ieee30-bus-3-trip", np.array([0.7])),
        "ieee30-bus-3-trip, loads 40/30/30 % ZIP": timed("ieee30-bus-3-trip", np.array([0.7]), ZipLoads(0.4, 0.3, 0.3)),
    }
    for label, (seconds, answers) in rows.items():
        finite = sum(answer.status == "finite" for answer in answers)
        print(f"{label:44}{len(seconds):11d}{finite:8d}{np.median(seconds):11.4f}{seconds.max():12.4f}")
    median = float(np.median(rows["ieee30-line-3-4-restore"][0]))
    print(f"figure dae_cct_s {median:.4f} s")
    print(f"figure dae_over_paper {PAPER_S / median:.0f} x")


if __name__ == "__main__":
    main()

"""Cost per sample of hard-routed experts as their number grows from 2 to 64, on one core.

Every batch has the same number of rows and mixes all members; the time is that of the values and of the
gradient with respect to all weights. Beside the grouped products stands the rival that asks one expert after the other.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import time
from collections.abc import Callable

import numpy as np
import torch

from contingencies.families import generate_family
from contingencies.library import load_system
from contingencies.operators import PhaseOperators, compile_members
from contingencies.recipes import Recipe
from espinn_moe.chained_moe import ChainedMoE
from espinn_moe.one_shot import POST_CLEARING, HardRoutedMoE
from zoo.surrogates.catalogue import create_model

COUNTS = (2, 4, 8, 16, 33, 64)


def members(count: int) -> list[PhaseOperators]:
    """Line faults of the New England system, cleared by removal and then by restoration."""
    system = load_system("ieee39")
    families = [
        generate_family(system, Recipe("line", clearing, impedance=None)).members
        for clearing in ("remove-line", "restore")
    ]
    return compile_members([member for family in families for member in family][:count])


def median_s(task: Callable[[], None], repeats: int) -> float:
    """Median wall time of a task after a warm-up, s."""
    task()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        task()
        times.append(time.perf_counter() - start)
    return float(np.median(times))


def chained_step(model: ChainedMoE, rows: int, grouped: bool) -> Callable[[], None]:
    """Remainder coefficients of post-clearing windows, and their gradient."""
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(rows, model.post_inputs.width, generator=generator, dtype=model.dtype)
    member = torch.arange(rows) % len(model.members)

    def step() -> None:
        model.zero_grad(set_to_none=True)
        if grouped:
            model.remainder(POST_CLEARING, inputs, member).square().sum().backward()
            return
        shared = sum(
            model.remainder(POST_CLEARING, inputs[member == k], k).square().sum() for k in range(len(model.members))
        )
        assert isinstance(shared, torch.Tensor)
        shared.backward()

    return step


def one_shot_step(model: HardRoutedMoE, rows: int) -> Callable[[], None]:
    """States and rates of whole trajectories, and their gradient."""
    generator = torch.Generator().manual_seed(0)
    share = torch.rand(3, rows, generator=generator, dtype=torch.float64).to(model.dtype)
    window = model.members[0].window
    t, t_c = window.T * share[0], window.t_c[0] + (window.t_c[1] - window.t_c[0]) * share[2]
    member = torch.arange(rows) % len(model.members)

    def step() -> None:
        model.zero_grad(set_to_none=True)
        states, rates = model.states_and_rates(t, share[1], t_c, member)
        (states.square().sum() + rates.square().sum()).backward()

    return step


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=3072, help="samples in a batch")
    parser.add_argument("--repeats", type=int, default=15, help="timed batches; the median counts")
    parser.add_argument("--counts", default=",".join(map(str, COUNTS)), help="numbers of experts")
    arguments = parser.parse_args()

    torch.set_num_threads(1)
    counts = [int(part) for part in arguments.counts.split(",")]
    everyone = members(max(counts))
    print(f"{arguments.rows} rows, ten machines; microseconds per sample, values and gradient")
    print(f"{'experts':>7} {'moe-chained':>12} {'one by one':>11} {'moe':>8} {'parameters':>11}")
    grouped, plain = [], []
    for count in counts:
        chained = create_model("moe-chained", everyone[:count])
        one_shot = create_model("moe", everyone[:count])
        assert isinstance(chained, ChainedMoE) and isinstance(one_shot, HardRoutedMoE)
        seconds = [
            median_s(step, arguments.repeats)
            for step in (
                chained_step(chained, arguments.rows, grouped=True),
                chained_step(chained, arguments.rows, grouped=False),
                one_shot_step(one_shot, arguments.rows),
            )
        ]
        micro = [1e6 * value / arguments.rows for value in seconds]
        grouped.append(micro[0])
        plain.append(micro[2])
        print(f"{count:7} {micro[0]:12.2f} {micro[1]:11.2f} {micro[2]:8.2f} {chained.n_parameters:11}", flush=True)
    print(f"figure moe_chained_cost_ratio_{counts[-1]}_over_{counts[0]} {grouped[-1] / grouped[0]:.2f} x")
    print(f"figure moe_cost_ratio_{counts[-1]}_over_{counts[0]} {plain[-1] / plain[0]:.2f} x")


if __name__ == "__main__":
    main()

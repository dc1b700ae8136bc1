"""The search for crossings against brute force at 0.25 ms, and its time against a former release.

Contingencies are drawn from wscc9, ieee39 and ieee118: line and bus faults near either end and in the middle of lines,
nearly bolted and softer, restored, removed or tripped, in three windows, damped and undamped, at several severities.
Brute force is the compiled Runge-Kutta integrator at every 0.25 ms of the clearing window. An interval counts when it
holds three such instants or more, so that it is at least 0.5 ms wide.

    python benchmarks/campaigns/crossings.py --contingencies 320 --former path/to/a/former/checkout
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path

import numpy as np

from contingencies.families import generate_family
from contingencies.fault_specs import Shunt
from contingencies.library import Contingency, System, load_system
from contingencies.ode import FastODE
from contingencies.operators import PhaseOperators, compile_contingency
from contingencies.recipes import Recipe
from contingencies.references import METHODS
from contingencies.search import Plan, first_crossing
from contingencies.spec import Window
from contingencies.stability import Crossing

BRUTE_S = 2.5e-4
PROMISE_S = 5e-4
SHARES = {"wscc9": 0.3, "ieee39": 0.6, "ieee118": 0.1}
WINDOWS = (
    Window(t_f=0.2, T=3.2, t_c=(0.21, 0.71)),
    Window(t_f=0.1, T=2.1, t_c=(0.12, 0.62)),
    Window(t_f=0.0, T=5.0, t_c=(0.03, 0.43)),
)
FAULTS = (
    ("line", "remove-line", {"position": 0.5}),
    ("line", "remove-line", {"position": 0.95}),
    ("line", "restore", {"position": 0.05}),
    ("bus", "remove-line", {"shunt": Shunt(g=0.0, b=-1e6)}),
    ("bus", "restore", {"shunt": Shunt(g=0.0, b=-1e6)}),
    ("bus", "trip-feeders", {"shunt": Shunt(g=0.0, b=-100.0)}),
)
DAMPINGS = (0.0, 2.0)
SEVERITIES = (1.0, 1.0, 0.5, 2.0, 4.0)
REPEATS = 3
FORMER = """
import json, sys, time
from contingencies.library import Contingency, System
from contingencies.operators import compile_contingency
from contingencies.stability import reference_cct
for line in sys.stdin:
    system, network, contingency, alpha = json.loads(line)
    system = System.from_json(system, network.encode() if network else None)
    operators = compile_contingency(Contingency.from_json(contingency, system))
    reference_cct(operators, alpha)
    times = []
    for _ in range(3):
        start = time.process_time()
        reference_cct(operators, alpha)
        times.append(time.process_time() - start)
    print(min(times), flush=True)
"""


@dataclass(frozen=True, eq=False)
class Case:
    """One contingency at one severity."""

    contingency: Contingency
    operators: PhaseOperators
    alpha: float


def damped(system: System, damping: float) -> System:
    """The system with the same D at every machine."""
    machines = system.spec.machines
    units = tuple(unit.model_copy(update={"D": damping}) for unit in machines.units)
    return replace(
        system, spec=system.spec.model_copy(update={"machines": machines.model_copy(update={"units": units})})
    )


def drawn_cases(count: int, seed: int) -> Iterator[Case]:
    """Contingencies drawn at random, each system its share."""
    rng = np.random.default_rng(seed)
    for name, share in SHARES.items():
        pool = [
            member
            for damping in DAMPINGS
            for window in WINDOWS
            for fault, clearing, options in FAULTS
            for member in generate_family(
                damped(load_system(name), damping), Recipe(fault, clearing, window=window, **options)
            ).members
        ]
        for k in rng.choice(len(pool), size=min(len(pool), round(count * share)), replace=False):
            yield Case(pool[k], compile_contingency(pool[k]), float(rng.choice(SEVERITIES)))


def brute_force(case: Case) -> tuple[np.ndarray, np.ndarray]:
    """Clearing instants every 0.25 ms, s, and whether each is unstable."""
    first, last = case.operators.window.t_c
    t_c = np.linspace(first, last, round((last - first) / BRUTE_S) + 1)
    return t_c, FastODE(case.operators, case.alpha).margins(t_c, stop_at_crossing=True) >= 0


def missed(t_c: np.ndarray, unstable: np.ndarray, crossing: Crossing) -> list[tuple[str, float, float]]:
    """Intervals of brute force, wide enough to count, of which the search has nothing."""
    found = np.zeros(len(t_c), dtype=bool)
    for start, end in crossing.stable:
        found |= (t_c >= start) & (t_c <= end)
    lost, at = [], 0
    for kind, group in groupby(unstable.tolist()):
        size = len(list(group))
        inside = slice(at, at + size)
        if (size - 1) * BRUTE_S >= PROMISE_S - 1e-9 and (found[inside] != (not kind)).all():
            lost.append(("unstable" if kind else "stable", float(t_c[inside][0]), float(t_c[inside][-1])))
        at += size
    return lost


def wrong_restabilises(unstable: np.ndarray, crossing: Crossing) -> bool:
    """Whether `restabilises` contradicts brute force; intervals below the promise count for neither side."""
    runs = [(kind, (len(list(group)) - 1) * BRUTE_S) for kind, group in groupby(unstable.tolist())]
    first = next((k for k, (kind, width) in enumerate(runs) if kind and width >= PROMISE_S - 1e-9), len(runs))
    certain = any(width >= PROMISE_S - 1e-9 for kind, width in runs[first:] if not kind)
    later = crossing.stable if crossing.status == "left-censored" else crossing.stable[1:]
    claimed = any(end - start > PROMISE_S for start, end in later)
    stable_again = any(not kind for kind, _ in runs[next((k for k, run in enumerate(runs) if run[0]), len(runs)) :])
    return (certain and not crossing.restabilises) or (claimed and not stable_again)


def seconds(case: Case, plan: Plan) -> tuple[float, Crossing]:
    """Processor time of one fast answer, the shortest of a few, and the answer."""
    times = []
    for _ in range(REPEATS):
        start = time.process_time()
        crossing = first_crossing(FastODE(case.operators, case.alpha).look, case.operators.window.t_c, plan)
        times.append(time.process_time() - start)
    return min(times), crossing


def former_process(checkout: Path) -> subprocess.Popen:
    """A process of the former release that answers cases with its processor times."""
    return subprocess.Popen(
        [sys.executable, "-c", FORMER], cwd=checkout, env={"PYTHONPATH": str(checkout)}, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip


def former_seconds(process: subprocess.Popen, case: Case) -> float:
    """Processor time of the former release for the same answer."""
    system = case.contingency.system
    network = system.network_file.decode() if system.network_file else ""
    process.stdin.write(json.dumps([system.to_json(), network, case.contingency.to_json(), case.alpha]) + "\n")
    process.stdin.flush()
    return float(process.stdout.readline())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--contingencies", type=int, default=320)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--spacing-ms", type=float, help="of the first scan; default: that of the fast reference")
    parser.add_argument("--former", type=Path, help="checkout of a former release, to compare times with")
    arguments = parser.parse_args()
    plan = METHODS["fast"].plan
    if arguments.spacing_ms:
        plan = replace(plan, spacing=1e-3 * arguments.spacing_ms)
    former = former_process(arguments.former) if arguments.former else None
    count = jumpy = misses = wrong = 0
    ours, theirs = [], []
    for case in drawn_cases(arguments.contingencies, arguments.seed):
        t_c, unstable = brute_force(case)
        took, crossing = seconds(case, plan.within(case.operators.max_separation))
        lost, contradicts = missed(t_c, unstable, crossing), wrong_restabilises(unstable, crossing)
        count, misses, wrong = count + 1, misses + len(lost), wrong + contradicts
        jumpy += int((np.diff(unstable.astype(int)) != 0).sum() > 1)
        ours.append(took)
        if former:
            theirs.append(former_seconds(former, case))
        if lost or contradicts:
            window = case.operators.window
            print(f"{case.operators.name} alpha {case.alpha:g} D {case.operators.D[0]:g} T {window.T:g}: missed {lost}")
    if former:
        former.stdin.close()
        former.wait()
        ratio = np.array(ours) / np.array(theirs)
        print(f"figure crossings-time-ratio {sum(ours) / sum(theirs):.3f} of the former time")
        print(f"figure crossings-time-ratio-median {np.median(ratio):.3f} of the former time")
    print(f"figure crossings-contingencies {count} contingencies")
    print(f"figure crossings-several-intervals {jumpy} contingencies")
    print(f"figure crossings-missed {misses} intervals of 0.5 ms and wider")
    print(f"figure crossings-wrong-restabilises {wrong} contingencies")
    print(f"figure crossings-median-time {1e3 * float(np.median(ours)):.2f} ms")


if __name__ == "__main__":
    main()

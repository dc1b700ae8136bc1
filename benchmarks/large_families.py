"""Families on many machines: error, time and memory over machines and members, and what a step costs before and after.

Line faults of the 118-bus system (54 machines), each at the middle of a line and cleared by opening it, as one
moe-chained model; smaller families of the 39- and 30-bus systems (10 and 6 machines) give the curve over machines.
Every family has a process of its own, so that its memory is its own. Minutes are those of the processor, which are
the wall's on an idle core; data are included. Hard-CCT errors are against the fast reduced ODE at severities that no
training set contains; beside them stand those of the same model with its networks silent, which is what one sweep of
the swing equation per window gives.

`--against FOLDER` first measures the way to the first step, and a step, in the checkout of release 58b9417 in that
folder, with its own interpreter. `--everyone` trains all line faults as the last family; errors are of those
with a boundary.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import json
import resource
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from contingencies.families import generate_family
from contingencies.library import Contingency, load_system
from contingencies.operators import PhaseOperators, compile_members
from contingencies.recipes import Recipe
from contingencies.references import reference_boundary
from espinn_moe.boundary import learned_boundary
from espinn_moe.chained import Chained
from espinn_moe.margins import HARD
from espinn_moe.plan import Progress
from espinn_moe.train import train
from zoo.judging.metrics import CCTErrors, cct_errors
from zoo.surrogates.budgets import COMPARED_BY
from zoo.surrogates.datasets import evaluation_grid
from zoo.training.request import Prepared, TrainingRequest, prepare

LARGE = "ieee118"
SMALLER = ("ieee30", "ieee39")
FORMER_STEPS = 20
# What release 58b9417 does before the first step of the same training, in its own words.
FORMER_RELEASE = """
import resource, sys, time
import torch
torch.set_num_threads(1)
from contingencies.families import Recipe, generate_family
from contingencies.library import load_system
from espinn_moe.train import train
from zoo.catalogue import make_objective
from zoo.training import TrainingRequest, prepare
from zoo.validation import Validation
system, fraction, steps, *names = sys.argv[1:]
everyone = generate_family(load_system(system), Recipe("line", "remove-line")).members
members = [member for member in everyone if member.name in names]
began = time.process_time()
prepared = prepare(members, TrainingRequest("moe-chained", float(fraction), steps=int(steps)))
objective = make_objective("moe-chained", prepared.surrogate, prepared.scenarios)
data = time.process_time() - began
validate = Validation(prepared.surrogate)
looks = time.process_time() - began - data
result = train(prepared.surrogate, objective, prepared.plan)
step = (time.process_time() - began - data - looks) / result.steps
gb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
print(f"before: {data / 60:.2f} min of data, {looks / 60:.2f} min of looks, {1e3 * step:.1f} ms a step, {gb:.2f} GB")
"""
SILENT_SEVERITIES = 3  # at which the model without its networks is judged
FIGURES = 4  # lines at the end of a family's output
QUIET_S = 5.0  # between lines about progress


@dataclass(frozen=True)
class Result:
    """One family."""

    system: str
    machines: int
    members: int
    data_min: float
    train_min: float
    step_ms: float
    gb: float
    errors: tuple[CCTErrors, ...]  # of the members with a boundary
    silent_ms: float  # median of the mean errors with silent networks; NaN where every number is the networks'

    @property
    def maes_ms(self) -> np.ndarray:
        """Mean errors of the members that have a finite boundary, ms; infinite where the model has none."""
        found = [
            np.inf if errors.mae is None else 1e3 * errors.mae for errors in self.errors if errors.reference_finite
        ]
        return np.array(found)

    @property
    def minutes(self) -> float:
        return self.data_min + self.train_min

    def row(self) -> str:
        mismatches = sum(errors.mismatches for errors in self.errors)
        return (
            f"{self.system:8} {self.machines:8} {self.members:7} {np.median(self.maes_ms):10.4f} "
            f"{self.maes_ms.max():9.4f} {self.silent_ms:9.4f} {mismatches:6} {self.data_min:9.2f} "
            f"{self.train_min:10.2f} {self.step_ms:8.1f} {self.gb:6.2f}"
        )


class Talk:
    """Prints how far the work is, from its first second on."""

    def __init__(self) -> None:
        self.last = -QUIET_S

    def __call__(self, stage: str, done: float, total: float, detail: str = "") -> None:
        if time.monotonic() - self.last > QUIET_S or done == 0:
            self.last = time.monotonic()
            print(f"    {stage} {done:.3g} of {total:g} {detail}", flush=True)

    def training(self, progress: Progress) -> None:
        self("training", progress.done, 1, f"step {progress.step}  loss {progress.loss:.2e}")


def peak_gb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def line_faults(system: str) -> list[Contingency]:
    return list(generate_family(load_system(system), Recipe("line", "remove-line", impedance=None)).members)


def with_boundary(members: list[Contingency]) -> list[bool]:
    """Which members lose synchronism at severity 1 when cleared last."""
    from contingencies.ode import FastODE

    last = [(operators, operators.window.t_c[1]) for operators in compile_members(members)]
    return [bool(FastODE(operators, 1.0).margins(np.array([t_c]), True)[0] >= 0) for operators, t_c in last]


def errors_of(surrogate: Chained, member: int, operators: PhaseOperators, severities: int) -> CCTErrors:
    unseen = evaluation_grid(operators).unseen_alpha
    alpha = unseen[np.linspace(len(unseen) - 1, 0, severities).round().astype(int)]
    return cct_errors(learned_boundary(surrogate, alpha, member, HARD), reference_boundary(operators, alpha))


def fit(members: list[Contingency], request: TrainingRequest, talk: Talk) -> tuple[Prepared, float, float, int]:
    """A trained family, processor seconds of its data and of its training, and the number of its steps."""
    began = time.process_time()
    prepared = prepare(members, request, report=talk)
    data_s = time.process_time() - began
    result = train(prepared.surrogate, prepared.objective, prepared.plan, report=talk.training)
    prepared.surrogate.eval()
    return prepared, data_s, result.used_s, result.steps


def family(members: list[Contingency], judged: list[int], request: TrainingRequest, severities: int) -> Result:
    talk = Talk()
    prepared, data_s, train_s, steps = fit(members, request, talk)
    surrogate, gb = prepared.surrogate, peak_gb()
    assert isinstance(surrogate, Chained)
    errors = []
    for done, member in enumerate(judged):
        talk("comparing with the reference ODE", done, len(judged))
        errors.append(errors_of(surrogate, member, surrogate.members[member], severities))
        found = errors[-1]
        if found.mae is not None and found.maximum is not None:
            print(
                f"  {members[member].name:32} mean {1e3 * found.mae:8.4f} ms  max {1e3 * found.maximum:8.4f} ms  "
                f"{found.finite} of {found.reference_finite} finite  {found.mismatches} of other status",
                flush=True,
            )
    silent_ms = silent_error_ms(surrogate, judged) if surrogate.swept else float("nan")
    system, machines = members[0].system.name, surrogate.n_machines
    return Result(
        system, machines, len(members), data_s / 60, train_s / 60, 1e3 * train_s / steps, gb, tuple(errors), silent_ms
    )  # fmt: skip


@torch.no_grad()
def silent_error_ms(surrogate: Chained, judged: list[int]) -> float:
    """Median of the members' mean errors when the networks say nothing, ms; the model is not used afterwards."""
    for parameter in surrogate.parameters():
        parameter.zero_()
    found = [errors_of(surrogate, member, surrogate.members[member], SILENT_SEVERITIES).mae for member in judged]
    return 1e3 * float(np.median([np.inf if mae is None else mae for mae in found]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--members", default="2,4,8", help="numbers of members with a boundary, of the 118-bus system")
    parser.add_argument("--fraction", type=float, default=0.05, help="part of the training scenarios")
    parser.add_argument("--minutes", type=float, default=1.0, help="training time of each family")
    parser.add_argument("--severities", type=int, default=10, help="unseen severities at which a member is judged")
    parser.add_argument("--systems", default=",".join(SMALLER), help="smaller systems for the curve over machines")
    parser.add_argument("--everyone", action="store_true", help="train the last family with all line faults")
    parser.add_argument("--against", help="folder of a checkout of release 58b9417, with its .venv")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    if arguments.one:
        run_one(json.loads(arguments.one))
        return
    counts = [int(part) for part in arguments.members.split(",")]
    if arguments.against:
        run_former(arguments.against, counts[-1], arguments.fraction)
    common = {key: getattr(arguments, key) for key in ("fraction", "minutes", "severities")}
    small = [{"system": system, "members": 4} for system in arguments.systems.split(",") if system]
    large = [{"system": LARGE, "members": count} for count in counts]
    asked = [{**common, **each, "everyone": False} for each in [*small, *large]]
    asked[-1]["everyone"] = arguments.everyone
    lines = [line for each in asked for line in in_a_process(each)]
    print("system   machines members  median ms  worst ms silent ms status  data min  train min  step ms     GB")
    for line in lines:
        if line.startswith("row "):
            print(line.removeprefix("row "))
    print("\n".join(lines[-FIGURES:]))


def in_a_process(asked: dict[str, Any]) -> list[str]:
    """One family alone in a process, whose peak memory is then its own; what it prints is shown as it comes."""
    command = [sys.executable, __file__, "--one", json.dumps(asked)]
    lines = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            lines.append(line.rstrip("\n"))
            if not line.startswith(("row ", "figure ")):
                print(lines[-1], flush=True)
    if process.returncode:
        raise SystemExit(process.returncode)
    return lines


def run_former(folder: str, count: int, fraction: float) -> None:
    """What the former release does until the first step, and a step of it."""
    members = line_faults(LARGE)
    names = [member.name for member, has in zip(members, with_boundary(members), strict=True) if has][:count]
    command = [".venv/bin/python", "-c", FORMER_RELEASE, LARGE, str(fraction), str(FORMER_STEPS), *names]
    subprocess.run(command, cwd=folder, check=True, env={**os.environ, "PYTHONPATH": "."})


def run_one(asked: dict[str, Any]) -> None:
    """One family, in this process; its result is the last line."""
    members = line_faults(asked["system"])
    finite = with_boundary(members)
    chosen = [k for k, has in enumerate(finite) if has][: asked["members"]]
    if asked["everyone"]:
        chosen = list(range(len(members)))
    judged = [place for place, k in enumerate(chosen) if finite[k]]
    request = TrainingRequest("moe-chained", asked["fraction"], minutes=asked["minutes"], clock=COMPARED_BY)
    print(f"{asked['system']}, {len(chosen)} members, {len(judged)} with a boundary", flush=True)
    result = family([members[k] for k in chosen], judged, request, asked["severities"])
    print(f"row {result.row()}")
    print(f"figure large_family_median_ms {np.median(result.maes_ms):.4f} ms")
    print(f"figure large_family_worst_ms {result.maes_ms.max():.4f} ms")
    print(f"figure large_family_minutes {result.minutes:.1f} min")
    print(f"figure large_family_gb {result.gb:.2f} GB", flush=True)


if __name__ == "__main__":
    main()

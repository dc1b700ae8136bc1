"""A whole N-1 family in one model: midpoint faults on the lines of the New England system, each cleared by opening it.

One moe-chained model per number of members, trained on one core at one data fraction (minutes are those of the
processor, which are the wall's on an idle core); hard-CCT errors against the
fast reduced ODE on the 50 severities of each member that no training set contains. `--members 2,4,8,16,33` gives the
curve of accuracy, parameters and training time; `--separate` trains so many separate chained models of the last
family, for comparison; `--onboard` trains the last member as a new expert of a family without it.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
from dataclasses import dataclass, replace

import numpy as np
import torch

from contingencies.families import generate_family
from contingencies.library import Contingency, load_system
from contingencies.operators import compile_members
from contingencies.recipes import Recipe
from espinn_moe.plan import Progress
from espinn_moe.surrogate import Surrogate
from espinn_moe.train import TrainingResult, train
from zoo.judging.metrics import CCTErrors
from zoo.judging.unseen import Validation, unseen_errors
from zoo.surrogates.budgets import COMPARED_BY
from zoo.surrogates.catalogue import create_model
from zoo.training.request import TrainingRequest, prepare


@dataclass(frozen=True)
class FamilyResult:
    """One model and the errors of its members."""

    names: tuple[str, ...]
    parameters: int
    training_s: float
    steps: int
    errors: tuple[CCTErrors, ...]

    @property
    def maes_ms(self) -> np.ndarray:
        """Mean errors of the members that have a finite boundary, ms."""
        return np.array([1e3 * errors.mae for errors in self.errors if errors.mae is not None])


def report(progress: Progress) -> None:
    if progress.step % 200 < 10:
        checked = "" if progress.validation is None else f"  training severities {1e3 * progress.validation:.4f} ms"
        print(f"    {progress.elapsed_s:6.0f} s  step {progress.step}  loss {progress.loss:.2e}{checked}", flush=True)


def fit(contingencies: list[Contingency], request: TrainingRequest) -> tuple[Surrogate, TrainingResult]:
    prepared = prepare(contingencies, request)
    surrogate = prepared.surrogate
    result = train(surrogate, prepared.objective, prepared.plan, report=report, validate=Validation(surrogate))
    surrogate.eval()
    return surrogate, result


def family(contingencies: list[Contingency], request: TrainingRequest) -> FamilyResult:
    surrogate, result = fit(contingencies, request)
    errors = tuple(unseen_errors(surrogate, member) for member in range(len(contingencies)))
    names = tuple(contingency.name for contingency in contingencies)
    return FamilyResult(names, surrogate.n_parameters, result.used_s, result.steps, errors)


def print_members(result: FamilyResult) -> None:
    for name, errors in zip(result.names, result.errors, strict=True):
        if errors.mae is None:
            status = "censored at every severity" if errors.mismatches == 0 else f"{errors.mismatches} of other status"
            print(f"  {name:28} {status}")
        else:
            print(
                f"  {name:28} mean {1e3 * errors.mae:8.4f} ms  max {1e3 * (errors.maximum or 0.0):8.4f} ms  "
                f"{errors.finite} of {errors.reference_finite} finite  {errors.mismatches} of other status"
            )


def onboard(contingencies: list[Contingency], request: TrainingRequest, full: FamilyResult) -> None:
    """The last member that has a boundary joins a family of the others."""
    import tempfile

    from registry.home import Home
    from zoo.training.experts import TIME_SHARE, add_expert, load_family
    from zoo.training.session import Session

    place = max(k for k, errors in enumerate(full.errors) if errors.mae is not None)
    others = contingencies[:place] + contingencies[place + 1 :]
    with tempfile.TemporaryDirectory() as folder, Home.open(folder) as home:
        rows = [registered.row for registered in home.register(others)]
        newcomer = home.register([contingencies[place]])[0].row
        session = Session(home)
        family = load_family(home, session.train(rows, request).checkpoint.id)
        minutes = TIME_SHARE * full.training_s / 60.0
        made = add_expert(session, family, newcomer, replace(request, minutes=minutes))
    before, after = full.errors[place].mae, made.errors[0].mae
    assert before is not None
    new = "without a boundary" if after is None else f"{1e3 * after:.4f} ms"
    print(f"{contingencies[place].name}: as a member {1e3 * before:.4f} ms", end=", ")
    print(f"as a new expert in {made.result.used_s:.0f} s {new}")
    if after is not None:
        print(f"figure add_expert_error_ratio {after / before:.2f} x")
    print(f"figure add_expert_time_share {100 * made.result.used_s / full.training_s:.0f} %")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--members", default="33", help="numbers of members, as 2,4,8,16,33")
    parser.add_argument("--fraction", type=float, default=0.2, help="part of the training scenarios")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, help="training time; default: the standard budget")
    parser.add_argument("--separate", type=int, default=0, help="so many separate models, for comparison")
    parser.add_argument("--separate-minutes", type=float, default=2.5, help="training time of each")
    parser.add_argument("--onboard", action="store_true", help="also add the last member as a new expert")
    arguments = parser.parse_args()

    torch.set_num_threads(1)
    everyone = list(generate_family(load_system("ieee39"), Recipe("line", "remove-line", impedance=None)).members)
    request = TrainingRequest(
        "moe-chained", arguments.fraction, arguments.seed, minutes=arguments.minutes, clock=COMPARED_BY
    )
    results = []
    for count in [int(part) for part in arguments.members.split(",")]:
        # Spread over the list, so that a small family is not one corner of the network.
        chosen = [everyone[k] for k in np.unique(np.linspace(0, len(everyone) - 1, count).round().astype(int))]
        print(f"{count} members, fraction {arguments.fraction:g}", flush=True)
        results.append(family(chosen, request))
        print_members(results[-1])

    titles = {
        "members": 7,
        "finite": 6,
        "median ms": 10,
        "worst ms": 9,
        "parameters": 10,
        "of separate": 11,
        "train s": 8,
    }
    print(" ".join(f"{title:>{width}}" for title, width in titles.items()))
    alone = create_model("es-pinn-chained", compile_members(everyone[:1])).n_parameters
    for result in results:
        share = result.parameters / (alone * len(result.names))
        maes = result.maes_ms
        print(
            f"{len(result.names):7} {len(maes):6} {np.median(maes):10.4f} {maes.max():9.4f} {result.parameters:10} "
            f"{100 * share:10.0f}% {result.training_s:8.0f}"
        )
    last = results[-1]
    separate_maes = []
    for name in last.names[: arguments.separate]:
        contingency = next(member for member in everyone if member.name == name)
        alone_request = TrainingRequest(
            "es-pinn-chained", arguments.fraction, arguments.seed, minutes=arguments.separate_minutes, clock=COMPARED_BY
        )
        separate_maes += list(family([contingency], alone_request).maes_ms)
    size = len(last.names)
    print(f"figure family{size}_cct_mae_median_ms {np.median(last.maes_ms):.4f} ms")
    print(f"figure family{size}_cct_mae_worst_ms {last.maes_ms.max():.4f} ms")
    print(f"figure family{size}_parameters {last.parameters} 1")
    print(f"figure family{size}_parameters_of_separate {100 * last.parameters / (alone * size):.0f} %")
    print(f"figure family{size}_training_min {last.training_s / 60:.1f} min")
    if separate_maes:
        print(f"figure separate{len(separate_maes)}_cct_mae_median_ms {np.median(separate_maes):.4f} ms")
    if arguments.onboard:
        onboard([member for member in everyone if member.name in last.names], request, last)


if __name__ == "__main__":
    main()

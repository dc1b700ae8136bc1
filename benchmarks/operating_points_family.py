"""Eight line faults of the New England system over load, two generators and position, in one moe-chained model.

`operating_points.py --family` and `--curve` run this. Errors are hard-CCT errors against the fast reduced ODE at
severities and operating points drawn at random from a seed that nothing was chosen by; minutes are the processor's.
"""

import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

import zoo.surrogates.condition_data as condition_data
from contingencies.conditions import Conditions
from contingencies.families import generate_family
from contingencies.library import Contingency, load_system
from contingencies.operators import compile_members
from contingencies.point_references import reference_points
from contingencies.points import Axis, limits_of
from contingencies.recipes import Recipe
from contingencies.references import reference_cct
from espinn_moe.chained import Chained
from espinn_moe.condition_boundary import point_boundary
from espinn_moe.train import train
from zoo.training.request import TrainingRequest, prepare

BLOCKS = {  # in the order in which conditions are added
    "load": {"load": (0.9, 1.1)},
    "generation.32": {"generation": {"32": (550.0, 750.0)}},
    "generation.35": {"generation": {"32": (550.0, 750.0), "35": (550.0, 750.0)}},
    "position": {"position": (0.1, 0.9)},
}
FAMILY, FAMILY_FRACTION = 8, 0.25  # members; part of 5,184 scenarios of each, a third of a gigabyte together
CURVE_POINTS = (8, 16, 32, 64)  # operating points that a model learns from


def conditions_of(count: int) -> Conditions:
    """The first so many of the four conditions."""
    block: dict[str, object] = {}
    for part in list(BLOCKS.values())[:count]:
        block |= part
    return Conditions.model_validate(block)


def members(count: int, conditions: int) -> list[Contingency]:
    """Line faults, cleared by opening the line, with a finite CCT at the case's own point; spread over the list."""
    everyone = list(generate_family(load_system("ieee39"), Recipe("line", "remove-line", impedance=None)).members)
    finite = [
        member
        for member, operators in zip(everyone, compile_members(everyone), strict=True)
        if reference_cct(operators, operators.severity[1]).status == "finite"
    ]
    chosen = [finite[k] for k in np.unique(np.linspace(0, len(finite) - 1, count).round().astype(int))]
    block = conditions_of(conditions)
    return [replace(one, spec=one.spec.model_copy(update={"conditions": block})) for one in chosen]


def trained(contingencies: Sequence[Contingency], minutes: float, fraction: float) -> tuple[Chained, float]:
    """A chained model of the family, and what data and training took, s of the processor."""
    began = time.process_time()
    model = "moe-chained" if len(contingencies) > 1 else "es-pinn-chained"
    prepared = prepare(contingencies, TrainingRequest(model, fraction, 0, minutes=minutes, clock="processor"))
    train(prepared.surrogate, prepared.objective, prepared.plan)
    prepared.surrogate.eval()
    assert isinstance(prepared.surrogate, Chained)
    return prepared.surrogate, time.process_time() - began


def errors_ms(surrogate: Chained, member: int, rows: int, seed: int) -> tuple[np.ndarray, int]:
    """Errors at unseen rows where both have a number, ms, and how many have another status."""
    family = surrogate.members[member].family
    assert family is not None
    axes = (*family.axes, Axis("severity", *family.base.severity))
    drawn = np.random.default_rng(seed + member).uniform(*limits_of(axes), (rows, len(axes)))
    alpha, points = drawn[:, -1], drawn[:, :-1]
    learned, truth = point_boundary(surrogate, alpha, points, member), reference_points(family, alpha, points)
    both = learned.finite & truth.finite
    wrong = sum(a != b for a, b in zip(learned.status, truth.status, strict=True))
    return 1e3 * np.abs(learned.cct - truth.cct)[both], wrong


def family_figures(minutes: float, rows: int, seed: int) -> dict[str, tuple[float, str]]:
    """Train the family and print every member."""
    contingencies = members(FAMILY, len(BLOCKS))
    surrogate, spent = trained(contingencies, minutes, FAMILY_FRACTION)
    print(f"family: {len(contingencies)} members, {surrogate.n_parameters} parameters, data and training {spent:.0f} s")
    means = []
    for k, contingency in enumerate(contingencies):
        error, wrong = errors_ms(surrogate, k, rows, seed)
        if error.size:
            means.append(error.mean())
            print(f"  {contingency.name:32} mean {error.mean():.4f} ms, median {np.median(error):.4f}, max "
                  f"{error.max():.4f} over {error.size} of {rows}; {wrong} of other status", flush=True)  # fmt: skip
    return {"op_family_median_ms": (float(np.median(means)), "ms"), "op_family_worst_ms": (max(means), "ms")}


def curve(minutes: float, rows: int, seed: int) -> None:
    """Error of one member against the number of conditions and of operating points, at equal time."""
    usual = condition_data.OPERATING_POINTS
    print(f"mean error (ms) of one member after {minutes:g} minutes; across: operating points learned from")
    print(f"{'conditions':>12}" + "".join(f"{points:10}" for points in CURVE_POINTS))
    try:
        for count in range(1, len(BLOCKS) + 1):
            cells = []
            for points in CURVE_POINTS:
                condition_data.OPERATING_POINTS = points
                surrogate, _ = trained(members(1, count), minutes, 1.0)
                error = errors_ms(surrogate, 0, rows, seed)[0]
                cells.append(f"{error.mean():10.4f}" if error.size else f"{'-':>10}")
            print(f"{count:12}" + "".join(cells), flush=True)
    finally:
        condition_data.OPERATING_POINTS = usual

"""Table 2 of the paper on this machine: what one CCT costs by simulation, by a surrogate, and by a head."""

import statistics
import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np

from contingencies.references import reference_boundary, reference_cct
from espinn_moe.boundary import learned_boundary
from espinn_moe.head_fit import fit_head
from espinn_moe.surrogate import Surrogate
from zoo.paper.common import BOTH_FORMS, METHODS, PRIMARY, training
from zoo.paper.entry import Findings, Setting, Task, entry, task
from zoo.paper.measurements import severity_grid
from zoo.paper.members import operators_of
from zoo.paper.tables import Presentation, Published, Quantity, Row, Table, cell

UNSEEN = 50
ANDES_ALPHA = 0.93
CALLS = 2000  # of a head per severity, as in the paper
PAPER: dict[str, tuple[Published, Published | None]] = {  # ms, and times the speed of its reduced ODE
    "dae": (Published(202187.8), None),
    "strict": (Published(1029.8), Published(1.0)),
    "es-pinn": (Published(542.2), Published(1.90)),
    "cuda": (Published(80.4), Published(12.81)),
    "head": (Published(0.064), Published(1.60e4)),
}
UNPUBLISHED = (None, None)
SIMULATORS = {"dae": "full-network DAE, 1 ms", "strict": "reduced ODE (strict)", "fast": "reduced ODE (compiled, ours)"}


def milliseconds(call: Callable[[float], Any], severities: np.ndarray) -> list[float]:
    """Processor time of one call per severity, ms, after a first one that does not count."""
    call(float(severities[0]))
    times = []
    for alpha in severities:
        started = time.process_time()
        call(float(alpha))
        times.append(1e3 * (time.process_time() - started))
    return times


def simulators(contingency: str, timed: int) -> dict[str, Any]:
    """Time of one CCT by each simulator, ms; slow ones at a few of the severities."""
    operators = operators_of(contingency)
    unseen = severity_grid(operators, UNSEEN)
    few = unseen[np.unique(np.linspace(0, UNSEEN - 1, timed).round().astype(int))]
    times_of: dict[str, Any] = {}
    for reference, severities in (("fast", unseen), ("strict", few), ("dae", few)):
        times = milliseconds(lambda alpha, r=reference: reference_cct(operators, alpha, r), severities)  # type: ignore[misc]
        times_of[reference] = {"median": statistics.median(times), "severities": len(severities)}
    ccts = [
        (reference_cct(operators, float(a), "strict").cct, reference_cct(operators, float(a), "fast").cct) for a in few
    ]
    gaps = [1e3 * abs(strict - fast) for strict, fast in ccts if strict is not None and fast is not None]
    times_of["gap_ms"] = max(gaps, default=None)
    if find_spec("andes") is not None:
        from zoo.paper.andes_rival import andes_milliseconds

        times_of["andes"] = andes_milliseconds(operators, ANDES_ALPHA)
        truth = reference_cct(operators, ANDES_ALPHA, "strict").cct
        times_of["andes"]["gap_ms"] = None if truth is None else 1e3 * abs(times_of["andes"]["cct"] - truth)
    return times_of


def surrogate(model: Surrogate) -> dict[str, Any]:
    """Time of one extraction of a surrogate's boundary at one severity, ms."""
    unseen = severity_grid(model.members[0], UNSEEN)
    times = milliseconds(lambda alpha: learned_boundary(model, np.array([alpha])), unseen)
    return {"median": statistics.median(times), "severities": len(times)}


def head(contingency: str) -> dict[str, Any]:
    """Time of one answer of a distilled head, ms: 2,000 single calls for each severity."""
    operators = operators_of(contingency)
    head = fit_head(lambda a: reference_boundary(operators, a), operators.severity, operators.window.t_f).head
    times = []
    for alpha in map(float, severity_grid(operators, UNSEEN)):
        started = time.process_time()
        for _ in range(CALLS):
            head.answer(alpha)
        times.append(1e3 * (time.process_time() - started) / CALLS)
    return {"median": statistics.median(times), "severities": len(times)}


def _simulators(setting: Setting) -> Task:
    return task("runtime:simulators", contingency=PRIMARY, timed=setting.budget.timed)


def _surrogate(setting: Setting, model: str) -> Task:
    return task("runtime:surrogate", training(setting, model, seed=setting.seeds[0]))


def tasks(setting: Setting) -> list[Task]:
    """Each timing is a task of its own, all in one process after the other."""
    return [
        _simulators(setting),
        *(_surrogate(setting, model) for model in BOTH_FORMS),
        task("runtime:head", contingency=PRIMARY),
    ]


def present(setting: Setting, findings: Findings) -> Presentation:
    """Medians, and speed against the strict ODE."""
    simulated = findings.get(_simulators(setting)) or {}
    answers: list[tuple[str, dict[str, Any] | None, tuple[Published | None, Published | None], str]] = []
    for name, label in SIMULATORS.items():
        why = f"other CPU and code; timed at {setting.budget.timed} of the 50 severities"
        if name == "fast":
            why = "not in the paper: the rival that a surrogate must be compared with"
        problem = findings.problem([_simulators(setting)])
        answers.append((label, simulated.get(name), PAPER.get(name, UNPUBLISHED), problem or why))
    for model in BOTH_FORMS:
        problem = findings.problem([_surrogate(setting, model)])
        answers.append(
            (
                f"{METHODS[model]}, CPU", findings.get(_surrogate(setting, model)), PAPER.get(model, UNPUBLISHED),
                problem or "other CPU; samples that cannot decide are left out of the sweep of 101 candidates",
            )
        )  # fmt: skip
    answers.append(("ES-PINN, CUDA", None, PAPER["cuda"], "not measured: this machine has no CUDA device"))
    head_task = task("runtime:head", contingency=PRIMARY)
    answers.append(
        ("distilled head, CPU", findings.get(head_task), PAPER["head"],
         findings.problem([head_task]) or "the paper's head is a torch network, ours a Chebyshev series without torch")
    )  # fmt: skip
    andes = simulated.get("andes")
    said = "ANDES was not installed"
    if andes is not None:
        said = (
            f"{andes['simulations']} simulations of 5 ms steps at α = {andes['alpha']:g}, each set up anew; "
            f"its CCT differs from the strict ODE's by {andes['gap_ms']:.2g} ms"
        )
    answers.append(("ANDES 2, bisection", andes, UNPUBLISHED, f"not in the paper; {said}"))
    strict = (simulated.get("strict") or {}).get("median")
    rows = []
    for label, timing, (paper_ms, paper_speed), why in answers:
        ours = None if timing is None else timing["median"]
        speedup = None if ours is None or strict is None else strict / ours
        rows.append(Row(label, (cell([ours], paper_ms), cell([speedup], paper_speed)), why))
    table = Table(
        "runtime",
        "Median processor time of one CCT on one core",
        "Table 2",
        (Quantity("CCT runtime", "ms"), Quantity("speed against the strict ODE", "times")),
        tuple(rows),
    )
    gap = simulated.get("gap_ms")
    said = "" if gap is None else f" Strict and compiled ODE differ by at most {gap:.1e} ms at the severities timed."
    note = (
        "Loading and training are excluded; one thread. The compiled ODE needs no training and is the fair rival of a "
        f"surrogate on a CPU.{said}"
    )
    return Presentation((table,), notes=(note,))


BENCHMARK = entry("runtime", tasks, present)

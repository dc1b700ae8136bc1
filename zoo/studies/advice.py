"""Which source a contingency's answers should come from: what each costs and how wrong it is, measured where possible.

The reference ODEs are timed here and now, for this system. Heads and checkpoints of the registry tell their own errors
and times. What the registry does not have is filled in from figures of the documents, which belong to other systems;
every figure says where it comes from.
"""

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from contingencies.library import Contingency
from contingencies.operators import PhaseOperators, compile_members
from contingencies.references import reference_cct, reference_margin
from espinn_moe.head_fit import SCAN
from registry.home import Home
from registry.records import CheckpointRecord, HeadRecord
from registry.store import contingencies as contingency_store
from registry.store import heads, runs
from zoo.heads.distill import CALIBRATION, EDGE, LOOKS, PIECE, STRICT

TIMED = 5  # severities at which the compiled ODE is timed, over the contingency's range
STRICT_LOOKS = 2 * STRICT  # strict simulations of a head: one on either side of each root
NOW, DOCUMENTS = "timed now", "docs/measured.md"


@dataclass(frozen=True)
class Figure:
    """A number and where it comes from; None where nobody has measured it."""

    value: float | None
    origin: str


@dataclass(frozen=True)
class Option:
    """One way to get answers: what it costs to build, what an answer costs, and how wrong it is."""

    source: str
    build: Figure  # s
    answer: Figure  # s
    error: Figure  # ms, mean against the reference
    note: str


@dataclass(frozen=True)
class Advice:
    """The options for one contingency, and the plain recommendation."""

    contingency: str
    system: str
    machines: int
    registered: int  # contingencies of the same system in the registry
    options: tuple[Option, ...]
    recommendation: str

    def report(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)


HEAD_ANSWER = Figure(1.8e-6, DOCUMENTS)
DOCUMENTED = {  # what the documents report: seconds to build, mean CCT error in ms
    "es-pinn-chained": (Figure(3.5 * 60, DOCUMENTS), Figure(0.008, DOCUMENTS), "IEEE 30, line 3-4"),
    "moe-chained": (Figure(7.4 * 60, DOCUMENTS), Figure(0.015, DOCUMENTS), "33 line faults of IEEE 39"),
}


def advise(contingency: Contingency, home: Home | None = None) -> Advice:
    """Compare the sources of answers for a contingency.

    Parameters
    ----------
    contingency : Contingency
    home : Home, optional
        The registry whose heads and checkpoints are taken into account.
    """
    operators = compile_members([contingency])[0]
    fast, strict = _timed(operators)
    row = None if home is None else contingency_store.find_sha256(home.database, contingency.sha256)
    stored: list[HeadRecord] = []
    trained: list[CheckpointRecord] = []
    registered = 0
    if home is not None:
        everything = contingency_store.latest(home.database)
        registered = sum(each.system.sha256 == contingency.system.sha256 for each in everything)
        if row is not None:
            stored = heads.heads_of(home.database, f"{row.name}@{row.version}")
            trained = runs.checkpoints(home.database, f"{row.name}@{row.version}")
    over_conditions = contingency.spec.conditions is not None
    head = _reference_head([] if over_conditions else stored, fast, strict)
    if over_conditions:
        head = replace(head, note="of one operating point; this contingency has conditions")
    options = (
        Option("compiled ODE", Figure(0.0, NOW), Figure(fast, NOW), Figure(0.001, DOCUMENTS), "nothing to build"),
        head,
        _surrogate("es-pinn-chained", trained, home),
        _surrogate("moe-chained", trained, home),
        _operating_points(contingency, stored),
    )
    words = (
        _over_conditions(contingency.name, stored)
        if over_conditions
        else _recommendation(contingency, fast, head, registered)
    )
    return Advice(contingency.name, contingency.system.name, operators.n_machines, registered, options, words)


def _timed(operators: PhaseOperators) -> tuple[float, float]:
    """Seconds of one CCT by the compiled ODE, and of one simulation by the strict one."""
    low, high = operators.severity
    severities = low + (high - low) * (np.arange(TIMED) + 0.5) / TIMED
    reference_cct(operators, float(severities[0]))  # compiles
    begin = time.process_time()
    for alpha in severities:
        reference_cct(operators, float(alpha))
    fast = (time.process_time() - begin) / TIMED
    begin = time.process_time()
    reference_margin(operators, float(severities[-1]), operators.window.t_c[1], "strict")
    return fast, time.process_time() - begin


def _reference_head(stored: Sequence[HeadRecord], fast: float, strict: float) -> Option:
    head = next((each for each in stored if each.source == "reference" and not each.errors["detail"].get("axes")), None)
    asked = SCAN + EDGE + PIECE + CALIBRATION + LOOKS
    build = Figure(asked * fast + STRICT_LOOKS * strict, f"at most: {asked} CCTs and {STRICT_LOOKS} strict runs, {NOW}")
    if head is None:
        return Option("reference head", build, HEAD_ANSWER, Figure(0.0002, DOCUMENTS), "none in the registry yet")
    return _of_head("reference head", head, build)


def _of_head(source: str, head: HeadRecord, build: Figure) -> Option:
    origin = f"head {head.id}"
    seconds = head.errors["detail"].get("build_s")
    error = Figure(None if head.strict_mae_s is None else 1e3 * head.strict_mae_s, origin)
    bound = "no bound" if head.error_bound_s is None else f"95 % within +- {1e3 * head.error_bound_s:.2g} ms"
    return Option(source, build if seconds is None else Figure(seconds, origin), HEAD_ANSWER, error, bound)


def _surrogate(model: str, trained: Sequence[CheckpointRecord], home: Home | None) -> Option:
    """A head distilled from a trained model: the newest checkpoint that serves the contingency, or the documents'."""
    for checkpoint in trained:
        run = None if home is None else runs.trained_in(home.database, checkpoint)
        if run is None or run.model != model:
            continue
        origin, members = f"checkpoint {checkpoint.id}", len(checkpoint.members)
        seconds = None if run.finished_at is None else (run.finished_at - run.started_at).total_seconds()
        error = checkpoint.metrics.get("cct_mae_ms")
        note = "its error is the mean over its members" if members > 1 else f"{checkpoint.parameters:,} parameters"
        return Option(
            f"{model}, {members} member{'' if members == 1 else 's'}", Figure(seconds, origin), HEAD_ANSWER,
            Figure(error, origin), note,
        )  # fmt: skip
    build, error_figure, where = DOCUMENTED[model]
    return Option(model, build, HEAD_ANSWER, error_figure, f"measured elsewhere: {where}")


def _operating_points(contingency: Contingency, stored: Sequence[HeadRecord]) -> Option:
    source = "operating-point head"
    unknown = Figure(None, "not measured")
    if contingency.spec.conditions is None:
        return Option(source, unknown, unknown, unknown, "the contingency has no conditions: one operating point")
    if stored:
        return _of_head(source, stored[0], unknown)
    return Option(source, unknown, unknown, unknown, "none in the registry yet; see docs/operating-points.md")


def _over_conditions(name: str, stored: Sequence[HeadRecord]) -> str:
    """What to do for a registered contingency with conditions, one sentence to a line."""
    first = (
        f"Ask head {stored[0].id}, which answers over the conditions: cct-zoo cct {name} --at CONDITION=VALUE."
        if stored
        else f"For many answers distill an operating-point head (cct-zoo distill {name}), which takes some minutes."
    )
    return (
        f"{first}\n"
        "For a few the compiled ODE suffices; every operating point costs it a power flow as well.\n"
        "A chained surrogate over the conditions pays where trajectories or sensitivities are wanted as well."
    )


def _recommendation(contingency: Contingency, fast: float, head: Option, registered: int) -> str:
    """What to do, one sentence to a line."""
    name, build = contingency.name, head.build.value
    assert build is not None
    worth = f"{int(float(f'{build / max(fast, 1e-9):.1g}')):,}"
    sentences = [
        f"For fewer than about {worth} answers ask the compiled ODE: cct-zoo reference-cct {name}.",
        f"For more, or where no simulator is at hand, distill a reference head: cct-zoo distill {name}.",
    ]
    if registered > 1:
        sentences.append(
            f"So too for the {registered} registered contingencies of this system: experts save parameters, not time."
        )
    sentences.append(
        "A surrogate pays where its trajectories and derivatives are wanted, or where operating points vary."
    )
    return "\n".join(sentences)

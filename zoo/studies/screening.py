"""The critical clearing times of a whole family at one severity, in parallel, most critical first.

Censored members are ranked too, by the largest separation of their machines at the last (or first) clearing instant
that was studied: how close they came. Unless the fault is bolted, the answer says what a bolted one at the same place
would be. A member whose simulation fails is reported as failed: nothing is known about its stability.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from contingencies.errors import SolverError
from contingencies.families import LeftOut
from contingencies.fault_specs import LineFault
from contingencies.library import Contingency
from contingencies.ode import FastODE
from contingencies.operators import PhaseOperators, as_bolted
from contingencies.protection import Verdict
from contingencies.references import Reference, reference_cct
from contingencies.stability import check_scenario
from contingencies.tables import csv_text
from zoo.work.executor import Executor, Serial
from zoo.work.jobs import Job
from zoo.work.reporting import Report, silent

BATCHES_PER_WORKER = 8  # enough to balance the load; each batch carries the network to its worker once
RANK = {"left-censored": 0, "finite": 1, "right-censored": 2, "failed": 3}


@dataclass(frozen=True)
class Screened:
    """The answer for one member; `status` is that of a CCT, or failed with a message."""

    contingency: str
    alpha: float
    status: str
    cct: float | None  # s, instant on the simulation clock
    duration: float | None  # s, after t_f
    restabilises: bool | None  # None when the simulation failed
    reference: str
    message: str = ""
    separation: float | None = None  # rad, at the edge of the window; None unless censored
    bolted: str = ""  # status of a bolted fault at the same place; empty where the fault is bolted or none
    bolted_duration: float | None = None  # s

    @property
    def compared_with_bolted(self) -> bool:
        """Whether a bolted fault is another one than that which was studied, and both have an answer."""
        return bool(self.bolted) and self.status != "failed"

    @property
    def worse_when_bolted(self) -> bool:
        """Whether a bolted fault at the same place leaves less time."""
        if not self.compared_with_bolted:
            return False
        if RANK[self.bolted] != RANK[self.status]:
            return RANK[self.bolted] < RANK[self.status]
        return self.bolted_duration is not None and self.duration is not None and self.bolted_duration < self.duration

    def report(self) -> dict[str, Any]:
        """The answer as plain values for JSON and CSV."""
        return {
            "contingency": self.contingency,
            "alpha": self.alpha,
            "status": self.status,
            "cct_s": None if self.cct is None else round(self.cct, 9),
            "duration_s": None if self.duration is None else round(self.duration, 9),
            "restabilises": self.restabilises,
            "reference": self.reference,
            "message": self.message,
            "separation_at_edge_rad": None if self.separation is None else round(self.separation, 6),
            "bolted_status": self.bolted or None,
            "bolted_duration_s": None if self.bolted_duration is None else round(self.bolted_duration, 9),
            "worse_when_bolted": self.worse_when_bolted if self.compared_with_bolted else None,
        }


def screen(
    operators: Sequence[PhaseOperators],
    alpha: float,
    reference: Reference = "fast",
    executor: Executor | None = None,
    report: Report = silent,
) -> list[Screened]:
    """CCT of every member at severity `alpha`: left-censored, then finite ascending, right-censored, failed.

    Censored members follow one another by their separation at the edge of the window, largest first.

    Parameters
    ----------
    operators : sequence of PhaseOperators
    alpha : float
        Severity.
    reference : {"fast", "strict", "dae"}
    executor : Executor, optional
        Where the members are simulated; default: in this process.
    report : Report
        Hears how many members are done.
    """
    if operators:
        check_scenario(operators[0], alpha)
    executor = executor or Serial()
    batches = {job.key: (job, batch) for job, batch in _batches(operators, alpha, reference, executor.workers)}
    answers: list[Screened] = []
    for done in executor.run([job for job, _ in batches.values()]):
        _, batch = batches[done.job.key]
        answers += done.result or [_failed(member, alpha, reference, done.error or "") for member in batch]
        report(f"{reference} reference", len(answers), len(operators))
    position = {members.name: k for k, members in enumerate(operators)}
    return sorted(
        answers, key=lambda a: (RANK[a.status], a.cct or 0.0, -(a.separation or 0.0), position[a.contingency])
    )


def worse_ends(members: Sequence[Contingency], answers: Sequence[Screened]) -> list[Contingency]:
    """Of the faults near either end of each line, the more critical one; other members as they are, in their order."""
    rank = {answer.contingency: k for k, answer in enumerate(answers)}
    best: dict[object, Contingency] = {}
    for member in members:
        fault = member.spec.fault
        place = (fault.line, fault.circuit) if isinstance(fault, LineFault) else member.name
        if place not in best or rank[member.name] < rank[best[place].name]:
            best[place] = member
    return list(best.values())


def _batches(
    operators: Sequence[PhaseOperators], alpha: float, reference: Reference, workers: int
) -> Iterator[tuple[Job, Sequence[PhaseOperators]]]:
    """Jobs of several members each, so that the network travels to a worker few times."""
    size = 1 if workers == 1 else math.ceil(len(operators) / (workers * BATCHES_PER_WORKER))
    for first in range(0, len(operators), max(size, 1)):
        batch = operators[first : first + size]
        inputs = {"names": [member.name for member in batch], "alpha": alpha, "reference": reference}
        yield Job("zoo.studies.screening:screen_batch", inputs, {"operators": batch}), batch


def screen_batch(
    names: list[str], alpha: float, reference: Reference, operators: Sequence[PhaseOperators]
) -> list[Screened]:
    """In a worker: the answers for some members, called `names`."""
    return [_screen_one(member, alpha, reference) for member in operators]


def _screen_one(operators: PhaseOperators, alpha: float, reference: Reference) -> Screened:
    try:
        answer = reference_cct(operators, alpha, reference)
    except (SolverError, ArithmeticError, np.linalg.LinAlgError) as error:
        return _failed(operators, alpha, reference, str(error))
    bolted, bolted_duration = _bolted(operators, alpha)
    return Screened(
        operators.name, alpha, answer.status, answer.cct, answer.duration, answer.restabilises, answer.reference,
        separation=_edge_separation(operators, alpha, answer.status), bolted=bolted, bolted_duration=bolted_duration,
    )  # fmt: skip


def _edge_separation(operators: PhaseOperators, alpha: float, status: str) -> float | None:
    """Largest separation, rad, when cleared at the edge of the window that censors the answer."""
    if status == "finite":
        return None
    edge = operators.window.t_c[1 if status == "right-censored" else 0]
    return float(FastODE(operators, alpha).margins(np.array([edge]))[0]) + operators.max_separation


def _bolted(operators: PhaseOperators, alpha: float) -> tuple[str, float | None]:
    """Status and duration of a bolted fault at the same place; nothing where that is what was studied."""
    twin, point = as_bolted(operators), operators.fault_point
    if twin is None or point is None or (point.z_f == 0 and alpha == 1.0):
        return "", None
    answer = reference_cct(twin, 1.0, "fast")
    return answer.status, answer.duration


def _failed(operators: PhaseOperators, alpha: float, reference: Reference, message: str) -> Screened:
    return Screened(operators.name, alpha, "failed", None, None, None, reference, message)


def verdict_report(verdict: Verdict | None) -> dict[str, Any]:
    """What a required time makes of an answer, as plain values; nothing where none is required."""
    if verdict is None:
        return {}
    return {"required_s": verdict.required, "verdict": verdict.outcome, "margin_s": verdict.margin}


def screening_csv(
    answers: Sequence[Screened], left_out: Sequence[LeftOut] = (), verdicts: Sequence[Verdict | None] = ()
) -> str:
    """Ranked answers as CSV with a header, then the places left out, without rank and with their reasons."""
    names = list(Screened("", 0.0, "", None, None, None, "").report())
    reports = [verdict_report(verdict) for verdict in verdicts] or [{} for _ in answers]
    judged = next((list(report) for report in reports if report), [])
    ranked = [
        {"rank": rank, **answer.report(), **report}
        for rank, (answer, report) in enumerate(zip(answers, reports, strict=True), start=1)
    ]
    places = [{"contingency": item.name, "status": "left-out", "message": item.reason} for item in left_out]
    return csv_text(["rank", *names, *judged], [*ranked, *places])

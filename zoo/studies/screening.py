"""The critical clearing times of a whole family at one severity, in parallel, most critical first.

A member whose simulation fails is reported as failed: nothing is known about its stability.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from contingencies.errors import SolverError
from contingencies.families import LeftOut
from contingencies.operators import PhaseOperators
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
        }


def screen(
    operators: Sequence[PhaseOperators],
    alpha: float,
    reference: Reference = "fast",
    executor: Executor | None = None,
    report: Report = silent,
) -> list[Screened]:
    """CCT of every member at severity `alpha`: left-censored, then finite ascending, right-censored, failed.

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
    return sorted(answers, key=lambda a: (RANK[a.status], a.cct or 0.0, position[a.contingency]))


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
    return Screened(
        operators.name, alpha, answer.status, answer.cct, answer.duration, answer.restabilises, answer.reference
    )


def _failed(operators: PhaseOperators, alpha: float, reference: Reference, message: str) -> Screened:
    return Screened(operators.name, alpha, "failed", None, None, None, reference, message)


def screening_csv(answers: Sequence[Screened], left_out: Sequence[LeftOut] = ()) -> str:
    """Ranked answers as CSV with a header, then the places left out, without rank and with their reasons."""
    names = list(Screened("", 0.0, "", None, None, None, "").report())
    ranked = [{"rank": rank, **answer.report()} for rank, answer in enumerate(answers, start=1)]
    places = [{"contingency": item.name, "status": "left-out", "message": item.reason} for item in left_out]
    return csv_text(["rank", *names], [*ranked, *places])


def plot_screening(answers: Sequence[Screened], window_t_c: tuple[float, float], t_f: float, title: str) -> Any:
    """Ranked durations as bars; censored members reach only the edge of the window, and are drawn hollow.

    Parameters
    ----------
    answers : sequence of Screened
        Ranked; the first 40 are drawn.
    window_t_c : (float, float)
        First and last clearing instant studied, s.
    t_f : float
        Fault instant, s.
    title : str

    Returns
    -------
    matplotlib.figure.Figure
    """
    from matplotlib.figure import Figure

    shown = [answer for answer in answers if answer.status != "failed"][:40]
    edges = {"left-censored": window_t_c[0] - t_f, "right-censored": window_t_c[1] - t_f}
    figure = Figure(figsize=(7.0, 1.2 + 0.22 * max(len(shown), 4)), layout="constrained")
    axes = figure.subplots()
    for row, answer in enumerate(shown):
        duration = edges[answer.status] if answer.duration is None else answer.duration
        censored = answer.duration is None
        axes.barh(
            row, 1e3 * duration, color="none" if censored else "C0", edgecolor="C0", hatch="//" if censored else None
        )
    axes.set_yticks(range(len(shown)), [answer.contingency for answer in shown], fontsize=7)
    axes.invert_yaxis()
    axes.set_xlabel("critical fault duration, ms (hatched: beyond the edge of the window)")
    axes.set_title(title, fontsize=10)
    return figure

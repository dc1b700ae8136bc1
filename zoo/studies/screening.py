"""The critical clearing times of a whole family at one severity, in parallel, most critical first.

Workers are separate processes with one thread each. A member whose simulation fails is reported as failed:
nothing is known about its stability.
"""

import csv
import io
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from contingencies.errors import SolverError
from contingencies.families import LeftOut
from contingencies.operators import PhaseOperators
from contingencies.references import Reference, reference_cct
from contingencies.stability import check_scenario

BATCHES_PER_JOB = 8  # enough to balance the load; each batch carries the network to its worker once
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
    jobs: int | None = None,
    report: Callable[[int], None] | None = None,
) -> list[Screened]:
    """CCT of every member at severity `alpha`: left-censored, then finite ascending, right-censored, failed.

    Parameters
    ----------
    operators : sequence of PhaseOperators
    alpha : float
        Severity.
    reference : {"fast", "strict", "dae"}
    jobs : int, optional
        Worker processes; default: one per core. 1 stays in this process.
    report : callable, optional
        Told how many members are done.
    """
    if operators:
        check_scenario(operators[0], alpha)
    answers: list[Screened] = []
    for batch in _batches(operators, alpha, reference, jobs):
        answers.extend(batch)
        if report:
            report(len(answers))
    position = {members.name: k for k, members in enumerate(operators)}
    return sorted(answers, key=lambda a: (RANK[a.status], a.cct or 0.0, position[a.contingency]))


def _batches(operators: Sequence[PhaseOperators], alpha: float, reference: Reference, jobs: int | None) -> Any:
    import joblib

    workers = min(jobs or joblib.cpu_count(), max(len(operators), 1))
    if workers == 1:
        return (_screen_batch([member], alpha, reference) for member in operators)
    size = math.ceil(len(operators) / (workers * BATCHES_PER_JOB))
    with joblib.parallel_config(backend="loky", n_jobs=workers, inner_max_num_threads=1):
        return joblib.Parallel(return_as="generator_unordered", batch_size=1)(
            joblib.delayed(_screen_batch)(operators[first : first + size], alpha, reference)
            for first in range(0, len(operators), size)
        )


def _screen_batch(operators: Sequence[PhaseOperators], alpha: float, reference: Reference) -> list[Screened]:
    return [_screen_one(member, alpha, reference) for member in operators]


def _screen_one(operators: PhaseOperators, alpha: float, reference: Reference) -> Screened:
    try:
        answer = reference_cct(operators, alpha, reference)
    except (SolverError, ArithmeticError, np.linalg.LinAlgError) as error:
        return Screened(operators.name, alpha, "failed", None, None, None, reference, str(error))
    return Screened(
        operators.name, alpha, answer.status, answer.cct, answer.duration, answer.restabilises, answer.reference
    )


def screening_csv(answers: Sequence[Screened], left_out: Sequence[LeftOut] = ()) -> str:
    """Ranked answers as CSV with a header, then the places left out, without rank and with their reasons."""
    text = io.StringIO()
    names = list(Screened("", 0.0, "", None, None, None, "").report())
    table = csv.DictWriter(text, ["rank", *names], lineterminator="\n")
    table.writeheader()
    for rank, answer in enumerate(answers, start=1):
        table.writerow({"rank": rank, **answer.report()})
    for item in left_out:
        table.writerow({"contingency": item.name, "status": "left-out", "message": item.reason})
    return text.getvalue()


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

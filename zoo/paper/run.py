"""Running entries: trainings first, then measurements, each of them once, and what is presented of both."""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from contingencies.errors import ZooError
from registry.spool import RunSpool
from registry.store.benchmarks import Number, add_numbers
from zoo.paper.entry import Benchmark, Findings, Setting, Task, Training
from zoo.paper.jobs import job_of
from zoo.paper.tables import Presentation
from zoo.work.executor import Executor
from zoo.work.jobs import FOLDER, Done, Job, Results, run_jobs

EXPERIMENT = "cct-zoo benchmarks"  # of MLflow


@dataclass(frozen=True)
class Progress:
    """A piece of work of an entry that is done, or was before."""

    entry: str
    stage: str  # "training" or "measuring"
    what: str
    done: int
    total: int
    fresh: bool
    error: str | None


Report = Callable[[Progress], None]


@dataclass(frozen=True, eq=False)
class Outcome:
    """What came of an entry."""

    benchmark: Benchmark
    presentation: Presentation
    failures: tuple[str, ...]
    fresh: int  # pieces of work done now


def run_entry(
    benchmark: Benchmark,
    setting: Setting,
    home: Path,
    registry: str | None,
    executor: Executor | None,
    report: Report,
    fresh: bool = False,
    train: bool = True,
) -> Outcome:
    """Do what an entry needs and has no result yet, and present it.

    Parameters
    ----------
    benchmark : Benchmark
    setting : Setting
    home : Path
        Where registry and results are.
    registry : str, optional
        URL of another registry.
    executor : Executor, optional
        None runs nothing: what there is is presented.
    report : callable
        Told about each piece of work.
    fresh : bool
        Forget earlier results of this entry first.
    train : bool
        False measures what has been trained and trains nothing more.
    """
    tasks = benchmark.tasks(setting)
    trainings = list(dict.fromkeys(task.training for task in tasks if task.training is not None))
    work: list[Task | Training] = [*trainings, *tasks]
    jobs = {each: job_of(each, home, registry) for each in work}
    results = Results(home / FOLDER)
    if fresh:
        for job in jobs.values():
            results.path(job.key).unlink(missing_ok=True)
    if executor is None:
        known = {each: results.get(job.key) for each, job in jobs.items()}
        findings = Findings({each: result for each, result in known.items() if result is not None}, {})
        return Outcome(benchmark, benchmark.present(setting, findings), (), 0)
    if not train:
        trainings = [each for each in trainings if results.get(jobs[each].key) is not None]
    done = _run(benchmark.name, "training", trainings, jobs, executor, results.folder, report)
    done |= _run(benchmark.name, "measuring", _possible(tasks, done), jobs, executor, results.folder, report)
    findings = Findings(
        {each: item.result for each, item in done.items() if item.result is not None},
        {each: item.error for each, item in done.items() if item.error is not None}
        | {task: "its training failed" for task in tasks if task not in done and task.training in done},
    )
    failures = tuple(f"{_label(each)}: {item.error}" for each, item in done.items() if item.error is not None)
    outcome = Outcome(
        benchmark, benchmark.present(setting, findings), failures, sum(item.fresh for item in done.values())
    )
    try:
        store(outcome, setting, home, registry)  # also what was found by a run that could not store it
        if outcome.fresh:
            record(outcome, setting, home)
    except ZooError as error:  # hours of work must not be lost to a registry that is away: the report shows them
        outcome = replace(outcome, failures=(*outcome.failures, f"storing the numbers: {error}"))
    return outcome


def _possible(tasks: Sequence[Task], done: dict[Any, Done]) -> list[Task]:
    return [
        t
        for t in dict.fromkeys(tasks)
        if t.training is None or (t.training in done and done[t.training].result is not None)
    ]


def _run(
    entry: str,
    stage: str,
    work: Sequence[Task | Training],
    jobs: dict[Task | Training, Job],
    executor: Executor,
    folder: Path,
    report: Report,
) -> dict[Any, Done]:
    labels = {jobs[each].key: _label(each) for each in work}

    def tell(item: Done, count: int, total: int) -> None:
        report(Progress(entry, stage, labels[item.job.key], count, total, item.fresh, item.error))

    found = run_jobs([jobs[each] for each in work], executor, folder, tell)
    return dict(zip(work, found, strict=True))


def _label(work: Task | Training) -> str:
    if isinstance(work, Training):
        first = work.members[0] if len(work.members) == 1 else f"{len(work.members)} contingencies"
        data = "" if work.fraction == 1.0 else f", fraction {work.fraction:g}"
        return f"{work.model} on {first}{data}, seed {work.seed}"
    name = work.function.replace(":", " ")
    return name if work.training is None else f"{name} of {_label(work.training)}"


def record(outcome: Outcome, setting: Setting, home: Path) -> None:
    """Every number and figure of an entry in a diary of its own, which `sync-runs` replays to MLflow."""
    from zoo.plots import FOLDER as FIGURES
    from zoo.plots import save_figure

    spool = RunSpool(home, f"benchmark {outcome.benchmark.name}", experiment=EXPERIMENT)
    spool.params({"budget": setting.budget.name, "seeds": len(setting.seeds), "entry": outcome.benchmark.name})
    spool.metrics(
        {
            _metric(f"{number.table_name}/{number.row_label}/{number.quantity}"): number.value
            for number in numbers_of(outcome.presentation)
            if number.value is not None
        }
    )
    spool.tags({"failures": len(outcome.failures)})
    folder, figures = home / FIGURES / spool.uid, []
    folder.mkdir(parents=True, exist_ok=True)
    for drawing in outcome.presentation.drawings:
        figures.append(folder / f"{drawing.name}{drawing.suffix}")
        save_figure(drawing.figure, figures[-1])
    spool.files(figures)
    spool.finish()


def store(outcome: Outcome, setting: Setting, home: Path, registry: str | None) -> None:
    """Every number of an entry in the registry; those that are there already stay as they are."""
    from registry.home import Home
    from zoo.surrogates.checkpoints import code_version

    numbers = numbers_of(outcome.presentation)
    if all(number.value is None for number in numbers):
        return  # nothing has been measured
    with Home.open(home, registry) as opened:
        add_numbers(
            opened.database, outcome.benchmark.name, numbers,
            budget=setting.budget.name, seeds=len(setting.seeds), code_version=code_version(),
        )  # fmt: skip


def numbers_of(shown: Presentation) -> list[Number]:
    """What tables hold, ours and published; cells with neither are left out."""
    return [
        Number(
            table.name, row.label, quantity.name, quantity.unit,
            _finite(c.ours), _finite(c.ours_std), c.count, c.paper, c.paper_std,
        )
        for table in shown.tables
        for row in table.rows
        for quantity, c in zip(table.quantities, row.cells, strict=True)
        if _finite(c.ours) is not None or c.paper is not None
    ]  # fmt: skip


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _metric(text: str) -> str:
    """A name that MLflow takes."""
    return re.sub(r"[^\w\-./ ]", "_", text.replace("α", "alpha"))[:240]

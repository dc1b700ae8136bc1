"""Running entries: trainings, each with its measurements after it, all of them once, and what is presented of both."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from contingencies.errors import ZooError
from zoo.paper.entry import Benchmark, Findings, Setting, Task, Training
from zoo.paper.jobs import Place, forget_training, job_of, trained_elsewhere
from zoo.paper.numbers import store_numbers, write_diary
from zoo.paper.tables import Presentation
from zoo.work.batch import failures, run_jobs, say_outdated
from zoo.work.executor import Executor
from zoo.work.jobs import Done, Job, Results
from zoo.work.reporting import Say, quiet

Heard = Callable[[str, Done, int, int], None]  # stage, a job that is done, how many are, of how many


def _unheard(stage: str, done: Done, count: int, total: int) -> None:
    """Hear of nothing."""


@dataclass(frozen=True, eq=False)
class Conduct:
    """How entries are run.

    Parameters
    ----------
    place : Place
        Where registry and results are.
    executor : Executor, optional
        None runs nothing: what there is is presented.
    fresh : bool
        Forget earlier results of an entry first.
    train : bool
        False measures what has been trained and trains nothing more.
    heard : callable
        Hears of each piece of work that is done, or was before.
    say : callable
        Told when results of other code are not reused.
    """

    place: Place
    executor: Executor | None = None
    fresh: bool = False
    train: bool = True
    heard: Heard = _unheard
    say: Say = quiet


@dataclass(frozen=True, eq=False)
class EntryResult:
    """What came of an entry."""

    benchmark: Benchmark
    presentation: Presentation
    failures: tuple[str, ...]
    fresh: int  # pieces of work done now
    results: int  # pieces of work that have a result, now or from before
    wanted: int  # all of them
    made: tuple[dict[str, Any], ...] = ()  # when and where results were found, empty where that was not kept


def run_entry(benchmark: Benchmark, setting: Setting, conduct: Conduct) -> EntryResult:
    """Do what an entry needs and has no result yet, and present it."""
    tasks = sorted(dict.fromkeys(benchmark.tasks(setting)), key=_seed)  # an interrupted run has whole seeds
    trainings = list(dict.fromkeys(task.training for task in tasks if task.training is not None))
    work: list[Task | Training] = [*tasks, *trainings]
    jobs = {each: job_of(each, conduct.place) for each in work}
    results = conduct.place.results
    if conduct.fresh:
        for job in jobs.values():
            results.forget(job)
    if conduct.executor is None or not conduct.train:
        say_outdated((job for job in jobs.values() if results.get(job) is None), results, conduct.say)
    if conduct.executor is None:
        earlier = {each: results.get(job) for each, job in jobs.items()}
        findings = Findings({each: result for each, result in earlier.items() if result is not None}, {})
        shown = benchmark.present(setting, findings)
        return EntryResult(benchmark, shown, (), 0, len(findings.results), len(jobs), _made(jobs.values(), results))
    if conduct.train:
        _forget_lost(tasks, jobs, conduct)
    else:
        trainings = [each for each in trainings if results.get(jobs[each]) is not None]
    done = _run(trainings, tasks, jobs, conduct)
    findings = _findings(done)
    shown = benchmark.present(setting, findings)
    failed = failures(done.values())
    fresh = sum(item.fresh for item in done.values())
    try:
        store_numbers(benchmark, shown, setting, conduct.place)  # also what a run found that could not store it
        if fresh:
            write_diary(benchmark, shown, setting, conduct.place.home, failed)
    except ZooError as error:  # hours of work must not be lost to a registry that is away: the report shows them
        failed.append(f"storing the numbers: {error}")
    there = _made(jobs.values(), results)
    return EntryResult(benchmark, shown, tuple(failed), fresh, len(findings.results), len(jobs), there)


def _made(jobs: Iterable[Job], results: Results) -> tuple[dict[str, Any], ...]:
    """When and where the results there are were found; nothing of those that did not keep it."""
    return tuple(results.made(job) for job in jobs if results.path(job).is_file())


def _seed(task: Task) -> int:
    """Of the training that a task looks at; what needs none comes first."""
    return -1 if task.training is None else task.training.seed


def _forget_lost(tasks: Sequence[Task], jobs: dict[Task | Training, Job], conduct: Conduct) -> None:
    """Forget trainings whose model is still to be measured and is in another home, so that they are done again.

    What was measured of those models before is measured again, too.
    """
    results = conduct.place.results
    unmeasured = [t.training for t in tasks if t.training is not None and results.get(jobs[t]) is None]
    lost = trained_elsewhere(dict.fromkeys(unmeasured), conduct.place)
    for training in lost:
        forget_training(training, conduct.place)
    if lost:
        conduct.say(
            "trained in another home, not measured there, and therefore trained again, with all that was measured of "
            f"the former models: {len(lost)}."
        )


def _findings(done: dict[Any, Done]) -> Findings:
    results = {each: item.result for each, item in done.items() if item.result is not None}
    errors = {each: item.error for each, item in done.items() if item.error is not None}
    return Findings(results, errors)


def _run(
    trainings: Sequence[Training], tasks: Sequence[Task], jobs: dict[Task | Training, Job], conduct: Conduct
) -> dict[Any, Done]:
    """Trainings, each with its measurements after it, and measurements that need none."""
    assert conduct.executor is not None
    possible = [t for t in tasks if t.training is None or t.training in trainings]
    work: list[Task | Training] = [*possible, *trainings]  # what can be measured at once is, before anything is trained
    needs = {jobs[t].key: jobs[t.training].key for t in possible if t.training is not None}
    stages = {jobs[each].key: "training" if isinstance(each, Training) else "measuring" for each in work}

    def hear(item: Done, count: int, total: int) -> None:
        conduct.heard(stages[item.job.key], item, count, total)

    folder = conduct.place.results.folder
    say = conduct.say if conduct.train else quiet  # what is missing was said of all work before
    done = run_jobs([jobs[each] for each in work], conduct.executor, folder, hear, say, needs)
    return dict(zip(work, done, strict=True))

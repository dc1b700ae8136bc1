"""Many jobs, each done once: results that are there are taken, the others are found by an executor.

Running the same jobs again does only what is missing, whatever was killed meanwhile. Failures are not kept: the next
run tries them again. Results of other code are not taken, and it is said that they are not.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from zoo.work.executor import Executor
from zoo.work.jobs import Done, Job, Results
from zoo.work.reporting import Say, quiet

Heard = Callable[[Done, int, int], None]  # a job that is done, how many are, of how many


def _unheard(done: Done, count: int, total: int) -> None:
    """Hear of nothing."""


def run_jobs(
    jobs: Sequence[Job],
    executor: Executor,
    folder: Path,
    heard: Heard = _unheard,
    say: Say = quiet,
    needs: Mapping[str, str] | None = None,
) -> list[Done]:
    """Do every job that has no result yet.

    Parameters
    ----------
    jobs : sequence of Job
        Those with the same key are done once.
    executor : Executor
    folder : Path
        Where results are kept.
    heard : callable
        Hears of each job as soon as its result is known, first of those that were done before.
    say : callable
        Told when results of other code are not reused.
    needs : mapping of str to str, optional
        Keys of jobs that need another one of `jobs` first, and of which. They are done as soon as it is, so that a
        killed run keeps what it has finished to the end; when it has failed they are not tried.

    Returns
    -------
    list of Done
        In the order of `jobs`.
    """
    results = Results(folder)
    by_key = {job.key: job for job in jobs}
    done: dict[str, Done] = {}

    def finish(item: Done) -> None:
        done[item.job.key] = item
        heard(item, len(done), len(by_key))

    for job in by_key.values():
        if (earlier := results.get(job)) is not None:
            finish(Done(job, earlier, fresh=False))
    missing = [job for key, job in by_key.items() if key not in done]
    say_outdated(missing, results, say)
    ready, waiting = _sorted_by_need(missing, needs or {})

    def then(item: Done) -> list[Job]:
        following = waiting.pop(item.job.key, [])
        return following if item.error is None else []

    for item in executor.run(ready, folder.resolve(), then):
        finish(item)
    for key, job in by_key.items():
        if key not in done:
            finish(Done(job, error="what it needs failed", fresh=False))
    return [done[job.key] for job in jobs]


def say_outdated(missing: Iterable[Job], results: Results, say: Say) -> None:
    """Say of how many jobs without a result there is one of other code."""
    outdated = sum(results.has_outdated(job) for job in missing)
    if outdated:
        were = "earlier result was" if outdated == 1 else "earlier results were"
        say(f"{outdated} {were} found by other code and {'is' if outdated == 1 else 'are'} not reused.")


def _sorted_by_need(missing: Sequence[Job], needs: Mapping[str, str]) -> tuple[list[Job], dict[str, list[Job]]]:
    """Jobs that can be done at once, and those that follow, by the key of the job that they need."""
    keys = {job.key for job in missing}
    ready: list[Job] = []
    waiting: dict[str, list[Job]] = {}
    for job in missing:
        needed = needs.get(job.key)
        (waiting.setdefault(needed, []) if needed in keys and needed is not None else ready).append(job)
    return ready, waiting


def failures(done: Iterable[Done]) -> list[str]:
    """One line for each job that was tried and failed."""
    return [f"{item.job.title}: {item.error}" for item in done if item.error is not None and item.fresh]

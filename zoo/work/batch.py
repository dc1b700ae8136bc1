"""Many jobs, each done once: results that are there are taken, the others are found by an executor.

Running the same jobs again does only what is missing, whatever was killed meanwhile. Failures are not kept: the next
run tries them again. Results of other code are not taken, and it is said that they are not.
"""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from zoo.work.executor import Executor
from zoo.work.jobs import Done, Job, Results
from zoo.work.reporting import Say, quiet

Heard = Callable[[Done, int, int], None]  # a job that is done, how many are, of how many


def _unheard(done: Done, count: int, total: int) -> None:
    """Hear of nothing."""


def run_jobs(
    jobs: Sequence[Job], executor: Executor, folder: Path, heard: Heard = _unheard, say: Say = quiet
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
    outdated = sum(results.has_outdated(job) for job in missing)
    if outdated:
        say(f"{outdated} earlier results were found by other code and are not reused.")
    for item in executor.run(missing, folder.resolve()):
        finish(item)
    return [done[job.key] for job in jobs]


def failures(done: Iterable[Done]) -> list[str]:
    """One line for each job that failed."""
    return [f"{item.job.title}: {item.error}" for item in done if item.error is not None]

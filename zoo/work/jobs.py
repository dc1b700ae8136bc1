"""Many trainings, boundary extractions and distillations: in parallel, resumable, each done once.

A job is named by the digest of what it does. Its result is written, whole or not at all, by the worker
that has found it; running the same jobs again does only what is missing, whatever was killed meanwhile.
Failures are not kept: the next run tries them again.
"""

import hashlib
import importlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from contingencies.errors import IntegrityError, UsageError
from contingencies.files import write_atomically
from zoo.work.executor import Executor, Outcome, Task

FOLDER = "results"  # of a zoo home
VERSION = 1  # another one makes every job a new one
Plain = Mapping[str, Any]  # JSON values


@dataclass(frozen=True)
class Job:
    """A function by name ("module:function"), what decides its result, and where it finds its tools.

    `inputs` are JSON values and make up the key; `context` (home folder, registry) does not. The
    function takes both as keyword arguments and returns a JSON object.
    """

    function: str
    inputs: Plain
    context: Plain

    @property
    def key(self) -> str:
        """SHA-256 of what is done."""
        try:
            content = json.dumps([VERSION, self.function, dict(self.inputs)], sort_keys=True, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise UsageError(f"a job's inputs must be plain finite values ({error}).") from None
        return hashlib.sha256(content.encode()).hexdigest()


class Results:
    """A folder with one JSON file for each finished job."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, key: str) -> Path:
        return self.folder / f"{key}.json"

    def get(self, key: str) -> dict[str, Any] | None:
        """The result of a finished job, or None."""
        try:
            content = self.path(key).read_text()
        except FileNotFoundError:
            return None
        try:
            found = json.loads(content)
            assert isinstance(found["result"], dict)
            return found["result"]
        except (ValueError, KeyError, TypeError, AssertionError):
            raise IntegrityError(
                f"{str(self.path(key))!r} is damaged; delete it, and the next run does its job again."
            ) from None

    def put(self, job: Job, result: Plain) -> None:
        """Keep a result with what it is the result of."""
        content = {"function": job.function, "inputs": dict(job.inputs), "result": dict(result)}
        write_atomically(self.path(job.key), json.dumps(content, indent=1, allow_nan=False).encode())


@dataclass(frozen=True)
class Done:
    """What became of a job; `fresh` when it was done now and not found."""

    job: Job
    result: dict[str, Any] | None
    error: str | None
    fresh: bool


Report = Callable[[Done, int, int], None]  # a job that is done, how many are, of how many


def _silent(done: Done, count: int, total: int) -> None:
    """Report nothing."""


def run_jobs(jobs: Sequence[Job], executor: Executor, folder: Path, report: Report = _silent) -> list[Done]:
    """Do every job that has no result yet.

    Parameters
    ----------
    jobs : sequence of Job
        Those with the same key are done once.
    executor : Executor
    folder : Path
        Where results are kept.
    report : callable
        Told about each job as soon as its result is known, those found first.

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
        report(item, len(done), len(by_key))

    for key, job in by_key.items():
        if (known := results.get(key)) is not None:
            finish(Done(job, known, None, False))
    missing = [job for key, job in by_key.items() if key not in done]
    for outcome in executor.run([_task(job, folder) for job in missing]):
        finish(_done(by_key[outcome.key], outcome))
    return [done[job.key] for job in jobs]


def _task(job: Job, folder: Path) -> Task:
    arguments = {
        "function": job.function,
        "inputs": dict(job.inputs),
        "context": dict(job.context),
        "folder": str(folder.resolve()),
    }
    return Task(job.key, do_job, arguments)


def _done(job: Job, outcome: Outcome) -> Done:
    return Done(job, outcome.value, outcome.error, True)


def do_job(function: str, inputs: dict[str, Any], context: dict[str, Any], folder: str) -> dict[str, Any]:
    """In a worker: do a job, and keep its result before anyone hears of it."""
    job, results = Job(function, inputs, context), Results(Path(folder))
    known = results.get(job.key)  # another worker may have been faster than a scheduler that thought it dead
    if known is not None:
        return known
    module, _, name = function.partition(":")
    result: dict[str, Any] = getattr(importlib.import_module(module), name)(**inputs, **context)
    results.put(job, result)
    return result


def failures(done: Iterable[Done]) -> list[str]:
    """One line for each job that failed."""
    return [f"{_label(item.job)}: {item.error}" for item in done if item.error is not None]


def _label(job: Job) -> str:
    return ", ".join(f"{name} {value}" for name, value in job.inputs.items() if isinstance(value, str | int | float))

"""Jobs: what is to be done, by name and plain values; how one is done; and the folder where results are kept.

A job is named by the digest of what it does and of the code that does it. Its result is written, whole or not at
all, by the worker that has found it, so that whatever is killed meanwhile, no finished job is done again.
"""

import hashlib
import importlib
import json
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from contingencies.errors import IntegrityError, UsageError, ZooError
from contingencies.files import write_atomically
from zoo.work.machine import here_and_now

FOLDER = "results"  # of a zoo home
VERSION = 1  # another one makes every job a new one
Plain = Mapping[str, Any]  # JSON values

_one_at_a_time = threading.Lock()  # of a process: seeds and thread counts are its own, not a thread's


@dataclass(frozen=True)
class Job:
    """A function by name ("module:function"), what decides its result, and where it finds its tools.

    `inputs` are JSON values and, with `code`, make up the key; `context` (home folder, registry, compiled operators)
    does not. The function takes both as keyword arguments; where results are kept, it returns a JSON object.
    """

    function: str
    inputs: Plain
    context: Plain = field(default_factory=dict)
    code: str = ""  # digest of the code that decides the result (`zoo.work.code`)
    label: str = ""  # for people

    @cached_property
    def subject(self) -> str:
        """SHA-256 of what is done, by whichever code."""
        try:
            content = json.dumps([VERSION, self.function, dict(self.inputs)], sort_keys=True, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise UsageError(f"a job's inputs must be plain finite values ({error}).") from None
        return hashlib.sha256(content.encode()).hexdigest()

    @property
    def key(self) -> str:
        """What is done, and by which code."""
        return f"{self.subject}-{self.code}" if self.code else self.subject

    @property
    def title(self) -> str:
        """The label, or else the plain inputs."""
        plain = (f"{name} {value}" for name, value in self.inputs.items() if isinstance(value, str | int | float))
        return self.label or ", ".join(plain)


@dataclass(frozen=True)
class Done:
    """What became of a job: its result, or one sentence about its failure; `fresh` when it was done now."""

    job: Job
    result: Any = None
    error: str | None = None
    fresh: bool = True


class Results:
    """A folder with one JSON file for each finished job."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, job: Job) -> Path:
        """Where the result of a job is kept."""
        return self.folder / f"{job.key}.json"

    def get(self, job: Job) -> dict[str, Any] | None:
        """The result of a finished job, or None."""
        path = self.path(job)
        try:
            content = path.read_text()
        except FileNotFoundError:
            return None
        try:
            result = json.loads(content)["result"]
            assert isinstance(result, dict)
            return result
        except (ValueError, KeyError, TypeError, AssertionError):
            raise IntegrityError(f"{str(path)!r} is damaged; delete it, and the next run does its job again.") from None

    def made(self, job: Job) -> dict[str, Any]:
        """When and where the result of a job was found (`zoo.work.machine`); empty where that was not kept."""
        kept = json.loads(self.path(job).read_text()).get("made", {})
        return kept if isinstance(kept, dict) else {}

    def put(self, job: Job, result: Plain) -> None:
        """Keep a result with what it is the result of."""
        content = {"function": job.function, "inputs": dict(job.inputs), "code": job.code, "made": here_and_now()}
        content["result"] = dict(result)
        write_atomically(self.path(job), json.dumps(content, indent=1, allow_nan=False).encode())

    def forget(self, job: Job) -> None:
        """Delete a result, so that its job is done again."""
        self.path(job).unlink(missing_ok=True)

    def forget_where(self, named: Callable[[Plain], bool]) -> None:
        """Delete every result whose inputs are so, whichever code has found it."""
        for path in self.folder.glob("*.json"):
            with suppress(FileNotFoundError, ValueError, KeyError):  # gone meanwhile; `get` speaks of a damaged one
                if named(json.loads(path.read_text())["inputs"]):
                    path.unlink()

    def has_outdated(self, job: Job) -> bool:
        """Whether other code has left a result of this job, which is not reused."""
        return any(path != self.path(job) for path in self.folder.glob(f"{job.subject}*.json"))


def perform(job: Job, folder: Path | None = None) -> Any:
    """Do a job here and now; with a folder, keep its result there before anyone hears of it."""
    results = None if folder is None else Results(folder)
    if results is not None:
        earlier = results.get(job)  # another worker may have been faster than a scheduler that thought it dead
        if earlier is not None:
            return earlier
    module, _, name = job.function.partition(":")
    result = getattr(importlib.import_module(module), name)(**job.inputs, **job.context)
    if results is not None:
        results.put(job, result)
    return result


def attempt(job: Job, folder: Path | None = None) -> tuple[Any, str | None]:
    """In a worker: the result of a job and None, or None and one sentence about what went wrong."""
    with _one_at_a_time:
        if "torch" in sys.modules:
            sys.modules["torch"].set_num_threads(1)
        try:
            return perform(job, folder), None
        except ZooError as error:
            return None, str(error)
        except Exception as error:
            return None, f"{type(error).__name__}: {error}"

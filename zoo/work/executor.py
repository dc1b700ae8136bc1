"""Where jobs run: in this process, in local processes, or on a Dask cluster, with the same results.

Jobs are handed over as they are done. One that raises has failed; one whose worker died (killed, out of memory) is
tried again a few times, and takes no other job's work with it.
"""

import os
import re
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, wait
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

from contingencies.errors import UsageError, ZooError
from zoo.work.jobs import Done, Job, attempt

ATTEMPTS = 3  # a job whose worker has died so often is given up
CLUSTER_PATIENCE_S = 60.0  # without any worker for so long, a cluster is given up
CONNECT_TIMEOUT_S = 10.0
GRACE_S = 20.0  # after Ctrl-C, workers may save what they have
WATCH_INTERVAL_S = 1.0
POLL_INTERVAL_S = 0.1

# One thread per worker: more of them fight for the cores.
THREADS = {name: "1" for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")}


Then = Callable[[Done], Sequence[Job]]  # what a job that is done makes possible


def _nothing(done: Done) -> Sequence[Job]:
    """Nothing follows from any job."""
    return ()


class Executor(ABC):
    """A place where jobs run."""

    workers: int = 1  # jobs that run at once, as far as it is known beforehand

    @abstractmethod
    def run(self, jobs: Sequence[Job], folder: Path | None = None, then: Then = _nothing) -> Iterator[Done]:
        """All jobs, each as soon as it is done; closing the iterator ends what still runs.

        With a folder, workers keep results there (`zoo.work.jobs.Results`). What `then` answers to a job that is done
        is run before what waits already.
        """


def make_executor(jobs: int | None = None, cluster: str | None = None) -> Executor:
    """Local processes, `jobs` of them (default: one per core; 1 stays in this process), or a Dask cluster."""
    if cluster is not None and jobs is not None:
        raise UsageError("--jobs has no meaning beside --cluster, whose workers are its own; leave one of them out.")
    if cluster is not None:
        return DaskCluster(cluster)
    if jobs is not None and jobs < 1:
        raise UsageError(f"--jobs {jobs} leaves nobody to work; use at least 1.")
    if jobs is None:
        import joblib

        jobs = int(joblib.cpu_count())
    return Serial() if jobs == 1 else LocalProcesses(jobs)


def _given_up(job: Job, attempts: int) -> Done:
    why = f"its worker died {attempts} times and it was given up; look for a lack of memory, or use --jobs 1."
    return Done(job, error=why)


class Serial(Executor):
    """One job after the other, in this process."""

    def run(self, jobs: Sequence[Job], folder: Path | None = None, then: Then = _nothing) -> Iterator[Done]:
        waiting = deque(jobs)
        while waiting:
            job = waiting.popleft()
            done = Done(job, *attempt(job, folder))
            waiting.extendleft(reversed(then(done)))
            yield done


class LocalProcesses(Executor):
    """`jobs` worker processes of this machine (loky).

    Every worker is a pool of its own: when one dies, it is known whose job killed it, and the
    others do not notice.
    """

    def __init__(self, workers: int, attempts: int = ATTEMPTS) -> None:
        self.workers, self.attempts = workers, attempts

    def run(self, jobs: Sequence[Job], folder: Path | None = None, then: Then = _nothing) -> Iterator[Done]:
        waiting = deque((job, 1) for job in jobs)
        idle: list[Any] = []
        running: dict[Future[tuple[Any, str | None]], tuple[Any, Job, int]] = {}
        try:
            while waiting or running:
                while waiting and len(running) < self.workers:
                    worker = idle.pop() if idle else _new_worker()
                    job, tries = waiting.popleft()
                    running[worker.submit(attempt, job, folder)] = (worker, job, tries)
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    worker, job, tries = running.pop(future)
                    try:
                        result, error = future.result()
                    except BrokenProcessPool:
                        worker.shutdown(wait=False, kill_workers=True)
                        if tries < self.attempts:
                            waiting.appendleft((job, tries + 1))
                            continue
                        done = _given_up(job, tries)
                    else:
                        idle.append(worker)
                        done = Done(job, result, error)
                    waiting.extendleft((following, 1) for following in reversed(then(done)))
                    yield done
        except KeyboardInterrupt:
            wait(running, timeout=GRACE_S)  # the workers got the same signal and are saving
            raise
        finally:
            for worker in [*idle, *(worker for worker, _, _ in running.values())]:
                worker.shutdown(wait=False, kill_workers=True)


def _new_worker() -> Any:
    """A pool of one process with one thread, which ends when this process does."""
    from joblib.externals.loky.process_executor import ProcessPoolExecutor

    return ProcessPoolExecutor(1, initializer=_end_with_parent, initargs=(os.getpid(),), env=THREADS)


def _end_with_parent(parent: int) -> None:
    """In a worker: leave at once when the parent has been killed, so that nothing works on behind its back."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(WATCH_INTERVAL_S)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


class DaskCluster(Executor):
    """The workers of a running Dask cluster; they must see the same home folder and have the zoo installed."""

    def __init__(self, address: str, patience_s: float = CLUSTER_PATIENCE_S) -> None:
        if not re.fullmatch(r"\w+://[^\s/]+", address):
            raise UsageError(
                f"--cluster {address[:80]!r} is not the address of a scheduler; write it like tcp://host:8786."
            )
        self.address, self.patience_s = address, patience_s

    def run(self, jobs: Sequence[Job], folder: Path | None = None, then: Then = _nothing) -> Iterator[Done]:
        try:
            from distributed import Client
        except ImportError:
            raise UsageError("--cluster needs Dask; install it with: pip install 'cct-zoo[cluster]'.") from None
        try:
            client = Client(self.address, timeout=CONNECT_TIMEOUT_S, set_as_default=False)
        except (OSError, ValueError, TimeoutError) as error:
            raise ZooError(
                f"the Dask cluster {self.address} cannot be reached ({type(error).__name__}); "
                "check the address and that its scheduler runs."
            ) from None
        try:
            yield from self._run(client, jobs, folder, then)
        finally:
            client.close(timeout=5)  # also drops what has not been fetched

    def _run(self, client: Any, jobs: Sequence[Job], folder: Path | None, then: Then) -> Iterator[Done]:
        waiting = deque(jobs)
        running: dict[Any, Job] = {}
        last_seen = time.monotonic()
        while waiting or running:
            slots = _slots(client)
            if slots:
                last_seen = time.monotonic()
            elif time.monotonic() - last_seen > self.patience_s:
                raise ZooError(
                    f"the Dask cluster {self.address} has had no worker for {self.patience_s:.0f} s; what is done is "
                    "kept: start workers and run the same command again."
                )
            # No more than there are slots: a dying worker is blamed on all jobs that wait at it.
            while waiting and len(running) < slots:
                job = waiting.popleft()
                running[client.submit(attempt, job, folder, pure=False)] = job
            for future in [future for future in running if future.done()]:
                done = _done_by_dask(future, running.pop(future), self.address)
                waiting.extendleft(reversed(then(done)))
                yield done
            time.sleep(POLL_INTERVAL_S)


def _slots(client: Any) -> int:
    """Workers now; each takes one job at a time."""
    return len(client.scheduler_info(n_workers=-1)["workers"])


def _done_by_dask(future: Any, job: Job, address: str) -> Done:
    from distributed import KilledWorker

    try:
        return Done(job, *future.result())
    except KilledWorker:  # the scheduler has tried again on other workers before
        return _given_up(job, ATTEMPTS)
    except CancelledError:
        raise ZooError(
            f"the Dask cluster {address} went away; what is done is kept: run the same command again."
        ) from None

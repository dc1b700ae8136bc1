"""kill -9 between any two steps of every operation that writes.

Run: python -m benchmarks.campaigns.kills [--backends sqlite,postgresql] [--operations deploy,gc,...]

For every operation a child process is killed before its first step, before its second, and so on to its last; steps are
SQL statements, commits, files written and removed (`registry.steps`). After each kill the home must verify without a
problem, the operation must be wholly done or not at all, and the same operation must succeed when it is done again.
"""

import argparse
import os
import shutil
import signal
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psycopg

from registry import steps
from registry.artifacts import Artifacts
from registry.home import Home
from registry.store import contingencies, deployments, heads
from registry.upkeep import collect_garbage, verify
from tests.postgres import postgres_server
from tests.registry.makers import contingency, head, measured, own_system_contingency

SCHEMAS = Path(__file__).parents[2] / "tests" / "fixtures" / "schemas"


def _register(home: Home) -> None:
    home.register([contingency("left", 0.2), contingency("right", 0.2), own_system_contingency("own", b"network")])


def _add_head(home: Home) -> None:
    home.add_head(contingencies.find(home.database, "fault-a"), head(0.9), measured())


def _add_checkpoint(home: Home) -> None:
    row = contingencies.find(home.database, "fault-a")
    home.add_checkpoint(b"weights", 10, "kind", {row.id: 0})


def _gc(home: Home) -> None:
    collect_garbage(home, delete=True, heads=True, grace_s=0)


ACTIONS: dict[str, Callable[[Home], object]] = {
    "register": _register,
    "add-head": _add_head,
    "add-checkpoint": _add_checkpoint,
    "deploy": lambda home: home.deploy("fault-a", 3, reason="third"),
    "rollback": lambda home: home.rollback("fault-a"),
    "retire": lambda home: home.retire("fault-a"),
    "gc": _gc,
    "create": lambda home: None,  # opening is what is interrupted in these two
    "migrate": lambda home: None,
}


def furnish(path: Path, url: str | None) -> None:
    """A home in which every operation has something to do."""
    with Home.open(path, url) as home:
        row = home.register([contingency()])[0].row
        for level in (0.7, 0.75, 0.8, 0.85):
            home.add_head(row, head(level), measured())
        for number in (1, 2, 4):  # two to roll back to: one more when the kill came after the commit
            home.deploy("fault-a", number, reason=f"head {number}")
        home.artifacts.put(b"nobody needs me")


def old_registry(path: Path, url: str | None) -> None:
    """A home as the first release left it."""
    path.mkdir(parents=True)
    Artifacts(path).put((SCHEMAS / "head.json").read_bytes())
    if url is None:
        with sqlite3.connect(path / "registry.db") as connection:
            connection.executescript((SCHEMAS / "0001.sqlite.sql").read_text())
    else:
        with psycopg.connect(url) as connection:
            connection.execute((SCHEMAS / "0001.postgresql.sql").read_text())


def prepare(operation: str, path: Path, url: str | None) -> None:
    """What is there before the operation."""
    if operation == "migrate":
        old_registry(path, url)
    elif operation != "create":
        furnish(path, url)


def act(operation: str, path: Path, url: str | None, kill_at: int | None, told: int) -> None:
    """In a child process: do the operation, and die before step `kill_at`; without it, tell how many there are."""
    count = 0

    def on_step(name: str) -> None:
        nonlocal count
        if count == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)
        count += 1

    opened = Home.open(path, url) if operation not in ("create", "migrate") else None
    steps.on_step = on_step
    with opened or Home.open(path, url) as home:
        ACTIONS[operation](home)
    os.write(told, str(count).encode())


def run_child(operation: str, path: Path, url: str | None, kill_at: int | None = None) -> int | None:
    """The number of steps of an operation, or None when it was killed."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            act(operation, path, url, kill_at, writing)
            os._exit(0)
        finally:
            os._exit(1)
    os.close(writing)
    told = os.read(reading, 100)
    os.close(reading)
    status = os.waitpid(pid, 0)[1]
    if os.WIFSIGNALED(status):
        return None
    assert os.WEXITSTATUS(status) == 0, f"{operation} failed in its child"
    return int(told)


@contextmanager
def backend_url(server: str | None) -> Iterator[str | None]:
    """An empty schema of a PostgreSQL server, dropped afterwards; None for SQLite."""
    if server is None:
        yield None
        return
    name = f"kills_{os.getpid()}_{time.monotonic_ns()}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name}")
        yield f"{server}&options=-csearch_path%3D{name}"
        connection.execute(f"DROP SCHEMA {name} CASCADE")


def state(home: Home) -> tuple[object, ...]:
    """Everything that an operation can change, as plain values."""
    rows = [(row.name, row.version) for row in contingencies.latest(home.database)]
    slots = [(row.id, row.head_id, row.active) for row in _history(home)]
    return rows, [row.id for row in heads.heads_of(home.database)], slots


def _history(home: Home) -> list:
    return deployments.history(home.database, "fault-a") if contingencies.latest(home.database) else []


def problems_after(path: Path, url: str | None) -> list[str]:
    """What is wrong with a home after a kill, found with what a user has."""
    with Home.open(path, url) as home:
        found = verify(home).problems
        active = sum(row.active for row in _history(home))
        return found + ([f"{active} active deployments"] if active > 1 else [])


def kill_every_step(operation: str, server: str | None, folder: Path, every: int = 1) -> tuple[int, list[str]]:
    """Kills done, and problems found; with `every` only each so manieth step is tried."""
    with backend_url(server) as url:
        path = folder / operation / "whole"
        prepare(operation, path, url)
        count = run_child(operation, path, url) or 0
    failures, kills = [], 0
    for kill_at in range(0, count, every):
        with backend_url(server) as url:
            path = folder / operation / str(kill_at)
            prepare(operation, path, url)
            if run_child(operation, path, url, kill_at) is not None:
                failures.append(f"{operation} was over before step {kill_at}")
                continue
            kills += 1
            failures += [f"{operation}, killed at {kill_at}: {text}" for text in problems_after(path, url)]
            run_again(operation, path, url, kill_at, failures)
            shutil.rmtree(path)
    return kills, failures


def run_again(operation: str, path: Path, url: str | None, kill_at: int, failures: list[str]) -> None:
    """The operation once more, and no rubbish that a clean-up would not find."""
    where = f"{operation}, again after {kill_at}"
    with Home.open(path, url) as home:
        before = state(home)
        if operation == "retire" and not any(row.active for row in _history(home)):
            return  # the kill came after its commit
        try:
            ACTIONS[operation](home)
        except Exception as error:  # every kind counts
            failures.append(f"{where}: {type(error).__name__}: {error} (state {before})")
        collect_garbage(home, delete=True, grace_s=0)
        verdict = verify(home)
        failures += [f"{where}: {text}" for text in verdict.problems]
        if verdict.unreferenced:
            failures.append(f"{where}: {verdict.unreferenced} files are left over")


def main() -> None:
    """Run the campaign on each backend and print its figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--backends", default="sqlite,postgresql")
    parser.add_argument("--operations", default=",".join(ACTIONS))
    options = parser.parse_args()
    for backend in options.backends.split(","):
        total, failures = 0, []
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            server = stack.enter_context(postgres_server()) if backend == "postgresql" else None
            for operation in options.operations.split(","):
                kills, found = kill_every_step(operation, server, folder)
                print(f"{backend} {operation}: killed at {kills} steps, {len(found)} problems", flush=True)
                total, failures = total + kills, failures + found
        for failure in failures[:20]:
            print(f"failed: {failure}")
        print(f"figure kills_{backend} {total} 1")
        print(f"figure kills_{backend}_problems {len(failures)} 1")


if __name__ == "__main__":
    main()

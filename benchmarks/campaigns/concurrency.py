"""Many processes on one registry at once: registering, adding heads, deploying, rolling back, retiring and asking.

Run: python -m benchmarks.campaigns.concurrency [--processes 8] [--operations 1000] [--backends sqlite,postgresql]

Every process draws its operations from its own seed and keeps one `Registry` open, which it asks between the others;
every hundredth operation is done by a short-lived process of its own. An operation fails when it raises anything but
the sentence that belongs to it (nothing deployed yet, nothing to roll back to), and an answer when it is not one of a
head that was ever deployed. Afterwards the whole home is verified.
"""

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from contingencies.errors import ConflictError, NotFoundError
from registry import Registry
from registry.home import Home
from registry.store import deployments
from registry.upkeep import collect_garbage, verify
from tests.postgres import postgres_server
from tests.registry.makers import contingency, head, measured

ROOT = Path(__file__).parents[2]
NAMES = ("shared-a", "shared-b", "shared-c")
ASKS = 0.5  # share of the operations that only ask


def work(home: Home, asked: Registry, draw: random.Random, number: int, turn: int) -> None:
    """One operation, drawn at random."""
    name = draw.choice(NAMES)
    kind = "ask" if draw.random() < ASKS else draw.choice(("register", "head", "deploy", "rollback", "retire", "gc"))
    try:
        if kind == "ask":
            answer = asked.cct(name, 0.9)
            assert answer.cct is not None and 0.5 <= answer.cct < 0.6, answer
        elif kind == "register":
            home.register([contingency(f"own-{number}-{turn}", 0.3)])
        elif kind == "head":
            row = home.register([contingency(name, 0.4)])[0].row
            home.add_head(row, head(round(0.5 + (number * 10_007 + turn) % 99_991 / 1e6, 9)), measured())
        elif kind == "gc":
            collect_garbage(home, delete=True)
        else:
            getattr(home, kind)(name, reason=f"process {number}, turn {turn}")
    except (NotFoundError, ConflictError) as error:
        if not any(sign in str(error) for sign in ("has no head deployed", "nothing to roll back to")):
            raise


def process(path: str, url: str, number: int, operations: int) -> None:
    """What one of the processes does; prints its failures as JSON."""
    draw, failures = random.Random(number), []
    with Home.open(path, url or None) as home, Registry.open(path, url or None) as asked:
        for turn in range(operations):
            try:
                if turn % 100 == 99:
                    arguments = [path, url, str(number * 1000 + turn), "1"]
                    done = subprocess.run(
                        [sys.executable, "-m", __spec__.name, "--process", *arguments],
                        cwd=ROOT, capture_output=True, text=True,
                    )  # fmt: skip
                    if done.returncode or json.loads(done.stdout):
                        failures.append(f"short-lived: {done.returncode} {done.stdout} {done.stderr[-300:]}")
                else:
                    work(home, asked, draw, number, turn)
            except Exception as error:  # every kind counts as a failure
                failures.append(f"{number}/{turn} {type(error).__name__}: {error}")
    print(json.dumps(failures))


def campaign(path: Path, url: str | None, processes: int, operations: int) -> list[str]:
    """Failures of all processes, and what verification finds afterwards."""
    with Home.open(path, url) as home:
        for name in NAMES:
            row = home.register([contingency(name, 0.4)])[0].row
            home.add_head(row, head(0.5), measured())
            home.deploy(name, reason="first")
    command = [sys.executable, "-m", __name__ if __name__ != "__main__" else __spec__.name, "--process", str(path)]
    children = [
        subprocess.Popen(
            [*command, url or "", str(number), str(operations)],
            cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for number in range(processes)
    ]  # fmt: skip
    failures = []
    for number, child in enumerate(children):
        out, error = child.communicate()
        failures += json.loads(out) if child.returncode == 0 else [f"{number} died: {child.returncode} {error[-300:]}"]
    with Home.open(path, url) as home:
        failures += verify(home).problems
        for name in NAMES:
            active = [row for row in deployments.history(home.database, name) if row.active]
            failures += [f"{name} has {len(active)} active deployments"] if len(active) > 1 else []
    return failures


def main() -> None:
    """Run the campaign on each backend and print its figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--operations", type=int, default=1000, help="of each process")
    parser.add_argument("--backends", default="sqlite,postgresql")
    parser.add_argument("--process", nargs=4, metavar=("HOME", "URL", "NUMBER", "OPERATIONS"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.process:
        path, url, number, operations = options.process
        process(path, url, int(number), int(operations))
        return
    for backend in options.backends.split(","):
        with ExitStack() as stack:
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            url = stack.enter_context(postgres_server()) if backend == "postgresql" else None
            started = time.perf_counter()
            failures = campaign(Path(folder) / "home", url, options.processes, options.operations)
            taken = time.perf_counter() - started
        for failure in failures[:20]:
            print(f"failed: {failure}")
        total = options.processes * options.operations
        print(f"figure concurrency_{backend}_operations {total} 1")
        print(f"figure concurrency_{backend}_failures {len(failures)} 1")
        print(f"figure concurrency_{backend}_s {taken:.0f} s")


if __name__ == "__main__":
    main()

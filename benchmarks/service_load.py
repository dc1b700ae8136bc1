"""Load on the service, both sides of every ratio in one run: one server process, clients in another.

The constant is a plain Starlette route of the same server that returns bytes; it and the single query are asked in
turns, many short turns, so that other work on the machine touches both alike. Costs are CPU seconds of the server
process per request, which other work does not change. Then rows per second of a large POST; the latency at half of
the rate at which the server saturates, in turns; and mixed load while heads are deployed and rolled back, with every
answer checked against what was active.

Run with `python benchmarks/service_load.py [--seconds 60] [--changes 200]`.
"""

import argparse
import asyncio
import json
import multiprocessing
import os
import statistics
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from registry.home import Home  # noqa: E402
from registry.query import Registry  # noqa: E402
from registry.service.settings import Settings  # noqa: E402
from registry.store import tokens  # noqa: E402
from tests.registry.makers import contingency, head, measured  # noqa: E402
from tests.registry.service.serving import free_port  # noqa: E402

CONNECTIONS = 16
ROWS = 10_000
ROUNDS = 7  # turns of each side
SATURATING = 3200  # queries that show the rate of saturation
TURN_S = 2.0  # of queries at half of that rate
GRACE_S = 1.0  # a deployment is seen by every worker within a second


def serve(settings: Settings) -> None:
    """The service with one more route, a constant, in front of everything."""
    import uvicorn
    from starlette.applications import Starlette
    from starlette.responses import Response
    from starlette.routing import Route

    from registry.service.app import create_app

    constant = json.dumps({"contingency": "fault-a", "cct_s": [0.7], "status": ["finite"]}).encode() + b" " * 120

    async def answer(request: object) -> Response:
        return Response(constant, media_type="application/json")

    sys.stderr = open(os.devnull, "w")  # noqa: SIM115 - the access log is written, as by default, and thrown away
    plain = Starlette(routes=[Route("/constant", answer)])
    service = create_app(settings)

    async def both(scope, receive, send):  # type: ignore[no-untyped-def]
        await (plain if scope.get("path") == "/constant" else service)(scope, receive, send)

    uvicorn.run(both, port=settings.port, log_level="error", access_log=False, server_header=False, ws="none")


@dataclass
class Server:
    """A server process and the clocks of its CPU and memory."""

    process: multiprocessing.process.BaseProcess
    port: int

    def cpu_s(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def memory_mb(self) -> float:
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


class Connection:
    """One keep-alive connection that asks and reads whole answers."""

    def __init__(self, port: int, token: str) -> None:
        self.port, self.token = port, token

    async def open(self) -> "Connection":
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)
        return self

    def request(self, path: str, body: bytes = b"") -> bytes:
        start = f"{'POST' if body else 'GET'} {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {self.token}\r\n"
        return start.encode() + (b"Content-Length: %d\r\n" % len(body) if body else b"") + b"\r\n" + body

    async def ask(self, request: bytes) -> tuple[int, bytes]:
        self.writer.write(request)
        top = await self.reader.readuntil(b"\r\n\r\n")
        length = int(top.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        return int(top[9:12]), await self.reader.readexactly(length)


async def connections(port: int, token: str, count: int = CONNECTIONS) -> list[Connection]:
    return [await Connection(port, token).open() for _ in range(count)]


async def ask_many(opened: list[Connection], path: str, total: int) -> float:
    """Ask so many times over all connections; seconds that it took."""

    async def one(connection: Connection, count: int) -> None:
        request = connection.request(path)
        for _ in range(count):
            status, _ = await connection.ask(request)
            assert status == 200, status

    start = time.perf_counter()
    await asyncio.gather(*(one(connection, total // len(opened)) for connection in opened))
    return time.perf_counter() - start


async def costs(server: Server, opened: list[Connection]) -> tuple[float, float, float]:
    """Server CPU seconds per constant and per query, and queries per second, each the median over turns."""
    found: dict[str, list[float]] = {"/constant": [], QUERY: []}
    rates = []
    for path in found:
        await ask_many(opened, path, 1600)  # warm
    for _ in range(ROUNDS):
        for path, values in found.items():
            before = server.cpu_s()
            seconds = await ask_many(opened, path, 3200)
            values.append((server.cpu_s() - before) / 3200)
            if path == QUERY:
                rates.append(3200 / seconds)
    return statistics.median(found["/constant"]), statistics.median(found[QUERY]), statistics.median(rates)


async def batches(server: Server, opened: list[Connection]) -> float:
    """Server CPU seconds per row of a POST of 10,000 rows."""
    rows = {"contingency": ["fault-a", "fault-c"] * (ROWS // 2), "alpha": [k / ROWS for k in range(ROWS)]}
    request = opened[0].request("/api/v1/cct", json.dumps(rows).encode())
    await opened[0].ask(request)
    before = server.cpu_s()
    for _ in range(20):
        status, _ = await opened[0].ask(request)
        assert status == 200
    return (server.cpu_s() - before) / (20 * ROWS)


async def latencies(opened: list[Connection], rate: float, seconds: float) -> list[float]:
    """Latencies in s of queries that start at a steady rate, waiting for a free connection included."""
    free: asyncio.Queue[Connection] = asyncio.Queue()
    for connection in opened:
        free.put_nowait(connection)
    found: list[float] = []

    async def one(due: float) -> None:
        connection = await free.get()
        await connection.ask(connection.request(QUERY))
        found.append(time.perf_counter() - due)
        free.put_nowait(connection)

    start = time.perf_counter()
    pending = set()
    for k in range(int(rate * seconds)):
        due = start + k / rate
        wait = due - time.perf_counter()
        if wait > 0:
            await asyncio.sleep(wait)
        task = asyncio.create_task(one(time.perf_counter()))
        pending.add(task)
        task.add_done_callback(pending.discard)
    await asyncio.gather(*pending)
    return found


async def at_half_saturation(opened: list[Connection]) -> float:
    """The 99th percentile of the latency in ms at half of the rate at which the server saturates.

    The rate is measured anew before each turn, because other work on the machine changes it; the median of all turns.
    """
    found = []
    for _ in range(ROUNDS):
        rate = SATURATING / await ask_many(opened, QUERY, SATURATING) / 2
        slow = sorted(await latencies(opened, rate, TURN_S))
        p50, p99 = (1e3 * slow[int(share * len(slow))] for share in (0.5, 0.99))
        print(f"at {rate:8.0f} per second: median {p50:.2f} ms, p99 {p99:.2f} ms, {len(slow)} queries")
        found.append(p99)
    return statistics.median(found)


class Changing(threading.Thread):
    """Deploys and rolls back in a process's own time, and notes when which head was active."""

    def __init__(self, home: str, changes: int, seconds: float) -> None:
        super().__init__(daemon=True)
        self.home, self.changes, self.pause = home, changes, seconds / changes
        self.spans: list[tuple[float, float, int]] = [(0.0, 0.0, 1)]  # began to change, had changed, head

    def run(self) -> None:
        with Home.open(self.home) as home:
            for k in range(self.changes):
                before = time.monotonic()
                row = (
                    home.deploy("fault-a", 2, reason="load") if k % 2 == 0 else home.rollback("fault-a", reason="load")
                )
                self.spans.append((before, time.monotonic(), row.head_id))
                time.sleep(max(0.0, self.pause - (time.monotonic() - before)))

    def was_active(self, head_id: int, asked: float, answered: float) -> bool:
        """Whether a head was the active one at some moment between question and answer, a second's grace before."""
        ends = [span[1] for span in self.spans[1:]] + [float("inf")]
        return any(
            head == head_id and began <= answered and ended + GRACE_S >= asked
            for (began, _, head), ended in zip(list(self.spans), ends, strict=False)
        )


async def mixed(server: Server, opened: list[Connection], home: str, changes: int, seconds: float) -> dict[str, float]:
    """Mixed load while heads change; counts errors and answers of heads that were not active."""
    changing = Changing(home, changes, seconds)
    answers: list[tuple[int, float, float]] = []
    errors = 0
    changing.start()
    until = time.monotonic() + seconds
    batch = json.dumps({"contingency": ["fault-a"] * 100, "alpha": [0.9] * 100}).encode()

    async def one(k: int, connection: Connection) -> None:
        nonlocal errors
        paths = (QUERY, QUERY, QUERY, "/api/v1/cct", "/api/v1/ranking?limit=5", "/api/v1/deployments/fault-a")
        turn = k
        while time.monotonic() < until or changing.is_alive():
            path = paths[turn % len(paths)] if k % 4 == 0 else QUERY
            turn += 1
            asked = time.monotonic()
            status, body = await connection.ask(connection.request(path, batch if path == "/api/v1/cct" else b""))
            answered = time.monotonic()
            errors += status != 200
            if path == QUERY and status == 200:
                answers.append((json.loads(body)["head"], asked, answered))

    memory = [server.memory_mb()]

    async def watch() -> None:
        while time.monotonic() < until:
            await asyncio.sleep(seconds / 10)
            memory.append(server.memory_mb())

    await asyncio.gather(watch(), *(one(k, connection) for k, connection in enumerate(opened)))
    changing.join()
    wrong = sum(not changing.was_active(*answer) for answer in answers)
    late = sum(not _strictly(changing, *answer) for answer in answers)
    half = memory[len(memory) // 2]
    return {
        "answers": len(answers), "changes": len(changing.spans) - 1, "errors": errors, "wrong": wrong,
        "within_grace": late, "memory_start": memory[0], "memory_half": half, "memory_end": memory[-1],
    }  # fmt: skip


def _strictly(changing: Changing, head_id: int, asked: float, answered: float) -> bool:
    """As `was_active`, without the grace."""
    ends = [span[1] for span in changing.spans[1:]] + [float("inf")]
    return any(
        head == head_id and began <= answered and ended >= asked
        for (began, _, head), ended in zip(changing.spans, ends, strict=False)
    )


QUERY = "/api/v1/cct/fault-a?alpha=0.9"


def make_home(path: Path) -> str:
    """A home with two contingencies and a token; returns the token's secret."""
    with Home.open(path) as home:
        first, third = (one.row for one in home.register([contingency("fault-a"), contingency("fault-c", 0.3)]))
        for row, level in ((first, 0.7), (first, 0.6), (third, 0.5)):
            home.add_head(row, head(level), measured())
        home.deploy("fault-a", 1, reason="benchmark")
        home.deploy("fault-c", reason="benchmark")
        return tokens.create(home.database, "load", "admin")[1]


async def run(server: Server, token: str, home: str, seconds: float, changes: int) -> int:
    for _ in range(600):
        try:
            opened = await connections(server.port, token)
            break
        except OSError:
            await asyncio.sleep(0.1)
    constant, query, rate = await costs(server, opened)
    print(f"constant route   {1e6 * constant:8.1f} us of server CPU per request")
    print(f"single query     {1e6 * query:8.1f} us   {rate:8.0f} per second here and now")
    row = await batches(server, opened)
    print(f"row of a POST    {1e6 * row:8.3f} us   ({ROWS} rows)")
    p99 = await at_half_saturation(opened)
    found = await mixed(server, opened, home, changes, seconds)
    print("mixed load: " + ", ".join(f"{key} {value:.5g}" for key, value in found.items()))
    print(f"figure service_over_constant {query / constant:.2f} ratio")
    print(f"figure service_batch_over_single {query / row:.0f} ratio")
    print(f"figure service_p99_ms {p99:.2f} ms")
    print(f"figure service_wrong_answers {found['wrong'] + found['errors']:.0f} answers")
    return int(found["wrong"] + found["errors"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60.0, help="of mixed load")
    parser.add_argument("--changes", type=int, default=200, help="deployments and rollbacks meanwhile")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = str(Path(folder) / "home")
        token = make_home(Path(home))
        with Registry.open(home) as registry:
            assert registry.cct("fault-a", 0.9).cct == 0.7
        settings = Settings(home, port=free_port(), rate=0.0)
        process = multiprocessing.get_context("spawn").Process(target=serve, args=(settings,), daemon=True)
        process.start()
        try:
            wrong = asyncio.run(run(Server(process, settings.port), token, home, options.seconds, options.changes))
        finally:
            process.terminate()
            process.join(timeout=10)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()

"""Running a service: health, metrics, a registry that goes away and comes back, workers that die, an orderly end."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import event
from starlette.testclient import TestClient

from registry.home import Home
from registry.service.app import create_app
from registry.store.required_times import set_required
from tests.postgres import restartable_server
from tests.registry.makers import Zoo
from tests.registry.service.serving import World, free_port, running, world

ROOT = Path(__file__).parents[3]
PATIENCE_S = 60.0
AWAY = "CCT-Zoo-Registry"


def eventually(true: Callable[[], bool], what: str, patience_s: float = PATIENCE_S) -> None:
    until = time.monotonic() + patience_s
    while not true():
        assert time.monotonic() < until, what
        time.sleep(0.1)


def ask(url: str, path: str = "/api/v1/cct/fault-a?alpha=0.9") -> tuple[int, dict, dict]:
    """Status, headers and content of an answer; status 0 when there is none."""
    try:
        with urllib.request.urlopen(url + path, timeout=30) as answer:
            return answer.status, dict(answer.headers), json.load(answer)
    except urllib.error.HTTPError as refusal:
        return refusal.code, dict(refusal.headers), json.load(refusal)
    except OSError:
        return 0, {}, {}


def test_health_readiness_and_metrics(opened: tuple[World, TestClient]) -> None:
    made, client = opened
    set_required(made.home.database, "fault-a", 0.6, "slow breaker")
    assert client.get("/healthz").json()["status"] == client.get("/readyz").json()["status"] == "ok"
    client.get("/api/v1/cct/fault-a", params={"alpha": [0.1, 0.9]})
    client.post("/api/v1/cct", json={"contingency": ["fault-a", "fault-b"], "alpha": 0.9})
    client.get("/no/such/page")
    lines = client.get("/metrics").text.splitlines()
    for line in (
        'cct_zoo_answers_total{status="finite"} 2.0',
        'cct_zoo_answers_total{status="right-censored"} 1.0',
        'cct_zoo_answers_total{status="no-head"} 1.0',
        'cct_zoo_requests_total{method="GET",route="/api/v1/cct/{name}",status="200"} 1.0',
        'cct_zoo_requests_total{method="GET",route="other",status="404"} 1.0',
        'cct_zoo_deployed_heads{age="day"} 1.0',
        'cct_zoo_alerts{kind="below-required"} 1.0',
        'cct_zoo_alerts{kind="missing"} 1.0',
        "cct_zoo_registry_reachable 1.0",
    ):
        assert line in lines, line
    margin = next(line for line in lines if line.startswith('cct_zoo_margin_seconds{contingency="fault-a"}'))
    assert float(margin.split()[1]) == pytest.approx(0.5 - 1e-5 - 0.6)


def test_queries_go_on_while_postgresql_is_away_and_the_service_recovers(tmp_path: Path) -> None:
    with restartable_server() as server:
        made = world(Zoo(tmp_path / "home", server.url))
        with running(made) as url:
            assert ask(url)[2]["head"] == 1
            made.home.deploy("fault-a", 2, reason="seen within a second")
            eventually(lambda: ask(url)[2]["head"] == 2, "the new deployment was not seen", 5.0)
            server.stop()
            eventually(lambda: AWAY.lower() in {key.lower() for key in ask(url)[1]}, "nobody noticed that it is away")
            status, _, content = ask(url)
            assert (status, content["head"], content["cct_s"]) == (200, 2, [0.6])
            assert ask(url, "/readyz")[0] == 503 and ask(url, "/healthz")[0] == 200
            status, _, content = ask(url, "/api/v1/heads")
            assert status == 503 and "cannot be" in content["detail"]
            server.start()
            eventually(lambda: AWAY.lower() not in {key.lower() for key in ask(url)[1]}, "it did not recover")
            assert ask(url, "/api/v1/heads")[0] == 200
            with Home.open(made.path, server.url) as home:
                home.rollback("fault-a", reason="after the outage")
            eventually(lambda: ask(url)[2]["head"] == 1, "the rollback was not seen", 10.0)
        for home in made.zoo.opened:
            home.close()


def test_a_full_disk_refuses_changes_and_answers_questions(sqlite_zoo: Zoo) -> None:
    made = world(sqlite_zoo).guard()
    app = create_app(made.settings())
    engine = app.service.home.database.engine

    def limit(connection: object, record: object) -> None:
        connection.execute("PRAGMA max_page_count = 1")  # at least as large as the file is: nothing can grow

    body = {"required_s": 0.1, "reason": "x" * 2000}  # more than fits into pages that are there
    with TestClient(app, raise_server_exceptions=False) as client:
        event.listen(engine, "connect", limit)
        engine.dispose()
        headers = made.headers("deploy")
        for _ in range(40):
            refused = client.put("/api/v1/required-times/fault-a", json=body, headers=headers)
            if refused.status_code != 200:
                break
        assert refused.status_code == 503 and "full" in refused.json()["detail"]
        assert client.get("/api/v1/cct/fault-a?alpha=0.9", headers=headers).json()["cct_s"] == [0.7]
        event.remove(engine, "connect", limit)
        engine.dispose()
        assert client.put("/api/v1/required-times/fault-a", json=body, headers=headers).status_code == 200


def test_a_killed_worker_is_replaced_and_the_end_is_orderly(sqlite_zoo: Zoo) -> None:
    made = world(sqlite_zoo)
    port = free_port()
    command = [sys.executable, "cli.py", "serve", "--port", str(port), "--workers", "2", "--home", str(made.path)]
    server = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    url = f"http://127.0.0.1:{port}"
    try:
        eventually(lambda: ask(url)[0] == 200, "it did not start", 120.0)
        assert "open to this machine, read only" in server.stdout.readline()
        children = _children(server.pid)
        os.kill(children[-1], signal.SIGKILL)
        for _ in range(20):
            assert ask(url)[0] in (200, 0)  # a request on its way to the dead one may be lost
        eventually(lambda: ask(url)[0] == 200, "it did not survive")
        eventually(lambda: len(_children(server.pid)) >= len(children), "the worker was not replaced", 120.0)
        assert "cct_zoo_answers_total" in urllib.request.urlopen(f"{url}/metrics", timeout=60).read().decode()
    finally:
        server.send_signal(signal.SIGTERM)
        assert server.wait(timeout=PATIENCE_S) == 0
    assert ask(url)[0] == 0


@pytest.mark.parametrize("kind", ["uvicorn", "granian"])
def test_a_server_that_is_told_to_stop_finishes_open_requests(sqlite_zoo: Zoo, kind: str) -> None:
    made = world(sqlite_zoo)
    port = free_port()
    command = [sys.executable, "cli.py", "serve", "--port", str(port), "--server", kind, "--home", str(made.path)]
    server = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        eventually(lambda: ask(f"http://127.0.0.1:{port}")[0] == 200, "it did not start", 120.0)
        body = b'{"contingency": "fault-a", "alpha": 0.9}'
        with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as connection:
            connection.sendall(b"POST /api/v1/cct HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body))
            connection.sendall(body[:10])
            time.sleep(0.5)  # so that the request has begun
            server.send_signal(signal.SIGTERM)
            time.sleep(0.5)
            assert server.poll() is None
            connection.sendall(body[10:])
            answer = b""
            while piece := connection.recv(65536):
                answer += piece
        assert answer.startswith(b"HTTP/1.1 200") and b'"cct_s":[0.7]' in answer
    finally:
        server.send_signal(signal.SIGTERM)
        code = server.wait(timeout=PATIENCE_S)
    assert code == 0


def _children(pid: int) -> list[int]:
    """Worker processes, oldest first; helpers of multiprocessing are none."""
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in map(int, task.read_text().split()):
            arguments = Path(f"/proc/{child}/cmdline").read_bytes()
            if b"spawn_main" in arguments:
                found.append(child)
    return sorted(found)

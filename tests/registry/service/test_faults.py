"""Clients that behave badly: they are refused, and the others are answered meanwhile."""

import socket
import urllib.request
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from tests.registry.makers import Zoo
from tests.registry.service.serving import running, world


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    made = world(Zoo(tmp_path_factory.mktemp("faults") / "home", None))
    with running(made) as address:
        yield address
    for home in made.zoo.opened:
        home.close()


def connect(url: str) -> socket.socket:
    parts = urlsplit(url)
    return socket.create_connection((parts.hostname, parts.port), timeout=30)


def answers(url: str) -> bool:
    with urllib.request.urlopen(f"{url}/api/v1/cct/fault-a?alpha=0.9", timeout=30) as answer:
        return answer.status == 200


def status_of(connection: socket.socket) -> int:
    first = connection.recv(4096).split(b"\r\n")[0]
    return int(first.split()[1]) if first else 0


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"NONSENSE\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /\x00 HTTP/1.1\r\nHost: x\r\n\r\n",
        b"POST /api/v1/cct HTTP/1.1\r\nHost: x\r\nContent-Length: minus\r\n\r\n",
        b"POST /api/v1/cct HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"GET / HTTP/1.1\r\n" + b"A: " + b"b" * 200_000 + b"\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET /api/v1/cct/%ff%00?alpha=%ff HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
        b"GET /../../etc/passwd HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
        b"GET /static/../settings.py HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
    ],
)
def test_malformed_http_is_refused_and_others_are_answered(url: str, request_bytes: bytes) -> None:
    with connect(url) as connection:
        try:
            connection.sendall(request_bytes)
            assert status_of(connection) in (0, 400, 404, 422, 431)
        except ConnectionError:
            pass
    assert answers(url)


def test_a_body_of_ten_megabytes_is_refused_unread(url: str) -> None:
    with connect(url) as connection:
        connection.sendall(b"POST /api/v1/cct HTTP/1.1\r\nHost: x\r\nContent-Length: 10000000\r\n\r\n{")
        assert status_of(connection) == 413
    with connect(url) as connection:  # without saying so beforehand
        connection.sendall(b"POST /api/v1/cct HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
        piece = b"%x\r\n" % 100_000 + b" " * 100_000 + b"\r\n"
        try:
            for _ in range(100):
                connection.sendall(piece)
            assert status_of(connection) == 413
        except ConnectionError:
            pass  # it hung up in the middle
    assert answers(url)


def test_slow_clients_do_not_hold_up_others(url: str) -> None:
    slow = [connect(url) for _ in range(50)]
    for k, connection in enumerate(slow):
        half = b"GET /api/v1/cct/fault-a?alp" if k % 2 else b"POST /api/v1/cct HTTP/1.1\r\nContent-Length: 100\r\n\r\n{"
        connection.sendall(half)
    for _ in range(5):
        assert answers(url)
    for connection in slow:
        connection.close()
    assert answers(url)

"""A service to test: in this process through ASGI, or a real server on a free port of loopback."""

import atexit
import shutil
import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import uvicorn
from starlette.testclient import TestClient

from registry.home import Home
from registry.service.app import create_app
from registry.service.settings import Settings
from registry.store import tokens
from tests.registry.makers import Zoo, contingency, head, measured

ROLES = ("read", "deploy", "admin")


@dataclass
class World:
    """A home with contingencies and heads, and tokens of every kind."""

    zoo: Zoo
    home: Home
    secrets: dict[str, str] = field(default_factory=dict)  # role, revoked or expired -> secret

    @property
    def path(self) -> Path:
        return self.zoo.path

    def settings(self, **changes: object) -> Settings:
        return Settings(str(self.zoo.path), self.zoo.url, **({"access_log": False} | changes))

    def headers(self, role: str | None) -> dict[str, str]:
        return {} if role is None else {"Authorization": f"Bearer {self.secrets[role]}"}

    def guard(self) -> "World":
        """Make a token of every role, one that was revoked and one that has expired."""
        database = self.home.database
        for name in (*ROLES, "revoked", "expired"):
            days = 1e-9 if name == "expired" else 1.0
            role = name if name in ROLES else "admin"
            self.secrets[name] = tokens.create(database, f"{name}-token", role, days)[1]
        tokens.revoke(database, "revoked-token")
        return self


def world(zoo: Zoo) -> World:
    """Two contingencies: fault-a with two heads of which the first answers, fault-b with none."""
    if zoo.url is None and not zoo.path.exists():
        shutil.copytree(_filled(), zoo.path)  # a tenth of the time that filling takes
        return World(zoo, zoo.again())
    return World(zoo, _fill(zoo.again()))


@cache
def _filled() -> Path:
    """A home that tests copy."""
    folder = Path(tempfile.mkdtemp(prefix="cct-zoo-world-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    _fill(Home.open(folder / "home", None)).close()
    return folder / "home"


def _fill(home: Home) -> Home:
    first = home.register([contingency("fault-a"), contingency("fault-b", 0.4)])[0].row
    home.add_head(first, head(0.7), measured())
    home.add_head(first, head(0.6), measured(mae_s=2e-5))
    home.deploy("fault-a", 1, reason="first")
    return home


@contextmanager
def in_process(made: World, **settings: object) -> Iterator[TestClient]:
    """A client of the application, without a server; refusals do not raise."""
    app = create_app(made.settings(**settings))
    with TestClient(app, base_url="http://127.0.0.1:8420", raise_server_exceptions=False, follow_redirects=False) as it:
        yield it


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def running(made: World, **settings: object) -> Iterator[str]:
    """URL of a real server in a thread."""
    port = free_port()
    app = create_app(made.settings(port=port, **settings))
    server = uvicorn.Server(
        uvicorn.Config(app, port=port, log_level="error", access_log=False, timeout_graceful_shutdown=2, ws="none")
    )
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    until = time.monotonic() + 30
    while not server.started:
        assert thread.is_alive() and time.monotonic() < until, "the server did not start"
        time.sleep(0.02)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join(timeout=10)
        assert not thread.is_alive()

"""A real PostgreSQL server for the tests: started once, on a private socket, thrown away at the end."""

import fcntl
import getpass
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest


def _binaries() -> Path | None:
    found = shutil.which("initdb")
    if found:
        return Path(found).parent
    versions = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda p: int(p.parts[-3]))
    return versions[-1].parent if versions else None


def _install() -> str | None:
    """Install Debian's package; returns why it could not be done, or None."""
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        return (
            "these tests need a server's programs (initdb, pg_ctl), and only root can install them with apt-get; "
            "install the package 'postgresql', or put its programs on the PATH, to run them"
        )
    quiet = {"env": {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}, "capture_output": True, "text": True}
    for command in (["apt-get", "update"], ["apt-get", "install", "-y", "--no-install-recommends", "postgresql"]):
        done = subprocess.run(command, **quiet)
        if done.returncode != 0:
            return f"{' '.join(command)} failed: {done.stderr.strip()[-200:]}"
    return None


def _unavailable(reason: str) -> None:
    """Leave out what needs a server where its user can have none; where everything must run, that is a failure."""
    if os.environ.get("CI", "").lower() in ("1", "true"):
        pytest.fail(f"PostgreSQL must be tested in CI: {reason}")
    pytest.skip(f"no PostgreSQL: {reason}")


@dataclass(frozen=True)
class Server:
    """A server that can be stopped and started again; `url` is that of its maintenance database."""

    url: str
    stop: Callable[[], None]
    start: Callable[[], None]


@contextmanager
def postgres_server() -> Iterator[str]:
    """URL of the maintenance database of a fresh server."""
    with restartable_server() as server:
        yield server.url


@contextmanager
def restartable_server() -> Iterator[Server]:
    """A fresh server."""
    with open(Path(tempfile.gettempdir()) / "cct-zoo-postgres.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # parallel test workers must not install at once
        reason = _install() if _binaries() is None else None
    if reason:
        _unavailable(reason)
    binaries = _binaries()
    if binaries is None:
        _unavailable("installed, but initdb is not where it should be")
    folder = Path(tempfile.mkdtemp(prefix="cct-pg-"))
    as_user: list[str] = []
    user = getpass.getuser()
    if os.geteuid() == 0:  # the server refuses to run as root
        user = "postgres" if "postgres:" in Path("/etc/passwd").read_text() else "nobody"
        as_user = ["runuser", "-u", user, "--"]
        shutil.chown(folder, user)
    data = folder / "data"

    def run(*command: str) -> None:
        done = subprocess.run([*as_user, *command], capture_output=True, text=True, cwd=folder)
        if done.returncode != 0:
            log = folder / "log"
            said = done.stderr or (log.read_text() if log.exists() else "")
            pytest.fail(f"PostgreSQL is installed, but {command[0]} failed: {said[-300:]}")

    try:
        run(str(binaries / "initdb"), "-D", str(data), "-U", "zoo", "-A", "trust", "--no-sync", "-E", "UTF8")
        options = f"-k {folder} -c listen_addresses='' -c fsync=off -c max_connections=100"
        control = (str(binaries / "pg_ctl"), "-D", str(data), "-w")

        def start() -> None:
            run(*control, "-l", str(folder / "log"), "-o", options, "start")

        def stop() -> None:
            run(*control, "-m", "immediate", "stop")

        start()
        try:
            yield Server(f"postgresql://zoo@/postgres?host={folder}", stop, start)
        finally:
            if (data / "postmaster.pid").exists():
                stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)

"""A real browser for the tests: Debian's Chromium, driven without a display."""

import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome")
QUIET = (  # nothing that asks the outside world
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-proxy-server",
)


def _found() -> str | None:
    return next((path for name in NAMES if (path := shutil.which(name))), None)


def _install() -> str | None:
    """Install Debian's package; returns why it could not be done, or None."""
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        return "these tests need a browser, and only root can install it with apt-get; install the package 'chromium'"
    quiet = {"env": {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}, "capture_output": True, "text": True}
    for command in (["apt-get", "update"], ["apt-get", "install", "-y", "--no-install-recommends", "chromium"]):
        done = subprocess.run(command, **quiet)
        if done.returncode != 0:
            return f"{' '.join(command)} failed: {done.stderr.strip()[-200:]}"
    return None


@contextmanager
def chromium() -> Iterator[Browser]:
    """A browser; where there can be none the tests are left out, except where everything must run."""
    with open(Path(tempfile.gettempdir()) / "cct-zoo-chromium.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # parallel test workers must not install at once
        reason = _install() if _found() is None else None
    program = _found()
    if reason or program is None:
        if os.environ.get("CI", "").lower() in ("1", "true"):
            pytest.fail(f"the page must be tested in CI: {reason}")
        pytest.skip(f"no browser: {reason}")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=list(QUIET))
        yield browser
        browser.close()

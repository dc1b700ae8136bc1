"""Under which circumstances an entry was run: budget, seeds, commit, machine, date."""

import os
import platform
import subprocess
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from zoo.paper.entry import Setting
from zoo.work.code import code_version


@dataclass(frozen=True)
class Circumstances:
    """Under which an entry was run."""

    budget: str
    seeds: int
    commit: str
    machine: str
    date: str

    @property
    def sentence(self) -> str:
        """For people."""
        seeds = f"{self.seeds} seed{'s' if self.seeds > 1 else ''}"
        return f"budget {self.budget}, {seeds}, {self.date}, commit {self.commit}, {self.machine}"


def circumstances(setting: Setting) -> Circumstances:
    """Now and here."""
    return Circumstances(
        setting.budget.name, len(setting.seeds), commit(), machine(), datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    )


def commit() -> str:
    """The commit of the source tree, marked when files differ from it; of an installed package its version."""
    root = Path(__file__).parent
    try:
        said = [
            subprocess.run(  # noqa: S603 - fixed words
                ["git", *words],  # noqa: S607 - whichever git the user has
                cwd=root, capture_output=True, text=True, check=True, timeout=20,
            ).stdout
            for words in (["rev-parse", "--short=12", "HEAD"], ["status", "--porcelain", "--untracked-files=no"])
        ]  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return f"version {code_version()}"
    return said[0].strip() + (" with local changes" if said[1].strip() else "")


def machine() -> str:
    """The processor, how busy it was in the last five minutes, and what runs on it."""
    model = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), model)
    except OSError:
        pass
    # A load above the number of cores: they were shared with others.
    load = f" (load {os.getloadavg()[1]:.1f})" if hasattr(os, "getloadavg") else ""
    return f"{model}, {os.cpu_count()} cores{load}, Python {platform.python_version()}, torch {version('torch')}"

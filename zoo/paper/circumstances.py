"""Under which circumstances the numbers of an entry came about: budget, seeds, dates, machines, and by which commit."""

import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from zoo.paper.entry import Setting
from zoo.work.code import code_version
from zoo.work.machine import here_and_now


@dataclass(frozen=True)
class Circumstances:
    """Under which an entry was run."""

    budget: str
    seeds: int
    commit: str  # that presented the numbers; results name the digest of the code that has found them
    machine: str
    date: str  # of the measurements, the first to the last

    @property
    def sentence(self) -> str:
        """For people."""
        seeds = f"{self.seeds} seed{'s' if self.seeds > 1 else ''}"
        return (
            f"budget {self.budget}, {seeds}, measured {self.date} on {self.machine}; presented by commit {self.commit}"
        )


def circumstances(setting: Setting, made: Iterable[Mapping[str, Any]] = ()) -> Circumstances:
    """Of results that were found then and there (`zoo.work.machine`); without any, here and now.

    Results of earlier releases may know their machine and not their date, or neither.
    """
    found = list(made) or [here_and_now()]
    instants = sorted(datetime.fromisoformat(each["at"]).astimezone(UTC) for each in found if "at" in each)
    shown = [f"{instant:%Y-%m-%d %H:%M}" for instant in instants]
    date = "at unknown times"
    if shown:
        since = f"{shown[0]} to " if len(shown) == len(found) else "until "
        date = f"{shown[-1]} UTC" if shown[0] == shown[-1] and "to" in since else f"{since}{shown[-1]} UTC"
    machines = " and ".join(dict.fromkeys(each.get("machine", "unknown machines") for each in found))
    loads = sorted(each["load"] for each in found if "load" in each)
    if loads:  # above the number of cores: they were shared with others
        least, most = (f"{load:.1f}" for load in (loads[0], loads[-1]))
        machines += f" (load {least})" if least == most else f" (load {least} to {most})"
    return Circumstances(setting.budget.name, len(setting.seeds), commit(), machines, date)


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

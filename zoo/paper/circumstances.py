"""Under which circumstances the numbers of an entry came about: budget, seeds, dates, machines, and by which commit."""

import subprocess
from collections.abc import Iterable, Mapping, Sequence
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

    Results of earlier releases may know their machine and only a date before which they were found, or neither.
    """
    found = list(made) or [here_and_now()]
    machines = " and ".join(dict.fromkeys(each.get("machine", "unknown machines") for each in found))
    loads = sorted(each["load"] for each in found if "load" in each)
    if loads:  # above the number of cores: they were shared with others
        least, most = (f"{load:.1f}" for load in (loads[0], loads[-1]))
        machines += f" (load {least})" if least == most else f" (load {least} to {most})"
    return Circumstances(setting.budget.name, len(setting.seeds), commit(), machines, _dates(found))


def _dates(made: Sequence[Mapping[str, Any]]) -> str:
    """From when to when results were found, or until when, as far as they know it."""
    told = (each.get("at", each.get("before")) for each in made)
    known = sorted((each for each in told if each is not None), key=datetime.fromisoformat)
    if not known:
        return "at unknown times"
    (first, begun), (last, ended) = (
        f"{datetime.fromisoformat(each).astimezone(UTC):%Y-%m-%d %H:%M}".split() for each in (known[0], known[-1])
    )
    if not all("at" in each for each in made):
        return f"until {last} {ended} UTC"
    if (first, begun) == (last, ended):
        return f"{first} {begun} UTC"
    return f"{first} {begun} to {ended if first == last else f'{last} {ended}'} UTC"


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

"""The diary of runs on disk: append-only JSON lines, so that recording never waits for a server.

Each run has one file `spool/<uid>.jsonl` in the home, written by the process that trains, and
one `spool/<uid>.state` written by whoever replays it to MLflow (`registry.tracking`). A line
cut short by a crash is ignored until it is complete, which it never will be.
"""

import json
import math
import os
import re
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from contingencies.errors import UsageError

FOLDER = "spool"
PLAIN = (
    ".csv",
    ".html",
    ".json",
    ".md",
    ".pdf",
    ".png",
    ".svg",
    ".txt",
)  # files of a run; nothing that runs on loading
_UID = re.compile(r"^[0-9a-f]{32}\Z")


class RunSpool:
    """Records of one run; every call is one short append to a local file."""

    def __init__(self, home: Path, name: str, *, uid: str | None = None, experiment: str = "cct-zoo") -> None:
        self.home = home
        self.uid = uid or uuid.uuid4().hex
        self.path = _path(home, self.uid, ".jsonl")
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._file = open(self.path, "a", encoding="utf-8")  # noqa: SIM115 - open as long as the run
        self._write("start", name=name, experiment=experiment)

    def params(self, params: Mapping[str, Any]) -> None:
        """Settings of the run."""
        self._write("params", values={str(k): str(v)[:5000] for k, v in params.items()})

    def tags(self, tags: Mapping[str, Any]) -> None:
        """Labels of the run."""
        self._write("tags", values={str(k): str(v)[:5000] for k, v in tags.items()})

    def metrics(self, metrics: Mapping[str, float], step: int = 0) -> None:
        """Measurements at a step; what is not a finite number is left out, since no store takes it alike."""
        finite = {str(k): float(v) for k, v in metrics.items() if math.isfinite(v)}
        self._write("metrics", values=finite, step=int(step))

    def files(self, paths: Sequence[Path]) -> None:
        """Plain files that lie in the home, such as figures; they are noted by their place in it and read at replay."""
        home, places = self.home.resolve(), [path.resolve() for path in paths]
        for path in places:
            if not (path.is_relative_to(home) and path.name.endswith(PLAIN)):
                raise UsageError(f"{path}: a run keeps plain files ({', '.join(PLAIN)}) of its home, and no others.")
        self._write("files", paths=[path.relative_to(home).as_posix() for path in places])

    def finish(self, status: str = "FINISHED") -> None:
        """End the run: FINISHED, FAILED or KILLED."""
        if status not in ("FINISHED", "FAILED", "KILLED"):
            raise UsageError(f"run status {status!r} is not known; use FINISHED, FAILED or KILLED.")
        self._write("end", status=status)
        self._file.close()

    def _write(self, kind: str, **content: Any) -> None:
        record = {"kind": kind, "at_ms": time.time_ns() // 1_000_000, **content}
        self._file.write(json.dumps(record, allow_nan=False) + "\n")
        self._file.flush()


@dataclass(frozen=True)
class ReplayState:
    """How far a spool has been replayed, and into which MLflow run."""

    offset: int = 0
    mlflow_run_id: str | None = None
    ended: bool = False
    store: str = ""  # the tracking URI's fingerprint: another store starts from the beginning
    files: tuple[str, ...] = ()  # noted in what was replayed, but not taken yet


def spooled_runs(home: Path) -> list[str]:
    """The uids of all runs that have a spool, oldest first."""
    paths = [path for path in (home / FOLDER).glob("*.jsonl") if _UID.match(path.stem)]
    return [path.stem for path in sorted(paths, key=lambda path: (path.stat().st_mtime, path.stem))]


def read_records(home: Path, uid: str, offset: int) -> tuple[list[dict[str, Any]], int]:
    """Complete records from a byte offset on, and the offset after them."""
    with open(_path(home, uid, ".jsonl"), "rb") as file:
        file.seek(offset)
        content = file.read()
    complete = content[: content.rfind(b"\n") + 1]
    records = []
    for line in complete.splitlines():
        try:
            record = json.loads(line)
        except ValueError:
            continue  # torn by a crash in the middle of a write that another process then appended to
        if isinstance(record, dict):
            records.append(record)
    return records, offset + len(complete)


def read_state(home: Path, uid: str) -> ReplayState:
    """The state of a replay; a spool never replayed has the initial one."""
    try:
        content = json.loads(_path(home, uid, ".state").read_text(encoding="utf-8"))
        return ReplayState(**content | {"files": tuple(content.get("files", ()))})
    except (FileNotFoundError, ValueError, TypeError, AttributeError):
        return ReplayState()


def write_state(home: Path, uid: str, state: ReplayState) -> None:
    """Keep the state of a replay, atomically."""
    path = _path(home, uid, ".state")
    temporary = path.with_suffix(f".{os.getpid()}.tmp")
    temporary.write_text(json.dumps(asdict(state)), encoding="utf-8")
    os.replace(temporary, path)


def run_file(home: Path, name: str) -> Path | None:
    """A file of a run by its place in the home; None when it is gone, or is no plain file in there."""
    path = (home / name).resolve()
    inside = path.is_relative_to(home.resolve()) and path.name.endswith(PLAIN)
    return path if inside and path.is_file() else None


def _path(home: Path, uid: str, suffix: str) -> Path:
    if not _UID.match(uid):
        raise UsageError(f"run uid {uid[:40]!r} is not 32 hexadecimal digits.")
    return home / FOLDER / f"{uid}{suffix}"

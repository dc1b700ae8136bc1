"""Trainings as they go on: their curves from the diary on disk, and how long they will still take."""

from typing import Any

from registry.home import Home
from registry.records import RunRecord
from registry.service.api.models import CurvePoint, LiveRun, RunOut
from registry.spool import read_records
from registry.store.events import now

MAX_POINTS = 1000  # of a curve: more than a screen has columns for
SILENT_S = 120.0  # without a heartbeat a running training is probably dead


def live_run(home: Home, run: RunRecord) -> LiveRun:
    """A run with its curves; without its diary, which lies where it was trained, the curves are empty."""
    try:
        records, _ = read_records(home.path, run.uid, 0)
    except OSError:
        records = []
    points = [_point(record) for record in records if record.get("kind") == "metrics"]
    every = -(-len(points) // MAX_POINTS) or 1
    thinned = points[::every] + ([points[-1]] if points and (len(points) - 1) % every else [])
    name = next((str(record["name"]) for record in records if record.get("kind") == "start"), None)
    return LiveRun(**RunOut.of(run).model_dump(), name=name, left_s=_left(run, points), curve=thinned)


def _point(record: dict[str, Any]) -> CurvePoint:
    return CurvePoint(step=record.get("step", 0), at_ms=record.get("at_ms", 0), metrics=record.get("values", {}))


def _left(run: RunRecord, points: list[CurvePoint]) -> float | None:
    """Seconds left by the share that is done; None when the run has ended or says nothing about it."""
    if run.status != "running" or not points:
        return None
    done = points[-1].metrics.get("done", 0.0)
    if not 0 < done <= 1:
        return None
    spent = points[-1].at_ms / 1e3 - run.started_at.timestamp()
    return max(0.0, spent * (1 - done) / done)


def is_silent(run: RunRecord) -> bool:
    """Whether a training that should be running has not been heard of for a while."""
    return run.status == "running" and (now() - run.heartbeat_at).total_seconds() > SILENT_S

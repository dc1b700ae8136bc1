"""Bringing the registry and MLflow together: dead runs are given up, spools sent, ids remembered."""

from datetime import timedelta
from pathlib import Path

from registry.home import Home
from registry.store import runs
from registry.tracking import Synced, sync_runs

SILENT_FOR = timedelta(minutes=10)


def synchronise(home: str | Path, url: str | None = None, silent_for: timedelta = SILENT_FOR) -> Synced:
    """Give up silent runs, replay every spool to MLflow, and note MLflow's ids in the registry.

    Never raises for an MLflow that is away: the result then carries a warning.
    """
    with Home.open(home, url) as opened:
        runs.mark_stale(opened.database, silent_for)
        ended = [row for row in runs.runs(opened.database, limit=1_000_000) if row.status in ("stale", "failed")]
        done = sync_runs(Path(home), {row.uid for row in ended})
        for uid, mlflow_run_id in done.runs.items():
            runs.set_mlflow_run(opened.database, uid, mlflow_run_id)
    return done

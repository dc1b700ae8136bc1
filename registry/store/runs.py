"""Datasets, training runs and checkpoints: what was trained, on what, and whether it still lives."""

import json
import math
import uuid
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from sqlalchemy import func, or_, select
from sqlalchemy.orm import Session

from contingencies.errors import ConflictError, NotFoundError, UsageError
from registry.engine import Database
from registry.records import CheckpointRecord, DatasetRecord, RunRecord
from registry.row_digests import check_row
from registry.schema import (
    RUN_MODES,
    CheckpointMemberRow,
    CheckpointRow,
    ContingencyRow,
    DatasetRow,
    RunMemberRow,
    RunRow,
)
from registry.store.events import now, record
from registry.store.reading import CHECKPOINT_PARTS, RUN_PARTS, checkpoint_record, dataset_record, run_record
from registry.texts import split_reference

MAX_ERROR = 4000  # characters of a failure that are kept


def add_dataset(
    database: Database, contingency_id: int, digest: str, grid: Mapping[str, Any], fraction: float, seed: int
) -> DatasetRecord:
    """Record a dataset by the digest of its content; the same one again is the same row."""
    with database.write() as session:
        row = session.scalar(
            select(DatasetRow).where(DatasetRow.contingency_id == contingency_id, DatasetRow.digest == digest)
        )
        if row is None:
            row = DatasetRow(
                contingency_id=contingency_id,
                digest=digest,
                grid_json=_json(grid),
                fraction=fraction,
                seed=seed,
                created_at=now(),
            )
            session.add(row)
            session.flush()
        return dataset_record(row)


def start_run(
    database: Database,
    mode: str,
    model: str,
    members: Sequence[tuple[int, int | None]],
    *,
    config: Mapping[str, Any],
    seed: int,
    fraction: float,
    code_version: str,
    uid: str | None = None,
) -> RunRecord:
    """A new run in status "running".

    Parameters
    ----------
    mode : "moe", "separate" or "baseline"
    model : str
        Name in the catalogue of surrogates.
    members : sequence of (contingency id, dataset id or None)
    uid : str, optional
        Identity shared with the tracking spool; made up when not given.
    """
    if mode not in RUN_MODES:
        raise UsageError(f"run mode {mode[:40]!r} is not known; use one of {', '.join(RUN_MODES)}.")
    at = now()
    with database.write() as session:
        row = RunRow(
            uid=uid or uuid.uuid4().hex,
            mode=mode,
            model=model,
            config_json=_json(config),
            seed=seed,
            fraction=fraction,
            status="running",
            started_at=at,
            heartbeat_at=at,
            code_version=code_version,
            metrics_json="{}",
            members=[RunMemberRow(contingency_id=c, dataset_id=d) for c, d in members],
        )
        session.add(row)
        session.flush()
        record(session, "start-run", f"run-{row.id}", model=model, mode=mode)
        return run_record(row)


def heartbeat(database: Database, run_id: int) -> bool:
    """Say that a run lives; False when it has been given up as stale meanwhile and should stop."""
    with database.write() as session:
        row = _run(session, run_id)
        if row is None or row.status != "running":
            return False
        row.heartbeat_at = now()
        return True


def finish_run(database: Database, run_id: int, metrics: Mapping[str, float] | None = None) -> None:
    """End a run well, and close the runs of the same training whose processes were killed before it began."""
    _end_run(database, run_id, "finished", metrics_json=_metrics(metrics))


def fail_run(database: Database, run_id: int, error: str) -> None:
    """End a run badly, with what went wrong."""
    _end_run(database, run_id, "failed", error=error[:MAX_ERROR].replace("\x00", ""))


def _end_run(database: Database, run_id: int, status: str, **values: Any) -> None:
    at = now()
    with database.write() as session:
        row = _run(session, run_id)
        if row is None:
            raise NotFoundError(f"run {run_id} does not exist.")
        if row.status != "running":
            raise ConflictError(f"run {run_id} is {row.status}, not running; it cannot become {status}.")
        for name, value in {"status": status, "finished_at": at, "heartbeat_at": at, **values}.items():
            setattr(row, name, value)
        record(session, f"{status}-run", f"run-{run_id}")
        if status == "finished":
            _close_forerunners(session, row)


def _close_forerunners(session: Session, finished: RunRow) -> None:
    """Give up runs of the same training that were silent when the finished one began: their processes were killed."""
    same = ("mode", "model", "config_json", "seed", "fraction", "code_version")
    statement = select(RunRow).where(
        *(getattr(RunRow, name) == getattr(finished, name) for name in same),
        RunRow.status == "running",
        RunRow.id != finished.id,
        RunRow.heartbeat_at < finished.started_at,
    )
    members = {member.contingency_id for member in finished.members}
    for row in session.scalars(statement):
        check_row(row)
        if {member.contingency_id for member in row.members} == members:
            row.status, row.finished_at = "stale", finished.finished_at
            row.error = f"its process ended without a word; run {finished.id} finished the training."
            record(session, "stale-run", f"run-{row.id}", finished_by=finished.id)


def mark_stale(database: Database, silent_for: timedelta) -> list[RunRecord]:
    """Give up runs whose last heartbeat is older than `silent_for`; returns them."""
    at = now()
    with database.write() as session:
        late = (RunRow.status == "running", RunRow.heartbeat_at < at - silent_for)
        silent = list(session.scalars(select(RunRow).where(*late).options(*RUN_PARTS)))
        for row in silent:
            check_row(row)
            row.status, row.finished_at = "stale", at
            record(session, "stale-run", f"run-{row.id}")
        session.flush()
        return [run_record(row) for row in silent]


def set_mlflow_run(database: Database, uid: str, mlflow_run_id: str) -> bool:
    """Remember under which id MLflow keeps a run; False when the registry does not know the run."""
    with database.write() as session:
        row = session.scalar(select(RunRow).where(RunRow.uid == uid))
        if row is None:
            return False
        check_row(row)
        row.mlflow_run_id = mlflow_run_id
        return True


def get_run(database: Database, run_id: int) -> RunRecord:
    """One run with its members."""
    with database.read() as session:
        row = session.scalar(select(RunRow).where(RunRow.id == run_id).options(*RUN_PARTS))
        if row is None:
            raise NotFoundError(f"run {run_id} does not exist.")
        return run_record(row)


def runs(database: Database, status: str | None = None, limit: int = 1000) -> list[RunRecord]:
    """Runs, newest first."""
    statement = select(RunRow).options(*RUN_PARTS).order_by(RunRow.id.desc()).limit(limit)
    if status is not None:
        statement = statement.where(RunRow.status == status)
    with database.read() as session:
        return [run_record(row) for row in session.scalars(statement)]


def add_checkpoint(
    database: Database,
    digest: str,
    size: int,
    parameters: int,
    kind: str,
    members: Mapping[int, int],
    *,
    run_id: int | None = None,
    parent_id: int | None = None,
    metrics: Mapping[str, float] | None = None,
) -> CheckpointRecord:
    """A checkpoint whose bytes lie in the artifact store.

    Parameters
    ----------
    kind : str
        Which loader reads it (`zoo.surrogates.checkpoints.KIND`).
    members : {contingency id: expert index}
    parent_id : int, optional
        The checkpoint it was continued from.
    """
    if not members:
        raise UsageError("a checkpoint must serve at least one contingency.")
    with database.write() as session:
        row = CheckpointRow(
            run_id=run_id,
            parent_id=parent_id,
            digest=digest,
            size=size,
            parameters=parameters,
            kind=kind,
            metrics_json=_metrics(metrics),
            created_at=now(),
            members=[CheckpointMemberRow(contingency_id=c, expert=e) for c, e in members.items()],
        )
        session.add(row)
        session.flush()
        record(session, "checkpoint", f"checkpoint-{row.id}", run=run_id, kind=kind, parameters=parameters)
        return checkpoint_record(row)


def get_checkpoint(database: Database, checkpoint_id: int) -> CheckpointRecord:
    """One checkpoint with its members."""
    with database.read() as session:
        row = session.scalar(select(CheckpointRow).where(CheckpointRow.id == checkpoint_id).options(*CHECKPOINT_PARTS))
        if row is None:
            raise NotFoundError(
                f"checkpoint {checkpoint_id} does not exist; 'cct-zoo checkpoints' lists those there are."
            )
        return checkpoint_record(row)


def default_checkpoint(database: Database, contingency_id: int) -> CheckpointRecord:
    """The newest checkpoint that serves a contingency and whose run, if it has one, is finished."""
    statement = (
        _of_finished_runs(select(CheckpointRow).join(CheckpointMemberRow))
        .where(CheckpointMemberRow.contingency_id == contingency_id)
        .options(*CHECKPOINT_PARTS)
        .order_by(CheckpointRow.id.desc())
        .limit(1)
    )
    with database.read() as session:
        row = session.scalar(statement)
        if row is None:
            contingency = session.get_one(ContingencyRow, contingency_id)
            raise NotFoundError(
                f"{contingency.name!r} version {contingency.version} has no finished checkpoint; "
                f"'cct-zoo train MODEL {contingency.name}' makes one, and 'cct-zoo checkpoints {contingency.name}' "
                "lists those of runs that failed."
            )
        return checkpoint_record(row)


def default_checkpoints(database: Database) -> dict[int, int]:
    """Contingency id -> number of the checkpoint that `default_checkpoint` gives, for all that have one."""
    newest = select(CheckpointMemberRow.contingency_id, func.max(CheckpointRow.id)).join(CheckpointRow)
    statement = _of_finished_runs(newest).group_by(CheckpointMemberRow.contingency_id)
    with database.read() as session:
        return {contingency: checkpoint for contingency, checkpoint in session.execute(statement)}


def checkpoints(database: Database, reference: str | None = None, limit: int = 1000) -> list[CheckpointRecord]:
    """Checkpoints that serve a contingency (all its versions unless one is named), or all; newest first."""
    statement = select(CheckpointRow).options(*CHECKPOINT_PARTS).order_by(CheckpointRow.id.desc()).limit(limit)
    if reference is not None:
        name, version = split_reference(reference)
        serving = select(CheckpointMemberRow.checkpoint_id).join(ContingencyRow).where(ContingencyRow.name == name)
        if version is not None:
            serving = serving.where(ContingencyRow.version == version)
        statement = statement.where(CheckpointRow.id.in_(serving))
    with database.read() as session:
        return [checkpoint_record(row) for row in session.scalars(statement)]


def trained_in(database: Database, checkpoint: CheckpointRecord) -> RunRecord | None:
    """The run that made a checkpoint, or the one it descends from: without its own, it is a part of its parent."""
    while checkpoint.run is None and checkpoint.parent_id is not None:
        checkpoint = get_checkpoint(database, checkpoint.parent_id)
    return checkpoint.run


def _of_finished_runs(statement: Any) -> Any:
    finished = or_(CheckpointRow.run_id.is_(None), RunRow.status == "finished")
    return statement.outerjoin(RunRow, CheckpointRow.run_id == RunRow.id).where(finished)


def _run(session: Session, run_id: int) -> RunRow | None:
    """A run that is about to be changed, as it was written."""
    row = session.get(RunRow, run_id)
    if row is not None:
        check_row(row)
    return row


def _metrics(metrics: Mapping[str, float] | None) -> str:
    """Metrics as JSON; one that diverged is kept as null rather than losing the run's end over it."""
    return _json({k: v if math.isfinite(v) else None for k, v in (metrics or {}).items()})


def _json(value: Mapping[str, Any]) -> str:
    try:
        return json.dumps(dict(value), sort_keys=True, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise UsageError(
            f"a configuration or metric cannot be stored as JSON ({error}); use plain finite values."
        ) from None

"""Lists of records in pages: filtered, and continued from the last record shown, however many were added meanwhile."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from sqlalchemy import Select, func, select, tuple_

from registry.engine import Database
from registry.records import (
    BenchmarkNumberRecord,
    CheckpointRecord,
    ContingencyRecord,
    DeploymentRecord,
    EventRecord,
    HeadRecord,
    RunRecord,
)
from registry.schema import (
    BenchmarkNumberRow,
    CheckpointMemberRow,
    CheckpointRow,
    ContingencyRow,
    DeploymentRow,
    EventRow,
    HeadRow,
    RunRow,
    SystemRow,
)
from registry.store import reading

Record = TypeVar("Record")


@dataclass(frozen=True)
class Page(Generic[Record]):
    """Some records, and the key that the next page begins after; None at the end."""

    items: list[Record]
    next: str | int | None


def contingencies(
    database: Database, after: str | None = None, limit: int = 100, system: str | None = None
) -> Page[ContingencyRecord]:
    """The latest version of every contingency, in order of name."""
    newest = select(ContingencyRow.name, func.max(ContingencyRow.version)).group_by(ContingencyRow.name)
    if after is not None:
        newest = newest.where(ContingencyRow.name > after)
    statement = select(ContingencyRow).where(tuple_(ContingencyRow.name, ContingencyRow.version).in_(newest))
    if system is not None:
        statement = statement.where(ContingencyRow.system_id.in_(select(SystemRow.id).where(SystemRow.name == system)))
    with database.read() as session:
        rows = list(session.scalars(statement.order_by(ContingencyRow.name).limit(limit + 1)))
        items = [reading.contingency_record(row) for row in rows[:limit]]
    return Page(items, items[-1].name if len(rows) > limit else None)


def heads(
    database: Database,
    before: int | None = None,
    limit: int = 100,
    contingency: str | None = None,
    source: str | None = None,
) -> Page[HeadRecord]:
    """Heads, newest first."""
    statement = select(HeadRow)
    if contingency is not None:
        named = select(ContingencyRow.id).where(ContingencyRow.name == contingency)
        statement = statement.where(HeadRow.contingency_id.in_(named))
    if source is not None:
        statement = statement.where(HeadRow.source == source)
    return _newest_first(database, statement, HeadRow.id, reading.head_record, before, limit)


def runs(
    database: Database,
    before: int | None = None,
    limit: int = 100,
    status: str | None = None,
    model: str | None = None,
) -> Page[RunRecord]:
    """Runs, newest first."""
    statement = _filtered(select(RunRow).options(*reading.RUN_PARTS), {RunRow.status: status, RunRow.model: model})
    return _newest_first(database, statement, RunRow.id, reading.run_record, before, limit)


def checkpoints(
    database: Database, before: int | None = None, limit: int = 100, contingency: str | None = None
) -> Page[CheckpointRecord]:
    """Checkpoints, newest first; those that serve a contingency if one is named."""
    statement = select(CheckpointRow).options(*reading.CHECKPOINT_PARTS)
    if contingency is not None:
        serving = select(CheckpointMemberRow.checkpoint_id).join(ContingencyRow)
        statement = statement.where(CheckpointRow.id.in_(serving.where(ContingencyRow.name == contingency)))
    return _newest_first(database, statement, CheckpointRow.id, reading.checkpoint_record, before, limit)


def deployments(
    database: Database,
    before: int | None = None,
    limit: int = 100,
    contingency: str | None = None,
    alias: str | None = None,
    active: bool | None = None,
) -> Page[DeploymentRecord]:
    """Deployments, newest first."""
    filters = {DeploymentRow.contingency: contingency, DeploymentRow.alias: alias, DeploymentRow.active: active}
    statement = _filtered(select(DeploymentRow), filters)
    return _newest_first(database, statement, DeploymentRow.id, reading.deployment_record, before, limit)


def events(
    database: Database,
    before: int | None = None,
    limit: int = 100,
    subject: str | None = None,
    action: str | None = None,
) -> Page[EventRecord]:
    """Events, newest first."""
    statement = _filtered(select(EventRow), {EventRow.subject: subject, EventRow.action: action})
    return _newest_first(database, statement, EventRow.id, reading.event_record, before, limit)


def numbers(
    database: Database, before: int | None = None, limit: int = 100, entry: str | None = None
) -> Page[BenchmarkNumberRecord]:
    """Numbers of benchmarks, newest first."""
    statement = _filtered(select(BenchmarkNumberRow), {BenchmarkNumberRow.entry: entry})
    return _newest_first(database, statement, BenchmarkNumberRow.id, reading.number_record, before, limit)


def _filtered(statement: Select[Any], filters: dict[Any, Any]) -> Select[Any]:
    for column, value in filters.items():
        if value is not None:
            statement = statement.where(column == value)
    return statement


def _newest_first(
    database: Database,
    statement: Select[Any],
    number: Any,
    record: Callable[[Any], Record],
    before: int | None,
    limit: int,
) -> Page[Record]:
    """A page of what a statement selects, in falling order of its `number` column."""
    if before is not None:
        statement = statement.where(number < before)
    with database.read() as session:
        rows = list(session.scalars(statement.order_by(number.desc()).limit(limit + 1)))
        items = [record(row) for row in rows[:limit]]
    return Page(items, rows[limit - 1].id if len(rows) > limit else None)

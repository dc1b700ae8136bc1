"""What `verify` and `gc` ask: which files rows refer to, and which heads nothing needs."""

from collections import defaultdict
from collections.abc import Callable, Collection
from typing import TypeVar

from sqlalchemy import delete, exists, select, text
from sqlalchemy.orm import Session, aliased, lazyload

from contingencies.errors import IntegrityError
from registry.engine import Database
from registry.records import ContingencyRecord, HeadRecord
from registry.row_digests import check_row
from registry.schema import Base, CheckpointRow, ContingencyRow, DeploymentRow, HeadRow, SystemRow
from registry.store.events import record
from registry.store.reading import contingency_record, head_record

Row = TypeVar("Row", bound=Base)
Record = TypeVar("Record")


def all_contingencies(database: Database) -> tuple[list[ContingencyRecord], list[str]]:
    """Every version of every contingency, and what is wrong with the rows of the others."""
    return _all(database, ContingencyRow, contingency_record)


def all_heads(database: Database) -> tuple[list[HeadRecord], list[str]]:
    """Every head, and what is wrong with the rows of the others."""
    return _all(database, HeadRow, head_record)


def _all(database: Database, kind: type[Row], record_of: Callable[[Row], Record]) -> tuple[list[Record], list[str]]:
    records, problems = [], []
    with database.read() as session:
        for row in session.scalars(select(kind).order_by(kind.id)):  # type: ignore[attr-defined]
            try:
                records.append(record_of(row))
            except IntegrityError as error:
                problems.append(str(error))
    return records, problems


def altered_rows(database: Database) -> tuple[int, list[str]]:
    """How many rows there are, and which are not what was written."""
    count, problems = 0, []
    with database.read() as session:
        for mapper in Base.registry.mappers:
            for row in session.scalars(select(mapper.class_).options(lazyload("*")).execution_options(yield_per=1000)):
                count += 1
                try:
                    check_row(row)
                except IntegrityError as error:
                    problems.append(str(error))
    return count, problems


def database_problems(database: Database) -> list[str]:
    """What the database itself finds wrong with its file; PostgreSQL checks on its own."""
    if not database.is_sqlite:
        return []
    with database.read() as session:
        found = [str(row[0]) for row in session.execute(text("PRAGMA integrity_check")) if row[0] != "ok"]
        broken = session.execute(text("PRAGMA foreign_key_check")).all()
        return [f"database: {problem}" for problem in found] + [
            f"database: row {row[1]} of {row[0]} refers to a row of {row[2]} that does not exist" for row in broken
        ]


def deployment_problems(database: Database) -> tuple[int, list[str]]:
    """How many deployments there are, and which contradict each other or their heads."""
    problems, active = [], set()
    with database.read() as session:
        rows = list(session.scalars(select(DeploymentRow).order_by(DeploymentRow.id)))
        for row in rows:
            slot = (row.contingency, row.alias)
            if row.head.contingency.name != row.contingency:
                problems.append(f"deployment {row.id} of {row.contingency} uses a head of {row.head.contingency.name}")
            if row.active and slot in active:
                problems.append(f"{row.contingency} has two active deployments under {row.alias}")
            if row.active != (row.ended_at is None):
                problems.append(f"deployment {row.id} is half ended")
            if row.active:
                active.add(slot)
    return len(rows), problems


def is_referred_to(session: Session, digest: str) -> bool:
    """Whether any row needs the file with this digest, as the running transaction sees it."""
    columns = (HeadRow.digest, CheckpointRow.digest, SystemRow.network_digest)
    return any(session.scalar(select(exists().where(column == digest))) for column in columns)


def references(database: Database, without_heads: Collection[int] = ()) -> dict[str, list[str]]:
    """Digest -> the rows that refer to it, as words; `without_heads` are treated as removed."""
    found: dict[str, list[str]] = defaultdict(list)
    ignored = set(without_heads)
    with database.read() as session:
        for row_id, digest in session.execute(select(HeadRow.id, HeadRow.digest)):
            if row_id not in ignored:
                found[digest].append(f"head {row_id}")
        for row_id, digest in session.execute(select(CheckpointRow.id, CheckpointRow.digest)):
            found[digest].append(f"checkpoint {row_id}")
        networks = select(SystemRow.name, SystemRow.network_digest).where(SystemRow.network_digest.is_not(None))
        for name, network in session.execute(networks):
            found[str(network)].append(f"network of system {name}")
    return dict(found)


def superseded_heads(database: Database, remove: bool) -> list[int]:
    """Heads that were never deployed and have a newer head of the same contingency version.

    A head that any deployment ever used stays: a rollback may need it. With `remove`, the
    rows are deleted and the deletion is recorded.
    """
    newer = aliased(HeadRow)
    statement = select(HeadRow).where(
        ~exists().where(DeploymentRow.head_id == HeadRow.id),
        exists().where(newer.contingency_id == HeadRow.contingency_id, newer.id > HeadRow.id),
    )
    with database.write() if remove else database.read() as session:
        rows = list(session.scalars(statement.order_by(HeadRow.id)))
        if remove:
            for row in rows:
                record(session, "remove-head", row.contingency.name, head=row.id, digest=row.digest)
            for row in rows:
                session.execute(delete(HeadRow).where(HeadRow.id == row.id))
        return [row.id for row in rows]

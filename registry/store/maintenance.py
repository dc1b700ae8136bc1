"""What `verify` and `gc` ask: which files rows refer to, and which heads nothing needs."""

from collections import defaultdict

from sqlalchemy import delete, exists, select
from sqlalchemy.orm import aliased

from registry.engine import Database
from registry.schema import CheckpointRow, DeploymentRow, HeadRow, SystemRow
from registry.store.events import record


def references(database: Database) -> dict[str, list[str]]:
    """Digest -> the rows that refer to it, as words."""
    found: dict[str, list[str]] = defaultdict(list)
    with database.read() as session:
        for row_id, digest in session.execute(select(HeadRow.id, HeadRow.digest)):
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

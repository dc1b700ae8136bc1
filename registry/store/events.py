"""The append-only event log: written in the transaction of what it records."""

import json
from datetime import UTC, datetime

from sqlalchemy import select
from sqlalchemy.orm import Session

from registry.engine import Database
from registry.records import EventRecord
from registry.schema import EventRow
from registry.store.reading import event_record
from registry.texts import checked_text, current_actor


def now() -> datetime:
    """The present instant, UTC."""
    return datetime.now(UTC)


def record(session: Session, action: str, subject: str, reason: str = "", **detail: object) -> None:
    """Add one event to the running transaction."""
    session.add(
        EventRow(
            at=now(),
            actor=current_actor(),
            action=action,
            subject=subject,
            reason=checked_text(reason, "reason"),
            detail_json=json.dumps(detail, sort_keys=True),
        )
    )


def events_of(database: Database, *subjects: str) -> list[EventRecord]:
    """Events about some names, oldest first."""
    with database.read() as session:
        rows = session.scalars(select(EventRow).where(EventRow.subject.in_(subjects)).order_by(EventRow.id))
        return [event_record(row) for row in rows]

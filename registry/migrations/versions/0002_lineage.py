"""Checkpoints know what they were continued from, and the database guards the event log.

A log that can be edited proves nothing, so triggers refuse UPDATE and DELETE on both backends.
"""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Add the parent of a checkpoint and the triggers on events."""
    if op.get_bind().dialect.name == "sqlite":
        # SQLite adds a column with its foreign key only in this short form.
        op.execute("ALTER TABLE checkpoints ADD COLUMN parent_id INTEGER REFERENCES checkpoints (id)")
        for verb in ("UPDATE", "DELETE"):
            op.execute(
                f"CREATE TRIGGER events_refuse_{verb.lower()} BEFORE {verb} ON events "
                "BEGIN SELECT RAISE(ABORT, 'events are append-only'); END"
            )
        return
    op.add_column("checkpoints", sa.Column("parent_id", sa.Integer, sa.ForeignKey("checkpoints.id"), nullable=True))
    op.execute(
        "CREATE FUNCTION events_refuse() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE EXCEPTION 'events are append-only'; END $$"
    )
    op.execute(
        "CREATE TRIGGER events_refuse BEFORE UPDATE OR DELETE OR TRUNCATE ON events "
        "FOR EACH STATEMENT EXECUTE FUNCTION events_refuse()"
    )

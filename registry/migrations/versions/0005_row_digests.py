"""Every row carries a digest of its values; those of older versions get one for what they hold now."""

import sqlalchemy as sa
from alembic import op

from registry.row_digests import COLUMN, digest_of

revision = "0005"
down_revision = "0004"

TABLES = (
    "systems",
    "contingencies",
    "datasets",
    "runs",
    "run_members",
    "checkpoints",
    "checkpoint_members",
    "heads",
    "deployments",
    "benchmark_numbers",
    "events",
    "tokens",
    "token_sessions",
    "required_times",
)


def upgrade() -> None:
    """Add the column to every table and fill it."""
    bind = op.get_bind()
    is_sqlite = bind.dialect.name == "sqlite"
    # The log refuses changes; this one adds the proof that nothing else changes it.
    trigger = "events_refuse_update" if is_sqlite else "events_refuse"
    op.execute(f"DROP TRIGGER {trigger}" if is_sqlite else f"DROP TRIGGER {trigger} ON events")
    for name in TABLES:
        op.add_column(name, sa.Column(COLUMN, sa.String(64), nullable=True))
        if bind.execute(sa.select(sa.literal(1)).select_from(sa.table(name)).limit(1)).first() is None:
            continue  # nothing to fill, as in every new registry: finding the columns would be most of the work
        table = sa.Table(name, sa.MetaData(), autoload_with=bind, resolve_fks=False)
        keys = list(table.primary_key.columns)
        rows = bind.execute(sa.select(table)).mappings().all()
        for row in rows:
            same = [key == row[key.name] for key in keys]
            bind.execute(table.update().where(*same).values({COLUMN: digest_of(name, dict(row))}))
    if is_sqlite:
        op.execute(
            "CREATE TRIGGER events_refuse_update BEFORE UPDATE ON events "
            "BEGIN SELECT RAISE(ABORT, 'events are append-only'); END"
        )
    else:
        op.execute(
            "CREATE TRIGGER events_refuse BEFORE UPDATE OR DELETE OR TRUNCATE ON events "
            "FOR EACH STATEMENT EXECUTE FUNCTION events_refuse()"
        )

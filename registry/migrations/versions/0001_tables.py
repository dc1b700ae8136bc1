"""The tables of the registry.

Written out rather than taken from `registry.schema`, which moves on: a migration must keep
meaning what it meant.
"""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Create the first tables."""
    digest, name, at = sa.String(64), sa.String(100), sa.DateTime(timezone=True)

    def key() -> sa.Column[int]:
        return sa.Column("id", sa.Integer, primary_key=True)

    def to(column: str, table: str, nullable: bool = False) -> sa.Column[int]:
        return sa.Column(column, sa.Integer, sa.ForeignKey(f"{table}.id"), nullable=nullable)

    def column(label: str, kind: sa.types.TypeEngine, nullable: bool = False) -> sa.Column:
        return sa.Column(label, kind, nullable=nullable)

    op.create_table(
        "systems",
        key(),
        column("name", name),
        sa.Column("sha256", digest, nullable=False, unique=True),
        column("spec_json", sa.Text()),
        column("network_digest", digest, True),
        column("created_at", at),
    )
    op.create_index("ix_systems_name", "systems", ["name"])
    op.create_table(
        "contingencies",
        key(),
        column("name", name),
        column("version", sa.Integer()),
        sa.Column("sha256", digest, nullable=False, unique=True),
        column("canonical_json", sa.Text()),
        column("spec_json", sa.Text()),
        to("system_id", "systems"),
        column("created_at", at),
        sa.UniqueConstraint("name", "version"),
    )
    op.create_index("ix_contingencies_system_id", "contingencies", ["system_id"])
    op.create_table(
        "datasets",
        key(),
        to("contingency_id", "contingencies"),
        column("digest", digest),
        column("grid_json", sa.Text()),
        column("fraction", sa.Float()),
        column("seed", sa.BigInteger()),
        column("created_at", at),
        sa.UniqueConstraint("contingency_id", "digest"),
    )
    op.create_table(
        "runs",
        key(),
        sa.Column("uid", sa.String(32), nullable=False, unique=True),
        column("mode", sa.String(20)),
        column("model", name),
        column("config_json", sa.Text()),
        column("seed", sa.BigInteger()),
        column("fraction", sa.Float()),
        column("status", sa.String(20)),
        column("started_at", at),
        column("heartbeat_at", at),
        column("finished_at", at, True),
        column("mlflow_run_id", sa.String(64), True),
        column("code_version", sa.String(100)),
        column("metrics_json", sa.Text()),
        column("error", sa.Text(), True),
        sa.CheckConstraint("mode IN ('moe', 'separate', 'baseline')", name="run_mode"),
        sa.CheckConstraint("status IN ('running', 'finished', 'failed', 'stale')", name="run_status"),
    )
    op.create_index("ix_runs_status_heartbeat", "runs", ["status", "heartbeat_at"])
    op.create_table(
        "run_members",
        sa.Column("run_id", sa.Integer, sa.ForeignKey("runs.id"), primary_key=True),
        sa.Column("contingency_id", sa.Integer, sa.ForeignKey("contingencies.id"), primary_key=True),
        to("dataset_id", "datasets", nullable=True),
    )
    op.create_index("ix_run_members_contingency_id", "run_members", ["contingency_id"])
    op.create_table(
        "checkpoints",
        key(),
        to("run_id", "runs", nullable=True),
        column("digest", digest),
        column("size", sa.BigInteger()),
        column("parameters", sa.BigInteger()),
        column("kind", name),
        column("metrics_json", sa.Text()),
        column("created_at", at),
    )
    op.create_index("ix_checkpoints_run_id", "checkpoints", ["run_id"])
    op.create_index("ix_checkpoints_digest", "checkpoints", ["digest"])
    op.create_table(
        "checkpoint_members",
        sa.Column("checkpoint_id", sa.Integer, sa.ForeignKey("checkpoints.id"), primary_key=True),
        sa.Column("contingency_id", sa.Integer, sa.ForeignKey("contingencies.id"), primary_key=True),
        column("expert", sa.Integer()),
        sa.UniqueConstraint("checkpoint_id", "expert"),
    )
    op.create_index("ix_checkpoint_members_contingency_id", "checkpoint_members", ["contingency_id"])
    op.create_table(
        "heads",
        key(),
        to("contingency_id", "contingencies"),
        column("source", sa.String(20)),
        to("checkpoint_id", "checkpoints", nullable=True),
        column("kind", sa.String(20)),
        column("digest", digest),
        column("size", sa.BigInteger()),
        column("severity_low", sa.Float()),
        column("severity_high", sa.Float()),
        column("intervals_json", sa.Text()),
        column("error_bound_s", sa.Float(), True),
        column("strict_count", sa.Integer()),
        column("strict_mae_s", sa.Float(), True),
        column("strict_max_s", sa.Float(), True),
        column("strict_disagreements", sa.Integer()),
        column("errors_json", sa.Text()),
        column("created_at", at),
        sa.CheckConstraint("source IN ('reference', 'checkpoint')", name="head_source"),
        sa.CheckConstraint("(source = 'checkpoint') = (checkpoint_id IS NOT NULL)", name="head_checkpoint"),
    )
    op.create_index("ix_heads_contingency", "heads", ["contingency_id", "id"])
    op.create_index("ix_heads_digest", "heads", ["digest"])
    op.create_index("ix_heads_checkpoint_id", "heads", ["checkpoint_id"])
    op.create_table(
        "deployments",
        key(),
        column("contingency", name),
        column("alias", sa.String(40)),
        to("head_id", "heads"),
        to("previous_id", "deployments", nullable=True),
        column("active", sa.Boolean()),
        column("action", sa.String(20)),
        column("forced", sa.Boolean()),
        column("reason", sa.Text()),
        column("actor", sa.String(200)),
        column("created_at", at),
        column("ended_at", at, True),
        sa.CheckConstraint("action IN ('deploy', 'rollback')", name="deployment_action"),
    )
    op.create_index(
        "one_active_deployment",
        "deployments",
        ["contingency", "alias"],
        unique=True,
        sqlite_where=sa.text("active"),
        postgresql_where=sa.text("active"),
    )
    op.create_index("ix_deployments_slot", "deployments", ["contingency", "alias", "id"])
    op.create_index("ix_deployments_head_id", "deployments", ["head_id"])
    op.create_table(
        "events",
        key(),
        column("at", at),
        column("actor", sa.String(200)),
        column("action", sa.String(40)),
        column("subject", name),
        column("reason", sa.Text()),
        column("detail_json", sa.Text()),
    )
    op.create_index("ix_events_subject", "events", ["subject", "id"])

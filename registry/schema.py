"""The tables of the registry.

JSON is kept as text, not as a database type: it is data to be handed back byte for byte, and
text holds it alike on SQLite and PostgreSQL. Files are referred to by SHA-256 only, never by
path, so that a home folder can be moved. Times are UTC.
"""

from datetime import UTC, datetime

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    DateTime,
    Float,
    ForeignKey,
    Index,
    Integer,
    String,
    Text,
    TypeDecorator,
    UniqueConstraint,
    text,
)
from sqlalchemy.engine import Dialect
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column, relationship

SCHEMA_VERSIONS = ("0001", "0002", "0003", "0004", "0005")  # every revision in migrations/versions, oldest first
SCHEMA_VERSION = SCHEMA_VERSIONS[-1]

RUN_MODES = ("moe", "separate", "baseline")
RUN_STATUSES = ("running", "finished", "failed", "stale")
ROLES = ("read", "deploy", "admin")  # of tokens, each with the rights of those before it


class UTCDateTime(TypeDecorator[datetime]):
    """An instant with its time zone; SQLite keeps none, so UTC is put back on the way out."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        return value if value is None or value.tzinfo else value.replace(tzinfo=UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


Digest = String(64)
Name = String(100)


class Base(DeclarativeBase):
    """Common base of all tables; `row_digest` is kept by `registry.row_digests`."""

    row_digest: Mapped[str | None] = mapped_column(Digest, sort_order=1000)


class SystemRow(Base):
    """A network with its machines; the network file of a user's own system is an artifact."""

    __tablename__ = "systems"

    id: Mapped[int] = mapped_column(Integer, primary_key=True)
    name: Mapped[str] = mapped_column(Name, index=True)
    sha256: Mapped[str] = mapped_column(Digest, unique=True)
    spec_json: Mapped[str] = mapped_column(Text)
    network_digest: Mapped[str | None] = mapped_column(Digest)
    created_at: Mapped[datetime] = mapped_column(UTCDateTime)


class ContingencyRow(Base):
    """One version of a contingency; its SHA-256 covers name, physics and system."""

    __tablename__ = "contingencies"
    __table_args__ = (UniqueConstraint("name", "version"),)

    id: Mapped[int] = mapped_column(Integer, primary_key=True)
    name: Mapped[str] = mapped_column(Name)
    version: Mapped[int] = mapped_column(Integer)
    sha256: Mapped[str] = mapped_column(Digest, unique=True)
    canonical_json: Mapped[str] = mapped_column(Text)
    spec_json: Mapped[str] = mapped_column(Text)
    system_id: Mapped[int] = mapped_column(ForeignKey("systems.id"), index=True)
    created_at: Mapped[datetime] = mapped_column(UTCDateTime)

    system: Mapped[SystemRow] = relationship(lazy="joined")


class DatasetRow(Base):
    """Trajectories of one contingency: how they were drawn, and the digest of the result."""

    __tablename__ = "datasets"
    __table_args__ = (UniqueConstraint("contingency_id", "digest"),)

    id: Mapped[int] = mapped_column(Integer, primary_key=True)
    contingency_id: Mapped[int] = mapped_column(ForeignKey("contingencies.id"))
    digest: Mapped[str] = mapped_column(Digest)
    grid_json: Mapped[str] = mapped_column(Text)
    fraction: Mapped[float] = mapped_column(Float)
    seed: Mapped[int] = mapped_column(BigInteger)
    created_at: Mapped[datetime] = mapped_column(UTCDateTime)


class RunRow(Base):
    """One training: what was asked for, whether it still lives, where its diary is."""

    __tablename__ = "runs"
    __table_args__ = (
        CheckConstraint(f"mode IN {RUN_MODES}", name="run_mode"),
        CheckConstraint(f"status IN {RUN_STATUSES}", name="run_status"),
        Index("ix_runs_status_heartbeat", "status", "heartbeat_at"),
    )

    id: Mapped[int] = mapped_column(Integer, primary_key=True)
    uid: Mapped[str] = mapped_column(String(32), unique=True)
    mode: Mapped[str] = mapped_column(String(20))
    model: Mapped[str] = mapped_column(Name)
    config_json: Mapped[str] = mapped_column(Text)
    seed: Mapped[int] = mapped_column(BigInteger)
    fraction: Mapped[float] = mapped_column(Float)
    status: Mapped[str] = mapped_column(String(20))
    started_at: Mapped[datetime] = mapped_column(UTCDateTime)
    heartbeat_at: Mapped[datetime] = mapped_column(UTCDateTime)
    finished_at: Mapped[datetime | None] = mapped_column(UTCDateTime)
    mlflow_run_id: Mapped[str | None] = mapped_column(String(64))
    code_version: Mapped[str] = mapped_column(String(100))
    metrics_json: Mapped[str] = mapped_column(Text, default="{}")
    error: Mapped[str | None] = mapped_column(Text)

    members: Mapped[list["RunMemberRow"]] = relationship(back_populates="run")


class RunMemberRow(Base):
    """A contingency that a run learns, and the data it learns from."""

    __tablename__ = "run_members"

    run_id: Mapped[int] = mapped_column(ForeignKey("runs.id"), primary_key=True)
    contingency_id: Mapped[int] = mapped_column(ForeignKey("contingencies.id"), primary_key=True, index=True)
    dataset_id: Mapped[int | None] = mapped_column(ForeignKey("datasets.id"))

    run: Mapped[RunRow] = relationship(back_populates="members")


class CheckpointRow(Base):
    """Weights of a trained surrogate."""

    __tablename__ = "checkpoints"

    id: Mapped[int] = mapped_column(Integer, primary_key=True)
    run_id: Mapped[int | None] = mapped_column(ForeignKey("runs.id"), index=True)
    parent_id: Mapped[int | None] = mapped_column(ForeignKey("checkpoints.id"))
    digest: Mapped[str] = mapped_column(Digest, index=True)
    size: Mapped[int] = mapped_column(BigInteger)
    parameters: Mapped[int] = mapped_column(BigInteger)
    kind: Mapped[str] = mapped_column(Name)
    metrics_json: Mapped[str] = mapped_column(Text, default="{}")
    created_at: Mapped[datetime] = mapped_column(UTCDateTime)

    run: Mapped[RunRow | None] = relationship()
    members: Mapped[list["CheckpointMemberRow"]] = relationship(back_populates="checkpoint")


class CheckpointMemberRow(Base):
    """Which expert of a checkpoint serves which contingency."""

    __tablename__ = "checkpoint_members"
    __table_args__ = (UniqueConstraint("checkpoint_id", "expert"),)

    checkpoint_id: Mapped[int] = mapped_column(ForeignKey("checkpoints.id"), primary_key=True)
    contingency_id: Mapped[int] = mapped_column(ForeignKey("contingencies.id"), primary_key=True, index=True)
    expert: Mapped[int] = mapped_column(Integer)

    checkpoint: Mapped[CheckpointRow] = relationship(back_populates="members")
    contingency: Mapped[ContingencyRow] = relationship()


class HeadRow(Base):
    """A distilled head: where it comes from, where it answers, how wrong it was measured to be."""

    __tablename__ = "heads"
    __table_args__ = (
        CheckConstraint("source IN ('reference', 'checkpoint')", name="head_source"),
        CheckConstraint("(source = 'checkpoint') = (checkpoint_id IS NOT NULL)", name="head_checkpoint"),
        Index("ix_heads_contingency", "contingency_id", "id"),
        Index("ix_heads_digest", "digest"),
    )

    id: Mapped[int] = mapped_column(Integer, primary_key=True)
    contingency_id: Mapped[int] = mapped_column(ForeignKey("contingencies.id"))
    source: Mapped[str] = mapped_column(String(20))
    checkpoint_id: Mapped[int | None] = mapped_column(ForeignKey("checkpoints.id"), index=True)
    kind: Mapped[str] = mapped_column(String(20))
    digest: Mapped[str] = mapped_column(Digest)
    size: Mapped[int] = mapped_column(BigInteger)
    severity_low: Mapped[float] = mapped_column(Float)
    severity_high: Mapped[float] = mapped_column(Float)
    intervals_json: Mapped[str] = mapped_column(Text)
    error_bound_s: Mapped[float | None] = mapped_column(Float)
    strict_count: Mapped[int] = mapped_column(Integer)
    strict_mae_s: Mapped[float | None] = mapped_column(Float)
    strict_max_s: Mapped[float | None] = mapped_column(Float)
    strict_disagreements: Mapped[int] = mapped_column(Integer)
    errors_json: Mapped[str] = mapped_column(Text)
    created_at: Mapped[datetime] = mapped_column(UTCDateTime)

    contingency: Mapped[ContingencyRow] = relationship(lazy="joined")


class DeploymentRow(Base):
    """A head that answers, or once answered, for a contingency's name under an alias.

    `previous_id` is what a rollback restores. Rows are never deleted: they are the history.
    """

    __tablename__ = "deployments"
    __table_args__ = (
        Index(
            "one_active_deployment",
            "contingency",
            "alias",
            unique=True,
            sqlite_where=text("active"),
            postgresql_where=text("active"),
        ),
        Index("ix_deployments_slot", "contingency", "alias", "id"),
        CheckConstraint("action IN ('deploy', 'rollback')", name="deployment_action"),
    )

    id: Mapped[int] = mapped_column(Integer, primary_key=True)
    contingency: Mapped[str] = mapped_column(Name)
    alias: Mapped[str] = mapped_column(String(40))
    head_id: Mapped[int] = mapped_column(ForeignKey("heads.id"), index=True)
    previous_id: Mapped[int | None] = mapped_column(ForeignKey("deployments.id"))
    active: Mapped[bool] = mapped_column(Boolean)
    action: Mapped[str] = mapped_column(String(20))
    forced: Mapped[bool] = mapped_column(Boolean)
    reason: Mapped[str] = mapped_column(Text)
    actor: Mapped[str] = mapped_column(String(200))
    created_at: Mapped[datetime] = mapped_column(UTCDateTime)
    ended_at: Mapped[datetime | None] = mapped_column(UTCDateTime)

    head: Mapped[HeadRow] = relationship(lazy="joined")


class BenchmarkNumberRow(Base):
    """One number of a benchmark's table, beside the published one.

    Rows with one `group_digest` were presented together; it is the digest of all of them, so that the same numbers
    under the same settings are stored once. `value` is empty where only the published number exists.
    """

    __tablename__ = "benchmark_numbers"
    __table_args__ = (
        UniqueConstraint("group_digest", "table_name", "row_label", "quantity"),
        Index("ix_benchmark_numbers_entry", "entry", "id"),
    )

    id: Mapped[int] = mapped_column(Integer, primary_key=True)
    group_digest: Mapped[str] = mapped_column(Digest)
    entry: Mapped[str] = mapped_column(Name)
    table_name: Mapped[str] = mapped_column(Name)
    row_label: Mapped[str] = mapped_column(Text)
    quantity: Mapped[str] = mapped_column(Text)
    unit: Mapped[str] = mapped_column(Text)
    value: Mapped[float | None] = mapped_column(Float)
    std: Mapped[float | None] = mapped_column(Float)
    count: Mapped[int] = mapped_column(Integer)
    paper: Mapped[float | None] = mapped_column(Float)
    paper_std: Mapped[float | None] = mapped_column(Float)
    budget: Mapped[str] = mapped_column(Name)
    seeds: Mapped[int] = mapped_column(Integer)
    code_version: Mapped[str] = mapped_column(String(100))
    created_at: Mapped[datetime] = mapped_column(UTCDateTime)


class EventRow(Base):
    """Who did what, when and why; the database itself refuses to change or delete one."""

    __tablename__ = "events"
    __table_args__ = (Index("ix_events_subject", "subject", "id"),)

    id: Mapped[int] = mapped_column(Integer, primary_key=True)
    at: Mapped[datetime] = mapped_column(UTCDateTime)
    actor: Mapped[str] = mapped_column(String(200))
    action: Mapped[str] = mapped_column(String(40))
    subject: Mapped[str] = mapped_column(Name)
    reason: Mapped[str] = mapped_column(Text)
    detail_json: Mapped[str] = mapped_column(Text)


class TokenRow(Base):
    """Who may use the service: the hash of a secret that was shown once. Rows are kept when revoked."""

    __tablename__ = "tokens"
    __table_args__ = (CheckConstraint(f"role IN {ROLES}", name="token_role"),)

    id: Mapped[int] = mapped_column(Integer, primary_key=True)
    name: Mapped[str] = mapped_column(Name, unique=True)
    role: Mapped[str] = mapped_column(String(20))
    digest: Mapped[str] = mapped_column(Digest)
    created_at: Mapped[datetime] = mapped_column(UTCDateTime)
    expires_at: Mapped[datetime] = mapped_column(UTCDateTime)
    revoked_at: Mapped[datetime | None] = mapped_column(UTCDateTime)


class SessionRow(Base):
    """A browser that signed in with a token; it ends with the token, or earlier."""

    __tablename__ = "token_sessions"

    id: Mapped[int] = mapped_column(Integer, primary_key=True)
    token_id: Mapped[int] = mapped_column(ForeignKey("tokens.id"), index=True)
    digest: Mapped[str] = mapped_column(Digest)
    expires_at: Mapped[datetime] = mapped_column(UTCDateTime)

    token: Mapped[TokenRow] = relationship(lazy="joined")


class RequiredTimeRow(Base):
    """How long a fault must be allowed to last: what protection needs to clear it. Its history is in the events."""

    __tablename__ = "required_times"

    contingency: Mapped[str] = mapped_column(Name, primary_key=True)
    required_s: Mapped[float] = mapped_column(Float)
    reason: Mapped[str] = mapped_column(Text)
    actor: Mapped[str] = mapped_column(String(200))
    set_at: Mapped[datetime] = mapped_column(UTCDateTime)

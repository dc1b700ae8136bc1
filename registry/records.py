"""What the store hands out: frozen values, complete, with their JSON parsed.

A record is a copy of rows as one transaction saw them. It holds no connection, so it may be kept,
sent to another process and compared; it does not change when the registry does.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

Interval = tuple[float, float, str]  # from severity, to severity, status


@dataclass(frozen=True)
class SystemRecord:
    """A network with its machines; `network_digest` is the artifact with a user's own network file."""

    id: int
    name: str
    sha256: str
    spec_json: str  # read by `contingencies.library.System.from_json`
    network_digest: str | None
    created_at: datetime


@dataclass(frozen=True)
class ContingencyRecord:
    """One version of a contingency with its system."""

    id: int
    name: str
    version: int
    sha256: str
    canonical_json: str  # what the SHA-256 is taken of
    spec_json: str  # read by `contingencies.library.Contingency.from_json`
    system_id: int
    created_at: datetime
    system: SystemRecord


@dataclass(frozen=True)
class DatasetRecord:
    """Trajectories of one contingency: how they were drawn, and the digest of the result."""

    id: int
    contingency_id: int
    digest: str
    grid: Mapping[str, Any] = field(hash=False)
    fraction: float
    seed: int
    created_at: datetime


@dataclass(frozen=True)
class RunMember:
    """A contingency that a run learns, and the data it learns from."""

    contingency_id: int
    dataset_id: int | None


@dataclass(frozen=True)
class RunRecord:
    """One training: what was asked for, whether it still lives, where its diary is."""

    id: int
    uid: str
    mode: str
    model: str
    config: Mapping[str, Any] = field(hash=False)
    seed: int
    fraction: float
    status: str  # running, finished, failed or stale
    started_at: datetime
    heartbeat_at: datetime
    finished_at: datetime | None
    mlflow_run_id: str | None
    code_version: str
    metrics: Mapping[str, float | None] = field(hash=False)  # None: it diverged
    error: str | None
    members: tuple[RunMember, ...]


@dataclass(frozen=True)
class CheckpointMember:
    """Which expert of a checkpoint serves which contingency."""

    contingency_id: int
    contingency_name: str
    contingency_version: int
    expert: int


@dataclass(frozen=True)
class CheckpointRecord:
    """Weights of a trained surrogate, and the run that made them if they have one of their own."""

    id: int
    run_id: int | None
    parent_id: int | None
    digest: str
    size: int  # bytes
    parameters: int
    kind: str
    metrics: Mapping[str, float | None] = field(hash=False)
    created_at: datetime
    run: RunRecord | None
    members: tuple[CheckpointMember, ...]  # in the order of the experts


@dataclass(frozen=True)
class HeadRecord:
    """A distilled head: where it comes from, where it answers, how wrong it was measured to be."""

    id: int
    contingency_id: int
    source: str  # reference or checkpoint
    checkpoint_id: int | None
    kind: str
    digest: str
    size: int  # bytes
    severity_low: float
    severity_high: float
    intervals: tuple[Interval, ...]
    error_bound_s: float | None
    strict_count: int
    strict_mae_s: float | None
    strict_max_s: float | None
    strict_disagreements: int
    errors: Mapping[str, Any] = field(hash=False)  # `registry.store.heads.Measured` by name, and "detail"
    created_at: datetime
    contingency: ContingencyRecord


@dataclass(frozen=True)
class DeploymentRecord:
    """A head that answers, or once answered, for a contingency's name under an alias."""

    id: int
    contingency: str
    alias: str
    head_id: int
    previous_id: int | None  # what a rollback restores
    active: bool
    action: str  # deploy or rollback
    forced: bool
    reason: str
    actor: str
    created_at: datetime
    ended_at: datetime | None
    head: HeadRecord


@dataclass(frozen=True)
class BenchmarkNumberRecord:
    """One number of a benchmark's table, beside the published one."""

    id: int
    group_digest: str  # of all numbers that were presented together
    entry: str
    table_name: str
    row_label: str
    quantity: str
    unit: str
    value: float | None
    std: float | None
    count: int
    paper: float | None
    paper_std: float | None
    budget: str
    seeds: int
    code_version: str
    created_at: datetime


@dataclass(frozen=True)
class EventRecord:
    """Who did what, when and why."""

    id: int
    at: datetime
    actor: str
    action: str
    subject: str
    reason: str
    detail: Mapping[str, Any] = field(hash=False)

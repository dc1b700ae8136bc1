"""What API v1 sends of the registry's records: plain values with units in their names."""

import json
from collections.abc import Iterable
from datetime import datetime
from typing import Any, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from registry.records import (
    CheckpointRecord,
    ContingencyRecord,
    DeploymentRecord,
    HeadRecord,
    RunRecord,
    SystemRecord,
)
from registry.store.deployments import Gate

Item = TypeVar("Item")


class Value(BaseModel):
    """A value that is only ever read."""

    model_config = ConfigDict(frozen=True, from_attributes=True)


class Listed(Value, Generic[Item]):
    """One page of a list; `next` continues it, and is null at the end."""

    items: list[Item]
    next: str | None = Field(description="cursor of the next page")


class SystemOut(Value):
    """A registered system."""

    name: str
    sha256: str
    created_at: datetime
    spec: dict[str, Any]

    @staticmethod
    def of(row: SystemRecord) -> "SystemOut":
        return SystemOut(name=row.name, sha256=row.sha256, created_at=row.created_at, spec=json.loads(row.spec_json))


class ContingencyOut(Value):
    """The latest version of a contingency, and the heads that may answer for it."""

    name: str
    version: int
    system: str
    sha256: str
    created_at: datetime
    spec: dict[str, Any]

    @staticmethod
    def of(row: ContingencyRecord) -> "ContingencyOut":
        return ContingencyOut(
            name=row.name,
            version=row.version,
            system=row.system.name,
            sha256=row.sha256,
            created_at=row.created_at,
            spec=json.loads(row.spec_json),
        )


class Interval(Value):
    """Severities with one status, the upper end not included."""

    low: float
    high: float
    status: str


class Measurement(Value):
    """What the strict ODE said at one severity."""

    alpha: float
    duration_s: float | None
    status: str


class HeadOut(Value):
    """A head: where it comes from, where it answers, how wrong it was measured to be."""

    id: int
    contingency: str
    contingency_version: int
    source: Literal["reference", "checkpoint"]
    checkpoint: int | None
    kind: str
    digest: str
    severity_low: float
    severity_high: float
    intervals: list[Interval]
    error_bound_s: float | None
    strict_count: int
    strict_mae_s: float | None
    strict_max_s: float | None
    strict_disagreements: int
    errors: dict[str, Any]
    objections: list[str] = Field(description="what the default gate has against it")
    created_at: datetime

    @staticmethod
    def of(row: HeadRecord) -> "HeadOut":
        return HeadOut(
            id=row.id,
            contingency=row.contingency.name,
            contingency_version=row.contingency.version,
            source=row.source,
            checkpoint=row.checkpoint_id,
            kind=row.kind,
            digest=row.digest,
            severity_low=row.severity_low,
            severity_high=row.severity_high,
            intervals=intervals_of(row.intervals),
            error_bound_s=row.error_bound_s,
            strict_count=row.strict_count,
            strict_mae_s=row.strict_mae_s,
            strict_max_s=row.strict_max_s,
            strict_disagreements=row.strict_disagreements,
            errors=dict(row.errors),
            objections=Gate().objections(row),
            created_at=row.created_at,
        )


def intervals_of(found: Iterable[tuple[float, float, str]]) -> list[Interval]:
    """Intervals as they are sent."""
    return [Interval(low=low, high=high, status=status) for low, high, status in found]


class CheckpointOut(Value):
    """Weights of a trained surrogate."""

    id: int
    run: int | None
    parent: int | None
    digest: str
    size: int
    parameters: int
    kind: str
    members: list[str]
    metrics: dict[str, float | None]
    created_at: datetime

    @staticmethod
    def of(row: CheckpointRecord) -> "CheckpointOut":
        return CheckpointOut(
            id=row.id,
            run=row.run_id,
            parent=row.parent_id,
            digest=row.digest,
            size=row.size,
            parameters=row.parameters,
            kind=row.kind,
            members=[f"{m.contingency_name}@{m.contingency_version}" for m in row.members],
            metrics=dict(row.metrics),
            created_at=row.created_at,
        )


class RunOut(Value):
    """A training: what was asked for and whether it lives."""

    id: int
    uid: str
    model: str
    mode: str
    status: str
    seed: int
    fraction: float
    config: dict[str, Any]
    metrics: dict[str, float | None]
    error: str | None
    started_at: datetime
    heartbeat_at: datetime
    finished_at: datetime | None
    mlflow_run_id: str | None
    code_version: str

    @staticmethod
    def of(row: RunRecord) -> "RunOut":
        return RunOut.model_validate(row)


class CurvePoint(Value):
    """Measurements of a run at a step."""

    step: int
    at_ms: int
    metrics: dict[str, float]


class LiveRun(RunOut):
    """A run with the curves of its diary."""

    name: str | None
    left_s: float | None = Field(description="seconds of training that are left, as far as they can be foreseen")
    curve: list[CurvePoint]


class DeploymentOut(Value):
    """A head that answers, or once answered."""

    id: int
    contingency: str
    alias: str
    head: int
    checkpoint: int | None
    contingency_version: int
    action: str
    active: bool
    forced: bool
    reason: str
    actor: str
    created_at: datetime
    ended_at: datetime | None

    @staticmethod
    def of(row: DeploymentRecord) -> "DeploymentOut":
        return DeploymentOut(
            id=row.id,
            contingency=row.contingency,
            alias=row.alias,
            head=row.head_id,
            checkpoint=row.head.checkpoint_id,
            contingency_version=row.head.contingency.version,
            action=row.action,
            active=row.active,
            forced=row.forced,
            reason=row.reason,
            actor=row.actor,
            created_at=row.created_at,
            ended_at=row.ended_at,
        )


class EventOut(Value):
    """Who did what, when and why."""

    id: int
    at: datetime
    actor: str
    action: str
    subject: str
    reason: str
    detail: dict[str, Any]


class NumberOut(Value):
    """A number of a benchmark, beside the published one."""

    id: int
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

"""Heads: rows of one kind, whether distilled from the reference or from a surrogate."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from sqlalchemy import select

from contingencies.errors import NotFoundError
from espinn_moe.condition_head import AnyHead
from espinn_moe.head_errors import Errors
from registry.engine import Database
from registry.records import HeadRecord
from registry.schema import CheckpointMemberRow, ContingencyRow, HeadRow
from registry.store.events import now, record
from registry.store.reading import head_record
from registry.texts import split_reference


@dataclass(frozen=True)
class Statuses:
    """Where a head has numbers and where the reference has, at severities spread evenly over its domain."""

    count: int
    numbers: int  # severities at which the head has a number
    missed: int  # at which the reference has one and the head has none
    disagreements: int  # whose status differs in any way


@dataclass(frozen=True)
class Measured:
    """What was measured of a head before it was stored.

    `reconstruction` is against the boundary it was fitted to, `reference` against the fast
    reference (it calibrates the bound), `strict` against the strict one (it decides the gate);
    `statuses` is against the fast reference over the whole domain.
    """

    reconstruction: Errors
    reference: Errors
    strict: Errors
    statuses: Statuses | None = None


def add(
    database: Database,
    contingency_id: int,
    head: AnyHead,
    digest: str,
    size: int,
    measured: Measured,
    checkpoint_id: int | None = None,
    detail: Mapping[str, object] | None = None,
) -> HeadRecord:
    """Store a head whose bytes lie in the artifact store; the same head, source and measurements are one row."""
    source = "reference" if checkpoint_id is None else "checkpoint"
    with database.write() as session:
        contingency = session.get_one(ContingencyRow, contingency_id)
        if checkpoint_id is not None and session.get(CheckpointMemberRow, (checkpoint_id, contingency_id)) is None:
            raise NotFoundError(
                f"checkpoint {checkpoint_id} has no expert for {contingency.name!r} version {contingency.version}."
            )
        errors: dict[str, object] = {name: asdict(value) for name, value in vars(measured).items() if value is not None}
        errors_json = json.dumps(errors | {"detail": dict(detail or {})}, sort_keys=True)
        same = select(HeadRow).where(
            HeadRow.contingency_id == contingency_id,
            HeadRow.digest == digest,
            HeadRow.source == source,
            HeadRow.errors_json == errors_json,
        )
        if checkpoint_id is not None:
            same = same.where(HeadRow.checkpoint_id == checkpoint_id)
        existing = session.scalar(same)
        if existing is not None:
            return head_record(existing)
        row = HeadRow(
            contingency=contingency,
            source=source,
            checkpoint_id=checkpoint_id,
            kind=head.kind,
            digest=digest,
            size=size,
            severity_low=head.severity[0],
            severity_high=head.severity[1],
            intervals_json=json.dumps(head.intervals),
            error_bound_s=head.error_bound_s,
            strict_count=measured.strict.count,
            strict_mae_s=measured.strict.mae_s,
            strict_max_s=measured.strict.max_s,
            strict_disagreements=measured.strict.disagreements,
            errors_json=errors_json,
            created_at=now(),
        )
        session.add(row)
        session.flush()
        record(
            session,
            "distill",
            contingency.name,
            head=row.id,
            version=contingency.version,
            source=source,
            checkpoint=checkpoint_id,
        )
        session.refresh(row)
        return head_record(row)


def get(database: Database, head_id: int) -> HeadRecord:
    """One head by its number."""
    with database.read() as session:
        row = session.get(HeadRow, head_id)
        if row is None:
            raise NotFoundError(f"head {head_id} does not exist; 'cct-zoo heads NAME' lists those there are.")
        return head_record(row)


def heads_of(database: Database, reference: str | None = None, limit: int = 1000) -> list[HeadRecord]:
    """Heads of one contingency (all versions unless one is named) or of all, newest first."""
    statement = select(HeadRow).order_by(HeadRow.id.desc()).limit(limit)
    if reference is not None:
        name, version = split_reference(reference)
        ids = select(ContingencyRow.id).where(ContingencyRow.name == name)
        if version is not None:
            ids = ids.where(ContingencyRow.version == version)
        statement = statement.where(HeadRow.contingency_id.in_(ids))
    with database.read() as session:
        return [head_record(row) for row in session.scalars(statement)]

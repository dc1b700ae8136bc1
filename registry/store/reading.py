"""From rows to records: every stored JSON text is parsed here and nowhere else.

Call these inside the session that read the rows: they follow relationships.
"""

import json
from dataclasses import fields
from typing import Any, TypeVar

from sqlalchemy.orm import joinedload, selectinload

from contingencies.errors import IntegrityError
from registry.records import (
    BenchmarkNumberRecord,
    CheckpointMember,
    CheckpointRecord,
    ContingencyRecord,
    DatasetRecord,
    DeploymentRecord,
    EventRecord,
    HeadRecord,
    RunMember,
    RunRecord,
    SystemRecord,
)
from registry.row_digests import check_row
from registry.schema import (
    Base,
    BenchmarkNumberRow,
    CheckpointMemberRow,
    CheckpointRow,
    ContingencyRow,
    DatasetRow,
    DeploymentRow,
    EventRow,
    HeadRow,
    RunRow,
    SystemRow,
)

RUN_PARTS = (selectinload(RunRow.members),)  # what a run's record needs besides its row
CHECKPOINT_PARTS = (  # the specs of a family's members are large and not needed
    selectinload(CheckpointRow.members)
    .joinedload(CheckpointMemberRow.contingency)
    .options(joinedload(ContingencyRow.system).load_only(SystemRow.id))
    .load_only(ContingencyRow.name, ContingencyRow.version),
    selectinload(CheckpointRow.run).selectinload(RunRow.members),
)

Record = TypeVar("Record")


def _plain(kind: type[Record], row: Base, **parsed: Any) -> Record:
    """A record whose fields are the columns of a row, except those given; the row must be what was written."""
    check_row(row)
    return kind(**{f.name: parsed[f.name] if f.name in parsed else getattr(row, f.name) for f in fields(kind)})  # type: ignore[arg-type]


def _parsed(row: Base, column: str, expected: type) -> Any:
    try:
        value = json.loads(getattr(row, column))
        if not isinstance(value, expected):
            raise ValueError(column)
    except ValueError:
        raise IntegrityError(
            f"row {getattr(row, 'id', '?')} of {row.__tablename__} has a damaged {column}; restore the registry "
            "from a copy."
        ) from None
    return value


def system_record(row: SystemRow) -> SystemRecord:
    """A system."""
    return _plain(SystemRecord, row)


def contingency_record(row: ContingencyRow) -> ContingencyRecord:
    """A contingency with its system."""
    return _plain(ContingencyRecord, row, system=system_record(row.system))


def dataset_record(row: DatasetRow) -> DatasetRecord:
    """A dataset."""
    return _plain(DatasetRecord, row, grid=_parsed(row, "grid_json", dict))


def run_record(row: RunRow) -> RunRecord:
    """A run with its members."""
    members = tuple(RunMember(member.contingency_id, member.dataset_id) for member in row.members)
    config, metrics = _parsed(row, "config_json", dict), _parsed(row, "metrics_json", dict)
    return _plain(RunRecord, row, config=config, metrics=metrics, members=members)


def checkpoint_record(row: CheckpointRow) -> CheckpointRecord:
    """A checkpoint with its members and its run."""
    for member in row.members:
        check_row(member)
    members = tuple(
        CheckpointMember(m.contingency_id, m.contingency.name, m.contingency.version, m.expert)
        for m in sorted(row.members, key=lambda member: member.expert)
    )
    run = None if row.run is None else run_record(row.run)
    return _plain(CheckpointRecord, row, metrics=_parsed(row, "metrics_json", dict), run=run, members=members)


def head_record(row: HeadRow) -> HeadRecord:
    """A head with its contingency."""
    intervals = tuple((low, high, status) for low, high, status in _parsed(row, "intervals_json", list))
    errors = _parsed(row, "errors_json", dict)
    return _plain(HeadRecord, row, intervals=intervals, errors=errors, contingency=contingency_record(row.contingency))


def deployment_record(row: DeploymentRow) -> DeploymentRecord:
    """A deployment with its head."""
    return _plain(DeploymentRecord, row, head=head_record(row.head))


def number_record(row: BenchmarkNumberRow) -> BenchmarkNumberRecord:
    """A number of a benchmark."""
    return _plain(BenchmarkNumberRecord, row)


def event_record(row: EventRow) -> EventRecord:
    """An event."""
    return _plain(EventRecord, row, detail=_parsed(row, "detail_json", dict))

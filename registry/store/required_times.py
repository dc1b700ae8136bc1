"""Required times: how long a fault must be allowed to last so that protection clears it in time.

One that is set here counts before the one that the latest description of the contingency states: relays are set
anew more often than contingencies are described.
"""

import json
import math
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import select

from contingencies.errors import NotFoundError, UsageError
from registry.engine import Database
from registry.row_digests import check_row
from registry.schema import ContingencyRow, RequiredTimeRow
from registry.store.contingencies import find_in, latest_rows
from registry.store.events import now, record
from registry.texts import checked_text, current_actor, split_reference

MAX_REQUIRED_S = 1000.0  # the longest study there is
DESCRIBED = "stated in its description"


@dataclass(frozen=True)
class RequiredTime:
    """The time that protection needs for one contingency, and who said so."""

    contingency: str
    required_s: float
    reason: str
    actor: str
    set_at: datetime


def set_required(database: Database, name: str, required_s: float, reason: str) -> RequiredTime:
    """Set or replace the required time of a contingency's name; the event log keeps the one before."""
    if not (math.isfinite(required_s) and 0 < required_s <= MAX_REQUIRED_S):
        raise UsageError(f"a required time of {required_s} s is not possible; give more than 0 and at most 1000 s.")
    reason = checked_text(reason, "reason")
    if not reason:
        raise UsageError("a required time needs a reason for the record.")
    with database.write() as session:
        name = find_in(session, name).name
        row = session.get(RequiredTimeRow, name)
        before = None if row is None else row.required_s
        if row is None:
            row = RequiredTimeRow(contingency=name)
            session.add(row)
        row.required_s, row.reason, row.actor, row.set_at = required_s, reason, current_actor(), now()
        record(session, "require", name, reason, required_s=required_s, before_s=before)
        return _required(row)


def remove_required(database: Database, name: str, reason: str) -> None:
    """Require nothing of a contingency any more."""
    name, _ = split_reference(name)
    with database.write() as session:
        row = session.get(RequiredTimeRow, name)
        if row is None:
            described = _described(find_in(session, name)) is not None
            stated = "; the one that its description states is changed there" if described else ""
            raise NotFoundError(f"{name!r} has no required time that was set{stated}.")
        record(session, "require", name, reason, required_s=None, before_s=row.required_s)
        session.delete(row)


def required_times(database: Database) -> dict[str, RequiredTime]:
    """Name of a contingency -> its required time, for all that have one, in order of name."""
    with database.read() as session:
        rows = list(session.scalars(select(RequiredTimeRow).order_by(RequiredTimeRow.contingency)))
        for row in rows:
            check_row(row)
        stating = latest_rows().where(ContingencyRow.spec_json.contains('"protection":{'))
        described = [_described(row) for row in session.scalars(stating)]
        found = {each.contingency: each for each in described if each is not None}
        found |= {row.contingency: _required(row) for row in rows}
    return dict(sorted(found.items()))


def _described(row: ContingencyRow) -> RequiredTime | None:
    protection = json.loads(row.spec_json).get("protection")
    if protection is None:
        return None
    return RequiredTime(row.name, 1e-3 * protection["required_ms"], DESCRIBED, "", row.created_at)


def _required(row: RequiredTimeRow) -> RequiredTime:
    return RequiredTime(row.contingency, row.required_s, row.reason, row.actor, row.set_at)

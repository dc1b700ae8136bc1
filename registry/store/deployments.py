"""Deployments: one active head per contingency name and alias, changed only by replacing it.

Every change ends the active row and adds another inside one write transaction, which a unique
index backs; the rows are the history, and each knows what a rollback restores.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import select
from sqlalchemy.orm import Session

from contingencies.errors import ConflictError, GateError, IntegrityError, NotFoundError, UsageError
from registry.engine import Database
from registry.records import DeploymentRecord, HeadRecord
from registry.row_digests import check_row
from registry.schema import DeploymentRow, HeadRow
from registry.store.contingencies import find_in
from registry.store.events import now, record
from registry.store.reading import deployment_record, head_record
from registry.store.replacing import drawbacks
from registry.texts import checked_alias, checked_text, current_actor, split_reference

PRODUCTION = "production"

Replaces = int | Literal["anything", "nothing"]  # the deployment that a change expects to find


class ReplacedError(ConflictError):
    """A change decided on by looking at a deployment that is not the active one any more."""


@dataclass(frozen=True)
class Gate:
    """Largest errors with which a head may be deployed: times against the strict ODE, mean ones against the fast ODE
    too, statuses against whatever was measured: both of these and the boundary the head was distilled from."""

    mae_s: float = 2e-3
    max_s: float = 10e-3
    disagreement: float = 0.1  # share of severities whose status (finite, censored) was wrong

    def __post_init__(self) -> None:
        if not all(0 <= limit < math.inf for limit in (self.mae_s, self.max_s, self.disagreement)):
            raise UsageError("the limits of a gate must be finite numbers, not negative.")

    def objections(self, head: HeadRecord) -> list[str]:
        """What speaks against a head; empty when nothing does."""
        found = []
        if head.strict_mae_s is not None and not head.strict_mae_s <= self.mae_s:
            found.append(f"mean error {1e3 * head.strict_mae_s:.3g} ms exceeds {1e3 * self.mae_s:g} ms")
        if head.strict_max_s is not None and not head.strict_max_s <= self.max_s:
            found.append(f"maximum error {1e3 * head.strict_max_s:.3g} ms exceeds {1e3 * self.max_s:g} ms")
        fast = head.errors["reference"]  # many more severities than the strict ODE is asked for
        if fast["mae_s"] is not None and not fast["mae_s"] <= self.mae_s:
            found.append(
                f"mean error {1e3 * fast['mae_s']:.3g} ms against the fast ODE at {fast['count']} severities exceeds "
                f"{1e3 * self.mae_s:g} ms"
            )
        if head.strict_count == 0:
            found.append("it was not measured against the strict ODE")
        elif head.strict_disagreements > self.disagreement * head.strict_count:
            found.append(f"the status was wrong at {head.strict_disagreements} of {head.strict_count} severities")
        return found + self._wrong_statuses(head.errors)

    def _wrong_statuses(self, errors: Mapping[str, Any]) -> list[str]:
        """Statuses that differ from those of the other boundaries a head was measured against."""
        found = []
        for name, whose in (("reconstruction", "its source's"), ("reference", "the fast ODE's")):
            count, wrong = errors[name]["count"], errors[name]["disagreements"]
            if wrong > self.disagreement * count:
                found.append(f"where it has a number its status is not {whose} at {wrong} of {count} severities")
        statuses = errors.get("statuses")  # heads of older versions were not asked over their whole domain
        if statuses and statuses["numbers"] == 0 < statuses["missed"]:
            found.append(
                f"it has no number anywhere although the reference has at {statuses['missed']} of "
                f"{statuses['count']} severities"
            )
        elif statuses and statuses["disagreements"] > self.disagreement * statuses["count"]:
            found.append(
                f"over its whole domain the status is not the fast ODE's at {statuses['disagreements']} of "
                f"{statuses['count']} severities"
            )
        return found


def deploy(
    database: Database,
    name: str,
    head_id: int | None = None,
    *,
    alias: str = PRODUCTION,
    reason: str,
    force: bool = False,
    accept_worse: bool = False,
    gate: Gate | None = None,
    replaces: Replaces = "anything",
) -> DeploymentRecord:
    """Make a head answer for a contingency's name; default: the newest head of its latest version.

    A head that answers already is left as it is, and its deployment returned: a rollback must lead to the head before.

    Raises
    ------
    ReplacedError
        When another deployment than `replaces` is active.
    GateError
        When the head's measured error exceeds the gate and `force` is not set, or when it is worse than the head in
        place (`registry.store.replacing`) and `accept_worse` is not set.
    """
    checked_alias(alias)
    reason = checked_text(reason, "reason")
    if not reason:
        raise UsageError("a deployment needs a reason for the record; give --reason.")
    with database.write() as session:
        head = _chosen_head(session, name, head_id)
        active = _active(session, head.contingency.name, alias)
        _check_replaced(active, replaces)
        if active is not None and active.head_id == head.id:
            return deployment_record(active)
        objections = (gate or Gate()).objections(head_record(head))
        if objections and not force:
            raise GateError(
                f"head {head.id} of {head.contingency.name!r} is refused: {'; '.join(objections)}. "
                "Distill a better one, or deploy it with --force and a reason."
            )
        worse = drawbacks(head_record(head), head_record(active.head)) if active is not None else []
        if active is not None and worse and not accept_worse:
            raise GateError(
                f"head {head.id} of {head.contingency.name!r} is worse than head {active.head_id}, which answers now: "
                f"{'; '.join(worse)}. Keep that one, or deploy this one with --accept-worse and a reason."
            )
        detail = {"forced_against": objections} if objections else {}
        if worse:
            detail["accepted_worse"] = worse
        return _activate(
            database,
            session,
            head,
            alias,
            "deploy",
            reason,
            active,
            active.id if active else None,
            bool(objections),
            detail,
        )


def choose_head(database: Database, name: str, head_id: int | None) -> HeadRecord:
    """The head that `deploy` would take."""
    with database.read() as session:
        return head_record(_chosen_head(session, name, head_id))


def rollback(
    database: Database,
    name: str,
    *,
    alias: str = PRODUCTION,
    reason: str = "",
    check: Callable[[HeadRecord], object] = lambda head: None,
    replaces: Replaces = "anything",
) -> DeploymentRecord:
    """Restore what was deployed before the active head, or the head that was retired last.

    `check` sees the head that is to answer again, before anything changes.
    """
    name, _ = split_reference(name)
    checked_alias(alias)
    with database.write() as session:
        active = _active(session, name, alias)
        _check_replaced(active, replaces)
        if active is not None:
            target = _before(session, active)
        else:
            target = session.scalar(
                select(DeploymentRow)
                .where(DeploymentRow.contingency == name, DeploymentRow.alias == alias)
                .order_by(DeploymentRow.id.desc())
                .limit(1)
            )
        if target is None:
            if active is None:
                raise _nothing_deployed(session, name, alias)
            raise ConflictError(
                f"{name!r} has nothing to roll back to under {alias!r}: head {active.head_id} was the first deployed."
            )
        check(head_record(target.head))
        return _activate(
            database, session, target.head, alias, "rollback", reason, active, target.previous_id, False, {}
        )


def retire(
    database: Database, name: str, *, alias: str = PRODUCTION, reason: str = "", replaces: Replaces = "anything"
) -> DeploymentRecord:
    """End the active deployment without a successor."""
    name, _ = split_reference(name)
    checked_alias(alias)
    with database.write() as session:
        active = _active(session, name, alias)
        if active is None:
            raise _nothing_deployed(session, name, alias)
        _check_replaced(active, replaces)
        _end(session, active)
        record(session, "retire", name, reason, alias=alias, head=active.head_id, deployment=active.id)
        database.notify(session, name)
        return deployment_record(active)


def active(database: Database, name: str, alias: str = PRODUCTION) -> DeploymentRecord:
    """The deployment that answers now; for `name@version`, only if it is of that version."""
    if alias != PRODUCTION:
        checked_alias(alias)
    name, version = split_reference(name)
    with database.read() as session:
        row = _active(session, name, alias)
        if row is None:
            raise _nothing_deployed(session, name, alias)
        if row.head.contingency.name != name:
            raise IntegrityError(
                f"deployment {row.id} of {name!r} uses a head of {row.head.contingency.name!r}; run 'cct-zoo verify'."
            )
        if version is not None and row.head.contingency.version != version:
            find_in(session, f"{name}@{version}")
            raise NotFoundError(
                f"{name!r} version {version} has no head deployed under {alias!r}, version "
                f"{row.head.contingency.version} answers; ask for {name!r}, or distill and deploy version {version}."
            )
        return deployment_record(row)


def all_active(database: Database) -> list[DeploymentRecord]:
    """Every deployment that answers now, in order of name."""
    with database.read() as session:
        statement = select(DeploymentRow).where(DeploymentRow.active).order_by(DeploymentRow.contingency)
        return [deployment_record(row) for row in session.scalars(statement)]


def history(database: Database, name: str, alias: str | None = None) -> list[DeploymentRecord]:
    """All deployments of a name, oldest first."""
    name, _ = split_reference(name)
    statement = select(DeploymentRow).where(DeploymentRow.contingency == name).order_by(DeploymentRow.id)
    if alias is not None:
        statement = statement.where(DeploymentRow.alias == checked_alias(alias))
    with database.read() as session:
        find_in(session, name)
        return [deployment_record(row) for row in session.scalars(statement)]


# --- inside a transaction ---------------------------------------------------------------------


def _nothing_deployed(session: Session, name: str, alias: str) -> NotFoundError:
    find_in(session, name)  # an unknown name is said to be unknown
    return NotFoundError(
        f"{name!r} has no head deployed under {alias!r}; 'cct-zoo distill {name}' makes a head and "
        f"'cct-zoo deploy {name} --reason WHY' deploys it."
    )


def _chosen_head(session: Session, name: str, head_id: int | None) -> HeadRow:
    contingency = find_in(session, name)
    if head_id is not None:
        head = session.get(HeadRow, head_id)
        if head is None:
            raise NotFoundError(
                f"head {head_id} does not exist; 'cct-zoo heads {contingency.name}' lists those there are."
            )
        if head.contingency.name != contingency.name:
            raise ConflictError(f"head {head_id} belongs to {head.contingency.name!r}, not to {contingency.name!r}.")
        return head
    newest = select(HeadRow).where(HeadRow.contingency_id == contingency.id).order_by(HeadRow.id.desc()).limit(1)
    head = session.scalar(newest)
    if head is None:
        raise NotFoundError(
            f"{contingency.name!r} version {contingency.version} has no head; "
            f"'cct-zoo distill {contingency.name}' makes one."
        )
    return head


def _check_replaced(active: DeploymentRow | None, replaces: Replaces) -> None:
    found: Replaces = "nothing" if active is None else active.id
    if replaces not in ("anything", found):
        raise ReplacedError(
            f"deployment {found if active else 'none'} is active, not {replaces}; look at what answers now and decide "
            "again."
        )


def _active(session: Session, name: str, alias: str) -> DeploymentRow | None:
    row = session.scalar(
        select(DeploymentRow).where(
            DeploymentRow.contingency == name, DeploymentRow.alias == alias, DeploymentRow.active
        )
    )
    if row is not None:
        check_row(row)  # ending it writes its digest anew, which must not bless what was altered
    return row


def _before(session: Session, active: DeploymentRow) -> DeploymentRow | None:
    """The newest deployment before this one that was of another head."""
    row: DeploymentRow | None = active
    while row is not None and row.head_id == active.head_id:
        row = session.get(DeploymentRow, row.previous_id) if row.previous_id else None
    return row


def _end(session: Session, row: DeploymentRow) -> None:
    row.active = False
    row.ended_at = now()
    session.flush()  # before the next row of the slot, or the unique index would refuse it


def _activate(
    database: Database,
    session: Session,
    head: HeadRow,
    alias: str,
    action: str,
    reason: str,
    replaced: DeploymentRow | None,
    previous_id: int | None,
    forced: bool,
    detail: dict[str, list[str]],
) -> DeploymentRecord:
    name = head.contingency.name
    if replaced is not None:
        _end(session, replaced)
    row = DeploymentRow(
        contingency=name,
        alias=alias,
        head=head,
        previous_id=previous_id,
        active=True,
        action=action,
        forced=forced,
        reason=checked_text(reason, "reason"),
        actor=current_actor(),
        created_at=now(),
        ended_at=None,
    )
    session.add(row)
    session.flush()
    record(
        session,
        action,
        name,
        reason,
        alias=alias,
        head=head.id,
        deployment=row.id,
        replaced_head=replaced.head_id if replaced else None,
        **detail,
    )
    database.notify(session, name)
    return deployment_record(row)

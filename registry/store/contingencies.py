"""Systems and contingencies: the same physics is one row, a changed spec is the next version."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import Select, func, select, tuple_
from sqlalchemy.orm import Session

from contingencies.errors import MOST_COMPARED, ConflictError, NotFoundError, did_you_mean
from registry.engine import Database
from registry.records import ContingencyRecord, SystemRecord
from registry.schema import ContingencyRow, SystemRow
from registry.store.events import now, record
from registry.store.reading import contingency_record, system_record
from registry.texts import split_reference

if TYPE_CHECKING:  # a query must not pay for reading YAML
    from contingencies.library import Contingency, System

CHUNK = 500  # SQLite allows some thousands of bound parameters in a statement


@dataclass(frozen=True)
class Registered:
    """What became of one contingency: its record, and whether it is new."""

    row: ContingencyRecord
    created: bool


def register(database: Database, contingencies: "Sequence[Contingency]") -> list[Registered]:
    """Register all contingencies in one transaction, or none.

    Network files must lie in the artifact store already. The result is in the order given;
    physics given twice is one row.
    """
    by_name: dict[str, Contingency] = {}
    for contingency in contingencies:
        other = by_name.setdefault(contingency.name, contingency)
        if other.sha256 != contingency.sha256:
            raise ConflictError(
                f"contingency {contingency.name!r} is given twice with different content; register one at a time."
            )
    with database.write() as session:
        known = _rows_by_sha(session, [c.sha256 for c in by_name.values()])
        versions = _latest_versions(session, list(by_name))
        systems: dict[str, SystemRow] = {}
        rows: dict[str, tuple[ContingencyRow, bool]] = {}
        for name, contingency in by_name.items():
            if contingency.sha256 in known:
                rows[name] = known[contingency.sha256], False
                continue
            row = ContingencyRow(
                name=name,
                version=versions.get(name, 0) + 1,
                sha256=contingency.sha256,
                canonical_json=contingency.canonical_json,
                spec_json=contingency.to_json(),
                system=_system_row(session, contingency.system, systems),
                created_at=now(),
            )
            session.add(row)
            record(session, "register", name, version=row.version, sha256=row.sha256)
            rows[name] = row, True
        session.flush()
        results = {name: Registered(contingency_record(row), created) for name, (row, created) in rows.items()}
    return [results[contingency.name] for contingency in contingencies]


def _rows_by_sha(session: Session, digests: list[str]) -> dict[str, ContingencyRow]:
    found = {}
    for begin in range(0, len(digests), CHUNK):
        statement = select(ContingencyRow).where(ContingencyRow.sha256.in_(digests[begin : begin + CHUNK]))
        found.update({row.sha256: row for row in session.scalars(statement)})
    return found


def _latest_versions(session: Session, names: list[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for begin in range(0, len(names), CHUNK):
        statement = (
            select(ContingencyRow.name, func.max(ContingencyRow.version))
            .where(ContingencyRow.name.in_(names[begin : begin + CHUNK]))
            .group_by(ContingencyRow.name)
        )
        found.update({name: version for name, version in session.execute(statement)})
    return found


def _system_row(session: Session, system: "System", seen: dict[str, SystemRow]) -> SystemRow:
    if system.sha256 not in seen:
        row = session.scalar(select(SystemRow).where(SystemRow.sha256 == system.sha256))
        if row is None:
            network = system.network_file
            row = SystemRow(
                name=system.name,
                sha256=system.sha256,
                spec_json=system.to_json(),
                network_digest=None if network is None else hashlib.sha256(network).hexdigest(),
                created_at=now(),
            )
            session.add(row)
        seen[system.sha256] = row
    return seen[system.sha256]


def find(database: Database, reference: str) -> ContingencyRecord:
    """The latest version of a name, or `name@version`."""
    with database.read() as session:
        return contingency_record(find_in(session, reference))


def find_in(session: Session, reference: str) -> ContingencyRow:
    """As `find`, inside a running transaction."""
    name, version = split_reference(reference)
    statement = select(ContingencyRow).where(ContingencyRow.name == name)
    if version is not None:
        statement = statement.where(ContingencyRow.version == version)
    row = session.scalar(statement.order_by(ContingencyRow.version.desc()).limit(1))
    if row is None:
        from contingencies.library import shipped_contingencies  # a query that finds its name does not pay for it

        if version is None and name in shipped_contingencies():
            raise NotFoundError(
                f"contingency {name!r} is shipped and not registered yet, so that nothing is known of it here; "
                f"'cct-zoo register-contingency {name}' registers it, as training or distilling it does."
            )
        names = session.scalars(select(ContingencyRow.name).distinct().limit(MOST_COMPARED))
        raise NotFoundError(
            f"contingency {reference[:120]!r} is not registered; 'cct-zoo contingencies' lists those there are, "
            "'cct-zoo register-contingency' adds one ('cct-zoo generate-contingencies' writes the files of a screened "
            f"family).{did_you_mean(name, names)}"
        )
    return row


def find_sha256(database: Database, digest: str) -> ContingencyRecord | None:
    """The contingency with exactly this physics, if it is registered."""
    with database.read() as session:
        row = session.scalar(select(ContingencyRow).where(ContingencyRow.sha256 == digest))
        return None if row is None else contingency_record(row)


def latest(database: Database, after: str = "", limit: int = 1_000_000) -> list[ContingencyRecord]:
    """The latest version of every contingency whose name follows `after`, in order of name."""
    with database.read() as session:
        return [contingency_record(row) for row in session.scalars(latest_rows(after, limit))]


def latest_rows(after: str = "", limit: int = 1_000_000) -> Select[ContingencyRow]:
    """The statement behind `latest`."""
    newest = (
        select(ContingencyRow.name, func.max(ContingencyRow.version))
        .where(ContingencyRow.name > after)
        .group_by(ContingencyRow.name)
        .order_by(ContingencyRow.name)
        .limit(limit)
    )
    return (
        select(ContingencyRow)
        .where(tuple_(ContingencyRow.name, ContingencyRow.version).in_(newest))
        .order_by(ContingencyRow.name)
    )


def check_system(database: Database, name: str) -> None:
    """Raise a NotFoundError unless a system of this name is registered."""
    with database.read() as session:
        names = sorted(set(session.scalars(select(SystemRow.name))))
    if name not in names:
        some = f"it has {', '.join(names[:12])}{', ...' if len(names) > 12 else ''}" if names else "it has none yet"
        raise NotFoundError(f"system {name[:100]!r} is not in the registry; {some}.")


def systems(database: Database) -> list[SystemRecord]:
    """All registered systems, in order of name."""
    with database.read() as session:
        rows = session.scalars(select(SystemRow).order_by(SystemRow.name, SystemRow.id))
        return [system_record(row) for row in rows]

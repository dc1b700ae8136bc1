"""Numbers of benchmarks: stored for an entry all or none, the same ones once, and read back."""

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from sqlalchemy import func, select

from contingencies.errors import UsageError
from registry.engine import Database
from registry.records import BenchmarkNumberRecord
from registry.schema import BenchmarkNumberRow
from registry.store.events import now, record
from registry.store.reading import number_record


@dataclass(frozen=True)
class Number:
    """One cell of a table; `value` is None where only the published number exists."""

    table_name: str
    row_label: str
    quantity: str
    unit: str
    value: float | None
    std: float | None = None  # over seeds, when there are several
    count: int = 1  # numbers that `value` is the mean of
    paper: float | None = None
    paper_std: float | None = None

    def __post_init__(self) -> None:
        numbers = (self.value, self.std, self.paper, self.paper_std)
        if not all(number is None or math.isfinite(number) for number in numbers):
            raise UsageError(
                f"{self.table_name}, {self.row_label}, {self.quantity}: not a finite number; leave it out instead."
            )


@dataclass(frozen=True)
class Group:
    """Numbers that were presented together; `created` is False when they had been stored before."""

    digest: str
    created: bool


def add_numbers(
    database: Database, entry: str, numbers: Sequence[Number], *, budget: str, seeds: int, code_version: str
) -> Group:
    """Store the numbers of an entry in one transaction; the same ones under the same settings are stored once.

    Parameters
    ----------
    entry : str
        Name of the benchmark.
    numbers : sequence of Number
        In the order in which they are shown.
    budget : str
        How much was spent on them.
    seeds : int
        How many seeds were asked for.
    code_version : str
        Of the code that found them.
    """
    settings = {"entry": entry, "budget": budget, "seeds": seeds, "code_version": code_version}
    content = json.dumps([settings, [asdict(number) for number in numbers]], sort_keys=True, allow_nan=False)
    digest = hashlib.sha256(content.encode()).hexdigest()
    with database.write() as session:  # no other writer comes between looking and adding
        if session.scalar(select(BenchmarkNumberRow.id).where(BenchmarkNumberRow.group_digest == digest).limit(1)):
            return Group(digest, False)
        at = now()
        session.add_all(
            BenchmarkNumberRow(group_digest=digest, created_at=at, **settings, **asdict(number)) for number in numbers
        )
        record(session, "benchmark", entry, group=digest, numbers=len(numbers), budget=budget, seeds=seeds)
        return Group(digest, True)


def newest_numbers(database: Database, entries: Sequence[str] | None = None) -> list[BenchmarkNumberRecord]:
    """The numbers that were stored last for each of the entries, or for all there are, in the order they are shown."""
    last = select(func.max(BenchmarkNumberRow.id)).group_by(BenchmarkNumberRow.entry)
    if entries is not None:
        last = last.where(BenchmarkNumberRow.entry.in_(entries))
    groups = select(BenchmarkNumberRow.group_digest).where(BenchmarkNumberRow.id.in_(last))
    statement = select(BenchmarkNumberRow).where(BenchmarkNumberRow.group_digest.in_(groups))
    with database.read() as session:
        return [number_record(row) for row in session.scalars(statement.order_by(BenchmarkNumberRow.id))]


def numbers_of(database: Database, entry: str) -> list[BenchmarkNumberRecord]:
    """Every number that was ever stored for an entry, oldest first."""
    statement = select(BenchmarkNumberRow).where(BenchmarkNumberRow.entry == entry)
    with database.read() as session:
        return [number_record(row) for row in session.scalars(statement.order_by(BenchmarkNumberRow.id))]

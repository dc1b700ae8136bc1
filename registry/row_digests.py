"""A digest in every row, so that a flipped byte or an edited value is noticed when the row is used.

What it covers is part of the stored format: all columns but the number of the row (given by the database after the
digest is made, and guarded by the references to it) and the digest itself. Columns that a later version adds join the
digest only if their migration makes the digests anew.
"""

import hashlib
import json
import math
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Float, event, inspect
from sqlalchemy.sql.elements import KeyedColumnElement

from contingencies.errors import IntegrityError, UsageError
from registry.schema import Base

COLUMN = "row_digest"
LEFT_OUT = ("id", COLUMN)


def digest_of(table: str, values: Mapping[str, Any]) -> str:
    """SHA-256 of the values of one row by column name, in hexadecimal digits."""
    plain = {name: _plain(value) for name, value in values.items() if name not in LEFT_OUT}
    return hashlib.sha256(json.dumps([table, plain], sort_keys=True).encode()).hexdigest()


def _plain(value: Any) -> Any:
    if not isinstance(value, datetime):
        return value
    return (value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)).isoformat()


def row_digest(row: Base) -> str:
    """The digest that a row should have."""
    values = {column.key: _stored(column, getattr(row, column.key)) for column in row.__table__.columns}
    return digest_of(row.__tablename__, values)


def _stored(column: KeyedColumnElement[Any], value: Any) -> Any:
    """A value as the database will hand it back: a whole number in a column of real ones is real."""
    if value is None or not isinstance(column.type, Float):
        return value
    if not math.isfinite(value):  # SQLite would keep NULL instead of NaN
        raise UsageError(f"{column.key} = {value} cannot be stored; give a finite number.")
    return float(value)


def check_row(row: Base) -> None:
    """Raise an IntegrityError for a row that is not what was written."""
    if row.row_digest != row_digest(row):
        number = " ".join(map(str, inspect(row).identity or ("?",)))
        raise IntegrityError(
            f"row {number} of {row.__tablename__} is not what was written: it was damaged or altered; restore the "
            "registry from a copy."
        )


def _write_digest(mapper: Any, connection: Any, row: Base) -> None:
    row.row_digest = row_digest(row)


for moment in ("before_insert", "before_update"):
    event.listen(Base, moment, _write_digest, propagate=True)

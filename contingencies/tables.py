"""Numbers as people read them: tables as CSV text, the one place where CSV is written, and counted things."""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from typing import Any


def csv_text(fields: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> str:
    """A table with its header; a field that a row does not have is empty."""
    text = io.StringIO()
    writer = csv.DictWriter(text, fields, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def counted(count: int, one: str, several: str) -> str:
    """A number of things: 1 severity, 2 severities."""
    return f"{count} {one if count == 1 else several}"


def severities(count: int) -> str:
    """How many severities, in words."""
    return counted(count, "severity", "severities")

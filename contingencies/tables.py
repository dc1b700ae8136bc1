"""Tables as CSV text: the one place where CSV is written."""

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

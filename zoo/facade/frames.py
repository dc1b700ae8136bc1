"""Tables for pandas, which is imported when the first one is asked for."""

from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any


def to_frame(rows: Iterable[Any]) -> Any:
    """A pandas table of rows that are mappings or records of the registry.

    Parameters
    ----------
    rows : iterable
        Mappings of plain values, or frozen records such as `Registry.heads()` returns; of a record, fields that are
        records themselves are left out.

    Returns
    -------
    pandas.DataFrame
    """
    import pandas

    return pandas.DataFrame([_columns(row) for row in rows])


def _columns(row: Any) -> Mapping[str, Any]:
    if isinstance(row, Mapping):
        return row
    values = {field.name: getattr(row, field.name) for field in fields(row)}
    return {name: value for name, value in values.items() if not (is_dataclass(value) or isinstance(value, Mapping))}

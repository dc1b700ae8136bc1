"""What commands print and write: JSON, and tables as CSV."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from contingencies.errors import UsageError
from contingencies.files import user_file

STANDARD_OUTPUT = "-"  # as a file name


def print_json(value: Any) -> None:
    """One JSON value on standard output; not-a-number is refused rather than printed."""
    click.echo(json.dumps(value, indent=2, allow_nan=False))


def check_csv(csv_file: str | None, as_json: bool) -> None:
    """Refuse a table that could not be written, before the work rather than after it."""
    if csv_file == STANDARD_OUTPUT and as_json:
        raise UsageError("--json and --csv - both print to standard output; leave one out, or give --csv a file.")
    if csv_file and csv_file != STANDARD_OUTPUT and not Path(csv_file).parent.is_dir():
        raise UsageError(f"{csv_file}: cannot be written, its directory does not exist; make it first.")


def check_figure(plot: Path | None) -> None:
    """Refuse a figure that could not be written, before the work rather than after it."""
    from zoo.plots import FORMATS

    if plot and not plot.parent.is_dir():
        raise UsageError(f"{plot}: cannot be written, its directory does not exist; make it first.")
    if plot and plot.suffix.lower() not in FORMATS:
        raise UsageError(f"{plot}: a figure is written as {', '.join(FORMATS)}; choose such a file name.")


def write_csv(csv_file: str, text: str) -> bool:
    """Put a table where --csv says; True when that was standard output, so that nothing else is printed there."""
    if csv_file == STANDARD_OUTPUT:
        click.echo(text, nl=False)
        return True
    with user_file(Path(csv_file)) as temporary:
        temporary.write_text(text, encoding="utf-8")
    return False


def report_lines(report: Mapping[str, Any]) -> list[str]:
    """A description as people read it: a value per line, rows of the same fields as a table."""
    lines: list[str] = []
    for key, value in report.items():
        if isinstance(value, list) and value and isinstance(value[0], Mapping):
            lines += [f"{key}:", *(f"  {line}" for line in table_lines(value))]
        elif isinstance(value, Mapping) and value:
            parts = _flat(value)
            width = max(map(len, parts))
            lines += [f"{key}:", *(f"  {name:{width}}  {_text(part)}" for name, part in parts.items())]
        else:
            lines.append(f"{key}: {_text(value)}")
    return lines


def table_lines(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Rows of the same fields in columns under their names, numbers to the right."""
    cells = [list(rows[0]), *([_text(value) for value in row.values()] for row in rows)]
    widths = [max(len(row[k]) for row in cells) for k in range(len(rows[0]))]
    right = [isinstance(value, int | float) for value in rows[0].values()]
    return [
        "  ".join(
            f"{cell:{'>' if r else '<'}{width}}" for cell, width, r in zip(row, widths, right, strict=True)
        ).rstrip()
        for row in cells
    ]


def _flat(value: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested fields by their dotted names."""
    flat: dict[str, Any] = {}
    for name, part in value.items():
        nested = isinstance(part, Mapping) and part
        flat |= _flat(part, f"{prefix}{name}.") if nested else {f"{prefix}{name}": part}
    return flat


def _text(value: Any) -> str:
    if value is None or value == [] or value == {}:
        return "-"
    if isinstance(value, list | tuple):
        return ", ".join(f"({_text(each)})" if isinstance(each, list | tuple) else _text(each) for each in value)
    return str(value)

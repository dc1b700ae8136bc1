"""What commands print and write: JSON, and tables as CSV."""

import json
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

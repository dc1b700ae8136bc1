"""Options that say which places a family takes."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from zoo.commands.options import FINITE, together

if TYPE_CHECKING:
    from contingencies.selection import Selection

MAX_LIST_BYTES = 10_000_000  # a list of places; the longest have some 100,000 lines
SELECTION = ("kv_min", "kv_max", "areas", "rating_min", "include", "exclude")

selection_options = together(  # as `selection_of` reads them
    click.option("--kv-min", type=FINITE, help="Only places of at least this base voltage, kV."),
    click.option("--kv-max", type=FINITE, help="Only places of at most this base voltage, kV."),
    click.option(
        "--area",
        "areas",
        type=click.IntRange(0, 10**9),
        multiple=True,
        help="Only places in this area; may be repeated.",
    ),
    click.option("--rating-min", type=FINITE, help="Only lines rated at least this, MVA."),
    click.option(
        "--include",
        multiple=True,
        metavar="PATTERN",
        help="Only these places, as line-16-17-* or bus-7-*; @FILE reads patterns from a file, one per line.",
    ),
    click.option("--exclude", multiple=True, metavar="PATTERN", help="Not these places; as --include."),
)


def selection_of(stated: dict[str, Any]) -> "Selection":
    """The places that the given options select."""
    from contingencies.selection import Selection

    limits = {name: stated[name] for name in SELECTION if name in stated}
    for name in ("include", "exclude"):
        if name in limits:
            limits[name] = tuple(pattern for entry in limits[name] for pattern in _patterns(entry))
    return Selection(**limits)


def _patterns(entry: str) -> list[str]:
    """A pattern, or those of a file behind an @: one per line, blank lines and # comments aside."""
    from contingencies.errors import SpecError
    from contingencies.files import read_regular

    if not entry.startswith("@"):
        return [entry]
    try:
        lines = read_regular(Path(entry[1:]), MAX_LIST_BYTES).decode("utf-8").splitlines()
    except UnicodeDecodeError:
        raise SpecError(f"{entry[1:]!r}, a list of places, is no text; write one place per line.") from None
    return [line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")]

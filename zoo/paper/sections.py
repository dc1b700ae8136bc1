"""The sections of the report: each entry is one JSON file in the report's folder, read back for the page of all.

An entry that is run again, or with a larger budget, replaces its own section and leaves the others as they are.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from contingencies.errors import IntegrityError
from contingencies.files import write_atomically
from zoo.paper import NAMES
from zoo.paper.circumstances import Circumstances
from zoo.paper.entry import Benchmark
from zoo.paper.formats import table_csv
from zoo.paper.tables import Cell, Presentation, Quantity, Row, Table
from zoo.plots import save_figure


@dataclass(frozen=True)
class ShownFigure:
    """A figure in the report's folder."""

    file: str
    caption: str


@dataclass(frozen=True)
class Section:
    """One entry of the report."""

    name: str
    title: str
    source: str
    circumstances: Circumstances
    tables: tuple[Table, ...]
    figures: tuple[ShownFigure, ...]
    notes: tuple[str, ...]
    failures: tuple[str, ...]
    results: int = 0  # pieces of work that it rests on; 0 where that was not kept

    @staticmethod
    def from_dict(content: dict[str, Any]) -> "Section":
        """What `asdict` made."""
        tables = tuple(
            Table(
                t["name"], t["title"], t["source"], tuple(Quantity(**q) for q in t["quantities"]),
                tuple(Row(r["label"], tuple(Cell(**c) for c in r["cells"]), r["why"]) for r in t["rows"]),
            )
            for t in content["tables"]
        )  # fmt: skip
        return Section(
            content["name"], content["title"], content["source"], Circumstances(**content["circumstances"]), tables,
            tuple(ShownFigure(**f) for f in content["figures"]), tuple(content["notes"]), tuple(content["failures"]),
            content.get("results", 0),
        )  # fmt: skip


def write_section(
    folder: Path,
    benchmark: Benchmark,
    shown: Presentation,
    around: Circumstances,
    failures: Sequence[str] = (),
    results: int = 0,
) -> Section:
    """Write an entry's tables, figures and JSON, as a section of the report; it names the seeds that it rests on."""
    (folder / "figures").mkdir(parents=True, exist_ok=True)
    figures = []
    for drawing in shown.drawings:
        file = f"figures/{benchmark.name}-{drawing.name}{drawing.suffix}"
        save_figure(drawing.figure, folder / file)
        figures.append(ShownFigure(file, drawing.caption))
    section = Section(
        benchmark.name, benchmark.title, benchmark.source, replace(around, seeds=_seeds(shown, around)), shown.tables,
        tuple(figures), shown.notes, tuple(failures), results,
    )  # fmt: skip
    for table in section.tables:
        write_atomically(folder / "tables" / f"{section.name}-{table.name}.csv", table_csv(table).encode())
    content = json.dumps(asdict(section), indent=1, allow_nan=False, ensure_ascii=False)
    write_atomically(folder / "entries" / f"{section.name}.json", content.encode())
    return section


def _seeds(shown: Presentation, around: Circumstances) -> int:
    """Most numbers that any cell is the mean of: some entries use fewer seeds than are asked for, or have fewer yet."""
    most = max((cell.count for table in shown.tables for row in table.rows for cell in row.cells), default=0)
    return max(1, min(around.seeds, most))


def read_sections(folder: Path) -> list[Section]:
    """The entries in the folder, in the order of the benchmarks."""
    found = (read_section(folder, name) for name in NAMES)
    return [section for section in found if section is not None]


def read_section(folder: Path, name: str) -> Section | None:
    """The section of an entry, if the folder has one."""
    path = folder / "entries" / f"{name}.json"
    if not path.is_file():
        return None
    try:
        return Section.from_dict(json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, KeyError, TypeError):
        raise IntegrityError(f"{str(path)!r} is damaged; delete it and run its benchmark again.") from None

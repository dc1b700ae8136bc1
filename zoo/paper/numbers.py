"""What is kept of an entry beside its report: every number in the registry, numbers and figures in a diary."""

import math
import re
from collections.abc import Sequence
from pathlib import Path

from registry.home import Home
from registry.spool import RunSpool
from registry.store.benchmarks import Number, add_numbers
from zoo.paper.entry import Benchmark, Setting
from zoo.paper.jobs import Place
from zoo.paper.tables import Presentation
from zoo.plots import FOLDER as FIGURES
from zoo.plots import save_figure
from zoo.work.code import PAPER, code_version

EXPERIMENT = "cct-zoo benchmarks"  # of MLflow


def store_numbers(benchmark: Benchmark, shown: Presentation, setting: Setting, place: Place) -> None:
    """Every number of an entry in the registry; those that are there already stay as they are."""
    numbers = numbers_of(shown)
    if all(number.value is None for number in numbers):
        return  # nothing has been measured
    with Home.open(place.home, place.registry) as opened:
        add_numbers(
            opened.database, benchmark.name, numbers,
            budget=setting.budget.name, seeds=len(setting.seeds), code_version=code_version(PAPER),
        )  # fmt: skip


def write_diary(
    benchmark: Benchmark, shown: Presentation, setting: Setting, home: Path, failures: Sequence[str]
) -> None:
    """Every number and figure of an entry in a diary of its own, which `sync-runs` replays to MLflow."""
    spool = RunSpool(home, f"benchmark {benchmark.name}", experiment=EXPERIMENT)
    spool.params({"budget": setting.budget.name, "seeds": len(setting.seeds), "entry": benchmark.name})
    spool.metrics(
        {
            _metric(f"{number.table_name}/{number.row_label}/{number.quantity}"): number.value
            for number in numbers_of(shown)
            if number.value is not None
        }
    )
    spool.tags({"failures": len(failures)})
    folder, figures = home / FIGURES / spool.uid, []
    folder.mkdir(parents=True, exist_ok=True)
    for drawing in shown.drawings:
        figures.append(folder / f"{drawing.name}{drawing.suffix}")
        save_figure(drawing.figure, figures[-1])
    spool.files(figures)
    spool.finish()


def numbers_of(shown: Presentation) -> list[Number]:
    """What tables hold, ours and published; cells with neither are left out."""
    return [
        Number(
            table.name, row.label, quantity.name, quantity.unit,
            _finite(c.ours), _finite(c.ours_std), c.count, c.paper, c.paper_std,
        )
        for table in shown.tables
        for row in table.rows
        for quantity, c in zip(table.quantities, row.cells, strict=True)
        if _finite(c.ours) is not None or c.paper is not None
    ]  # fmt: skip


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _metric(text: str) -> str:
    """A name that MLflow takes."""
    return re.sub(r"[^\w\-./ ]", "_", text.replace("α", "alpha"))[:240]

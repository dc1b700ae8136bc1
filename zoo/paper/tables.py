"""What an entry shows: tables with ours beside the paper's, figures and notes."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Published:
    """A number of the paper, and its standard deviation over five seeds if it has one."""

    mean: float
    std: float | None = None


@dataclass(frozen=True)
class Quantity:
    """A column of a table."""

    name: str
    unit: str = ""
    digits: int = 3  # significant ones that are shown


@dataclass(frozen=True)
class Cell:
    """Ours beside the paper's; None where there is no number."""

    ours: float | None
    ours_std: float | None = None  # over seeds, when there are several
    paper: float | None = None
    paper_std: float | None = None
    count: int = 0  # numbers that ours is the mean of


@dataclass(frozen=True)
class Row:
    """One line of a table; `why` says why ours and the paper's may differ, or why a number is missing."""

    label: str
    cells: tuple[Cell, ...]
    why: str


@dataclass(frozen=True)
class Table:
    """A table; `source` is where the published numbers stand."""

    name: str
    title: str
    source: str
    quantities: tuple[Quantity, ...]
    rows: tuple[Row, ...]


@dataclass(frozen=True, eq=False)
class Drawing:
    """A matplotlib figure; `suffix` is its format."""

    name: str
    caption: str
    figure: Any
    suffix: str = ".svg"


@dataclass(frozen=True, eq=False)
class Presentation:
    """What an entry shows."""

    tables: tuple[Table, ...]
    drawings: tuple[Drawing, ...] = ()
    notes: tuple[str, ...] = field(default=())


def cell(values: Sequence[float | None], paper: Published | None = None, factor: float = 1.0) -> Cell:
    """Mean and sample standard deviation of the numbers among `values`, times `factor`, beside the paper's."""
    numbers = [factor * value for value in values if value is not None and np.isfinite(value)]
    return Cell(
        ours=float(np.mean(numbers)) if numbers else None,
        ours_std=float(np.std(numbers, ddof=1)) if len(numbers) > 1 else None,
        paper=None if paper is None else paper.mean,
        paper_std=None if paper is None else paper.std,
        count=len(numbers),
    )

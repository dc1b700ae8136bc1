"""How numbers and tables of the report are written."""

import math
from dataclasses import replace
from decimal import Decimal

from contingencies.tables import csv_text
from zoo.paper.remarks import remarks_of
from zoo.paper.tables import Cell, Quantity, Table

SMALL = 1e-3  # numbers below this are shown with a power of ten
TINY = 1e-2  # a column of states below this is shown in a power of ten of its unit
COLUMNS = ("row", "quantity", "unit", "ours", "ours_std", "paper", "paper_std", "source", "why")


def number(value: float | None, digits: int = 3) -> str:
    """A number with so many significant digits, or a dash."""
    if value is None:
        return "–"
    if value == 0:
        return "0"
    if float(value).is_integer() and abs(value) < 1e9:
        return f"{value:,.0f}"
    if abs(value) < SMALL or abs(value) >= 1e7:
        mantissa, exponent = f"{value:.1e}".split("e")
        return f"{mantissa}e{int(exponent)}"
    return f"{value:,.0f}" if abs(value) >= 10**digits else f"{value:.{digits}g}"


def ours(cell: Cell, digits: int = 3) -> str:
    """Mean and, over several seeds, standard deviation."""
    if cell.ours is None or not cell.ours_std:
        return number(cell.ours, digits)
    if abs(cell.ours) >= SMALL:
        return _with_spread(cell.ours, cell.ours_std, digits)
    power = math.floor(math.log10(max(abs(cell.ours), cell.ours_std)))
    return f"({_with_spread(cell.ours * 10.0**-power, cell.ours_std * 10.0**-power, digits)})e{power}"


def _with_spread(mean: float, deviation: float, digits: int) -> str:
    """Both with the same decimals: no more than the spread deserves, which has one digit less than a mean."""
    decimals = max(0, min(_decimals(mean, digits), _decimals(deviation, digits - 1)))
    spread = f"{deviation:,.{decimals}f}"
    return f"{mean:,.{decimals}f} ± {spread}" if float(spread.replace(",", "")) else number(mean, digits)


def paper(cell: Cell, digits: int = 3) -> str:
    """The published number, with as many decimals as its standard deviation, and the other way round."""
    if cell.paper is None or cell.paper_std is None:
        return number(cell.paper, digits)
    printed = (Decimal(f"{value:.{digits}g}").as_tuple().exponent for value in (cell.paper, cell.paper_std))
    decimals = max(0, *(-int(exponent) for exponent in printed))
    return f"{cell.paper:,.{decimals}f} ± {cell.paper_std:,.{decimals}f}"


def _decimals(value: float, digits: int) -> int:
    """Decimals that show so many significant digits; nought has them in units."""
    return digits - 1 - (math.floor(math.log10(abs(value))) if value else 0)


def heading(quantity: Quantity) -> str:
    """Name and unit of a column."""
    return f"{quantity.name} ({quantity.unit})" if quantity.unit else quantity.name


def published(table: Table) -> list[bool]:
    """For each quantity of a table, whether the paper has a number for some row."""
    return [any(row.cells[k].paper is not None for row in table.rows) for k in range(len(table.quantities))]


def shown(table: Table) -> Table:
    """The table with states that are small throughout in powers of ten of their unit: 1e-4 pu instead of pu."""
    powers = [_power(table, k) for k in range(len(table.quantities))]
    quantities = tuple(
        replace(q, unit=f"1e{power} {q.unit}") if power else q
        for q, power in zip(table.quantities, powers, strict=True)
    )
    rows = tuple(
        replace(row, cells=tuple(_scaled(cell, power) for cell, power in zip(row.cells, powers, strict=True)))
        for row in table.rows
    )
    return replace(table, quantities=quantities, rows=rows)


def _power(table: Table, column: int) -> int:
    cells = [row.cells[column] for row in table.rows]
    largest = max((abs(value) for cell in cells for value in (cell.ours, cell.paper) if value is not None), default=0.0)
    scaled = table.quantities[column].unit in ("pu", "rad") and 0.0 < largest < TINY
    return math.floor(math.log10(largest)) if scaled else 0


def _scaled(cell: Cell, power: int) -> Cell:
    def times(value: float | None) -> float | None:
        return None if value is None else value * 10.0**-power

    return replace(
        cell, ours=times(cell.ours), ours_std=times(cell.ours_std), paper=times(cell.paper),
        paper_std=times(cell.paper_std),
    )  # fmt: skip


def columns(table: Table) -> list[str]:
    """Headings: each quantity, beside it the paper's where there is one, and what rows remark."""
    pairs = zip(shown(table).quantities, published(table), strict=True)
    numbers = [name for q, theirs in pairs for name in (heading(q), *(["paper"] if theirs else []))]
    return ["", *numbers, *(["remarks"] if any(remarks_of(table).rows) else [])]


def lines_of(table: Table) -> list[list[str]]:
    """Texts under the headings, row by row."""
    theirs, remarks, lines = published(table), remarks_of(table).rows, []
    table = shown(table)
    for row, remark in zip(table.rows, remarks, strict=True):
        texts = [row.label]
        for cell, quantity, both in zip(row.cells, table.quantities, theirs, strict=True):
            texts += [ours(cell, quantity.digits), *([paper(cell, quantity.digits)] if both else [])]
        lines.append([*texts, *([remark] if any(remarks) else [])])
    return lines


def table_csv(table: Table) -> str:
    """One line per row and quantity."""
    return csv_text(
        COLUMNS,
        (
            {
                "row": row.label,
                "quantity": quantity.name,
                "unit": quantity.unit,
                "ours": cell.ours,
                "ours_std": cell.ours_std,
                "paper": cell.paper,
                "paper_std": cell.paper_std,
                "source": table.source,
                "why": row.why,
            }
            for row in table.rows
            for quantity, cell in zip(table.quantities, row.cells, strict=True)
        ),
    )

"""How numbers and tables of the report are written."""

from collections.abc import Sequence

from contingencies.tables import csv_text
from zoo.paper.tables import Cell, Quantity, Table

SPREAD_DIGITS = 2  # of our standard deviations; a third says nothing over five seeds
CLAUSE = "; "  # between the reasons of a row
COLUMNS = ("row", "quantity", "unit", "ours", "ours_std", "paper", "paper_std", "source", "why")


def number(value: float | None, digits: int = 3) -> str:
    """A number with so many significant digits, or a dash."""
    if value is None:
        return "–"
    if value == 0:
        return "0"
    if float(value).is_integer() and abs(value) < 1e9:
        return f"{value:,.0f}"
    if abs(value) < 1e-3 or abs(value) >= 1e7:
        return f"{value:.2e}"
    return f"{value:,.0f}" if abs(value) >= 10**digits else f"{value:.{digits}g}"


def ours(cell: Cell, digits: int = 3) -> str:
    """Mean and, over several seeds, standard deviation."""
    return number(cell.ours, digits) + _spread(cell.ours_std, SPREAD_DIGITS)


def paper(cell: Cell, digits: int = 3) -> str:
    """The published number."""
    return number(cell.paper, digits) + _spread(cell.paper_std, digits)


def _spread(deviation: float | None, digits: int) -> str:
    return "" if deviation is None else f" ± {number(deviation, digits)}"


def heading(quantity: Quantity) -> str:
    """Name and unit of a column."""
    return f"{quantity.name} ({quantity.unit})" if quantity.unit else quantity.name


def published(table: Table) -> list[bool]:
    """For each quantity of a table, whether the paper has a number for some row."""
    return [any(row.cells[k].paper is not None for row in table.rows) for k in range(len(table.quantities))]


def columns(table: Table) -> list[str]:
    """Headings: each quantity, beside it the paper's where there is one, and what rows remark."""
    pairs = zip(table.quantities, published(table), strict=True)
    numbers = [name for q, theirs in pairs for name in (heading(q), *(["paper"] if theirs else []))]
    return ["", *numbers, *(["remarks"] if any(own_remarks(table)) else [])]


def lines_of(table: Table) -> list[list[str]]:
    """Texts under the headings, row by row."""
    theirs, remarks, lines = published(table), own_remarks(table), []
    for row, remark in zip(table.rows, remarks, strict=True):
        texts = [row.label]
        for cell, quantity, both in zip(row.cells, table.quantities, theirs, strict=True):
            texts += [ours(cell, quantity.digits), *([paper(cell, quantity.digits)] if both else [])]
        lines.append([*texts, *([remark] if any(remarks) else [])])
    return lines


def shared_remarks(table: Table) -> list[str]:
    """What every row of a table would say, to be said once."""
    if len(table.rows) < 2:
        return []
    first, *others = [row.why.split(CLAUSE) for row in table.rows]
    return [clause for clause in first if clause and all(clause in other for other in others)]


def own_remarks(table: Table) -> list[str]:
    """What each row says beyond that."""
    shared = shared_remarks(table)
    return [CLAUSE.join(part for part in row.why.split(CLAUSE) if part not in shared) for row in table.rows]


def verdict(tables: Sequence[Table]) -> str:
    """How ours compare with what the paper published, in one sentence; empty where it published nothing."""
    pairs = [(cell.ours, cell.paper) for table in tables for row in table.rows for cell in row.cells]
    both = [(mine, theirs) for mine, theirs in pairs if mine is not None and theirs is not None]
    if not both:
        return ""
    smaller, equal = sum(mine < theirs for mine, theirs in both), sum(mine == theirs for mine, theirs in both)
    same = f", the same in {equal}" if equal else ""
    return (
        f"Of {len(both)} published numbers ours is smaller in {smaller}, larger in {len(both) - smaller - equal}{same}."
    )


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

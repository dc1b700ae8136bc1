"""How numbers and tables of the report are written."""

from contingencies.tables import csv_text
from zoo.paper.tables import Cell, Quantity, Table

COLUMNS = ("row", "quantity", "unit", "ours", "ours_std", "paper", "paper_std", "source", "why")


def number(value: float | None, digits: int = 4) -> str:
    """A number with so many significant digits, or a dash."""
    if value is None:
        return "–"
    if value == 0:
        return "0"
    if float(value).is_integer() and abs(value) < 1e9:
        return f"{value:,.0f}"
    if abs(value) < 1e-3 or abs(value) >= 1e7:
        return f"{value:.2e}"
    return f"{value:,.0f}" if abs(value) >= 1e4 else f"{value:.{digits}g}"


def ours(cell: Cell, digits: int = 4) -> str:
    """Mean and, over several seeds, standard deviation."""
    return number(cell.ours, digits) + (f" ± {number(cell.ours_std)}" if cell.ours_std is not None else "")


def paper(cell: Cell, digits: int = 4) -> str:
    """The published number."""
    return number(cell.paper, digits) + (f" ± {number(cell.paper_std)}" if cell.paper_std is not None else "")


def heading(quantity: Quantity) -> str:
    """Name and unit of a column."""
    return f"{quantity.name} ({quantity.unit})" if quantity.unit else quantity.name


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

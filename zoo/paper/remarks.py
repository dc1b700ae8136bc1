"""Why numbers of a table may differ from the paper's, each reason said once.

A row's reasons are clauses. Those of every row stand below the table; those that several rows share have a letter,
which the rows show; a row's own stand beside it.
"""

from dataclasses import dataclass
from string import ascii_lowercase

from zoo.paper.tables import Table

CLAUSE = "; "  # between the reasons of a row


@dataclass(frozen=True)
class Remarks:
    """What is said below a table, and beside its rows."""

    shared: str  # what holds for all rows; may be empty
    notes: tuple[tuple[str, str], ...]  # letter, and what it stands for
    rows: tuple[str, ...]  # letters and own words of each row

    @property
    def below(self) -> list[str]:
        """Paragraphs below the table."""
        lettered = [f"({letter}) {text}." for letter, text in self.notes]
        return [*([f"All rows: {self.shared}."] if self.shared else []), *([" ".join(lettered)] if lettered else [])]


def remarks_of(table: Table) -> Remarks:
    """The reasons of a table's rows, none of them twice."""
    clauses = [[part for part in row.why.split(CLAUSE) if part] for row in table.rows]
    holders: dict[str, tuple[int, ...]] = {}
    for clause in dict.fromkeys(part for parts in clauses for part in parts):
        holders[clause] = tuple(k for k, parts in enumerate(clauses) if clause in parts)
    everyone = tuple(range(len(table.rows)))
    shared = [clause for clause, rows in holders.items() if rows == everyone and len(everyone) > 1]
    together: dict[tuple[int, ...], list[str]] = {}  # clauses of the same rows share a letter
    for clause, rows in holders.items():
        if 1 < len(rows) < len(everyone):
            together.setdefault(rows, []).append(clause)
    letters = dict(zip(together, ascii_lowercase, strict=False))  # a table with more groups spells out the rest
    lettered = {clause for rows in letters for clause in together[rows]}
    own = [
        CLAUSE.join(
            [
                *([" ".join(f"({letter})" for rows, letter in letters.items() if k in rows)]),
                *(part for part in parts if part not in shared and part not in lettered),
            ]
        ).strip("; ")
        for k, parts in enumerate(clauses)
    ]
    notes = tuple((letter, CLAUSE.join(together[rows])) for rows, letter in letters.items())
    return Remarks(CLAUSE.join(shared), notes, tuple(own))

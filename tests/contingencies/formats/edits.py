"""Edits of the textbook 9-bus file, and the critical duration of a bolted fault at its bus 7."""

from pathlib import Path

import contingencies
from contingencies.library import Contingency, System, load_system
from contingencies.operators import compile_contingency
from contingencies.references import reference_cct
from contingencies.spec import ContingencySpec

TEXT = (Path(contingencies.__file__).parent / "systems" / "wscc9.m").read_text()


def branch_row(start: int, end: int) -> str:
    """The line of a branch."""
    return next(line for line in TEXT.splitlines() if line.startswith(f"\t{start}\t{end}\t") and "-360" in line)


def changed(row: str, **columns: str) -> str:
    """A line with some columns replaced, counted from 0: c8 is the ratio, c9 the angle, c10 the status."""
    cells = row.strip().rstrip(";").split("\t")
    for name, value in columns.items():
        cells[int(name[1:])] = value
    return "\t" + "\t".join(cells) + ";"


def with_branch(start: int, end: int, text: str = TEXT, **columns: str) -> str:
    """The file with a branch changed."""
    row = branch_row(start, end)
    return text.replace(row, changed(row, **columns))


def wscc9_of(text: str) -> System:
    """The 9-bus system with another network file."""
    return System(load_system("wscc9").spec, text.encode())


def critical_duration(system: System, clearing: dict, window: float = 3.0) -> float:
    """How long a bolted fault at bus 7 may last, s; `window` is the time studied after the fault."""
    spec = ContingencySpec.model_validate(
        {
            "name": "bus-7",
            "system": "wscc9",
            "fault": {"kind": "bus", "bus": 7, "impedance_pu": {}},
            "clearing": clearing,
            "window": {"t_f": 0.2, "T": 0.2 + window, "t_c": (0.22, 0.8)},
        }
    )
    answer = reference_cct(compile_contingency(Contingency(spec, system)), 1.0)
    assert answer.cct is not None, answer
    return answer.cct - 0.2

"""Reading the contingencies that a user names, and checking that each can be simulated."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path

from contingencies.errors import NotFoundError, Problems
from contingencies.library import (
    SPEC_SUFFIXES,
    Contingency,
    load_contingencies,
    load_contingency,
    shipped_contingencies,
)
from contingencies.network import solve_network
from contingencies.operators import compile_contingency


def read_contingencies(references: Sequence[str]) -> list[Contingency]:
    """Contingencies from YAML files, directories of them (searched below), and names of shipped ones.

    Every file is read before the mistakes of all of them are told.
    """
    found: list[Contingency] = []
    problems = Problems()
    for reference in references:
        with problems.gather():
            if reference in shipped_contingencies():
                found.append(load_contingency(reference))
                continue
            for file in _files(reference):
                with problems.gather():
                    found.extend(load_contingencies(file))
    problems.raise_any()
    return found


def _files(reference: str) -> list[Path]:
    """The files that an argument stands for."""
    path = Path(reference)
    if _is_folder(path):
        files = sorted(p for p in path.rglob("*") if p.suffix in SPEC_SUFFIXES and p.is_file())
        described = [file for file in files if not is_system_file(file)]
        if not described:
            raise NotFoundError(f"{reference}: the folder holds no contingency files (.yaml, .yml).")
        return described
    if reference.endswith(SPEC_SUFFIXES):
        return [path]
    raise NotFoundError(
        f"{reference[:100]!r} is neither a YAML file, nor a folder, nor a shipped contingency "
        f"({', '.join(shipped_contingencies())})."
    )


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):  # names too long or with a NUL byte
        return False


def is_system_file(path: Path) -> bool:
    """Whether a file describes a system rather than contingencies."""
    try:
        content = path.read_bytes()
    except (OSError, ValueError):
        return False  # reading it as a contingency says what is wrong
    return re.search(rb"^machines\s*:", content, re.M) is not None and re.search(rb"^fault\s*:", content, re.M) is None


def check_physics(contingencies: Sequence[Contingency], report: Callable[[int], None] = lambda done: None) -> None:
    """Compile every contingency, so that one that cannot be simulated is refused before it is stored.

    What is wrong with a system is told once, not for each of its contingencies.
    """
    problems = Problems()
    solvable: dict[str, bool] = {}
    for done, contingency in enumerate(contingencies, 1):
        system = contingency.system
        if system.sha256 not in solvable:
            solvable[system.sha256] = False
            with problems.gather():
                solve_network(system)
                solvable[system.sha256] = True
        if solvable[system.sha256]:
            with problems.gather():
                compile_contingency(contingency)
        report(done)
    problems.raise_any()

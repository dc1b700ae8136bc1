"""Reading the contingencies that a user names, and checking that each can be simulated."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path

from contingencies.errors import NotFoundError, Problems
from contingencies.library import (
    SPEC_SUFFIXES,
    Contingency,
    SystemReader,
    load_contingencies,
    shipped_contingencies,
    shipped_file,
)
from contingencies.operators import compile_members

Counted = Callable[[int, int], None]  # done, total


def _uncounted(done: int, total: int) -> None:
    """Count nothing."""


def read_contingencies(references: Sequence[str], report: Counted = _uncounted) -> list[Contingency]:
    """Contingencies from YAML files, directories of them (searched below), and names of shipped ones.

    Every file is read before the mistakes of all of them are told; every system is read once.
    """
    problems, systems = Problems(), SystemReader()
    contingencies: list[Contingency] = []
    done = total = 0
    for reference in references:
        with problems.gather():
            files = _files(reference)
            total += len(files)
            for file in files:
                with problems.gather():
                    contingencies += load_contingencies(file, systems)
                done += 1
                report(done, total)
    problems.raise_any()
    return contingencies


def _files(reference: str) -> list[Path]:
    """The files that an argument stands for."""
    if reference in shipped_contingencies():
        return [shipped_file(reference)]
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


def check_physics(contingencies: Sequence[Contingency], report: Counted = _uncounted) -> None:
    """Compile every contingency, so that one that cannot be simulated is refused before it is stored.

    The contingencies of a system are compiled together, with shared solves. What is wrong with a system is told once,
    not for each of its contingencies.
    """
    families: dict[str, list[Contingency]] = {}
    for contingency in contingencies:
        families.setdefault(contingency.system.sha256, []).append(contingency)
    problems, done = Problems(), 0
    for family in families.values():
        with problems.gather():
            compile_members(family)
        done += len(family)
        report(done, len(contingencies))
    problems.raise_any()

"""Reading the contingencies that a user names, and checking that each can be simulated."""

import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from contingencies.documents import MAX_BYTES
from contingencies.errors import NotFoundError, Problems, UsageError, ZooError
from contingencies.files import read_regular
from contingencies.library import (
    SPEC_SUFFIXES,
    Contingency,
    SystemReader,
    load_contingencies,
    shipped_contingencies,
    shipped_file,
)
from contingencies.operators import compile_members

MAX_WALKED = 50_000  # files and folders looked at below one that a user names

Counted = Callable[[int, int], None]  # done, total


def _uncounted(done: int, total: int) -> None:
    """Count nothing."""


def read_contingencies(references: Sequence[str], report: Counted = _uncounted) -> list[Contingency]:
    """Contingencies from YAML files, directories of them (searched below), and names of shipped ones.

    Every file is read before the mistakes of all of them are told; every system is read once.
    """
    problems = Problems()
    contingencies = _read(references, problems, report)
    problems.raise_any()
    return contingencies


def read_and_check(
    references: Sequence[str], reading: Counted = _uncounted, checking: Counted = _uncounted
) -> list[Contingency]:
    """As `read_contingencies`, and each can be simulated: mistakes of syntax, fields and physics are told together."""
    problems = Problems()
    contingencies = _read(references, problems, reading)
    _check(contingencies, problems, checking)
    problems.raise_any()
    return contingencies


def _read(references: Sequence[str], problems: Problems, report: Counted) -> list[Contingency]:
    systems = SystemReader()
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
    return contingencies


def _files(reference: str) -> list[Path]:
    """The files that an argument stands for."""
    if reference in shipped_contingencies():
        return [shipped_file(reference)]
    path = Path(reference)
    if _is_folder(path):
        described = [file for file in _files_below(path) if not is_system_file(file)]
        if not described:
            raise NotFoundError(f"{reference}: the folder holds no contingency files (.yaml, .yml).")
        return described
    if reference.endswith(SPEC_SUFFIXES):
        return [path]
    raise NotFoundError(
        f"{reference[:100]!r} is neither a YAML file, nor a folder, nor a shipped contingency "
        f"({', '.join(shipped_contingencies())})."
    )


def _files_below(folder: Path) -> list[Path]:
    """YAML files of a folder and those in it, in order; a folder with too much in it is the wrong one."""
    found, seen = [], 0
    for place, folders, names in os.walk(folder):
        seen += len(names) + len(folders)
        if seen > MAX_WALKED:
            raise UsageError(
                f"{folder}: more than {MAX_WALKED} files and folders in there; name the one that is meant."
            )
        found += [Path(place) / name for name in names if name.endswith(SPEC_SUFFIXES)]
    return sorted(path for path in found if path.is_file())


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):  # names too long or with a NUL byte
        return False


def is_system_file(path: Path) -> bool:
    """Whether a file describes a system rather than contingencies."""
    try:
        content = read_regular(path, MAX_BYTES)
    except ZooError:
        return False  # reading it as a contingency says what is wrong
    return re.search(rb"^machines\s*:", content, re.M) is not None and re.search(rb"^fault\s*:", content, re.M) is None


def check_physics(contingencies: Sequence[Contingency], report: Counted = _uncounted) -> None:
    """Compile every contingency, so that one that cannot be simulated is refused before it is stored.

    The contingencies of a system with the same conditions are compiled together, with shared solves. What is wrong with
    a system is told once, not for each of its contingencies.
    """
    problems = Problems()
    _check(contingencies, problems, report)
    problems.raise_any()


def _check(contingencies: Sequence[Contingency], problems: Problems, report: Counted) -> None:
    families: dict[tuple[str, str], list[Contingency]] = {}
    for contingency in contingencies:
        conditions = contingency.spec.conditions
        alike = (contingency.system.sha256, "" if conditions is None else conditions.model_dump_json())
        families.setdefault(alike, []).append(contingency)
    done = 0
    for family in families.values():
        with problems.gather():
            compile_members(family)
        done += len(family)
        report(done, len(contingencies))

"""Registering contingencies: read everything, check the physics, then store all or none."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path

from contingencies.errors import NotFoundError, SpecError
from contingencies.library import (
    SPEC_SUFFIXES,
    Contingency,
    load_contingencies,
    load_contingency,
    shipped_contingencies,
)
from registry.home import Home
from registry.store.contingencies import Registered


def read_contingencies(references: Sequence[str]) -> list[Contingency]:
    """Contingencies from YAML files, directories of them (searched below), and names of shipped ones."""
    found: list[Contingency] = []
    for reference in references:
        path = Path(reference)
        if reference in shipped_contingencies():
            found.append(load_contingency(reference))
        elif _is_folder(path):
            files = sorted(p for p in path.rglob("*") if p.suffix in SPEC_SUFFIXES and p.is_file())
            described = [file for file in files if not _is_system_file(file)]
            if not described:
                raise NotFoundError(f"{reference}: the folder holds no contingency files (.yaml, .yml).")
            for file in described:
                found.extend(load_contingencies(file))
        elif reference.endswith(SPEC_SUFFIXES):
            found.extend(load_contingencies(path))
        else:
            raise NotFoundError(
                f"{reference[:100]!r} is neither a YAML file, nor a folder, nor a shipped contingency "
                f"({', '.join(shipped_contingencies())})."
            )
    return found


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):  # names too long or with a NUL byte
        return False


def _is_system_file(path: Path) -> bool:
    """Whether a file beside the contingencies describes a system that they refer to."""
    try:
        content = path.read_bytes()
    except OSError:
        return False  # reading it as a contingency says what is wrong
    return re.search(rb"^machines\s*:", content, re.M) is not None and re.search(rb"^fault\s*:", content, re.M) is None


def check_physics(contingencies: Sequence[Contingency], report: Callable[[int], None] = lambda done: None) -> None:
    """Compile every contingency, so that one that cannot be simulated is refused before it is stored."""
    from contingencies.operators import compile_contingency

    for done, contingency in enumerate(contingencies, 1):
        try:
            compile_contingency(contingency)
        except SpecError as error:
            text = str(error)
            raise SpecError(text if contingency.name in text else f"{contingency.name}: {text}") from None
        report(done)


def register(
    home: Home, references: Sequence[str], report: Callable[[int, int], None] = lambda done, total: None
) -> list[Registered]:
    """Register contingencies named by files, folders or shipped names; all of them, or none."""
    contingencies = read_contingencies(references)
    check_physics(contingencies, lambda done: report(done, len(contingencies)))
    return home.register(contingencies)

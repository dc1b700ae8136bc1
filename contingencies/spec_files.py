"""Contingency descriptions as YAML files, in the layout of the shipped catalogue; several files written together.

A batch of files is written whole or not at all, and never over a file that says something else.
"""

import os
import re
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from contingencies.errors import ConflictError, UsageError
from contingencies.files import written_whole
from contingencies.library import Contingency, shipped_systems
from contingencies.spec import ContingencySpec

PLAIN_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")  # text that YAML reads as text without quotes, in any context
PLAIN_PROSE = re.compile(r"[A-Za-z][A-Za-z0-9_., ()-]*[A-Za-z0-9_.)-]")
NOT_TEXT = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})  # in YAML 1.2 or 1.1
SHOWN = 3  # conflicting files named in an error


def contingency_text(spec: ContingencySpec) -> str:
    """A contingency as one YAML document that reads back equal."""
    fields = spec.model_dump(mode="json", exclude_none=True)
    if not spec.description:
        del fields["description"]
    return "".join(f"{name}: {_flow(value, top=True)}\n" for name, value in fields.items())


def _flow(value: Any, top: bool = False) -> str:
    if isinstance(value, dict):
        value = {name: value[name] for name in ("kind", "action") if name in value} | value  # what it is comes first
        return "{" + ", ".join(f"{name}: {_flow(entry)}" for name, entry in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_flow(entry) for entry in value) + "]"
    if isinstance(value, str):
        plain = (PLAIN_PROSE if top else PLAIN_WORD).fullmatch(value) and value.lower() not in NOT_TEXT
        return value if plain else quoted(value)
    return repr(value)


def quoted(text: str) -> str:
    """Double-quoted YAML; JSON's escapes will not do, because YAML knows no surrogate pairs."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(c if c.isprintable() else f"\\U{ord(c):08x}" for c in escaped) + '"'


def system_reference(system: str, directory: Path) -> str:
    """How a spec in `directory` names a system: a shipped name as it stands, a system file by its relative path."""
    if system in shipped_systems():
        return system
    return Path(os.path.relpath(Path(system).resolve(), directory.resolve())).as_posix()


@dataclass(frozen=True)
class Written:
    """What writing a family did, by file."""

    written: tuple[Path, ...]
    unchanged: tuple[Path, ...]


def write_contingencies(contingencies: Sequence[Contingency], directory: Path, force: bool = False) -> Written:
    """One file NAME.yaml per contingency; ConflictError, and no file touched, where another text stands already.

    Parameters
    ----------
    contingencies : sequence of Contingency
    directory : Path
        Made if missing; files of other names in it are left alone.
    force : bool
        Replace files that say something else.
    """
    texts = {f"{contingency.name}.yaml": contingency_text(contingency.spec).encode() for contingency in contingencies}
    return write_together(texts, directory, force)


def write_together(contents: Mapping[str, bytes], directory: Path, force: bool = False) -> Written:
    """Files by name into a directory, all or none; ConflictError, and no file touched, where one says something else.

    Parameters
    ----------
    contents : mapping
        Name of each file -> what it holds.
    directory : Path
        Made if missing; files of other names in it are left alone.
    force : bool
        Replace files that say something else.
    """
    paths = {directory / name: content for name, content in contents.items()}
    try:
        unchanged = [path for path, content in paths.items() if path.is_file() and path.read_bytes() == content]
        changed = {path: content for path, content in paths.items() if path not in set(unchanged)}
        existing = [path for path in changed if path.exists()]
        if existing and not force:
            shown = ", ".join(path.name for path in existing[:SHOWN]) + (", ..." if len(existing) > SHOWN else "")
            raise ConflictError(
                f"{directory}: {len(existing)} files hold something else ({shown}); use --force or another directory."
            )
        directory.mkdir(parents=True, exist_ok=True)
        write_whole(changed)
    except OSError as error:
        raise UsageError(f"{directory}: cannot be written ({error.strerror}); choose another directory.") from None
    return Written(tuple(changed), tuple(unchanged))


def write_whole(contents: Mapping[Path, bytes]) -> None:
    """Write files so that none is ever seen half-written: all beside their places first, then all renamed."""
    with ExitStack() as all_or_none:
        for path, content in contents.items():
            all_or_none.enter_context(written_whole(path)).write_bytes(content)

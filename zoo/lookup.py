"""Finding the contingency or system that a user names: registered, shipped, or in a file."""

import os
from pathlib import Path

from contingencies.errors import NotFoundError, UsageError
from contingencies.library import (
    SPEC_SUFFIXES,
    Contingency,
    System,
    load_contingency,
    load_system,
    shipped_contingencies,
    shipped_systems,
)
from contingencies.reading import is_system_file
from registry.home import DEFAULT_HOME, Home
from registry.records import CheckpointRecord, ContingencyRecord
from registry.store import contingencies as store
from registry.store import runs
from registry.texts import split_reference


def home_path(home: str | Path | None = None) -> Path:
    """The home folder: as given, else `CCT_ZOO_HOME`, else `.cct-zoo` in the working folder."""
    return Path(home or os.environ.get("CCT_ZOO_HOME") or DEFAULT_HOME)


def registry_url(url: str | None = None) -> str | None:
    """The registry's URL: as given, else `CCT_ZOO_REGISTRY`, else none (SQLite in the home)."""
    return url or os.environ.get("CCT_ZOO_REGISTRY") or None


def find_contingency(reference: str, home: str | Path | None = None, url: str | None = None) -> Contingency:
    """The contingency called `reference`.

    Parameters
    ----------
    reference : str
        A registered name (its latest version, or `name@version`), else a shipped name, else the
        path of a YAML file with one contingency.
    home, url : optional
        Where the registry is; defaults as in `home_path` and `registry_url`. A registry that
        does not exist yet is not made.
    """
    if not reference.endswith(SPEC_SUFFIXES):
        try:
            split_reference(reference)
            with Home.open(home_path(home), registry_url(url), create=False) as opened:
                return opened.contingency(store.find(opened.database, reference))
        except NotFoundError:
            if "@" in reference:
                raise
    return load_contingency(reference)


def find_system(reference: str, home: str | Path | None = None, url: str | None = None) -> System | None:
    """The system called `reference`: shipped, in a file, or of registered contingencies; None when it is no system.

    A registered contingency of the same name goes first; of several systems of one name, the newest is meant.
    """
    if reference in shipped_systems():
        return load_system(reference)
    if reference.endswith(SPEC_SUFFIXES):
        return load_system(reference) if is_system_file(Path(reference)) else None
    try:
        opened = Home.open(home_path(home), registry_url(url), create=False)
    except NotFoundError:
        return None
    with opened:
        rows = [row for row in store.systems(opened.database) if row.name == reference]
        if not rows or any(row.name == reference for row in store.latest(opened.database)):
            return None
        network = rows[-1].network_digest
        return System.from_json(rows[-1].spec_json, None if network is None else opened.artifacts.get(network))


def find_registered(home: Home, reference: str) -> ContingencyRecord:
    """The row of a registered contingency; a shipped one is registered on the way.

    Shipped contingencies are known to be valid, so that distilling or training one needs no
    separate step.
    """
    try:
        return store.find(home.database, reference)
    except NotFoundError:
        if reference not in shipped_contingencies():
            raise
        return home.register([load_contingency(reference)])[0].row


def find_checkpoint(home: Home, row: ContingencyRecord, source: str) -> CheckpointRecord:
    """The checkpoint called `source`: its number, or `latest`."""
    if source == "latest":
        return runs.default_checkpoint(home.database, row.id)
    if not (source.isascii() and source.isdigit() and len(source) < 10):
        raise UsageError(f"source {source[:60]!r} is not known; use reference, latest, or the number of a checkpoint.")
    checkpoint = runs.get_checkpoint(home.database, int(source))
    if all(member.contingency_id != row.id for member in checkpoint.members):
        raise NotFoundError(
            f"checkpoint {checkpoint.id} has no expert for {row.name!r} version {row.version}; "
            f"'cct-zoo checkpoints {row.name}' lists those that have."
        )
    return checkpoint


def expert_of(checkpoint: CheckpointRecord, row: ContingencyRecord) -> int:
    """Which expert of a checkpoint answers for a contingency it serves."""
    return next(member.expert for member in checkpoint.members if member.contingency_id == row.id)

"""Finding the contingency that a user names: registered, shipped, or in a file."""

import os
from pathlib import Path

from contingencies.errors import NotFoundError
from contingencies.library import SPEC_SUFFIXES, Contingency, load_contingency
from registry.home import DEFAULT_HOME, Home
from registry.schema import ContingencyRow
from registry.store import contingencies as store
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


def find_registered(home: Home, reference: str) -> ContingencyRow:
    """The row of a registered contingency; a shipped one is registered on the way.

    Shipped contingencies are known to be valid, so that distilling or training one needs no
    separate step.
    """
    try:
        return store.find(home.database, reference)
    except NotFoundError:
        from contingencies.library import shipped_contingencies

        if reference not in shipped_contingencies():
            raise
        return home.register([load_contingency(reference)])[0].row

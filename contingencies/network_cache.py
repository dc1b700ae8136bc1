"""Solved networks kept on disk, because importing pandapower costs more than everything that follows.

A file holds the arrays of one `Network`, named by the system's identity, pandapower's version and
this format's; anything wrong with it means that the network is solved again. `CCT_ZOO_CACHE` names another
folder, or `off`.
"""

import contextlib
import os
from dataclasses import fields
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from contingencies.files import written_whole
from contingencies.library import System
from contingencies.network import Branches, Network
from contingencies.spec import sha256

FORMAT = 5  # raise it when Network or its meaning changes


def cache_folder() -> Path | None:
    """Where solved networks are kept, or None when they are not."""
    chosen = os.environ.get("CCT_ZOO_CACHE")
    if chosen == "off":
        return None
    if chosen:
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "cct-zoo"


def _file(system: System) -> Path | None:
    folder = cache_folder()
    key = sha256(f"{FORMAT}/{version('pandapower')}/{system.sha256}")
    return None if folder is None else folder / f"network-{key[:32]}.npz"


def load_network(system: System) -> Network | None:
    """The kept network of a system, or None."""
    path = _file(system)
    if path is None:
        return None
    try:
        with np.load(path, allow_pickle=False) as arrays:
            return _from_arrays({key: arrays[key] for key in arrays.files})
    except Exception:  # missing, truncated, of another format: solving again is always right
        return None


def keep_network(system: System, network: Network) -> None:
    """Keep a solved network; a folder that cannot be written is no reason to fail."""
    path = _file(system)
    if path is None:
        return
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with written_whole(path) as temporary:
            np.savez(temporary, **_to_arrays(network))


def _to_arrays(network: Network) -> dict[str, Any]:
    arrays: dict[str, Any] = {
        field.name: getattr(network, field.name)
        for field in fields(Network)
        if field.name not in ("position", "branches")
    }
    arrays |= {f"branches.{field.name}": getattr(network.branches, field.name) for field in fields(Branches)}
    arrays["position"] = np.array(list(network.position.items()), dtype=np.int64)
    return arrays


def _from_arrays(arrays: dict[str, Any]) -> Network:
    branches = Branches(**{field.name: arrays.pop(f"branches.{field.name}") for field in fields(Branches)})
    position = {int(number): int(place) for number, place in arrays.pop("position")}
    scalars: dict[str, Any] = {"name": str(arrays.pop("name"))}
    scalars |= {key: float(arrays.pop(key)) for key in ("base_mva", "omega_b")}
    return Network(branches=branches, position=position, **scalars, **arrays)

"""What a head can be distilled from: the reference ODE, or the boundary of a trained surrogate."""

import importlib
from collections.abc import Callable

from contingencies.errors import NotFoundError, UsageError
from contingencies.library import Contingency
from espinn_moe.head_fit import BoundaryOf
from registry.home import Home
from registry.schema import CheckpointRow, ContingencyRow
from registry.store import runs

# Kind of checkpoint -> "module:function"; the function takes (content, contingency, expert),
# that is bytes, Contingency and int, and returns a BoundaryOf.
LOADERS: dict[str, str] = {"surrogate": "zoo.checkpoints:boundary_source"}


def reference_source(contingency: Contingency) -> BoundaryOf:
    """The boundary of the fast reference ODE, which agrees with the strict one within 1e-5 s."""
    from contingencies.operators import compile_contingency
    from contingencies.stability import reference_boundary

    operators = compile_contingency(contingency)
    return lambda alpha: reference_boundary(operators, alpha, "fast")


def find_checkpoint(home: Home, row: ContingencyRow, source: str) -> CheckpointRow:
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


def checkpoint_source(home: Home, row: ContingencyRow, checkpoint: CheckpointRow) -> BoundaryOf:
    """The boundary of a stored surrogate for one of its contingencies."""
    loader = LOADERS.get(checkpoint.kind)
    if loader is None:
        raise UsageError(
            f"checkpoint {checkpoint.id} is of the kind {checkpoint.kind!r}, which this cct-zoo cannot load."
        )
    module, _, function = loader.partition(":")
    load: Callable[[bytes, Contingency, int], BoundaryOf] = getattr(importlib.import_module(module), function)
    return load(home.load_checkpoint(checkpoint), home.contingency(row), expert_of(checkpoint, row))


def expert_of(checkpoint: CheckpointRow, row: ContingencyRow) -> int:
    """Which expert of a checkpoint answers for a contingency it serves."""
    return next(member.expert for member in checkpoint.members if member.contingency_id == row.id)


def certificate_prefix(expert: int) -> str:
    """How the certificates of an expert are named among a checkpoint's metrics."""
    return f"expert_{expert}_"

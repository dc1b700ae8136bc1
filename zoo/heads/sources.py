"""What a head can be distilled from: the reference ODE, or the boundary of a trained surrogate."""

from contingencies.errors import IntegrityError, UsageError
from contingencies.library import Contingency
from espinn_moe.head_fit import BoundaryOf
from registry.home import Home
from registry.records import CheckpointRecord, ContingencyRecord
from zoo.lookup import expert_of


def reference_source(contingency: Contingency) -> BoundaryOf:
    """The boundary of the fast reference ODE, which agrees with the strict one within 1e-5 s."""
    from contingencies.operators import compile_contingency
    from contingencies.references import reference_boundary

    operators = compile_contingency(contingency)
    return lambda alpha: reference_boundary(operators, alpha, "fast")


def checkpoint_source(home: Home, row: ContingencyRecord, checkpoint: CheckpointRecord) -> BoundaryOf:
    """The learned boundary of a stored surrogate: its hard CCTs, by which heads are judged."""
    from espinn_moe.boundary import learned_boundary
    from espinn_moe.margins import HARD
    from zoo.surrogates import checkpoints

    if checkpoint.kind != checkpoints.KIND:
        raise UsageError(
            f"checkpoint {checkpoint.id} is of the kind {checkpoint.kind!r}, which this cct-zoo cannot load."
        )
    loaded, expert = (
        checkpoints.from_bytes(home.load_checkpoint(checkpoint), home.contingency(row)),
        expert_of(checkpoint, row),
    )
    if loaded.member != expert:
        raise IntegrityError(f"the checkpoint holds {row.name!r} as member {loaded.member}, not {expert}.")
    return lambda alpha: learned_boundary(loaded.surrogate, alpha, loaded.member, HARD)

"""What a head can be distilled from: the reference ODE, or the boundary of a trained surrogate."""

from dataclasses import dataclass, replace

import numpy as np

from contingencies.errors import IntegrityError, UsageError
from contingencies.library import Contingency
from contingencies.network import Float
from contingencies.operators import PhaseOperators, compile_members
from contingencies.references import reference_boundary, reference_margin, reference_near
from contingencies.search import Vicinity
from contingencies.stability import CANDIDATE_SPACING_S, Boundary
from espinn_moe.boundary import learned_margins, learned_near
from espinn_moe.chained import Chained
from espinn_moe.head_samples import BoundaryOf, Closer
from espinn_moe.surrogate import Surrogate
from registry.home import Home
from registry.records import CheckpointRecord, ContingencyRecord
from zoo.lookup import expert_of
from zoo.surrogates import checkpoints

SPACING_S = (
    2 * CANDIDATE_SPACING_S
)  # of a surrogate's clearing instants; the gate compares with the reference's own search
REFERENCE_SECTIONS, SURROGATE_SECTIONS = 1, 48  # margins of a round: one by one, or hardly dearer than one
_last_loaded: dict[str, checkpoints.Loaded] = {}  # by digest, one at most: members of a family follow one another


@dataclass(frozen=True, eq=False)
class Source:
    """A boundary over severities (m,), and the operators that it belongs to."""

    boundary: BoundaryOf
    operators: PhaseOperators
    surrogate: Chained | None = None  # of a contingency with conditions; None: the reference itself
    member: int = 0
    closer: Closer | None = None
    is_reference: bool = False


def reference_source(contingency: Contingency) -> Source:
    """The boundary of the fast reference ODE, which agrees with the strict one within 1e-5 s."""
    operators = compile_members([contingency])[0]
    return Source(
        lambda alpha: reference_boundary(operators, alpha, "fast"),
        operators,
        closer=reference_closer(operators),
        is_reference=True,
    )


def reference_closer(operators: PhaseOperators) -> Closer:
    """How the fast reference ODE answers near a known crossing."""
    first, last = operators.window.t_c
    return Closer(
        lambda alpha, near: reference_near(operators, alpha, near),
        lambda alpha: np.array([reference_margin(operators, float(value), last) for value in alpha]),
        (first, last),
        sections=REFERENCE_SECTIONS,
    )


def surrogate_source(surrogate: Surrogate, member: int = 0) -> Source:
    """The learned boundary of a surrogate: its hard CCTs, looked for on a clearing grid."""
    operators = surrogate.members[member]
    closer = Closer(
        lambda alpha, near: learned_near(surrogate, alpha, near, member),
        lambda alpha: learned_margins(surrogate, alpha, operators.window.t_c[1], member),
        operators.window.t_c,
        sections=SURROGATE_SECTIONS,
    )
    first, last = operators.window.t_c

    def boundary(alpha: Float) -> Boundary:
        everywhere = Vicinity(np.full(len(alpha), first), np.full(len(alpha), last), SPACING_S)
        return learned_near(surrogate, alpha, everywhere, member)

    known = surrogate if isinstance(surrogate, Chained) else None
    return Source(boundary, operators, known, member, closer)


def checkpoint_source(home: Home, row: ContingencyRecord, checkpoint: CheckpointRecord) -> Source:
    """The learned boundary of a stored surrogate, with the operators that it holds."""
    if checkpoint.kind != checkpoints.KIND:
        raise UsageError(
            f"checkpoint {checkpoint.id} is of the kind {checkpoint.kind!r}, which this cct-zoo cannot load."
        )
    loaded, expert = _load(home, row, checkpoint), expert_of(checkpoint, row)
    if loaded.member != expert:
        raise IntegrityError(f"the checkpoint holds {row.name!r} as member {loaded.member}, not {expert}.")
    return surrogate_source(loaded.surrogate, loaded.member)


def _load(home: Home, row: ContingencyRecord, checkpoint: CheckpointRecord) -> checkpoints.Loaded:
    """The surrogate of a checkpoint; read and compiled once for all members that follow one another."""
    contingency = home.contingency(row)
    loaded = _last_loaded.get(checkpoint.digest)
    if loaded is None:
        loaded = checkpoints.from_bytes(home.load_checkpoint(checkpoint), contingency)
        _last_loaded.clear()
        _last_loaded[checkpoint.digest] = loaded
    return replace(loaded, member=checkpoints.member_of(loaded.metadata, contingency))

"""Which members of a family have the same network after clearing, so that one expert may serve them."""

from collections.abc import Sequence

import numpy as np

from contingencies.operators import PhaseOperators


def same_topology(members: Sequence[PhaseOperators]) -> tuple[int, ...]:
    """For each member, which of the distinct post-clearing operators is its own, in order of appearance."""
    seen: list[PhaseOperators] = []
    index = []
    for operators in members:
        for place, other in enumerate(seen):
            if (
                set(operators.removed_branches) == set(other.removed_branches)
                and np.array_equal(operators.P_m_post, other.P_m_post)
            ):  # fmt: skip
                index.append(place)
                break
        else:
            index.append(len(seen))
            seen.append(operators)
    return tuple(index)

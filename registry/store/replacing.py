"""What a head is compared with when it is to be deployed: the head that answers already.

A head may pass the gate and still be worse than the one in place. Then it takes a decision, which is recorded, not an
oversight. Heads of different versions of a contingency are not compared: they answer different questions.
"""

from contingencies.tables import counted
from registry.records import HeadRecord

FEW_STRICT = 6  # severities; a head measured at fewer says so in its answers
LOOSER = 1.1  # times the bound in place: bounds of equal heads differ by a few per cent with the severities drawn
LEAST_S = 1e-6  # s, below the tolerance of the roots that a bound is measured with


def drawbacks(head: HeadRecord, in_place: HeadRecord) -> list[str]:
    """In what a head is worse than the one that it would replace; empty when in nothing."""
    if head.contingency_id != in_place.contingency_id:
        return []
    found = []
    before, after = in_place.error_bound_s, head.error_bound_s
    if before is not None and after is None:
        found.append(f"it promises no bound, and head {in_place.id} promises {_within(before)}")
    elif before is not None and after is not None and after > LOOSER * before + LEAST_S:
        found.append(f"its bound is worse: {_within(after)} instead of {_within(before)}")
    if head.strict_count < in_place.strict_count:
        measured = counted(head.strict_count, "strict severity", "strict severities")
        found.append(f"it was measured at {measured} instead of {in_place.strict_count}")
    if head.source != "reference" and in_place.source == "reference":
        found.append(f"it follows checkpoint {head.checkpoint_id} instead of the reference itself")
    return found


def _within(bound_s: float) -> str:
    return f"95 % within +- {1e3 * bound_s:.3g} ms"

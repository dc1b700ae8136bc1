"""Whom the entries train and measure: shipped contingencies, and the line faults of one larger system."""

from functools import lru_cache

from contingencies.families import generate_family
from contingencies.library import Contingency, load_contingency, load_system, shipped_contingencies
from contingencies.operators import PhaseOperators, compile_contingency
from contingencies.recipes import Recipe

FAMILY_SYSTEM = "ieee39"


@lru_cache(maxsize=1)
def line_family() -> dict[str, Contingency]:
    """All line faults of the 39-bus system cleared by opening the line, by name."""
    members = generate_family(load_system(FAMILY_SYSTEM), Recipe("line", "remove-line", impedance=None)).members
    return {member.name: member for member in members}


@lru_cache(maxsize=128)
def contingency_of(name: str) -> Contingency:
    """A shipped contingency, or a member of the line family."""
    return load_contingency(name) if name in shipped_contingencies() else line_family()[name]


def operators_of(name: str) -> PhaseOperators:
    """The compiled operators of a contingency of the benchmarks."""
    return compile_contingency(contingency_of(name))

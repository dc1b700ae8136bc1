"""Where a process can be stopped: between any two steps that change something on disk.

Nothing happens here unless a test sets `on_step`; it is then called with the name of each step before it is done, and
may kill the process there. What must hold after a kill at every step is promised in docs/reliability.md.
"""

from collections.abc import Callable

on_step: Callable[[str], None] | None = None


def step(name: str) -> None:
    """Announce the next step."""
    if on_step is not None:
        on_step(name)

"""The registry that a function of the façade works on: the one given, or that of the default home."""

from collections.abc import Iterator
from contextlib import contextmanager

from registry.query import Registry


@contextmanager
def opened(registry: Registry | None, create: bool = False) -> Iterator[Registry]:
    """The registry given, left open; or that of the default home, closed afterwards."""
    if registry is not None:
        yield registry
        return
    with Registry.open(create=create) as own:
        yield own

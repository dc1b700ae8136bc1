"""Services for the tests, open and guarded."""

from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

from tests.registry.makers import Zoo
from tests.registry.service.serving import World, in_process, world


@pytest.fixture
def opened(sqlite_zoo: Zoo) -> Iterator[tuple[World, TestClient]]:
    """A service without tokens: open to this machine, read only."""
    made = world(sqlite_zoo)
    with in_process(made) as client:
        yield made, client


@pytest.fixture
def guarded(sqlite_zoo: Zoo) -> Iterator[tuple[World, TestClient]]:
    """A service with tokens of every kind."""
    made = world(sqlite_zoo).guard()
    with in_process(made) as client:
        yield made, client

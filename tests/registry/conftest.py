"""Both backends for every test that asks for `zoo`: SQLite, and a real PostgreSQL server."""

import uuid
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.postgres import postgres_server
from tests.registry.makers import Zoo


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    with postgres_server() as url:
        yield url


@pytest.fixture
def postgres_database(postgres_url: str) -> str:
    """URL of an empty registry: a schema of its own, which costs far less than a database."""
    name = f"zoo_{uuid.uuid4().hex}"
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name}")
    return f"{postgres_url}&options=-csearch_path%3D{name}"


@pytest.fixture(params=["sqlite", "postgresql"])
def zoo(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Zoo]:
    """A fresh zoo home on each backend."""
    url = request.getfixturevalue("postgres_database") if request.param == "postgresql" else None
    made = Zoo(tmp_path / "home", url)
    yield made
    for home in made.opened:
        home.close()


@pytest.fixture
def sqlite_zoo(tmp_path: Path) -> Iterator[Zoo]:
    """A fresh zoo home on SQLite, for what does not depend on the backend."""
    made = Zoo(tmp_path / "home", None)
    yield made
    for home in made.opened:
        home.close()

"""Schema and backends: created on first use, upgraded with data, refused when newer, secrets kept."""

import sqlite3
import stat
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import text

from contingencies.errors import ConflictError, IntegrityError, UsageError, ZooError
from registry.artifacts import Artifacts
from registry.engine import open_database
from registry.home import Home
from registry.query import Registry
from registry.schema import SCHEMA_VERSION, SCHEMA_VERSIONS, Base, SystemRow
from registry.store import benchmarks, deployments, events, runs
from registry.store import contingencies as store
from registry.upkeep import verify
from registry.urls import safe_url
from tests.registry.makers import Zoo, contingency

SCHEMAS = Path(__file__).parents[1] / "fixtures" / "schemas"


def test_the_migrations_build_exactly_the_tables_of_the_schema(zoo: Zoo) -> None:
    home = zoo.again()
    with home.database.engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, Base.metadata) == []


def test_every_shipped_migration_is_a_known_version_in_order() -> None:
    config = Config()
    config.set_main_option("script_location", "registry:migrations")
    scripts = ScriptDirectory.from_config(config)
    assert tuple(s.revision for s in reversed(list(scripts.walk_revisions()))) == SCHEMA_VERSIONS


def stored_registry(zoo: Zoo, version: str) -> None:
    """Put a registry in place as that version's release left it (tests/fixtures/schemas/make.py)."""
    zoo.path.mkdir()
    Artifacts(zoo.path).put((SCHEMAS / "head.json").read_bytes())
    if zoo.url is None:
        with sqlite3.connect(zoo.path / "registry.db") as connection:
            connection.executescript((SCHEMAS / f"{version}.sqlite.sql").read_text())
    else:
        with psycopg.connect(zoo.url) as connection:
            connection.execute((SCHEMAS / f"{version}.postgresql.sql").read_text())


@pytest.mark.parametrize("version", SCHEMA_VERSIONS)
def test_a_registry_of_every_past_schema_is_upgraded_in_place_with_its_data(zoo: Zoo, version: str) -> None:
    stored_registry(zoo, version)
    home = zoo.again()
    deployed = deployments.active(home.database, "fault-a")
    assert deployed.reason == "before the upgrade"
    assert home.load_head(deployed.head).answer(0.9)[0] == 0.7
    assert [e.action for e in events.events_of(home.database, "fault-a")] == ["register", "distill", "deploy"]
    checkpoint = runs.get_checkpoint(home.database, 1)
    assert checkpoint.parent_id is None and checkpoint.run is not None and checkpoint.run.config == {"steps": 5}
    numbers = benchmarks.numbers_of(home.database, "runtime")
    assert [number.value for number in numbers] == ([1.5] if version >= "0003" else [])
    assert verify(home).problems == []
    child = home.add_checkpoint(b"more", 10, "kind", {1: 0}, parent_id=checkpoint.id)
    assert runs.get_checkpoint(home.database, child.id).parent_id == checkpoint.id
    for change in ("DELETE FROM events", "UPDATE events SET reason = 'x'"):
        with pytest.raises(Exception, match="append-only"), home.database.engine.begin() as connection:
            connection.execute(text(change))
    with home.database.engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), Base.metadata) == []
    with Registry.open(zoo.path, zoo.url) as asked:
        assert asked.cct("fault-a", 0.9)[:2] == (0.7, pytest.approx(0.5))


def test_a_newer_schema_is_refused_with_a_sentence_and_left_alone(zoo: Zoo) -> None:
    home, *_ = zoo.with_head()
    with home.database.engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '0099'"))
    with pytest.raises(ConflictError, match=f"newer than the '{SCHEMA_VERSION}' of this cct-zoo; update"):
        zoo.again()
    with pytest.raises(ConflictError):
        Registry.open(zoo.path, zoo.url)
    with home.database.engine.connect() as connection:
        assert connection.execute(text("SELECT version_num FROM alembic_version")).scalar() == "0099"


OPEN = "import sys; from registry.home import Home; Home.open(sys.argv[1], sys.argv[2] or None).close()"


def test_eight_processes_may_open_a_fresh_registry_at_once(zoo: Zoo) -> None:
    command = [sys.executable, "-c", OPEN, str(zoo.path), zoo.url or ""]
    children = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(8)]
    errors = [child.communicate(timeout=120)[1] for child in children]
    assert [child.returncode for child in children] == [0] * 8, errors
    assert zoo.again().register([contingency()])[0].created


def test_a_file_that_is_no_database_is_reported_as_damaged(tmp_path) -> None:
    (tmp_path / "registry.db").write_bytes(b"This is a shopping list." * 100)
    with pytest.raises(IntegrityError, match="damaged"):
        Home.open(tmp_path)


@pytest.mark.parametrize("content", [b"", "no tables", "other tables"])
def test_a_file_without_a_registry_is_never_taken_for_a_new_one(tmp_path, content) -> None:
    path = tmp_path / "registry.db"
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        with sqlite3.connect(path) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            if content == "other tables":
                connection.execute("CREATE TABLE groceries (name TEXT)")
    for create in (True, False):
        with pytest.raises(IntegrityError, match="no registry") as raised:
            Home.open(tmp_path, create=create)
        assert raised.value.exit_code == 7


def test_only_the_owner_may_look_into_a_new_home_and_its_database(tmp_path) -> None:
    with Home.open(tmp_path / "home") as home:
        home.register([contingency()])
        for path in (tmp_path / "home").glob("registry.db*"):
            assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
    assert stat.S_IMODE((tmp_path / "home").stat().st_mode) == 0o700


def test_a_home_that_cannot_be_made_is_a_sentence(tmp_path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot be made"):
        Home.open(tmp_path / "file" / "home")


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://engineer:s3cr3t@127.0.0.1:9/zoo",
        "postgresql://127.0.0.1:9/zoo?user=engineer&password=s3cr3t",
        "postgres://engineer:s3cr3t@no-such-host.invalid/zoo",
    ],
)
def test_a_registry_out_of_reach_is_a_sentence_without_the_password(tmp_path, url: str) -> None:
    with pytest.raises(ZooError) as raised:
        open_database(tmp_path, url)
    shown = str(raised.value) + repr(raised.value.__cause__) + repr(raised.value.__context__ and "")
    assert "s3cr3t" not in shown and "cannot be used" in shown


@pytest.mark.parametrize("url", ["mysql://u:s3cr3t@h/d", "nonsense s3cr3t", "sqlite://", "http://s3cr3t", "://"])
def test_a_url_of_an_unknown_kind_is_refused_without_being_repeated(tmp_path, url: str) -> None:
    with pytest.raises(UsageError) as raised:
        open_database(tmp_path, url)
    assert "s3cr3t" not in str(raised.value)


def test_a_sqlite_file_may_be_given_by_url(tmp_path) -> None:
    with Home.open(tmp_path, f"sqlite:///{tmp_path / 'other.db'}") as home:
        home.register([contingency()])
        assert safe_url(home.database.url) == str(tmp_path / "other.db")
    assert not (tmp_path / "registry.db").exists()


def test_readers_do_not_wait_for_a_writer(zoo: Zoo) -> None:
    home, *_ = zoo.with_head()
    other = zoo.again()
    with home.database.write() as session:
        session.get_one(SystemRow, 1).name = "renamed"
        session.flush()
        assert store.find(other.database, "fault-a").system.name == "ieee30"
    assert store.find(other.database, "fault-a").system.name == "renamed"

"""Schema and backends: created on first use, upgraded with data, refused when newer, secrets kept."""

import subprocess
import sys

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import text

from contingencies.errors import ConflictError, IntegrityError, UsageError, ZooError
from registry.engine import open_database, safe_url
from registry.home import Home
from registry.query import Registry
from registry.schema import SCHEMA_VERSION, SCHEMA_VERSIONS, Base
from registry.store import contingencies as store
from registry.store import deployments, events, runs
from registry.upkeep import verify
from tests.registry.makers import Zoo, contingency


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


def downgrade_to_first(zoo: Zoo) -> None:
    """Turn a current registry into one as the first version made it, data and all."""
    home = zoo.again()
    with home.database.engine.begin() as connection:
        if zoo.url is None:
            connection.execute(text("DROP TRIGGER events_refuse_update"))
            connection.execute(text("DROP TRIGGER events_refuse_delete"))
        else:
            connection.execute(text("DROP TRIGGER events_refuse ON events"))
            connection.execute(text("DROP FUNCTION events_refuse"))
        for table in ("benchmark_numbers", "token_sessions", "tokens", "required_times"):
            connection.execute(text(f"DROP TABLE {table}"))
        connection.execute(text("ALTER TABLE checkpoints DROP COLUMN parent_id"))
        connection.execute(text("UPDATE alembic_version SET version_num = '0001'"))
    home.close()


def test_an_older_schema_is_upgraded_in_place_with_its_data(zoo: Zoo) -> None:
    home, row, made = zoo.with_head()
    checkpoint = home.add_checkpoint(b"weights", 10, "kind", {row.id: 0})
    home.deploy("fault-a", reason="before the upgrade")
    home.close()
    downgrade_to_first(zoo)
    after = zoo.again()
    assert deployments.active(after.database, "fault-a").reason == "before the upgrade"
    assert after.load_head(deployments.active(after.database, "fault-a").head).answer(0.9)[0] == 0.7
    assert runs.get_checkpoint(after.database, checkpoint.id).parent_id is None
    assert [e.action for e in events.events_of(after.database, "fault-a")] == ["register", "distill", "deploy"]
    child = after.add_checkpoint(b"more", 10, "kind", {row.id: 0}, parent_id=checkpoint.id)
    assert runs.get_checkpoint(after.database, child.id).parent_id == checkpoint.id
    with pytest.raises(Exception, match="append-only"), after.database.engine.begin() as connection:
        connection.execute(text("DELETE FROM events"))
    assert verify(after).problems == []
    with after.database.engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), Base.metadata) == []
    assert made.id == deployments.active(after.database, "fault-a").head_id


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
        session.execute(text("UPDATE systems SET name = 'renamed'"))
        assert store.find(other.database, "fault-a").system.name == "ieee30"
    assert store.find(other.database, "fault-a").system.name == "renamed"

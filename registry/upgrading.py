"""Schema versions: a fresh registry appears whole, an older one is upgraded, a newer or foreign one is refused."""

import contextlib
import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection, inspect
from sqlalchemy.engine import URL

from contingencies.errors import ConflictError, IntegrityError, UsageError
from registry.schema import SCHEMA_VERSION, SCHEMA_VERSIONS
from registry.steps import step

if TYPE_CHECKING:
    from registry.engine import Database


def make_home(path: Path) -> None:
    """Make a folder that only its owner may look into; one that exists is left as it is."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"the home {str(path)!r} cannot be made ({error.strerror}); name another.") from None


def create_sqlite(path: Path, database: "type[Database]") -> None:
    """Make a SQLite registry beside its place and move it there complete; when another process was first, keep its."""
    make_home(path.parent)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
    try:
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        made = database(URL.create("sqlite", database=str(temporary)))
        with made.translated_errors(), made.engine.execution_options(cct_zoo_write=True).begin() as connection:
            upgrade(connection)
        made.close()
        step("place the registry")
        with contextlib.suppress(FileExistsError):
            os.link(temporary, path)
    except OSError as error:
        raise UsageError(f"the registry {str(path)!r} cannot be made ({error.strerror}); name another home.") from None
    finally:
        for suffix in ("", "-wal", "-shm", "-counter"):
            Path(f"{temporary}{suffix}").unlink(missing_ok=True)


def version(connection: Connection) -> str | None:
    """The schema version of a registry; None when there are no tables at all."""
    tables = inspect(connection).get_table_names()
    if "alembic_version" in tables:
        return connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar()
    if tables:
        raise IntegrityError(
            f"the database holds other tables ({tables[0][:40]}) and no registry; name another, or restore a copy."
        )
    return None


def refuse_newer(found: str | None) -> None:
    """Raise for a schema that this version does not know."""
    if found is not None and found not in SCHEMA_VERSIONS:
        raise ConflictError(
            f"the registry has schema version {found[:20]!r}, newer than the {SCHEMA_VERSION!r} of this cct-zoo; "
            "update cct-zoo."
        )


def upgrade(connection: Connection) -> None:
    """Run the migrations that are missing, inside the transaction of the connection."""
    from alembic import command  # costs 0.3 s, and only a new or old database needs it
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", "registry:migrations")
    config.attributes["connection"] = connection
    command.upgrade(config, "head")

"""Opening the registry's database: SQLite in the home folder, or PostgreSQL by URL.

Both behave alike: one writer at a time (BEGIN IMMEDIATE; an advisory lock), readers never
wait, and a transaction is all or nothing. An older schema is upgraded on opening, under the
same lock; a newer one is refused. Passwords never reach an error text.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, text
from sqlalchemy import exc as sa
from sqlalchemy.engine import URL, make_url
from sqlalchemy.orm import Session

from contingencies.errors import ConflictError, IntegrityError, NotFoundError, UsageError, ZooError
from registry.schema import SCHEMA_VERSION, SCHEMA_VERSIONS

SQLITE_FILE = "registry.db"
BUSY_TIMEOUT_MS = 60_000  # how long a writer waits for the others
CONNECT_TIMEOUT_S = 5
ADVISORY_LOCK = 0x43435A4F  # one number per application, agreed by all its processes
CHANNEL = "cct_zoo"  # PostgreSQL notifies listeners here when a deployment changes


class Database:
    """Transactions on one database; safe to share between threads, not across a fork."""

    def __init__(self, url: URL) -> None:
        self.url = url
        self.is_sqlite = url.get_backend_name() == "sqlite"
        self.engine = _sqlite_engine(url) if self.is_sqlite else _postgres_engine(url)

    @contextmanager
    def read(self) -> Iterator[Session]:
        """A consistent view; nothing in it is written."""
        with self._translated(), Session(self.engine, expire_on_commit=False) as session:
            yield session

    @contextmanager
    def write(self) -> Iterator[Session]:
        """A transaction that no other writer can come between; committed unless an error is raised."""
        engine = self.engine.execution_options(cct_zoo_write=True)
        with self._translated(), Session(engine, expire_on_commit=False) as session, session.begin():
            yield session

    def notify(self, session: Session, payload: str) -> None:
        """Tell long-lived readers on PostgreSQL; SQLite's readers see the change counter."""
        if not self.is_sqlite:
            session.execute(text("SELECT pg_notify(:channel, :payload)"), {"channel": CHANNEL, "payload": payload})

    def close(self) -> None:
        self.engine.dispose()

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except sa.SQLAlchemyError as error:
            raise translated(error, self.url) from None

    def ensure_schema(self) -> None:
        """Bring the schema to this version's, or refuse."""
        with self._translated():
            with self.engine.connect() as connection:
                found = _version(connection)
            if found == SCHEMA_VERSION:
                return
            _refuse_newer(found)
            with self.engine.execution_options(cct_zoo_write=True).begin() as connection:
                found = _version(connection)  # another process may have been first
                _refuse_newer(found)
                if found != SCHEMA_VERSION:
                    _upgrade(connection)


def open_database(home: Path, url: str | None, create: bool = True) -> Database:
    """The registry of a home folder, or the one at `url`, with its schema up to date.

    Parameters
    ----------
    home : Path
        The zoo home; holds the SQLite file unless `url` is given.
    url : str, optional
        `postgresql://...` or `sqlite:///...`.
    create : bool
        Whether a SQLite file that does not exist is made.
    """
    parsed = _parse(url) if url else URL.create("sqlite", database=str(home / SQLITE_FILE))
    if parsed.get_backend_name() == "sqlite":
        path = Path(parsed.database or "")
        if not path.is_file():
            if not create:
                raise NotFoundError(
                    f"there is no registry at {str(path)!r}; register a contingency first, or give another --home."
                )
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise UsageError(
                    f"the home {str(path.parent)!r} cannot be made ({error.strerror}); name another."
                ) from None
    database = Database(parsed)
    database.ensure_schema()
    return database


def _parse(url: str) -> URL:
    try:
        parsed = make_url(url)
        backend = parsed.get_backend_name()
    except (sa.SQLAlchemyError, ValueError):
        raise UsageError("the registry URL cannot be read; write it like postgresql://user@host/database.") from None
    if backend in ("postgresql", "postgres"):
        return parsed.set(drivername="postgresql+psycopg")
    if backend == "sqlite" and parsed.database and parsed.database != ":memory:":
        return parsed.set(drivername="sqlite")
    raise UsageError("the registry URL names an unknown database; use postgresql://... or sqlite:///FILE.")


def safe_url(url: URL) -> str:
    """The URL without password or options, for people."""
    if url.get_backend_name() == "sqlite":
        return str(url.database)
    return URL.create("postgresql", url.username, None, url.host, url.port, url.database).render_as_string()


def translated(error: sa.SQLAlchemyError, url: URL) -> ZooError:
    """A database error as one sentence that holds no secret."""
    cause = " ".join(str(getattr(error, "orig", None) or error).split())[:200]
    secrets = [url.password, *(url.query.get(key) for key in ("password", "sslpassword", "passfile"))]
    for secret in secrets:
        if secret:
            cause = cause.replace(str(secret), "***")
    where = safe_url(url)
    if isinstance(error, sa.IntegrityError):
        return ConflictError(
            f"the registry refused a contradictory entry ({cause}); look at 'cct-zoo history' and try again."
        )
    if any(sign in cause for sign in ("not a database", "malformed", "disk image")):
        return IntegrityError(f"the registry {where} is damaged ({cause}); restore it from a copy.")
    if "locked" in cause:
        return ConflictError(f"the registry {where} is busy ({cause}); try again.")
    return ZooError(
        f"the registry {where} cannot be used ({cause}); check that it is reachable and that you may write to it."
    )


# --- backends ---------------------------------------------------------------------------------


def _sqlite_engine(url: URL) -> Engine:
    engine = create_engine(url, connect_args={"timeout": BUSY_TIMEOUT_MS / 1000})

    @event.listens_for(engine, "connect")
    def _connect(connection: Any, record: Any) -> None:
        connection.isolation_level = None  # the driver must not begin transactions by itself
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")  # what was reported as deployed survives a power cut
        connection.execute("PRAGMA foreign_keys = ON")

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        write = connection.get_execution_options().get("cct_zoo_write")
        connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")

    return engine


def _postgres_engine(url: URL) -> Engine:
    engine = create_engine(url, connect_args={"connect_timeout": CONNECT_TIMEOUT_S}, pool_pre_ping=True)

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        if connection.get_execution_options().get("cct_zoo_write"):
            connection.exec_driver_sql(f"SET LOCAL lock_timeout = {BUSY_TIMEOUT_MS}")
            connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({ADVISORY_LOCK})")

    return engine


# --- schema -----------------------------------------------------------------------------------


def _version(connection: Connection) -> str | None:
    if not connection.dialect.has_table(connection, "alembic_version"):
        return None
    return connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar()


def _refuse_newer(found: str | None) -> None:
    if found is not None and found not in SCHEMA_VERSIONS:
        raise ConflictError(
            f"the registry has schema version {found[:20]!r}, newer than the {SCHEMA_VERSION!r} of this cct-zoo; "
            "update cct-zoo."
        )


def _upgrade(connection: Connection) -> None:
    from alembic import command  # costs 0.3 s, and only a new or old database needs it
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", "registry:migrations")
    config.attributes["connection"] = connection
    command.upgrade(config, "head")

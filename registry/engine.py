"""Opening the registry's database: SQLite in the home folder, or PostgreSQL by URL.

Both behave alike: one writer at a time (BEGIN IMMEDIATE; an advisory lock), readers never
wait, and a transaction is all or nothing. An older schema is upgraded on opening, under the
same lock; a newer one is refused. Passwords never reach an error text.

No SQLite connection is carried over a fork: its locks belong to the parent alone, while the library in the child
would believe to hold them. Idle connections are closed before; when a thread is in the middle of a transaction, the
child cannot use the file and says so.
"""

import os
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from sqlalchemy import exc as sa
from sqlalchemy import text
from sqlalchemy.engine import URL
from sqlalchemy.orm import Session

from contingencies.errors import IntegrityError, NotFoundError, UsageError, ZooError
from registry.backends import WRITES, connecting, make_engine
from registry.counter import counted
from registry.schema import SCHEMA_VERSION
from registry.steps import step
from registry.upgrading import create_sqlite, refuse_newer, upgrade, version
from registry.urls import parse_url, translated

SQLITE_FILE = "registry.db"
CHANNEL = "cct_zoo"  # PostgreSQL notifies listeners here when a deployment changes

_databases: "weakref.WeakSet[Database]" = weakref.WeakSet()
_carried: set[tuple[int, int]] = set()  # SQLite files whose connections this process inherited in use


class Database:
    """Transactions on one database; safe to share between threads."""

    def __init__(self, url: URL) -> None:
        self.url = url
        self.is_sqlite = url.get_backend_name() == "sqlite"
        self._path = str(url.database)
        self._identity = file_identity(self._path) if self.is_sqlite else None
        self.engine = make_engine(url)
        _databases.add(self)

    @contextmanager
    def read(self) -> Iterator[Session]:
        """A consistent view; nothing in it is written."""
        self._check_fork()
        with self.translated_errors(), Session(self.engine, expire_on_commit=False) as session:
            yield session

    @contextmanager
    def write(self) -> Iterator[Session]:
        """A transaction that no other writer can come between; committed unless an error is raised."""
        self._check_fork()
        self.check_place()
        engine = self.engine.execution_options(**{WRITES: True})
        with self.translated_errors(), Session(engine, expire_on_commit=False) as session:
            yield session
            session.flush()
            step("commit")
            with counted(self._path) if self.is_sqlite else nullcontext():
                session.commit()
            step("return")
        self.check_place()  # what was committed to a file that nobody can open any more is lost

    def notify(self, session: Session, payload: str) -> None:
        """Tell long-lived readers on PostgreSQL; SQLite's readers see the change counter."""
        if not self.is_sqlite:
            session.execute(text("SELECT pg_notify(:channel, :payload)"), {"channel": CHANNEL, "payload": payload})

    def close(self) -> None:
        self.engine.dispose()

    @contextmanager
    def translated_errors(self) -> Iterator[None]:
        """The driver's errors as sentences."""
        try:
            yield
        except sa.SQLAlchemyError as error:
            raise translated(error, self.url) from None
        except OverflowError:
            raise UsageError("a number is too large for the registry; use at most 63 bits.") from None
        except ValueError as error:  # a time or a text that is none any more
            raise IntegrityError(
                f"a row of the registry cannot be read back ({str(error)[:80]}); restore the database from a copy."
            ) from None

    def check_place(self) -> None:
        """Raise when the SQLite file is no longer the one that was opened."""
        if self.is_sqlite and file_identity(self._path) != self._identity:
            raise IntegrityError(
                f"the registry {self._path!r} was removed or replaced while it was open; nothing more is written to "
                "it. Restore it, and start again."
            )

    def _check_fork(self) -> None:
        if _carried and self._identity in _carried:
            raise ZooError(
                f"the registry {self._path!r} was in use when this process was forked, and cannot be used here; "
                "start processes by 'spawn', or fork while no other thread asks the registry."
            )

    def ensure_schema(self) -> None:
        """Bring the schema to this version's, or refuse."""
        self._check_fork()
        with self.translated_errors():
            with self.engine.connect() as connection:
                found = version(connection)
            if found == SCHEMA_VERSION:
                return
            if found is None and self.is_sqlite:
                raise IntegrityError(
                    f"{self._path!r} is there but holds no registry; restore it from a copy, or delete it to begin "
                    "with an empty one."
                )
            refuse_newer(found)
            with self.engine.execution_options(**{WRITES: True}).begin() as connection:
                found = version(connection)  # another process may have been first
                refuse_newer(found)
                if found != SCHEMA_VERSION:
                    upgrade(connection)


def file_identity(path: str) -> tuple[int, int] | None:
    """Device and number of a file, which a copy or a new file of the same name does not have; None when it is gone."""
    try:
        info = os.stat(path)
    except OSError:
        return None
    return info.st_dev, info.st_ino


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
    parsed = parse_url(url) if url else URL.create("sqlite", database=str(home / SQLITE_FILE))
    if parsed.get_backend_name() == "sqlite":
        path = Path(parsed.database or "")
        if not path.exists():
            if not create:
                raise NotFoundError(
                    f"there is no registry at {str(path)!r}; register a contingency first, or give another --home."
                )
            create_sqlite(path, Database)
        if not path.is_file():
            raise IntegrityError(f"the registry {str(path)!r} is not a file; name another home.")
    database = Database(parsed)
    database.ensure_schema()
    return database


# --- fork -------------------------------------------------------------------------------------

_in_use: set[tuple[int, int]] = set()


def _before_fork() -> None:
    connecting.acquire()
    _in_use.clear()
    for database in list(_databases):
        if database._identity is not None and database.engine.pool.checkedout():  # type: ignore[attr-defined]
            _in_use.add(database._identity)
        database.engine.dispose()  # closes those that are idle


def _after_fork_in_parent() -> None:
    connecting.release()


def _after_fork_in_child() -> None:
    connecting.release()
    _carried.update(_in_use)
    for database in list(_databases):
        database.engine.dispose(close=False)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)

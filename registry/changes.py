"""Noticing that the registry changed, cheaply enough to ask on every query.

SQLite: a counter of our own beside the database (`registry.counter`) is read from shared memory in a tenth of a
microsecond. While a commit is on its way, or without a counter, every query looks up. No connection is kept. The
stamp changes once a second in any case, so that what another program wrote to the file is noticed too, and that the
file is no longer the one that was opened.

PostgreSQL: deployments are announced on a channel, and looking for an announcement is one
non-blocking read of a socket. A notification can be lost with its connection or behind a
pooler, so there the stamp changes once a second anyway.
"""

import threading
import time
from typing import Any, Protocol

from contingencies.errors import ZooError
from registry.backends import CONNECT_TIMEOUT_S
from registry.counter import CounterView
from registry.engine import CHANNEL, Database
from registry.urls import safe_url

RECHECK_S = 1.0


class Changes(Protocol):
    """A stamp that is another one whenever the registry may have changed."""

    def stamp(self) -> object:
        """Equal to the last one only if every row looked up since then is still current."""
        ...

    def close(self) -> None:
        """Let go of the connection."""
        ...


class SqliteChanges:
    """Changes of a SQLite file by this process or any other."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._counter = CounterView(str(database.url.database))
        self._settled = self._counter.settled
        self._recheck_at = 0.0
        self._second = 0

    def stamp(self) -> object:
        if time.monotonic() >= self._recheck_at:
            self._database.check_place()
            self._counter.refresh()
            self._recheck_at = time.monotonic() + RECHECK_S
            self._second += 1
        number = self._settled()
        return object() if number is None else (number, self._second)

    def close(self) -> None:
        self._counter.close()


class PostgresChanges:
    """Changes of a PostgreSQL registry, announced by the transaction that makes them."""

    def __init__(self, database: Database) -> None:
        self._url = database.url
        self._connection: Any = None
        self._count = 0
        self._recheck_at = 0.0
        self._lock = threading.Lock()  # a thread that looks for news would take another's answer to LISTEN

    def stamp(self) -> object:
        with self._lock:
            return self._stamp()

    def _stamp(self) -> object:
        now = time.monotonic()
        due = now >= self._recheck_at
        try:
            if self._connection is None:
                self._listen()
                due = True
            pgconn = self._connection.pgconn
            pgconn.consume_input()
            while pgconn.notifies() is not None:
                due = True
        except ZooError:
            raise
        except Exception:  # the driver's errors; the next call connects again, this one looks up
            self.close()
            due = True
        if due:
            self._recheck_at = now + RECHECK_S
            self._count += 1
        return self._count

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _listen(self) -> None:
        import psycopg

        url = self._url.set(drivername="postgresql").render_as_string(hide_password=False)
        try:
            connection = psycopg.connect(url, autocommit=True, connect_timeout=CONNECT_TIMEOUT_S)
            connection.execute(f"LISTEN {CHANNEL}")
        except psycopg.Error:
            raise ZooError(f"the registry {safe_url(self._url)} cannot be reached; check that it runs.") from None
        self._connection = connection


def changes_of(database: Database) -> Changes:
    """The way to notice changes that suits the database."""
    return SqliteChanges(database) if database.is_sqlite else PostgresChanges(database)

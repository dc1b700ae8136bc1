"""Noticing that the registry changed, cheaply enough to ask on every query.

SQLite: in WAL mode the first 48 bytes of the log's index hold a change counter, the log's
length, salt and checksum, and a commit has rewritten them before it returns; the format is
documented (sqlite.org/walformat.html). They are read from shared memory in a tenth of a
microsecond. `PRAGMA data_version` says the same in 3 us where the index cannot be mapped.

PostgreSQL: deployments are announced on a channel, and looking for an announcement is one
non-blocking read of a socket. A notification can be lost with its connection or behind a
pooler, so there the stamp changes once a second anyway.
"""

import mmap
import os
import sqlite3
import struct
import threading
import time
from typing import Any, Protocol

from contingencies.errors import ZooError
from registry.engine import CHANNEL, CONNECT_TIMEOUT_S, Database, safe_url

INDEX_HEADER = 48  # bytes of the first copy of the WAL index header, the one written last
INDEX_VERSION = 3007000
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
    """Changes of a SQLite file by any other connection."""

    def __init__(self, database: Database) -> None:
        self._path = str(database.url.database)
        # Threads may share the connection: the module is compiled in serialised mode.
        self._connection = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False)
        self._execute = self._connection.execute
        self._index = self._map_index()

    def stamp(self) -> object:
        if self._index is not None:
            return self._index[:INDEX_HEADER]
        return self._execute("PRAGMA data_version").fetchone()

    def close(self) -> None:
        if self._index is not None:
            self._index.close()
        self._connection.close()

    def _map_index(self) -> mmap.mmap | None:
        """The index of the write-ahead log, or None where there is none to be read.

        Having read once, our connection keeps the index file in place until it is closed.
        """
        self._execute("SELECT count(*) FROM sqlite_master").fetchone()
        if self._execute("PRAGMA journal_mode").fetchone() != ("wal",):
            return None
        try:
            with open(os.path.realpath(self._path) + "-shm", "rb") as file:
                index = mmap.mmap(file.fileno(), INDEX_HEADER, prot=mmap.PROT_READ)
        except (OSError, ValueError):
            return None
        version, initialised = struct.unpack_from("=I8xB", index)
        if (version, initialised) == (INDEX_VERSION, 1):
            return index
        index.close()
        return None


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

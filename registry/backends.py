"""The two databases as SQLAlchemy engines that behave alike: one writer at a time, durable commits."""

import threading
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import URL

from registry.steps import step

BUSY_TIMEOUT_MS = 60_000  # how long a writer waits for the others
CONNECT_TIMEOUT_S = 5
ADVISORY_LOCK = 0x43435A4F  # one number per application, agreed by all its processes
connecting = threading.Lock()  # held by a fork, and by whoever opens a SQLite connection meanwhile
WRITES = "cct_zoo_write"  # execution option of a connection whose transaction writes


def make_engine(url: URL) -> Engine:
    """The engine of either backend."""
    engine = _sqlite_engine(url) if url.get_backend_name() == "sqlite" else _postgres_engine(url)

    @event.listens_for(engine, "before_cursor_execute")
    def _statement(connection: Any, cursor: Any, statement: str, *rest: Any) -> None:
        if connection.get_execution_options().get(WRITES):
            step(f"statement {statement[:60]}")

    return engine


def _sqlite_engine(url: URL) -> Engine:
    engine = create_engine(url, connect_args={"timeout": BUSY_TIMEOUT_MS / 1000})

    @event.listens_for(engine, "do_connect")
    def _open(dialect: Any, record: Any, arguments: Any, options: Any) -> Any:
        with connecting:
            return dialect.connect(*arguments, **options)

    @event.listens_for(engine, "connect")
    def _connect(connection: Any, record: Any) -> None:
        connection.isolation_level = None  # the driver must not begin transactions by itself
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")  # what was reported as deployed survives a power cut
        connection.execute("PRAGMA foreign_keys = ON")

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        write = connection.get_execution_options().get(WRITES)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")

    return engine


def _postgres_engine(url: URL) -> Engine:
    engine = create_engine(url, connect_args={"connect_timeout": CONNECT_TIMEOUT_S}, pool_pre_ping=True)

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        if connection.get_execution_options().get(WRITES):
            connection.exec_driver_sql(f"SET LOCAL lock_timeout = {BUSY_TIMEOUT_MS}")
            connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({ADVISORY_LOCK})")

    return engine

"""Deployed heads for the service: always the active ones, and the last known ones while the registry is away.

With SQLite every question first reads the change counter, in a tenth of a microsecond. A PostgreSQL server can make
a question wait, so there a thread watches for changes and the event loop only looks at what it found.
"""

import threading
from collections.abc import Mapping

from anyio import to_thread

from contingencies.errors import NotFoundError, ZooError
from espinn_moe.condition_head import AnyHead, ConditionHead
from registry.query import Deployed, Registry

WATCH_S = 0.2  # a deployment is seen well within a second

REASONS: Mapping[str, str | None] = {
    "finite": None,
    "right-censored": "stable at every clearing instant that was studied",
    "left-censored": "unstable already at the first clearing instant that was studied",
    "out-of-domain": "the severity or a condition lies outside the head's domain",
    "uncertain": "the boundary jumps too often near this severity to give a number; ask a reference simulator",
}
NO_HEAD = "no-head"


def outside(head: AnyHead) -> str:
    """Why a head has no number outside its domain: which that is."""
    low, high = head.severity
    axes = head.axes if isinstance(head, ConditionHead) else ()
    return "outside the head's domain: " + ", ".join([f"alpha {low:g} to {high:g}", *map(str, axes)])


class Answerer:
    """The heads that answer now; call `start` and `stop` around its use."""

    def __init__(self, registry: Registry) -> None:
        self.registry = registry
        self.away = False
        self._inline = registry.home.database.is_sqlite
        self._current: dict[tuple[str, str], Deployed] = {}  # PostgreSQL: valid until the watcher empties it
        self._known: dict[tuple[str, str], Deployed] = {}  # the last of each, for when the registry is away
        self._ended = threading.Event()
        self._watcher: threading.Thread | None = None

    def start(self) -> None:
        """Begin to watch for changes."""
        if not self._inline:
            self._watcher = threading.Thread(target=self._watch, name="registry-watcher", daemon=True)
            self._watcher.start()

    def stop(self) -> None:
        """Stop watching."""
        self._ended.set()
        if self._watcher is not None:
            self._watcher.join(timeout=1.0)

    async def deployed(self, name: str, alias: str) -> Deployed:
        """The head that answers for a name; `NotFoundError` when none does."""
        key = (name, alias)
        if self._inline:
            return self._look_up(key)
        found = self._current.get(key) or (self._known.get(key) if self.away else None)
        return found if found is not None else await to_thread.run_sync(self._look_up, key)

    def deployed_now(self, name: str, alias: str) -> Deployed:
        """As `deployed`, for threads that may wait."""
        key = (name, alias)
        known = self._current.get(key) or (self._known.get(key) if self.away else None)
        return self._look_up(key) if self._inline or known is None else known

    def _look_up(self, key: tuple[str, str]) -> Deployed:
        current = self._current  # what is found now belongs to this generation only
        try:
            found = self.registry.deployed(*key)
        except NotFoundError:
            self._known.pop(key, None)
            raise
        except ZooError:
            self.away = True
            if key in self._known:
                return self._known[key]
            raise
        if self._inline:
            self.away = False
        self._known[key] = current[key] = found
        return found

    def _watch(self) -> None:
        last: object = None
        while not self._ended.wait(WATCH_S):
            try:
                stamp = self.registry.stamp()
                if self.away:  # a stamp can be had before the server answers questions again
                    self._ask_once()
                    self.away = False
                    stamp = object()
            except Exception:  # whatever the driver raises, the registry is away
                self.away = True
                continue
            if stamp != last:
                last, self._current = stamp, {}

    def _ask_once(self) -> None:
        from sqlalchemy import text

        with self.registry.home.database.read() as session:
            session.execute(text("SELECT 1"))

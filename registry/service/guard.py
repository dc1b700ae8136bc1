"""Who asks: tokens in the Authorization header, or a browser's session cookie; and how often each may ask.

A token is looked up at most once a second, so that one revoked is refused within a second. While the registry is
away those seen in the last ten minutes go on: a control room must not go dark with a database.
"""

import hashlib
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from contingencies.errors import ZooError
from registry.engine import Database
from registry.store import tokens

COOKIE = "cct_zoo_session"
RECHECK_S = 1.0
TRUST_WHILE_AWAY_S = 600.0
MAX_REMEMBERED = 10_000  # secrets and addresses; a flood of wrong ones must not fill the memory
WRONG_PER_S = 5.0  # wrong tokens per second and address


@dataclass(frozen=True)
class Caller:
    """Who makes a request, and with which rights."""

    name: str
    role: str
    token: tokens.Token | None = None

    def may(self, role: str) -> bool:
        """Whether the caller has the rights of a role."""
        return self.token.may(role) if self.token else role == "read"


ANONYMOUS = Caller("anonymous", "read")


@dataclass
class Bucket:
    """A token bucket: `rate` per second, twice as many at once."""

    rate: float
    level: float
    at: float

    def wait(self, now: float) -> float:
        """Seconds until the next request may come; 0 takes one now."""
        self.level = min(2 * self.rate, self.level + (now - self.at) * self.rate)
        self.at = now
        if self.level >= 1:
            self.level -= 1
            return 0.0
        return (1 - self.level) / self.rate


@dataclass
class _Seen:
    caller: Caller | None
    checked_at: float  # last look-up that worked
    tried_at: float


class Guard:
    """Callers by their secrets, and their rates; used by one event loop and its threads."""

    def __init__(self, database: Database, open_to_all: Callable[[], bool], rate: float) -> None:
        self._database, self._open_to_all, self._rate = database, open_to_all, rate
        self._seen: dict[bytes, _Seen] = {}
        self._buckets: dict[object, Bucket] = {}
        self._open: tuple[bool, float] = (False, -RECHECK_S)
        self._lock = threading.Lock()

    def known(self, secret: str | None, away: bool) -> Caller | None:
        """The caller, if that is known without asking the registry; else None."""
        now = time.monotonic()
        if secret is None:
            is_open, at = self._open
            return ANONYMOUS if is_open and (away or now - at < RECHECK_S) else None
        seen = self._seen.get(hashlib.sha256(secret.encode()).digest())
        if seen is None:
            return None
        fresh = now - seen.tried_at < RECHECK_S or (away and now - seen.checked_at < TRUST_WHILE_AWAY_S)
        return seen.caller if fresh else None

    def find(self, secret: str | None) -> Caller | None:
        """The caller by the registry; None when the secret opens nothing. May wait for the database."""
        now = time.monotonic()
        if secret is None:
            self._open = (self._open_to_all(), now)
            return ANONYMOUS if self._open[0] else None
        key = hashlib.sha256(secret.encode()).digest()
        before = self._seen.get(key)
        try:
            token = tokens.find(self._database, secret)
        except ZooError:
            if before is None or before.caller is None or now - before.checked_at > TRUST_WHILE_AWAY_S:
                raise
            before.tried_at = now
            return before.caller
        caller = None if token is None else Caller(f"token {token.name}", token.role, token)
        with self._lock:
            if len(self._seen) >= MAX_REMEMBERED:
                self._seen.clear()
            self._seen[key] = _Seen(caller, now, now)
        return caller

    def forget(self, secret: str) -> None:
        """Look a secret up again on its next use."""
        self._seen.pop(hashlib.sha256(secret.encode()).digest(), None)

    def wait(self, caller: Caller) -> float:
        """Seconds that a caller has to wait before asking again; 0: now."""
        return self._bucket((caller.name,), self._rate)

    def wait_after_wrong(self, address: str) -> float:
        """As `wait`, for an address that sent a wrong token."""
        return self._bucket(address, WRONG_PER_S)

    def _bucket(self, key: object, rate: float) -> float:
        if rate <= 0:
            return 0.0
        now = time.monotonic()
        bucket = self._buckets.get(key)
        if bucket is None:
            if len(self._buckets) >= MAX_REMEMBERED:
                self._buckets.clear()
            bucket = self._buckets[key] = Bucket(rate, 2 * rate, now)
        return bucket.wait(now)

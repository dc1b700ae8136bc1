"""Tokens of the service and the sessions of browsers: secrets shown once, stored as hashes.

A secret is `cct_NUMBER_RANDOM` (a session's begins with `ccts_`): the number finds the row, and only the SHA-256 of
the whole is kept, which suffices because 256 random bits cannot be guessed. Digests are compared in constant time.
"""

import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from contingencies.errors import ConflictError, NotFoundError, UsageError
from registry.engine import Database
from registry.row_digests import check_row
from registry.schema import ROLES, SessionRow, TokenRow
from registry.store.events import now, record
from registry.texts import is_name

SECRET_BYTES = 32
MAX_DAYS = 3650
SESSION = timedelta(hours=12)  # a working day; afterwards the browser signs in again
_TOKEN = re.compile(r"^cct_([1-9][0-9]{0,8})_[A-Za-z0-9_-]{43}\Z")
_SESSION = re.compile(r"^ccts_([1-9][0-9]{0,8})_[A-Za-z0-9_-]{43}\Z")


@dataclass(frozen=True)
class Token:
    """A token as it may be shown: everything but its secret."""

    id: int
    name: str
    role: str
    created_at: datetime
    expires_at: datetime
    revoked_at: datetime | None

    @property
    def state(self) -> str:
        """active, expired or revoked."""
        if self.revoked_at is not None:
            return "revoked"
        return "active" if self.expires_at > now() else "expired"

    def may(self, role: str) -> bool:
        """Whether the token has the rights of a role."""
        return ROLES.index(self.role) >= ROLES.index(role)


def create(database: Database, name: str, role: str, days: float = 90) -> tuple[Token, str]:
    """A new token and its secret, which nothing keeps: it must be written down now."""
    if not is_name(name):
        raise UsageError(
            f"token name {name[:60]!r} is not valid; use up to 100 lower-case letters, digits, '.', '_' and '-'."
        )
    if role not in ROLES:
        raise UsageError(f"role {role[:40]!r} is not known; use one of {', '.join(ROLES)}.")
    if not 0 < days <= MAX_DAYS:
        raise UsageError(f"a token cannot be valid for {days:g} days; use more than 0 and at most {MAX_DAYS}.")
    at = now()
    with database.write() as session:
        if session.scalar(select(TokenRow.id).where(TokenRow.name == name)) is not None:
            raise ConflictError(f"a token {name!r} exists already, perhaps revoked; choose another name.")
        row = TokenRow(name=name, role=role, digest="", created_at=at, expires_at=at + timedelta(days=days))
        session.add(row)
        session.flush()
        secret = _secret("cct", row.id)
        row.digest = _digest(secret)
        record(session, "create-token", name, role=role, expires_at=row.expires_at.isoformat(timespec="seconds"))
        return _token(row), secret


def revoke(database: Database, name: str) -> Token:
    """End a token for good, with its sessions."""
    with database.write() as session:
        row = session.scalar(select(TokenRow).where(TokenRow.name == name))
        if row is None:
            raise NotFoundError(f"there is no token {name[:100]!r}; 'cct-zoo token list' shows those there are.")
        if row.revoked_at is None:
            row.revoked_at = now()
            session.execute(delete(SessionRow).where(SessionRow.token_id == row.id))
            record(session, "revoke-token", name)
        return _token(row)


def tokens(database: Database) -> list[Token]:
    """All tokens, revoked and expired ones included, in order of name."""
    with database.read() as session:
        return [_token(row) for row in session.scalars(select(TokenRow).order_by(TokenRow.name))]


def exist(database: Database) -> bool:
    """Whether a token was ever made; a revoked one still says that access is guarded."""
    with database.read() as session:
        return session.scalar(select(TokenRow.id).limit(1)) is not None


def find(database: Database, secret: str) -> Token | None:
    """The active token of a secret, or of a session's secret; None for anything else."""
    with database.read() as session:
        if match := _TOKEN.match(secret):
            row = session.get(TokenRow, int(match[1]))
            known = row.digest if row else ""
        elif match := _SESSION.match(secret):
            browser = session.get(SessionRow, int(match[1]))
            row = browser.token if browser and browser.expires_at > now() else None
            known = browser.digest if browser else ""
        else:
            return None
    if not hmac.compare_digest(_digest(secret), known) or row is None:
        return None
    check_row(row)  # a role that was raised by hand must not count
    token = _token(row)
    return token if token.state == "active" else None


def begin_session(database: Database, token: Token) -> tuple[str, datetime]:
    """Sign a browser in: the secret of its cookie, and when it ends."""
    expires = min(now() + SESSION, token.expires_at)
    with database.write() as session:
        _forget_ended(session)
        row = SessionRow(token_id=token.id, digest="", expires_at=expires)
        session.add(row)
        session.flush()
        secret = _secret("ccts", row.id)
        row.digest = _digest(secret)
        record(session, "sign-in", token.name)
    return secret, expires


def end_session(database: Database, secret: str) -> None:
    """Sign a browser out; a secret that is no session's is ignored."""
    match = _SESSION.match(secret)
    if match and find(database, secret) is not None:
        with database.write() as session:
            session.execute(delete(SessionRow).where(SessionRow.id == int(match[1])))


def _forget_ended(session: Session) -> None:
    session.execute(delete(SessionRow).where(SessionRow.expires_at < now()))


def _secret(kind: str, number: int) -> str:
    return f"{kind}_{number}_{secrets.token_urlsafe(SECRET_BYTES)}"


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def _token(row: TokenRow) -> Token:
    return Token(row.id, row.name, row.role, row.created_at, row.expires_at, row.revoked_at)

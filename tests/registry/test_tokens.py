"""Tokens of the service: shown once, stored as a hash, ended by time or by hand."""

from datetime import timedelta

import pytest
from sqlalchemy import text

from contingencies.errors import ConflictError, NotFoundError, UsageError
from registry.schema import SessionRow, TokenRow
from registry.store import events, tokens
from registry.store.events import now
from tests.registry.makers import Zoo


def test_a_token_is_found_by_its_secret_and_by_nothing_else(zoo: Zoo) -> None:
    database = zoo.again().database
    assert not tokens.exist(database)
    token, secret = tokens.create(database, "scada", "read")
    other, _ = tokens.create(database, "control-room", "deploy")
    assert tokens.exist(database)
    assert tokens.find(database, secret) == token
    assert token.may("read") and not token.may("deploy")
    assert other.may("read") and other.may("deploy") and not other.may("admin")
    for wrong in ("", "cct_1_", secret[:-1], secret + "A", secret[:-1] + "*", secret.replace("cct_", "ccts_"), "x"):
        assert tokens.find(database, wrong) is None
    assert tokens.find(database, secret.replace(f"cct_{token.id}_", f"cct_{other.id}_")) is None


def test_no_secret_is_stored_or_recorded(sqlite_zoo: Zoo) -> None:
    home = sqlite_zoo.again()
    token, secret = tokens.create(home.database, "scada", "read")
    cookie, _ = tokens.begin_session(home.database, token)
    assert [event.action for event in events.events_of(home.database, "scada")] == ["create-token", "sign-in"]
    with home.database.engine.connect() as connection:
        connection.execute(text("PRAGMA wal_checkpoint(TRUNCATE)"))
    stored = b"".join(path.read_bytes() for path in sqlite_zoo.path.glob("registry.db*"))
    assert b"scada" in stored
    for secret_part in (secret.split("_", 2)[2], cookie.split("_", 2)[2]):
        assert secret_part.encode() not in stored


def test_a_revoked_token_ends_with_its_sessions(zoo: Zoo) -> None:
    database = zoo.again().database
    token, secret = tokens.create(database, "scada", "read")
    cookie, ends = tokens.begin_session(database, token)
    assert tokens.find(database, cookie) == token
    assert ends <= now() + tokens.SESSION
    assert tokens.revoke(database, "scada").state == "revoked"
    assert tokens.find(database, secret) is None
    assert tokens.find(database, cookie) is None
    assert [one.state for one in tokens.tokens(database)] == ["revoked"]
    assert tokens.exist(database)  # the service stays guarded
    with pytest.raises(NotFoundError, match="no token 'nobody'"):
        tokens.revoke(database, "nobody")


def test_an_expired_token_and_an_expired_session_open_nothing(sqlite_zoo: Zoo) -> None:
    database = sqlite_zoo.again().database
    token, secret = tokens.create(database, "scada", "read", days=1)
    cookie, _ = tokens.begin_session(database, token)
    with database.write() as session:
        session.get_one(SessionRow, 1).expires_at = now() - timedelta(seconds=1)
    assert tokens.find(database, cookie) is None
    assert tokens.find(database, secret) == token
    with database.write() as session:
        session.get_one(TokenRow, 1).expires_at = now() - timedelta(seconds=1)
    assert tokens.find(database, secret) is None
    assert tokens.tokens(database)[0].state == "expired"


def test_a_browser_that_signs_out_is_out_and_others_stay_in(sqlite_zoo: Zoo) -> None:
    database = sqlite_zoo.again().database
    token, _ = tokens.create(database, "scada", "read")
    (first, _), (second, _) = tokens.begin_session(database, token), tokens.begin_session(database, token)
    tokens.end_session(database, "nonsense")
    tokens.end_session(database, first)
    assert tokens.find(database, first) is None
    assert tokens.find(database, second) == token


@pytest.mark.parametrize(
    ("name", "role", "days", "sentence"),
    [("Not A Name", "read", 90, "is not valid"), ("ok", "root", 90, "is not known"), ("ok", "read", 0, "0 days")],
)
def test_a_token_that_makes_no_sense_is_refused(sqlite_zoo: Zoo, name: str, role: str, days: float, sentence: str):
    database = sqlite_zoo.again().database
    with pytest.raises(UsageError, match=sentence):
        tokens.create(database, name, role, days)
    assert tokens.tokens(database) == []


def test_a_name_is_given_to_one_token_only(sqlite_zoo: Zoo) -> None:
    database = sqlite_zoo.again().database
    tokens.create(database, "scada", "read")
    tokens.revoke(database, "scada")
    with pytest.raises(ConflictError, match="exists already"):
        tokens.create(database, "scada", "read")

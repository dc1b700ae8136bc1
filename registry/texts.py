"""Words from outside, checked once before they are stored: reasons, aliases, names, actors.

They are only ever data: bound as SQL parameters, never part of a path. Control characters are
refused because a stored escape sequence would be acted on by whoever's terminal prints it.
"""

import getpass
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from contingencies.errors import NotFoundError, UsageError

MAX_REASON = 2000
NAME_PATTERN = r"^[a-z0-9][a-z0-9._-]{0,99}$"  # that of contingencies.spec, whose import a query need not pay
_NAME = re.compile(NAME_PATTERN)
_ALIAS = re.compile(r"^[a-z0-9][a-z0-9._-]{0,39}\Z")
_VERSION = re.compile(r"^[1-9][0-9]{0,8}\Z")
_actor: ContextVar[str | None] = ContextVar("actor", default=None)


def checked_text(value: str, what: str, limit: int = MAX_REASON) -> str:
    """The text stripped of outer blanks, or a UsageError when it cannot be kept as it is."""
    value = value.strip()
    if len(value) > limit:
        raise UsageError(f"the {what} has {len(value)} characters; use at most {limit}.")
    if any(ord(c) < 32 or 127 <= ord(c) < 160 or 0xD800 <= ord(c) < 0xE000 for c in value):
        raise UsageError(f"the {what} contains control characters; write it as one line of plain text.")
    return value


def checked_alias(alias: str) -> str:
    """The alias, or a UsageError."""
    if not _ALIAS.match(alias):
        raise UsageError(
            f"alias {alias[:60]!r} is not valid; use up to 40 lower-case letters, digits, '.', '_' and '-', "
            "such as production."
        )
    return alias


def is_name(name: str) -> bool:
    """Whether a contingency can have this name."""
    return bool(_NAME.match(name)) and not name.endswith("\n")


def split_reference(reference: str) -> tuple[str, int | None]:
    """`name` or `name@version` as (name, version); nothing else can be registered."""
    name, at, version = reference.partition("@")
    if not is_name(name) or (at and not _VERSION.match(version)):
        raise NotFoundError(
            f"{reference[:100]!r} is not the name of a contingency; 'cct-zoo contingencies' lists them."
        )
    return name, int(version) if at else None


def printable(value: str) -> str:
    """A stored text made safe for a terminal."""
    return "".join(c if c.isprintable() or c in "\n\t" else f"\\x{ord(c):02x}" for c in value)


@contextmanager
def acting_as(actor: str) -> Iterator[None]:
    """Within it, changes are recorded as made by `actor`: a service writes for the people who ask it."""
    before = _actor.set(actor)
    try:
        yield
    finally:
        _actor.reset(before)


def current_actor() -> str:
    """Who makes a change, for the event log: as `acting_as` says, else user@host of this process."""
    named = _actor.get()
    if named is not None:
        return named
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a container may run under a number without a name
        user = "unknown"
    text = f"{user}@{socket.gethostname()}"
    return "".join(c for c in text if c.isprintable())[:200]

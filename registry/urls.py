"""The registry's address: read, shown without secrets, and its database's errors put into sentences."""

from sqlalchemy import exc as sa
from sqlalchemy.engine import URL, make_url

from contingencies.errors import ConflictError, IntegrityError, UsageError, ZooError


def parse_url(url: str) -> URL:
    """The address of a PostgreSQL server or a SQLite file; anything else is refused without being repeated."""
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

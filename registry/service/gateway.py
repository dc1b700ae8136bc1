"""What every request passes through first: size, origin, caller and rate.

One plain ASGI class, because the query pays for it. A GET of the query is
answered right here. A request needs a token with the role *read*
unless its path is public; more is asked by the routes themselves.
"""

from typing import TYPE_CHECKING

from anyio import to_thread

from contingencies.errors import ZooError
from registry.service.guard import Caller
from registry.service.hot import PREFIX, Query
from registry.service.passage import SAFE, Passage
from registry.service.problems import Problem, problem_of

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

    from registry.service.state import Service

MAX_HEAD = 64_000  # bytes of address and headers: a thousand severities fit
PUBLIC = ("/healthz", "/readyz", "/login", "/favicon.ico")
PUBLIC_FOLDER = "/static/"


class Gateway:
    """The outermost application."""

    def __init__(self, app: "ASGIApp", service: "Service", query: Query) -> None:
        self.app, self.service, self.query = app, service, query

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        passage = Passage(scope, receive, send, self.service)
        try:
            passage.caller = await self._admitted(passage)
            if passage.method == "GET" and passage.path.startswith(PREFIX):
                await passage.answer(await self.query.get(scope))
                return
            scope["caller"] = passage.caller
            await self.app(scope, passage.receive, passage.send)
        except Problem as problem:
            await passage.refuse(problem)
        except ZooError as error:
            await passage.refuse(problem_of(error))
        finally:
            passage.finish()

    async def _admitted(self, passage: "Passage") -> Caller | None:
        """The caller, or a problem that says why there is no way in."""
        service, path, method = self.service, passage.path, passage.method
        if passage.head_size > MAX_HEAD:
            raise Problem(431, "too-large", f"address and headers have more than {MAX_HEAD} bytes; send fewer.")
        if passage.length > service.settings.max_body:
            limit = service.settings.max_body
            raise Problem(413, "too-large", f"the body has {passage.length} bytes; send at most {limit}.")
        if (passage.cookie or path == "/login") and method not in SAFE and not passage.same_origin:
            raise Problem(403, "forbidden", "a change from the page must come from the page itself.")
        if path in PUBLIC or path.startswith(PUBLIC_FOLDER):
            return None
        guard, secret = service.guard, passage.secret
        caller = guard.known(secret, service.answers.away)
        if caller is None:
            caller = await to_thread.run_sync(guard.find, secret)
        if caller is None:
            raise self._unknown(passage)
        wait = guard.wait(caller)
        if wait:
            raise _too_many(wait)
        return caller

    def _unknown(self, passage: "Passage") -> Problem:
        if passage.secret is not None:
            wait = self.service.guard.wait_after_wrong(passage.address)
            if wait:
                return _too_many(wait)
        what = "a token is needed" if passage.secret is None else "the token is not valid, has expired or was revoked"
        return Problem(
            401,
            "unauthenticated",
            f"{what}; 'cct-zoo token create NAME --role read' makes one, to be sent as 'Authorization: Bearer TOKEN'.",
            {"WWW-Authenticate": 'Bearer realm="cct-zoo"'},
        )


def _too_many(wait: float) -> Problem:
    return Problem(
        429, "busy", "too many requests with this token; slow down.", {"Retry-After": str(max(1, round(wait)))}
    )

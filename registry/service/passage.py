"""One request on its way: what of its head matters, its body in pieces, headers of its answer, and its end on record.

Every answer leaves with a request id and the security headers, is counted, and has a line in the access log.
"""

import asyncio
import itertools
import re
import secrets
import sys
import time
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import orjson
from starlette.responses import RedirectResponse, Response

from registry.service.guard import COOKIE, Caller
from registry.service.hot import GET_ROUTE, JSON
from registry.service.problems import Problem

if TYPE_CHECKING:
    from starlette.types import Message, Receive, Scope, Send

    from registry.service.state import Service

BODY_TIMEOUT_S = 20.0  # for each piece of a body
SAFE = ("GET", "HEAD", "OPTIONS")
AWAY_HEADER = (b"cct-zoo-registry", b"away; answers are from the heads loaded last")
_ID = re.compile(rb"^[A-Za-z0-9._-]{1,64}\Z")
_HEADERS = [
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        b"form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
]
_ANSWER_HEADERS = [
    (b"content-type", JSON.encode()),
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
]
_NOTED = frozenset(
    (b"authorization", b"cookie", b"content-length", b"x-request-id", b"sec-fetch-site", b"origin", b"host")
)
_WORKER = secrets.token_hex(5)  # begins the request ids of this process
_numbers = itertools.count()


class Passage:
    """One request on its way."""

    __slots__ = (
        "_receive",
        "_scope",
        "_send",
        "_service",
        "_started",
        "address",
        "caller",
        "cookie",
        "head_size",
        "host",
        "length",
        "method",
        "origin",
        "path",
        "received",
        "request_id",
        "secret",
        "site",
        "status",
    )  # fmt: skip

    def __init__(self, scope: "Scope", receive: "Receive", send: "Send", service: "Service") -> None:
        self._scope, self._receive, self._send, self._service = scope, receive, send, service
        self._started = time.perf_counter()
        self.method, self.path = scope["method"], scope["path"]
        self.address = scope["client"][0] if scope.get("client") else "?"
        self.caller: Caller | None = None
        self.cookie = False
        self.secret: str | None = None
        self.status, self.length, self.received = 0, 0, 0
        self.request_id = self.site = self.origin = self.host = b""
        self.head_size = len(scope["query_string"]) + len(self.path)
        for key, value in scope["headers"]:
            self.head_size += len(value)
            if key in _NOTED:
                self._note(key, value)
        if not self.request_id:
            self.request_id = f"{_WORKER}-{next(_numbers):x}".encode()

    def _note(self, key: bytes, value: bytes) -> None:
        if key == b"authorization":
            kind, _, secret = value.decode("latin-1").partition(" ")
            if kind.lower() == "bearer":
                self.secret, self.cookie = secret.strip(), False
        elif key == b"cookie" and self.secret is None:
            for part in value.decode("latin-1").split(";"):
                name, _, content = part.strip().partition("=")
                if name == COOKIE and content:
                    self.secret, self.cookie = content, True
        elif key == b"content-length" and value.isdigit():
            self.length = int(value[:18])
        elif key == b"x-request-id" and _ID.match(value):
            self.request_id = value
        elif key == b"sec-fetch-site":
            self.site = value
        elif key == b"origin":
            self.origin = value
        elif key == b"host":
            self.host = value

    @property
    def same_origin(self) -> bool:
        """Whether a browser says that the request comes from our own page."""
        if self.site:
            return self.site == b"same-origin"
        return bool(self.host) and self.origin.partition(b"://")[2] == self.host

    async def receive(self) -> "Message":
        if self.method in SAFE or self.received < 0:  # no body, or all of it is here: wait for the end
            return await self._receive()
        try:
            message = await asyncio.wait_for(self._receive(), BODY_TIMEOUT_S)
        except TimeoutError:
            raise Problem(
                408, "too-slow", f"no piece of the body came for {BODY_TIMEOUT_S:g} s.", {"Connection": "close"}
            ) from None
        self.received += len(message.get("body", b""))
        if self.received > self._service.settings.max_body:
            limit = self._service.settings.max_body
            raise Problem(413, "too-large", f"the body is too large; send at most {limit} bytes.")
        if not message.get("more_body"):
            self.received = -1
        return message

    async def answer(self, body: bytes) -> None:
        """Send the answer to a query."""
        self._scope["route_path"] = GET_ROUTE
        self.status = 200
        length = str(len(body)).encode()
        headers = [*_ANSWER_HEADERS, (b"content-length", length), (b"x-request-id", self.request_id)]
        if self._service.answers.away:
            headers.append(AWAY_HEADER)
        await self._send({"type": "http.response.start", "status": 200, "headers": headers})
        await self._send({"type": "http.response.body", "body": body})

    async def send(self, message: "Message") -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = message["headers"]
            headers += [*_HEADERS, (b"x-request-id", self.request_id)]
            if not any(key == b"cache-control" for key, _ in headers):
                headers.append((b"cache-control", b"no-store"))
            if self._service.answers.away:
                headers.append(AWAY_HEADER)
        await self._send(message)

    async def refuse(self, problem: Problem) -> None:
        """Answer with a problem; a person without a token is shown where to sign in."""
        if self.status:  # an answer has begun; the connection ends with it
            return
        response: Response = problem.response()
        if problem.status_code == 401 and self.method in SAFE and not is_machine(self.path):
            response = RedirectResponse(f"/login?next={quote(self.path)}", 303)
        elif self.method not in SAFE and self.received >= 0:
            response.headers["Connection"] = "close"  # the rest of the body is not read
        await response(self._scope, self._receive, self.send)

    def finish(self) -> None:
        """Count and log the request."""
        seconds = time.perf_counter() - self._started
        status = self.status or 499  # nobody was there to be answered
        route = getattr(self._scope.get("route"), "path", None) or self._scope.get("route_path") or "other"
        self._service.metrics.request(self.method, route, status, seconds)
        if self._service.settings.access_log:
            log(
                request=self.request_id.decode(),
                method=self.method,
                path=self.path,
                status=status,
                ms=round(1e3 * seconds, 3),
                caller=self.caller.name if self.caller else None,
                address=self.address,
            )


def is_machine(path: str) -> bool:
    """Whether a path is for programs rather than for people."""
    return path.startswith("/api/") or path in ("/metrics", "/healthz", "/readyz")


def log(**content: Any) -> None:
    """One line of the log, as JSON on standard error."""
    line = orjson.dumps({"at": round(time.time(), 3), **content}, option=orjson.OPT_APPEND_NEWLINE)
    sys.stderr.write(line.decode())

"""Errors as `application/problem+json` (RFC 9457), with the sentences that the command line prints."""

from collections.abc import Mapping
from typing import Any

import orjson
from starlette.exceptions import HTTPException
from starlette.responses import Response

from contingencies.errors import (
    ConflictError,
    GateError,
    IntegrityError,
    NotFoundError,
    SolverError,
    SpecError,
    UsageError,
    ZooError,
)
from registry.store.deployments import ReplacedError

MEDIA_TYPE = "application/problem+json"
BUSY_RETRY_S = 1
AWAY_RETRY_S = 5
_KINDS: tuple[tuple[type[ZooError], int, str], ...] = (  # the first that fits
    (ReplacedError, 412, "replaced"),
    (NotFoundError, 404, "not-found"),
    (UsageError, 422, "invalid"),
    (SpecError, 422, "invalid"),
    (SolverError, 422, "solver"),
    (GateError, 409, "gate"),
    (ConflictError, 409, "conflict"),
    (IntegrityError, 500, "integrity"),
    (ZooError, 503, "unavailable"),
)
TITLES = {
    "replaced": "Another deployment is active",
    "not-found": "Not found",
    "invalid": "Not valid",
    "solver": "The simulation failed",
    "gate": "Refused by the gate",
    "conflict": "Conflict",
    "integrity": "Stored data are damaged",
    "unavailable": "The registry cannot be used",
    "unauthenticated": "A token is needed",
    "forbidden": "The token's role does not allow this",
    "busy": "Too many requests",
    "too-large": "The request is too large",
    "too-slow": "The request took too long to arrive",
    "precondition": "If-Match is needed",
    "http": "The request cannot be answered",
    "internal": "Internal error",
}


class Problem(HTTPException):
    """What went wrong with a request: a status, a kind, and a sentence."""

    def __init__(
        self,
        status: int,
        kind: str,
        detail: str,
        headers: Mapping[str, str] | None = None,
        more: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(status, detail, dict(headers or {}))
        self.kind, self.more = kind, dict(more or {})

    def response(self) -> Response:
        """The problem as a response."""
        content = {
            "type": f"urn:cct-zoo:problem:{self.kind}",
            "title": TITLES[self.kind],
            "status": self.status_code,
            "detail": self.detail,
            **self.more,
        }
        return Response(orjson.dumps(content), self.status_code, dict(self.headers or {}), MEDIA_TYPE)


def problem_of(error: ZooError) -> Problem:
    """The problem that an error of the zoo is over HTTP."""
    status, kind = next((status, kind) for group, status, kind in _KINDS if isinstance(error, group))
    headers = {"Retry-After": str(AWAY_RETRY_S)} if status == 503 else {}
    return Problem(status, kind, " ".join(error.sentences), headers)


def invalid(detail: str, **more: Any) -> Problem:
    """A parameter or body that cannot be taken."""
    return Problem(422, "invalid", detail, more=more)

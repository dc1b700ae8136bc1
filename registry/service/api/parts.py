"""What the routes of the API share: the service, the caller's role, unknown parameters, cursors."""

import base64
import binascii
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any

from fastapi import Depends, Query, Request

from registry.service.guard import ANONYMOUS, Caller
from registry.service.points import conditions_in, is_condition
from registry.service.problems import Problem, invalid
from registry.service.state import Service
from registry.store.listing import Page
from registry.texts import acting_as

LARGEST = 2**31 - 1  # of a row's number on every backend


def service_of(request: Request) -> Service:
    """The running service."""
    service: Service = request.app.state.service
    return service


def caller_of(request: Request) -> Caller:
    """Who asks."""
    caller: Caller | None = request.scope.get("caller")
    return caller or ANONYMOUS


def needs(role: str) -> Callable[[Request], Caller]:
    """A dependency that lets only callers with the rights of a role through."""

    def check(request: Request) -> Caller:
        caller = caller_of(request)
        if not caller.may(role):
            if caller.token is None:
                raise Problem(
                    401,
                    "unauthenticated",
                    f"this needs a token with the role {role}; 'cct-zoo token create NAME --role {role}' makes one.",
                    {"WWW-Authenticate": 'Bearer realm="cct-zoo"'},
                )
            raise Problem(403, "forbidden", f"this needs the role {role}; {caller.name} has the role {caller.role}.")
        return caller

    check.role = role  # type: ignore[attr-defined]  # read by the test of the authorisation matrix
    return check


def conditions_of(request: Request) -> dict[str, float]:
    """The operating point that a request names, as `load=1.1&generation.2=35`."""
    return conditions_in(request.query_params.multi_items())


def only_known_parameters(request: Request) -> None:
    """Refuse a query parameter that the route does not have, naming those it has."""
    route = request.scope["route"]
    known = [parameter.alias for parameter in _query_parameters(route.dependant)]
    takes_conditions = any(inner.call is conditions_of for inner in route.dependant.dependencies)
    for key in request.query_params:
        if key not in known and not (takes_conditions and is_condition(key)):
            names = ", ".join([*known, *(["conditions such as load"] if takes_conditions else [])]) or "none"
            raise invalid(f"parameter {key[:60]!r} is not known; those that are known: {names}.", known=known)


def _query_parameters(dependant: Any) -> list[Any]:
    return [*dependant.query_params, *(p for inner in dependant.dependencies for p in _query_parameters(inner))]


TheService = Annotated[Service, Depends(service_of)]
At = Annotated[dict[str, float], Depends(conditions_of)]
TheCaller = Annotated[Caller, Depends(caller_of)]
Deployer = Annotated[Caller, Depends(needs("deploy"))]
Limit = Annotated[int, Query(ge=1, le=1000, description="records in a page")]
Cursor = Annotated[str | None, Query(max_length=400, description="`next` of the page before")]


@contextmanager
def in_the_name_of(caller: Caller) -> Iterator[None]:
    """Record changes as the caller's."""
    with acting_as(caller.name):
        yield


def after_number(cursor: str | None) -> int | None:
    """The number that a cursor stands for."""
    key = _decoded(cursor, "n")
    if key is None:
        return None
    if not (key.isascii() and key.isdigit() and len(key) < 11 and int(key) <= LARGEST):
        raise _no_cursor(cursor)
    return int(key)


def after_name(cursor: str | None) -> str | None:
    """The name that a cursor stands for."""
    return _decoded(cursor, "s")


def next_of(page: Page[Any]) -> str | None:
    """The cursor that continues after a page."""
    if page.next is None:
        return None
    kind = "n" if isinstance(page.next, int) else "s"
    return base64.urlsafe_b64encode(f"{kind}{page.next}".encode()).decode().rstrip("=")


def _decoded(cursor: str | None, kind: str) -> str | None:
    if cursor is None:
        return None
    try:
        text = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError):
        raise _no_cursor(cursor) from None
    if text[:1] != kind or "\x00" in text:
        raise _no_cursor(cursor)
    return text[1:]


def _no_cursor(cursor: str | None) -> Problem:
    return invalid(f"cursor {str(cursor)[:60]!r} was not given by this list; leave it out to begin again.")

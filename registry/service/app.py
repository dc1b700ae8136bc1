"""The application: the hot query in front, the API and the page behind it, the gateway around all."""

import gc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from contingencies.errors import ZooError
from registry.service.api import asking, deploying, lists, operating
from registry.service.gateway import Gateway
from registry.service.hot import GET_ROUTE, Query
from registry.service.openapi import with_query
from registry.service.pages import acting, looking, overview
from registry.service.pages.rendering import problem_page
from registry.service.passage import is_machine, log
from registry.service.problems import Problem, invalid, problem_of
from registry.service.settings import Settings
from registry.service.state import Service

if TYPE_CHECKING:
    from starlette.types import ASGIApp

STATIC = Path(__file__).parent / "static"


def create_app(settings: Settings) -> "ASGIApp":
    """The application of one worker; its registry is open until the server shuts it down."""
    service = Service.open(settings)
    inner = _api(service)
    query = Query(service)

    @asynccontextmanager
    async def lifespan(_: Any) -> AsyncIterator[None]:
        service.answers.start()
        gc.collect()
        gc.freeze()  # what is there stays: looking through it again would hold up questions for some 50 ms
        yield
        gc.unfreeze()
        service.close()

    routes = [
        Route(GET_ROUTE, query.get_response, methods=["GET"]),
        Route("/api/v1/cct", query.post, methods=["POST"]),
        Mount("/static", StaticFiles(directory=STATIC)),
        Mount("/", inner),
    ]
    outer = Starlette(routes=routes, lifespan=lifespan, exception_handlers=_HANDLERS)
    return Gateway(outer, service, query)


def from_environment() -> "ASGIApp":
    """The application of a worker process."""
    return create_app(Settings.from_environment())


def _api(service: Service) -> FastAPI:
    app = FastAPI(
        title="CCT zoo",
        version="1",
        summary="Critical clearing times of power grids",
        docs_url=None,  # they load from elsewhere
        redoc_url=None,
        openapi_url="/api/v1/openapi.json",
        exception_handlers=_HANDLERS,
    )
    app.state.service = service
    for router in (lists.router, asking.router, deploying.router, operating.router):
        app.include_router(router)
    for router in (overview.router, looking.router, acting.router):
        app.include_router(router, include_in_schema=False)
    plain = app.openapi
    app.openapi = lambda: with_query(plain())  # type: ignore[method-assign]
    return app


# --- errors -----------------------------------------------------------------------------------


async def _zoo_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, ZooError)
    return await _problem(request, problem_of(error))


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if isinstance(error, Problem):
        return await _problem(request, error)
    kind = "not-found" if error.status_code == 404 else "http"
    detail = "there is nothing at this address." if kind == "not-found" else f"{error.detail}."
    return await _problem(request, Problem(error.status_code, kind, detail, error.headers))


async def _invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    found = [(".".join(str(part) for part in one["loc"][1:]) or one["loc"][0], one["msg"]) for one in error.errors()]
    sentence = "; ".join(f"{where}: {message[:1].lower()}{message[1:]}" for where, message in found[:5])
    return await _problem(request, invalid(f"{sentence}."))


async def _internal(request: Request, error: Exception) -> Response:
    log(level="error", path=request.url.path, error=type(error).__name__, detail=str(error)[:300])
    return await _problem(request, Problem(500, "internal", "the service failed to answer; its log says more."))


async def _problem(request: Request, problem: Problem) -> Response:
    if is_machine(request.url.path) or "text/html" not in request.headers.get("accept", ""):
        return problem.response()
    return problem_page(request, problem)


_HANDLERS: Any = {
    ZooError: _zoo_error,
    HTTPException: _http_error,
    RequestValidationError: _invalid,
    Exception: _internal,
}

"""The query, answered in columns by orjson: plain routes, since FastAPI would cost three times as much.

The gateway hands a GET straight to `Query.get`, without routing and without objects for request and response.
"""

from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

import numpy as np
import orjson
from anyio import to_thread
from starlette.requests import Request
from starlette.responses import Response

from contingencies.errors import NotFoundError, UsageError
from contingencies.points import check_names
from espinn_moe.condition_head import AnyHead, ConditionHead
from espinn_moe.head import OUT_OF_DOMAIN, STATUSES
from registry.query import Deployed
from registry.service.answers import NO_HEAD, REASONS, outside
from registry.service.columns import read_questions
from registry.service.points import conditions_in, point_of_head
from registry.service.problems import invalid
from registry.store.deployments import PRODUCTION
from registry.texts import checked_alias

if TYPE_CHECKING:
    from starlette.types import Scope

    from registry.service.state import Service

GET_PARAMETERS = ("alpha", "alias")
JSON = "application/json"
PREFIX = "/api/v1/cct/"
GET_ROUTE = "/api/v1/cct/{name}"
POST_ROUTE = "/api/v1/cct"
_REASONS = [REASONS[status] for status in STATUSES]


class Query:
    """The routes of the query."""

    def __init__(self, service: "Service") -> None:
        self._answers, self._metrics = service.answers, service.metrics

    async def get(self, scope: "Scope") -> bytes:
        """`GET /api/v1/cct/{name}?alpha=...`: one contingency at some severities and an operating point, as JSON."""
        name = scope["path"][len(PREFIX) :]
        query = scope["query_string"].decode("latin-1")
        if "%" in query or "+" in query or ";" in query:
            items = parse_qsl(query, keep_blank_values=True, errors="replace")
        else:  # four times as fast, and what programs send
            items = [part.partition("=")[::2] for part in query.split("&") if part]
        alphas: list[float] = []
        others: list[tuple[str, str]] = []
        alias = PRODUCTION
        for key, value in items:
            if key == "alpha":
                alphas.append(_severity(value))
            elif key == "alias":
                alias = checked_alias(value)
            else:
                others.append((key, value))
        if not alphas:
            raise invalid("give at least one severity, as ?alpha=0.9.")
        deployed = await self._answers.deployed(name, alias)
        given = _given(name, deployed.head, others) if others else {}
        return orjson.dumps(self._answer(name, deployed, alphas, given))

    async def get_response(self, request: Request) -> Response:
        """As `get`, for whoever comes through the routes: HEAD does."""
        return Response(await self.get(request.scope), media_type=JSON)

    def _answer(self, name: str, deployed: Deployed, alphas: list[float], given: dict[str, float]) -> dict[str, Any]:
        head = deployed.head
        values = head.values(given, name) if isinstance(head, ConditionHead) else ()
        ccts, durations, bounds, statuses, reasons = [], [], [], [], []
        for alpha in alphas:
            if isinstance(head, ConditionHead):
                cct, status, bound = head.bounded(alpha, values)
            else:
                cct, status = head.answer(alpha)
                bound = None if cct is None else head.error_bound_s
            ccts.append(cct)
            durations.append(None if cct is None else cct - head.t_f)
            bounds.append(bound)
            statuses.append(status)
            reasons.append(REASONS[status] if status != "out-of-domain" else outside(head))
            self._metrics.answer(status)
        return {
            "contingency": name,
            **_origin(deployed),
            "conditions": point_of_head(head) | given,
            "alpha": alphas,
            "status": statuses,
            "cct_s": ccts,
            "duration_s": durations,
            "error_bound_s": bounds,
            "reason": reasons,
        }

    async def post(self, request: Request) -> Response:
        """`POST /api/v1/cct` with columns: many contingencies at many severities and operating points."""
        request.scope["route_path"] = POST_ROUTE
        body = await request.body()
        return Response(await to_thread.run_sync(self._many, body), media_type=JSON)

    def _many(self, body: bytes) -> bytes:
        asked = read_questions(body)
        names, which, rows = asked.names, asked.which, len(asked.alpha)
        cct, bound, duration = np.full((3, rows), np.nan)
        code = np.full(rows, len(STATUSES), dtype=np.int8)
        origin = np.empty((3, len(names)), dtype=object)  # head, checkpoint and version of each name
        missing: dict[str, str] = {}
        answered_by: dict[str, dict[str, Any]] = {}
        why = np.empty((2, len(names)), dtype=object)  # of each name: where its domain ends, why it has no head
        for k, (name, here) in enumerate(zip(names, asked.rows, strict=True)):
            try:
                deployed = self._answers.deployed_now(name, asked.alias)
            except NotFoundError as error:
                missing[name] = why[1, k] = str(error)
                continue
            why[0, k] = outside(deployed.head)
            cct[here], code[here], bound[here] = asked.answers(name, deployed, here)
            duration[here] = cct[here] - deployed.head.t_f
            origin[:, k] = deployed.head_id, deployed.checkpoint_id, deployed.version
            answered_by[name] = _origin(deployed) | {
                "error_bound_s": deployed.head.error_bound_s,
                "conditions": list(point_of_head(deployed.head)),
            }
        for status, count in enumerate(np.bincount(code, minlength=len(STATUSES) + 1)):
            if count:
                self._metrics.answer((*STATUSES, NO_HEAD)[status], int(count))
        reasons = np.array([*_REASONS, None], dtype=object)[code]
        for status, texts in zip((OUT_OF_DOMAIN, len(STATUSES)), why, strict=True):
            rows_there = np.flatnonzero(code == status)
            reasons[rows_there] = texts[which[rows_there]]
        columns = {
            "status": np.array([*STATUSES, NO_HEAD], dtype=object)[code].tolist(),
            "cct_s": cct,
            "duration_s": duration,
            "error_bound_s": bound,
            "head": origin[0][which].tolist(),
            "checkpoint": origin[1][which].tolist(),
            "version": origin[2][which].tolist(),
            "reason": reasons.tolist(),
        }
        return orjson.dumps(
            {"rows": rows, **columns, "answered_by": answered_by, "missing": missing},
            option=orjson.OPT_SERIALIZE_NUMPY,  # NaN becomes null
        )


def _origin(deployed: Deployed) -> dict[str, Any]:
    return {
        "head": deployed.head_id,
        "checkpoint": deployed.checkpoint_id,
        "version": deployed.version,
        "strict_severities": deployed.strict_severities,
        "t_f_s": deployed.head.t_f,
    }


def _given(name: str, head: AnyHead, others: list[tuple[str, str]]) -> dict[str, float]:
    """Conditions of a head, or the sentence that a parameter is none of them."""
    known = [*GET_PARAMETERS, *point_of_head(head)]
    try:
        check_names(name, head.axes if isinstance(head, ConditionHead) else (), [key for key, _ in others])
    except UsageError as error:
        raise invalid(str(error), known=known) from None
    return conditions_in(others)


def _severity(value: str) -> float:
    try:
        return float(value)
    except ValueError:
        raise invalid(f"alpha = {value[:60]!r} is not a number.") from None

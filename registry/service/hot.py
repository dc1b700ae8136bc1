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
from espinn_moe.head import STATUSES
from registry.query import Deployed
from registry.service.answers import NO_HEAD, REASONS
from registry.service.problems import invalid
from registry.store.deployments import PRODUCTION
from registry.texts import checked_alias

if TYPE_CHECKING:
    from starlette.types import Scope

    from registry.service.state import Service

MAX_ROWS = 100_000
MAX_NAMES = 10_000  # different contingencies in one request: each is looked up once
GET_PARAMETERS = ("alpha", "alias")
POST_COLUMNS = ("contingency", "alpha", "alias")
JSON = "application/json"
PREFIX = "/api/v1/cct/"
GET_ROUTE = "/api/v1/cct/{name}"
_NUMBERS = {int, float}
_REASONS = [REASONS[status] for status in STATUSES]


class Query:
    """The routes of the query."""

    def __init__(self, service: "Service") -> None:
        self._answers, self._metrics = service.answers, service.metrics

    async def get(self, scope: "Scope") -> bytes:
        """`GET /api/v1/cct/{name}?alpha=...`: one contingency at some severities, as JSON."""
        name = scope["path"][len(PREFIX) :]
        query = scope["query_string"].decode("latin-1")
        if "%" in query or "+" in query or ";" in query:
            items = parse_qsl(query, keep_blank_values=True, errors="replace")
        else:  # four times as fast, and what programs send
            items = [part.partition("=")[::2] for part in query.split("&") if part]
        alphas: list[float] = []
        alias = PRODUCTION
        for key, value in items:
            if key == "alpha":
                alphas.append(_severity(value))
            elif key == "alias":
                alias = checked_alias(value)
            else:
                raise _unknown(key, GET_PARAMETERS, name)
        if not alphas:
            raise invalid("give at least one severity, as ?alpha=0.9.")
        deployed = await self._answers.deployed(name, alias)
        return orjson.dumps(self._answer(name, deployed, alphas))

    async def get_response(self, request: Request) -> Response:
        """As `get`, for whoever comes through the routes: HEAD does."""
        return Response(await self.get(request.scope), media_type=JSON)

    def _answer(self, name: str, deployed: Deployed, alphas: list[float]) -> dict[str, Any]:
        head = deployed.head
        ccts, durations, bounds, statuses, reasons = [], [], [], [], []
        for alpha in alphas:
            cct, status = head.answer(alpha)
            ccts.append(cct)
            durations.append(None if cct is None else cct - head.t_f)
            bounds.append(None if cct is None else head.error_bound_s)
            statuses.append(status)
            reasons.append(REASONS[status])
            self._metrics.answer(status)
        return {
            "contingency": name,
            "head": deployed.head_id,
            "checkpoint": deployed.checkpoint_id,
            "version": deployed.version,
            "strict_severities": deployed.strict_severities,
            "t_f_s": head.t_f,
            "alpha": alphas,
            "status": statuses,
            "cct_s": ccts,
            "duration_s": durations,
            "error_bound_s": bounds,
            "reason": reasons,
        }

    async def post(self, request: Request) -> Response:
        """`POST /api/v1/cct` with columns: many contingencies at many severities."""
        request.scope["route_path"] = "/api/v1/cct"
        body = await request.body()
        return Response(await to_thread.run_sync(self._many, body), media_type=JSON)

    def _many(self, body: bytes) -> bytes:
        names, which, alpha, alias = _columns(body)
        rows = len(alpha)
        cct = np.full(rows, np.nan)
        bound = np.full(rows, np.nan)
        duration = np.full(rows, np.nan)
        code = np.full(rows, len(STATUSES), dtype=np.int8)
        origin = np.empty((3, len(names)), dtype=object)  # head, checkpoint and version of each name
        missing: dict[str, str] = {}
        answered_by: dict[str, dict[str, Any]] = {}
        for k, name in enumerate(names):
            here = slice(None) if len(names) == 1 else np.flatnonzero(which == k)
            try:
                deployed = self._answers.deployed_now(name, alias)
            except NotFoundError as error:
                missing[name] = str(error)
                continue
            head = deployed.head
            cct[here], code[here] = head.answers(alpha[here])
            duration[here] = cct[here] - head.t_f
            if head.error_bound_s is not None:
                bound[here] = np.where(code[here] == 0, head.error_bound_s, np.nan)
            origin[:, k] = deployed.head_id, deployed.checkpoint_id, deployed.version
            answered_by[name] = {
                "head": deployed.head_id,
                "checkpoint": deployed.checkpoint_id,
                "version": deployed.version,
                "strict_severities": deployed.strict_severities,
                "t_f_s": head.t_f,
                "error_bound_s": head.error_bound_s,
            }
        for status, count in enumerate(np.bincount(code, minlength=len(STATUSES) + 1)):
            if count:
                self._metrics.answer((*STATUSES, NO_HEAD)[status], int(count))
        reasons = np.array([*_REASONS, None], dtype=object)[code]
        for k, name in enumerate(names):
            if name in missing:
                reasons[which == k] = missing[name]
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


def _severity(value: str) -> float:
    try:
        return float(value)
    except ValueError:
        raise invalid(f"alpha = {value[:60]!r} is not a number.") from None


def _unknown(key: str, known: tuple[str, ...], name: str | None = None) -> Exception:
    whose = "is not known" if name is None else f"is no condition of {name[:100]!r}, which has none"
    return invalid(f"parameter {key[:60]!r} {whose}; those that are known: {', '.join(known)}.", known=list(known))


def _columns(body: bytes) -> tuple[list[str], np.ndarray, np.ndarray, str]:
    """Different names, which of them each row has (m,), severities (m,) and the alias."""
    try:
        content = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise invalid(f"the body is not JSON ({error}).") from None
    if not isinstance(content, dict):
        raise invalid('the body must be an object with columns, as {"contingency": [...], "alpha": [...]}.')
    for key in content:
        if key not in POST_COLUMNS:
            raise _unknown(key, POST_COLUMNS)
    alias = content.get("alias", PRODUCTION)
    if not isinstance(alias, str):
        raise invalid("alias must be text.")
    names, alpha = content.get("contingency"), content.get("alpha")
    if isinstance(alpha, int | float) and not isinstance(alpha, bool):
        alpha = [alpha] * (len(names) if isinstance(names, list) else 1)
    if not isinstance(alpha, list) or not set(map(type, alpha)) <= _NUMBERS:
        raise invalid("column 'alpha' must be a list of numbers.")
    if isinstance(names, str):
        names = [names] * len(alpha)
    if not isinstance(names, list) or not set(map(type, names)) <= {str}:
        raise invalid("column 'contingency' must be a list of names.")
    if len(names) != len(alpha):
        raise invalid(f"the columns differ in length: {len(names)} contingencies and {len(alpha)} severities.")
    if len(alpha) > MAX_ROWS:
        raise invalid(f"{len(alpha)} rows are too many; send at most {MAX_ROWS} at a time.")
    numbers: dict[str, int] = {}
    which = np.fromiter((numbers.setdefault(name, len(numbers)) for name in names), dtype=np.int64, count=len(names))
    if len(numbers) > MAX_NAMES:
        raise invalid(f"{len(numbers)} different contingencies are too many; send at most {MAX_NAMES} at a time.")
    try:
        severities = np.array(alpha, dtype=np.float64)
    except OverflowError:
        raise UsageError("column 'alpha' holds a number that is too large; give severities.") from None
    return list(numbers), which, severities, checked_alias(alias)

"""Asking a service for critical clearing times: `Client(url, token).cct(name, alpha)`, with the values of `Registry`.

It needs numpy and the standard library, keeps its connection open, and may be shared between threads.
"""

import http.client
import json
import ssl
import threading
from collections.abc import Mapping
from typing import Any, overload
from urllib.parse import quote, urlencode, urlsplit

import numpy as np
from numpy.typing import ArrayLike

from contingencies.errors import ConflictError, GateError, IntegrityError, NotFoundError, UsageError, ZooError
from espinn_moe.head import STATUSES
from registry.query import CCTAnswer, CCTAnswers
from registry.store.deployments import PRODUCTION

TIMEOUT_S = 30.0
_COLUMNS = ("cct_s", "error_bound_s")
_KINDS: dict[str, type[ZooError]] = {  # last part of a problem's type -> what is raised
    "not-found": NotFoundError,
    "invalid": UsageError,
    "gate": GateError,
    "conflict": ConflictError,
    "replaced": ConflictError,
    "integrity": IntegrityError,
}


class Client:
    """A service at `url`; `token` is needed unless it is open to this machine."""

    def __init__(self, url: str, token: str | None = None, timeout: float = TIMEOUT_S) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise UsageError(f"{url[:100]!r} is not the address of a service; write it like http://127.0.0.1:8420.")
        self._secure, self._host, self._port = parts.scheme == "https", parts.hostname, parts.port
        self._base = parts.path.rstrip("/")
        self._timeout = timeout
        self._headers = {"Accept": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
        self._local = threading.local()

    def close(self) -> None:
        """Close the connection of this thread."""
        connection = getattr(self._local, "connection", None)
        if connection is not None:
            self._local.connection = None
            connection.close()

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- questions ----------------------------------------------------------------------------

    @overload
    def cct(self, name: str, alpha: float, alias: str = ..., **conditions: float) -> CCTAnswer: ...
    @overload
    def cct(self, name: str, alpha: ArrayLike, alias: str = ..., **conditions: ArrayLike) -> CCTAnswers: ...
    @overload
    def cct(
        self, name: list[str] | tuple[str, ...], alpha: float, alias: str = ..., **conditions: float
    ) -> list[CCTAnswer]: ...
    @overload
    def cct(
        self, name: list[str] | tuple[str, ...], alpha: ArrayLike, alias: str = ..., **conditions: ArrayLike
    ) -> list[CCTAnswers]: ...

    def cct(self, name, alpha, alias=PRODUCTION, **conditions):  # type: ignore[no-untyped-def]
        """The critical clearing time of a contingency by its deployed head; see `Registry.cct`."""
        if not isinstance(name, str):
            return [self.cct(one, alpha, alias, **conditions) for one in name]
        if isinstance(alpha, bool | np.bool_ | str | bytes) or alpha is None:
            raise UsageError(f"alpha = {alpha!r} is not a severity; give a number or an array of numbers.")
        single = isinstance(alpha, int | float | np.integer | np.floating)
        if single and not any(np.ndim(value) for value in conditions.values()):
            return self._one(name, float(alpha), alias, conditions)
        return self._many(name, alpha, alias, conditions)

    def _one(self, name: str, alpha: float, alias: str, conditions: Mapping[str, Any]) -> CCTAnswer:
        query = {"alpha": repr(alpha)} | ({} if alias == PRODUCTION else {"alias": alias})
        try:
            query |= {key: repr(float(value)) for key, value in conditions.items()}
        except (TypeError, ValueError):
            raise UsageError(f"{name}: a condition is not a number; give numbers.") from None
        found = self.get(f"/api/v1/cct/{quote(name, safe='')}", **query)
        return CCTAnswer(
            found["cct_s"][0],
            found["duration_s"][0],
            found["status"][0],
            found["error_bound_s"][0],
            found["head"],
            found["checkpoint"],
            found["version"],
            found["strict_severities"],
        )

    def _many(self, name: str, alpha: ArrayLike, alias: str, conditions: Mapping[str, ArrayLike]) -> CCTAnswers:
        severities, columns = _columns(name, alpha, conditions)
        body = {"contingency": name, "alpha": severities.ravel().tolist(), "alias": alias} | columns
        found = self.request("POST", "/api/v1/cct", body)
        if name in found["missing"]:
            raise NotFoundError(found["missing"][name])
        head = found["answered_by"][name]
        cct, bounds = (np.array(found[key], dtype=np.float64).reshape(severities.shape) for key in _COLUMNS)
        codes = np.array([STATUSES.index(one) for one in found["status"]], dtype=np.int8)
        return CCTAnswers(
            name,
            severities,
            cct,
            codes.reshape(severities.shape),
            head["t_f_s"],
            bounds if head["conditions"] else head["error_bound_s"],
            head["head"],
            head["checkpoint"],
            head["version"],
            head["strict_severities"],
        )

    def get(self, path: str, **query: Any) -> Any:
        """Any other answer of the API, as plain values: `client.get("/api/v1/ranking", system="ieee39")`."""
        return self.request("GET", f"{path}?{urlencode(query, doseq=True)}" if query else path)

    def request(self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> Any:
        """One request; a refusal is raised as the error it would be here."""
        content = None if body is None else json.dumps(body, allow_nan=False).encode()
        sent = self._headers | (headers or {}) | ({} if content is None else {"Content-Type": "application/json"})
        for attempt in (1, 2):
            connection = self._connection()
            try:
                connection.request(method, self._base + path, content, sent)
                response = connection.getresponse()
                status, answer = response.status, response.read()
                break
            except (http.client.HTTPException, OSError) as error:
                self.close()
                # A connection kept open may have been closed meanwhile; asking again changes nothing.
                if attempt == 2 or method != "GET" or isinstance(error, TimeoutError):
                    raise ZooError(
                        f"the service at {self._host} cannot be reached ({type(error).__name__}); check that it runs."
                    ) from None
        return _checked(status, answer)

    def _connection(self) -> http.client.HTTPConnection:
        connection: http.client.HTTPConnection | None = getattr(self._local, "connection", None)
        if connection is None:
            if self._secure:
                context = ssl.create_default_context()
                connection = http.client.HTTPSConnection(self._host, self._port, timeout=self._timeout, context=context)
            else:
                connection = http.client.HTTPConnection(self._host, self._port, timeout=self._timeout)
            self._local.connection = connection
        return connection


def _columns(
    name: str, alpha: ArrayLike, conditions: Mapping[str, ArrayLike]
) -> tuple[np.ndarray, dict[str, list[float]]]:
    """Severities, and conditions as columns of as many rows."""
    try:
        severities = np.asarray(alpha, dtype=np.float64)
    except (TypeError, ValueError):
        raise UsageError("alpha holds something that is not a number; give an array of severities.") from None
    try:
        values = [np.asarray(value, dtype=np.float64) for value in conditions.values()]
        severities, *values = np.broadcast_arrays(severities, *values)
    except (TypeError, ValueError):
        raise UsageError(f"{name}: severities and conditions are not numbers of one shape; give such.") from None
    if not all(np.isfinite(array).all() for array in (severities, *values)):
        raise UsageError("alpha or a condition is not a finite number; give finite numbers.")
    return severities, {key: value.ravel().tolist() for key, value in zip(conditions, values, strict=True)}


def _checked(status: int, answer: bytes) -> Any:
    """The content of an answer, or the error that it describes."""
    try:
        content = json.loads(answer) if answer else None
    except ValueError:
        raise ZooError(f"the service answered something that is not JSON (status {status}).") from None
    if status < 400:
        return content
    problem = content if isinstance(content, dict) else {}
    kind = str(problem.get("type", "")).rpartition(":")[2]
    raise _KINDS.get(kind, ZooError)(problem.get("detail") or f"the service refused with status {status}.")

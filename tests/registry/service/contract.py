"""Requests drawn from the API's own schema, valid and invalid ones, each answer checked against it."""

from typing import Any

import schemathesis
from httpx2 import InvalidURL
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from starlette.testclient import TestClient

CHECKS = [not_a_server_error, content_type_conformance, response_schema_conformance, status_code_conformance]


def campaign(client: TestClient, headers: dict[str, str], requests_per_operation: int) -> int:
    """Send so many requests of each kind, valid and invalid, to every operation; returns how many were sent."""
    document = client.get("/api/v1/openapi.json", headers=headers).json()
    schema = schemathesis.openapi.from_dict(document)
    schema.config.base_url = str(client.base_url)
    sent = 0
    for found in schema.get_all_operations():
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
            try:
                strategy = found.ok().as_strategy(generation_mode=mode)
                sent += _send(client, headers, strategy, requests_per_operation)
            except schemathesis.errors.InvalidSchema:
                raise
            except Exception as error:
                if "Negative" not in type(error).__name__ and "Unsatisfiable" not in type(error).__name__:
                    raise
    return sent


def _send(client: TestClient, headers: dict[str, str], strategy: Any, count: int) -> int:
    sent = 0

    @settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=strategy)
    def ask(case: schemathesis.Case) -> None:
        nonlocal sent
        given_ = case.as_transport_kwargs(base_url=str(client.base_url), headers=headers)
        if isinstance(given_.get("data"), bytes | str):
            given_["content"] = given_.pop("data")
        for key in ("cookies", "files", "auth"):
            if not given_.get(key):
                given_.pop(key, None)
        try:
            response = client.request(**given_)
        except (UnicodeError, ValueError, InvalidURL):  # what no client can send
            return
        sent += 1
        case.validate_response(response, checks=CHECKS)

    ask()
    return sent

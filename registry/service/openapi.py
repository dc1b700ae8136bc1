"""The query in the OpenAPI document: its routes are not FastAPI's, so that their operations are written here."""

from typing import Any

from pydantic.json_schema import models_json_schema

from registry.service.api.messages import Answers, ManyAnswers, ManyQuestions, ProblemOut
from registry.service.columns import MAX_ROWS
from registry.service.points import NAME_PATTERN

_REF = "#/components/schemas/{model}"
CONDITIONS = {  # an object whose members are parameters of their own: load=1.1&generation.2=35
    "name": "conditions",
    "in": "query",
    "style": "form",
    "explode": True,
    "description": "operating point, as load=1.1&generation.2=35; what is left out has the case's own value",
    "schema": {
        "type": "object",
        "patternProperties": {NAME_PATTERN: {"type": "number"}},
        "additionalProperties": False,
    },
}
AT_A_POINT = (
    "/api/v1/ranking",
    "/api/v1/contingencies/{name}/boundary",
    "/api/v1/contingencies/{name}/reference",
    "/api/v1/contingencies/{name}/simulate",
)


def with_query(document: dict[str, Any]) -> dict[str, Any]:
    """The document with the operations of the query, and every refusal as a problem."""
    if "/api/v1/cct" in document["paths"]:
        return document
    models = [(model, "validation") for model in (Answers, ManyAnswers, ManyQuestions, ProblemOut)]
    _, schemas = models_json_schema(models, ref_template=_REF)  # type: ignore[arg-type]
    document["components"]["schemas"] |= schemas["$defs"]
    document["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    document["security"] = [{"token": []}]
    document["paths"] |= {
        "/api/v1/cct/{name}": {"get": _get()},
        "/api/v1/cct": {"post": _post()},
    }
    for path, item in document["paths"].items():
        for operation in item.values():
            _refusals(operation)
            if path in AT_A_POINT:
                operation["parameters"].append(CONDITIONS)
    return document


def _get() -> dict[str, Any]:
    return {
        "tags": ["asking"],
        "summary": "Critical clearing times of one contingency",
        "operationId": "get_cct",
        "parameters": [
            {"name": "name", "in": "path", "required": True, "schema": {"type": "string"}},
            {
                "name": "alpha",
                "in": "query",
                "required": True,
                "description": "severity; may be given several times",
                "schema": {"type": "array", "minItems": 1, "maxItems": 1000, "items": {"type": "number"}},
            },
            {"name": "alias", "in": "query", "schema": {"type": "string", "default": "production"}},
            CONDITIONS,
        ],
        "responses": {"200": _content("Answers", "Answers")},
    }


def _post() -> dict[str, Any]:
    return {
        "tags": ["asking"],
        "summary": f"Critical clearing times of up to {MAX_ROWS} rows",
        "operationId": "post_cct",
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": {"$ref": _REF.format(model="ManyQuestions")}}},
        },
        "responses": {"200": _content("Answers", "ManyAnswers")},
    }


def _content(description: str, model: str, media: str = "application/json") -> dict[str, Any]:
    return {"description": description, "content": {media: {"schema": {"$ref": _REF.format(model=model)}}}}


def _refusals(operation: dict[str, Any]) -> None:
    """Every operation may be refused; FastAPI's own schema of a 422 is not ours."""
    responses = operation["responses"]
    for status, described in list(responses.items()):
        if int(status) >= 400 and not described.get("content", {}).get("application/json", {}).get("schema", {}).get(
            "$ref", ""
        ).endswith("Health"):
            responses[status] = _content(described["description"], "ProblemOut", "application/problem+json")
    responses["default"] = _content("A refusal", "ProblemOut", "application/problem+json")

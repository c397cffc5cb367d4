"""The OpenAPI document, with what no route says by itself: every refusal as a problem document, the
header that acts need. Called by problems.py; it changes the document alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from fastapi import FastAPI

from lineclear.web.models import ProblemDocument

PROBLEM = "application/problem+json"
REFUSALS = {
    401: "A token is asked for, and none that is known was brought.",
    403: "Not allowed: a view token, a foreign name or origin, or a missing header.",
    404: "There is no such job, lane or route.",
    409: "The job, or what waits, is not as it was seen. Nothing was done.",
    413: "Larger than what is taken.",
    415: "The body has to be application/json.",
    422: "A field is wrong; `field` names it. Nothing was done.",
    503: "The database cannot be used just now; `Retry-After` says when to ask again.",
}
ACTS = ("post", "patch")
ASKED_BY_PAGE = {
    "name": "Lineclear-Request",
    "in": "header",
    "required": True,
    "schema": {"type": "string", "enum": ["1"]},
    "description": "No other site's page can send it.",
}


def documented(app: FastAPI) -> Callable[[], dict[str, Any]]:
    """What is to be ``app.openapi``."""

    def document() -> dict[str, Any]:
        if app.openapi_schema is None:
            made = FastAPI.openapi(app)
            parts = made.setdefault("components", {})
            _schemas(parts.setdefault("schemas", {}))
            parts["responses"] = {f"Problem{status}": _refusal(status) for status in REFUSALS}
            for path, operations in made["paths"].items():
                for method, operation in operations.items():
                    _complete(path, method, operation)
        assert app.openapi_schema is not None, "made above"
        return app.openapi_schema

    return document


def _schemas(schemas: dict[str, Any]) -> None:
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    problem = ProblemDocument.model_json_schema(ref_template="#/components/schemas/{model}")
    for name, schema in {**problem.pop("$defs", {}), "ProblemDocument": problem}.items():
        schemas.setdefault(name, schema)


def _refusal(status: int) -> dict[str, Any]:
    schema = {"$ref": "#/components/schemas/ProblemDocument"}
    told: dict[str, Any] = {
        "description": REFUSALS[status],
        "content": {PROBLEM: {"schema": schema}},
    }
    if status == 503:
        told["headers"] = {"Retry-After": {"schema": {"type": "string"}}}
    return told


def _complete(path: str, method: str, operation: dict[str, Any]) -> None:
    parameters = operation.setdefault("parameters", [])
    responses = {code: told for code, told in operation["responses"].items() if code < "4"}
    if method in ACTS:
        if any(each["name"] == "Idempotency-Key" for each in parameters):
            for told in responses.values():
                told["headers"] = {"Idempotency-Replayed": {"schema": {"type": "string"}}}
        parameters.append(ASKED_BY_PAGE)
    for status in _refusals(path, method, operation):
        responses[str(status)] = {"$ref": f"#/components/responses/Problem{status}"}
    operation["responses"] = responses


def _refusals(path: str, method: str, operation: dict[str, Any]) -> Iterator[int]:
    names = {each["name"] for each in operation["parameters"]}
    yield from (401, 403, 503)
    if method in ACTS:
        yield from (409, 413, 415)
    if "{" in path or method in ACTS or "lane" in names:
        yield 404
    if names or "requestBody" in operation:
        yield 422

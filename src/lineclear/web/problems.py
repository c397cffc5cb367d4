"""How every refusal is told: a problem document (RFC 9457) whose ``detail`` is the sentence people
read.

``install`` makes the application answer all errors so; the guard and the routes call ``problem``.
It must never show what is inside: a traceback goes to stderr, never into an answer.
"""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Callable, Coroutine, Mapping
from http import HTTPStatus
from itertools import takewhile
from typing import Any, Final

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException

from lineclear.errors import (
    BadInput,
    LineClearError,
    NoSuchJob,
    Refused,
    StoreError,
    TooLarge,
    UnknownLane,
)
from lineclear.figures import printable
from lineclear.web.openapi import PROBLEM, documented

RETRY_AFTER_S = 2
NAMELESS: Final = ("body", "query", "path", "header")
"""Where FastAPI found what is wrong; the field stands behind it."""


class Answer(Response):
    """JSON in ASCII: halves of characters that a job stored travel as escapes."""

    media_type = "application/json"

    def __init__(
        self, body: Any, *, status: int = 200, headers: Mapping[str, str] | None = None
    ) -> None:
        text = json.dumps(body, allow_nan=False, separators=(",", ":"))
        super().__init__(text, status, dict(headers or {}))


class Problem(Answer):
    media_type = PROBLEM


def problem(
    status: int,
    sentence: str,
    *,
    field: str | None = None,
    job: Mapping[str, Any] | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """``field`` names what was wrong; ``job`` is the row as it is now."""
    title = HTTPStatus(status).phrase
    body = {"type": "about:blank", "title": title, "status": status, "detail": sentence}
    more = {"field": field, "job": job}
    body |= {name: value for name, value in more.items() if value is not None}
    wait = {"Retry-After": str(RETRY_AFTER_S)} if status == HTTPStatus.SERVICE_UNAVAILABLE else {}
    return Problem(body, status=status, headers={**wait, **(headers or {})})


def install(app: FastAPI) -> None:
    """Every error of this application is answered as a problem document."""
    app.add_exception_handler(LineClearError, _refused)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(Exception, _unexpected)
    app.openapi = documented(app)  # type: ignore[method-assign]


async def _refused(_: Request, error: Exception) -> Response:
    sentence = printable(str(error))
    field = printable(error.field) if isinstance(error, BadInput) else None
    match error:
        case TooLarge():
            status = 413
        case UnknownLane() | NoSuchJob():
            status = 404
        case BadInput():
            status = 422
        case Refused():
            status = 409
        case StoreError():
            status = 503
        case _:
            return await _unexpected(_, error)
    return problem(status, sentence, field=field)


async def _invalid(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError), "registered for no other"
    first = error.errors()[0]
    where = [str(each) for each in first["loc"] if each not in NAMELESS]
    # Where a value may be of several kinds, the kinds tried stand behind its name.
    named = [*takewhile(lambda each: "[" not in each, where)]
    if first["type"] == "extra_forbidden":
        named = where
    field = printable(".".join(named))[:200]
    match first["type"]:
        case _ if len(named) < len(where):
            told = f"{field}: this is none of what it can be."
        case "missing":
            told = f"{field} is missing." if field else "The body is missing."
        case "extra_forbidden":
            told = f"{field}: there is no such field here."
        case "json_invalid":
            return problem(422, "The body is no JSON.", field="body")
        case _:
            message = str(first["msg"]).removeprefix("Value error, ")
            told = f"{field or 'body'}: {message[:1].lower()}{message[1:].removesuffix('.')}."
    return problem(422, printable(told), field=field or "body")


async def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException), "registered for no other"
    match error.status_code:
        case 404:
            told = "There is no such page or route here."
        case 405:
            told = f"{request.method} is not possible here."
        case 400:
            return problem(422, "The body is no JSON.", field="body")
        case _:
            told = str(error.detail)
    field = "body" if error.status_code == 422 else None
    return problem(error.status_code, told, field=field, headers=error.headers)


async def _unexpected(_: Request, error: Exception) -> Response:
    traceback.print_exception(error, file=sys.stderr)
    return problem(500, "Something went wrong in the server; its own output says what.")


class Strict(APIRoute):
    """A route whose body is JSON as the standard has it: no NaN, no endless nesting or digits."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def strictly(request: Request) -> Response:
            return await handle(_StrictRequest(request.scope, request.receive))

        return strictly


class _StrictRequest(Request):
    async def json(self) -> Any:
        try:
            return json.loads(await self.body(), parse_constant=_refuse)
        except json.JSONDecodeError:
            raise
        except (ValueError, RecursionError) as error:
            told = "is nested too deep" if isinstance(error, RecursionError) else "is no JSON"
            raise HTTPException(422, f"The body {told}. Nothing was done.") from None


def _refuse(name: str) -> None:
    raise ValueError(name)

"""Signing in and out, and who one is: ``/me``, ``/login``, ``/logout``.

Mounted by app.py. The cookie is the token itself, out of reach of any script; nothing about it
is kept on the server.
"""

from __future__ import annotations

from importlib.metadata import version
from typing import Annotated
from urllib.parse import parse_qs

from fastapi import APIRouter, Depends, Request, Response
from pydantic import BaseModel
from starlette.concurrency import run_in_threadpool

from lineclear.queue import Queue
from lineclear.web.asked import API, Asked
from lineclear.web.guard import Who, asks
from lineclear.web.pages import sign_in, static_hash
from lineclear.web.problems import problem
from lineclear.web.tokens import Tokens

YEAR_S = 365 * 86_400


class Me(BaseModel):
    """Who asks, and what answers."""

    name: str
    role: str
    signed_in: bool
    tokens: bool
    version: str
    boot: str
    static: str
    now_ms: int
    tasks: bool


class TokenAbout(BaseModel):
    """A token by its name; its text is kept nowhere."""

    name: str
    role: str


class SignIn(BaseModel):
    """What signs in."""

    token: str


def router(queue: Queue, *, boot: str) -> APIRouter:
    """Below ``/api/v1``."""
    routes = APIRouter(prefix=API, tags=["session"])
    tokens = Tokens(queue.files)

    @routes.get("/me")
    def me(who: Annotated[Who, Depends(asks)]) -> Me:
        """Who asks, and what answers."""
        return Me(
            name=who.name,
            role=who.role,
            signed_in=who.signed_in,
            tokens=bool(tokens.all()),
            version=version("lineclear"),
            boot=boot,
            static=static_hash(),
            now_ms=queue.now_ms(),
            tasks=bool(queue.tasks),
        )

    @routes.get("/tokens")
    def named(_: Annotated[Who, Depends(asks)]) -> list[TokenAbout]:
        """The tokens of this database, by name."""
        return [TokenAbout(name=one.name, role=one.role) for one in tokens.all()]

    @routes.post("/login", status_code=204)
    def login(request: Request, given: SignIn) -> Response:
        """Keep a token in a cookie that no script can read."""
        if tokens.find(given.token) is None:
            return problem(401, "This token is not known. Make one: lineclear token add NAME.")
        return _signed_in(request, Response(status_code=204), given.token)

    @routes.post("/logout", status_code=204)
    def logout(request: Request) -> Response:
        """Forget the cookie."""
        answer = Response(status_code=204)
        answer.delete_cookie(
            Asked(request.scope).cookie, path=_path(request), httponly=True, samesite="strict"
        )
        return answer

    return routes


def form(queue: Queue) -> APIRouter:
    """``POST /login``, for browsers that run no script."""
    routes = APIRouter(include_in_schema=False)
    tokens = Tokens(queue.files)

    @routes.post("/login")
    async def login(request: Request) -> Response:
        fields = parse_qs((await request.body()).decode("utf-8", "replace"))
        text = fields.get("token", [""])[0].strip()
        if await run_in_threadpool(tokens.find, text) is None:
            return sign_in("/plain")
        answer = Response(status_code=303, headers={"location": "plain"})
        return _signed_in(request, answer, text)

    return routes


def _signed_in(request: Request, answer: Response, text: str) -> Response:
    name = Asked(request.scope).cookie
    # A proxy that speaks https for this server leaves its mark in the page's own origin.
    secure = "https" in (request.url.scheme, request.headers.get("origin", "").partition(":")[0])
    answer.set_cookie(
        name, text, max_age=YEAR_S, path=_path(request), secure=secure, httponly=True,
        samesite="strict",
    )  # fmt: skip
    return answer


def _path(request: Request) -> str:
    return request.scope.get("root_path", "") or "/"

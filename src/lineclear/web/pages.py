"""The page's own files: the shell at every screen's address, what it loads, and signing in.

Mounted by app.py. Every file is read once, at start, under the names the package itself has:
nothing of a request becomes a path.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

from fastapi import APIRouter, HTTPException, Request, Response

from lineclear.queue import Queue
from lineclear.web.asked import is_plain, path_of

SCREENS = (
    "/",
    "/jobs/{id}",
    "/jobs/{id}/log",
    "/history",
    "/metrics",
    "/add",
    "/settings",
    "/login",
)
KINDS = {
    ".css": "text/css",
    ".html": "text/html",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
    ".png": "image/png",
}
SHELL = "index.html"


@dataclass(frozen=True, slots=True)
class File:
    """One file as it is answered."""

    body: bytes
    kind: str
    tag: str


@cache
def page_files() -> dict[str, File]:
    """What ``static/`` answers, by name."""
    return dict(_below(files("lineclear.web") / "page", ""))


@cache
def static_hash() -> str:
    """Changes with any file of the page, so that an open one can tell that it is old."""
    tags = [f"{name} {file.tag}" for name, file in sorted(page_files().items())]
    return hashlib.sha256("\n".join(tags).encode()).hexdigest()[:16]


def _below(folder: Traversable, prefix: str) -> list[tuple[str, File]]:
    found = []
    for entry in folder.iterdir():
        name = f"{prefix}{entry.name}"
        if entry.is_dir():
            found += _below(entry, f"{name}/")
        elif kind := KINDS.get(name[name.rfind(".") :]):
            found.append((name, _file(entry.read_bytes(), kind)))
    return found


def _file(body: bytes, kind: str) -> File:
    charset = "; charset=utf-8" if kind.startswith("text/") else ""
    return File(body, kind + charset, f'"{hashlib.sha256(body).hexdigest()[:16]}"')


@cache
def _shell(up: str) -> File:
    text = page_files()[SHELL].body.decode().replace("{{up}}", up)
    return _file(text.encode(), "text/html")


def sign_in(path: str) -> Response:
    """What a page's address answers where nobody is signed in: the page, which then asks for a
    token, or a form for browsers that run no script.
    """
    up = _up(path)
    if is_plain(path):
        return Response(_PLAIN_FORM.replace("{{up}}", up), 401, media_type="text/html")
    shell = _shell(up)
    return Response(shell.body, 401, media_type=shell.kind)


_PLAIN_FORM = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Sign in · Line Clear</title>
<h1>Sign in</h1>
<form method="post" action="{{up}}login">
<label>Token <input type="password" name="token" required></label>
<button>Sign in</button>
</form>
</html>
"""


def router(_: Queue) -> APIRouter:
    """The pages, below the root."""
    routes = APIRouter(include_in_schema=False)
    for path in SCREENS:
        routes.add_api_route(path, _screen, methods=["GET", "HEAD"])
    routes.add_api_route("/static/{name:path}", _static, methods=["GET", "HEAD"])
    return routes


def _screen(request: Request) -> Response:
    return _answer(request, _shell(_up(path_of(request.scope))))


def _static(request: Request, name: str) -> Response:
    file = page_files().get(name)
    if file is None:
        raise HTTPException(404, "There is no such file.")
    return _answer(request, file)


def _answer(request: Request, file: File) -> Response:
    headers = {"etag": file.tag, "cache-control": "no-cache"}
    if file.tag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    return Response(file.body, headers=headers, media_type=file.kind)


def _up(path: str) -> str:
    """From a page's address to the root: relative, since nobody knows where this is mounted."""
    return "../" * (path.count("/") - 1) or "./"

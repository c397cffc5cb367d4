"""The page in somebody else's application, under any path."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route
from tests.web.conftest import Page

import lineclear
from lineclear import Queue
from lineclear.web.pages import page_files, static_hash

SCREENS = {
    "/": "./",
    "/history": "./",
    "/metrics": "./",
    "/add": "./",
    "/settings": "./",
    "/login": "./",
    "/jobs/7": "../",
    "/jobs/7/log": "../../",
}


def under(queue: Queue, path: str) -> Page:
    outer = FastAPI()
    outer.mount(path, lineclear.page(queue))
    return Page(outer)


@pytest.mark.parametrize("path", ["/queue", "/a/deep/place"])
def test_every_address_works_under_any_path(path: str, queue: Queue) -> None:
    page = under(queue, path)
    job = queue.submit("render", {"name": "Dune"}).id
    assert page.get(f"{path}/api/v1/jobs/{job}").json()["title"] == "Dune"
    held = page.act(f"{path}/api/v1/jobs/{job}/hold")
    assert held.status_code == 200, held.text
    assert page.get(f"{path}/static/app.css").status_code == 200
    for screen, up in SCREENS.items():
        shown = page.get(f"{path}{screen}")
        assert shown.status_code == 200, screen
        assert f'src="{up}static/main.js"' in shown.text, screen
    assert page.get(f"{path}/nothing").status_code == 404


def test_no_file_of_the_page_names_an_absolute_address(queue: Queue) -> None:
    absolute = re.compile(
        r"""((href|src|action)="|from ["']|import\(?["']|url\(["']?|fetch\(["'`])(/|https?:)"""
    )
    for name, file in page_files().items():
        if name.endswith((".html", ".js", ".css")):
            assert not absolute.findall(file.body.decode()), name


def test_the_guard_is_only_before_the_page(queue: Queue) -> None:
    def hello(_: Request) -> PlainTextResponse:
        return PlainTextResponse("hello")

    outer = Starlette(
        routes=[
            Route("/", hello, methods=["GET", "POST"]),
            Mount("/queue", app=lineclear.page(queue)),
        ]
    )
    page = Page(outer)
    with pytest.raises(AssertionError, match="without"):  # none of the page's headers
        page.get("/", headers={"Host": "evil.example"})
    assert page.get("/queue/", headers={"Host": "evil.example"}).status_code == 403


def test_the_shell_and_its_files_are_asked_again_only_when_they_changed(page: Page) -> None:
    for path in ("/", "/static/main.js", "/history"):
        first = page.get(path)
        assert first.headers["cache-control"] == "no-cache"
        again = page.get(path, headers={"If-None-Match": first.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")
        assert page.get(path, headers={"If-None-Match": '"other"'}).status_code == 200
    assert page.ask("HEAD", "/").headers["etag"] == page.get("/").headers["etag"]
    assert page.get("/api/v1/lanes").headers["cache-control"] == "no-store"
    assert page.get("/api/v1/me").json()["static"] == static_hash()


def test_every_file_of_the_page_is_answered_with_its_kind(page: Page) -> None:
    kinds = {".js": "text/javascript", ".css": "text/css", ".html": "text/html"}
    folder = Path(lineclear.__file__).parent / "web/page"
    for file in folder.rglob("*.*"):
        answer = page.get(f"/static/{file.relative_to(folder).as_posix()}")
        assert answer.status_code == 200, file
        assert answer.headers["content-type"].startswith(kinds[file.suffix])
        assert answer.content == file.read_bytes()


def test_an_unknown_address_is_a_problem_like_any_other(page: Page) -> None:
    for path in ("/nothing", "/api/v1/nothing", "/history/", "/docs", "/openapi.json", "/jobs"):
        answer = page.get(path)
        assert answer.status_code == 404, path
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.json()["detail"]

"""A queue with a few tasks, and its whole page: in this process, or as a real server process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.browser.harness import Ground, ground

import lineclear
from lineclear import Context, Queue

ACTING = {"Lineclear-Request": "1"}
ALWAYS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        "connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'self'; "
        "frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "cross-origin-resource-policy": "same-origin",
}


class Page:
    """The whole application, asked without a socket: ``app`` may be one that holds it."""

    def __init__(self, app: Any, *, base: str = "http://localhost", client: str = "127.0.0.1"):
        self.app, self.base, self.client = app, base, client

    def ask(self, method: str, path: str, **more: Any) -> httpx.Response:
        async def sent() -> httpx.Response:
            transport = httpx.ASGITransport(self.app, client=(self.client, 5000))
            async with httpx.AsyncClient(transport=transport, base_url=self.base) as one:
                return await one.request(method, path, **more)

        answer = asyncio.run(sent())
        missing = {name for name, value in ALWAYS.items() if answer.headers.get(name) != value}
        assert not missing, f"{method} {path}: {answer.status_code} without {missing}"
        assert answer.headers["referrer-policy"] in ("no-referrer", "same-origin")
        return answer

    def get(self, path: str, **more: Any) -> httpx.Response:
        return self.ask("GET", path, **more)

    def act(self, path: str, body: Any = None, **headers: str) -> httpx.Response:
        return self.ask("POST", path, json=body or {}, headers={**ACTING, **headers})


@pytest.fixture
def queue(tmp_path: Path) -> Iterator[Queue]:
    made = Queue(tmp_path / "jobs.db", by="ada@box")

    @made.task(lane="render", title="{name}")
    def render(ctx: Context, name: str, pages: int = 3) -> None:
        raise NotImplementedError

    made.check_store()
    yield made
    made.close()


@pytest.fixture
def page(queue: Queue) -> Page:
    return Page(lineclear.page(queue))


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[Callable[..., Ground]]:
    """Starts a real server with these options of ``serve``; no worker before ``site.worker()``."""
    with ExitStack() as stack:
        yield lambda *options, **more: stack.enter_context(ground(tmp_path, *options, **more))


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    """A real server, once for all tests of a module that change nothing in it."""
    with ground(tmp_path_factory.mktemp("served")) as made:
        yield made

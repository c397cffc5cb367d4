"""Asking the API: through the real application in this process, or a real server process."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from tests.helpers import SOURCES

import lineclear
from lineclear import Queue

ROOT = "/api/v1"
ACTING = {"Lineclear-Request": "1"}


class Api:
    """The real application of a queue, asked without a socket."""

    def __init__(self, queue: Queue) -> None:
        self.app = lineclear.page(queue)

    def ask(self, method: str, path: str, **more: Any) -> httpx.Response:
        async def sent() -> httpx.Response:
            transport = httpx.ASGITransport(self.app, raise_app_exceptions=False)
            async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as one:
                return await one.request(method, f"{ROOT}{path}", **more)

        return asyncio.run(sent())

    def get(self, path: str, *, status: int = 200, **params: Any) -> Any:
        answer = self.ask("GET", path, params=params or None)
        assert answer.status_code == status, answer.text
        return answer.json()

    def act(
        self,
        path: str,
        body: Any = None,
        *,
        status: int = 200,
        method: str = "POST",
        **headers: str,
    ) -> Any:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        answer = self.ask(method, path, json=body or {}, headers={**ACTING, **named})
        assert answer.status_code == status, answer.text
        if status >= 400:
            assert answer.headers["content-type"] == "application/problem+json"
            assert answer.json()["status"] == status
        return answer.json()

    def raw(self, path: str, text: str | bytes, *, method: str = "POST") -> httpx.Response:
        headers = {**ACTING, "Content-Type": "application/json"}
        return self.ask(method, path, content=text, headers=headers)


@contextmanager
def server(database: Path, app: str | None = None) -> Iterator[str]:
    """A real server process; its address."""
    command = [sys.executable, "-m", "lineclear.web", str(database), "--bind", "127.0.0.1:0"]
    process = subprocess.Popen(
        [*command, *(["--app", app] if app else [])],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        cwd=database.parent,
        env={**os.environ, "PYTHONPATH": str(SOURCES)},
    )
    try:
        assert process.stdout is not None
        said = process.stdout.readline()
        yield said.split()[-1].rstrip("/") + ROOT
    finally:
        process.terminate()
        process.wait(30)
        assert process.stdout is not None
        process.stdout.close()

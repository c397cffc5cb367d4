"""The page and the HTTP API of one queue, put together. Public as ``lineclear.page``.

Runs alone under serving.py or mounted in somebody's application, under any path. It has no
lifespan, since nobody calls the lifespan of what is mounted.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from contextlib import suppress
from importlib import import_module
from importlib.metadata import version

from fastapi import FastAPI

from lineclear.queue import Queue
from lineclear.web import pages, session
from lineclear.web.guard import Guard
from lineclear.web.tokens import Tokens

API = "/api/v1"


def create_app(queue: Queue, *, hosts: Iterable[str] = (), trust_network: bool = False) -> Guard:
    """The page of ``queue``, as an ASGI application.

    Args:
        queue: whose jobs it shows; its tasks are those that can be added.
        hosts: names by which this server is asked, beyond those of the machine itself.
        trust_network: whoever can reach it may do everything, tokens or not.
    """
    app = FastAPI(
        title="Line Clear",
        version=version("lineclear"),
        openapi_url=f"{API}/openapi.json",
        docs_url=None,  # it loads its scripts from elsewhere
        redoc_url=None,
        redirect_slashes=False,
    )
    boot = secrets.token_hex(4)
    app.include_router(session.router(queue, boot=boot), prefix=API, tags=["session"])
    app.include_router(session.form(queue))
    with suppress(ImportError, SyntaxError):
        from lineclear.web import stream

        app.include_router(stream.router(queue, boot=boot), prefix=API)
    for name in ("jobs", "lanes", "submit", "looks", "logs"):
        with suppress(ImportError, SyntaxError):
            module = import_module(f"lineclear.web.{name}")
            app.include_router(module.router(queue), prefix=API)
            if name == "logs":
                app.include_router(module.pages(queue))
    with suppress(ImportError, SyntaxError):
        app.include_router(import_module("lineclear.web.plain").router(queue))
    app.include_router(pages.router(queue))
    with suppress(ImportError, AttributeError):
        import_module("lineclear.web.problems").install(app)
    return Guard(
        app,
        me=queue.by,
        tokens=Tokens(queue.files),
        hosts=tuple(hosts),
        trust_network=trust_network,
    )

"""The page and the HTTP API of one queue, put together. Public as ``lineclear.page``.

Runs alone under serving.py or mounted in somebody's application, under any path. It has no
lifespan, since nobody calls the lifespan of what is mounted.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from importlib.metadata import version

from fastapi import FastAPI

from lineclear.queue import Queue
from lineclear.web import (
    health,
    jobs,
    lanes,
    logs,
    looks,
    pages,
    plain,
    problems,
    session,
    stream,
    submit,
)
from lineclear.web.asked import API, Heard
from lineclear.web.guard import Guard
from lineclear.web.tokens import Tokens


def page(queue: Queue, *, hosts: Iterable[str] = (), trust_network: bool = False) -> Guard:
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
    boot, heard = secrets.token_hex(4), Heard()
    for router in (
        *(each.router(queue) for each in (jobs, lanes, submit, looks, logs)),
        stream.router(queue, boot=boot, heard=heard),
        session.router(queue, boot=boot),
        health.router(queue, heard),
        logs.pages(queue),
        plain.router(queue),
        session.form(queue),
        pages.router(queue),
    ):
        # Not included, which would make every route a second time at the first request.
        app.router.routes.extend(router.routes)
    problems.install(app)
    return Guard(
        app,
        me=queue.by,
        tokens=Tokens(queue.files),
        hosts=tuple(hosts),
        trust_network=trust_network,
        heard=heard,
    )

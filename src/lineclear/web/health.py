"""``/-/health`` for whoever restarts what does not answer, ``/-/metrics`` for whoever draws.

Mounted by app.py. Health is told to everybody, token or not, and so says no name of a job, a lane
or a machine; metrics name lanes and are told to whoever may look.
"""

from __future__ import annotations

from importlib.metadata import version
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Response
from pydantic import BaseModel

from lineclear.queue import Queue
from lineclear.web.asked import Heard
from lineclear.web.guard import Who, asks


class Health(BaseModel):
    """How the page is, and how many lanes have work that nobody does."""

    status: Literal["ok"] = "ok"
    version: str
    database: Literal["ok"] = "ok"
    workers: int
    unserved: int


def router(queue: Queue, heard: Heard) -> APIRouter:
    """Below ``/-``."""
    routes = APIRouter(prefix="/-", tags=["machines"])

    @routes.get("/health")
    def health() -> Health:
        """Whether the database answers. Asks for no token."""
        return Health(
            version=version("lineclear"),
            workers=sum(worker.alive is not False for worker in queue.workers()),
            unserved=sum(bool(lane.waiting) and not lane.workers for lane in queue.lanes()),
        )

    @routes.get("/metrics", response_class=Response)
    def metrics(_: Annotated[Who, Depends(asks)]) -> Response:
        """The queue in numbers, as OpenMetrics."""
        from lineclear.web import numbers  # its library would slow down every start

        return Response(numbers.text(queue, heard), media_type=numbers.CONTENT_TYPE)

    return routes

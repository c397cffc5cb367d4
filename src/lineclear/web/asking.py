"""What all routes have in common: who asks and how, an act that is done once, a job as it is now.

Used by the routers of this folder. It decides nothing: whether an act fits is said by the queue.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Path, Query, Request, Response

from lineclear import figures, moves, replies
from lineclear.errors import BadInput, UnknownLane, WrongState
from lineclear.job import Job, Lane, State
from lineclear.queue import Queue
from lineclear.queue import Request as Once
from lineclear.shown import Row, fields
from lineclear.view import Gatherer
from lineclear.web.asked import API
from lineclear.web.guard import Who, asks
from lineclear.web.problems import Answer, Strict, problem

Marks = Annotated[
    int, Query(ge=0, le=1, description="1: moments and names in sentences are marked.")
]
JobId = Annotated[int, Path(ge=1, lt=2**53)]
LaneName = Annotated[str, Path(min_length=1, max_length=64)]
Limit = Annotated[int, Query(ge=1, le=200)]
Version = Annotated[
    str | None,
    Header(
        alias="If-Match",
        pattern=r'^"?\d{1,15}"?$',
        description="The job's version as it was seen; where it has changed nothing is done.",
    ),
]
Key = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        pattern=r"^[!-~]{1,200}$",
        description="With the same key an act is done once, however often it is sent.",
    ),
]


@dataclass(frozen=True, slots=True)
class Asking:
    """One request: by whom, whether sentences are to be marked, and what names the act."""

    by: str
    marks: bool
    key: str | None = None
    what: str = ""


def _looking(who: Annotated[Who, Depends(asks)], marks: Marks = 0) -> Asking:
    return Asking(who.name, bool(marks))


async def _acting(
    request: Request, who: Annotated[Who, Depends(asks)], marks: Marks = 0, key: Key = None
) -> Asking:
    body = (await request.body()).decode("utf-8", "replace")
    return Asking(who.name, bool(marks), key, f"{request.method} {request.url.path} {body}")


Looking = Annotated[Asking, Depends(_looking)]
Acting = Annotated[Asking, Depends(_acting)]


def routes(tag: str) -> APIRouter:
    return APIRouter(prefix=API, tags=[tag], route_class=Strict)


def version_of(text: Version) -> int | None:
    return None if text is None else int(text.strip('"'))


@contextmanager
def telling(asking: Asking) -> Iterator[None]:
    """Sentences inside are marked where that was asked for."""
    if not asking.marks:
        yield
        return
    with figures.marked():
        yield


def row(queue: Queue, asking: Asking, job: Job) -> dict[str, Any]:
    """One job as it is shown to the one who asks."""
    with telling(asking):
        return fields(Gatherer(queue, me=asking.by).row(job))


def rows(queue: Queue, asking: Asking, jobs: Iterable[Job]) -> list[dict[str, Any]]:
    """The same for many; each lane is looked at once."""
    get = Gatherer(queue, me=asking.by)
    around = cache(
        lambda name: (get.lane_of(name), [get.running(job) for job in queue.running(name)])
    )

    def one(job: Job) -> Row:
        if job.state is not State.QUEUED:
            return get.row(job)
        return get.waiting(job, *around(job.lane), place=queue.place(job.id))

    with telling(asking):
        return [fields(one(job)) for job in jobs]


def replay(once: Once) -> Mapping[str, str]:
    return {"Idempotency-Replayed": "true"} if once.replayed else {}


def on_job(
    queue: Queue,
    asking: Asking,
    job_id: int,
    act: str,
    do: Callable[[], object],
    *,
    seen: int | None,
) -> Response:
    """Do one act on one job and answer its row afterwards; a refusal (409) carries it as it is.
    ``seen`` is the version that the asker saw.
    """
    try:
        with queue.once(asking.key, asking.what) as once:
            do()
    except WrongState as error:
        job = queue.brief(job_id)
        changed = act not in moves.acts(job) or seen not in (None, job.version)
        with telling(asking):
            told = replies.too_late(act, job, now_ms=queue.now_ms(), me=asking.by)
            now = row(queue, asking, job)
        return problem(409, told if changed else str(error), job=now)
    after = row(queue, asking, queue.brief(job_id))
    return Answer({**after, "undo": once.undo}, headers=replay(once))


def known_lane(queue: Queue, name: str) -> Lane:
    """The lane as it is now. Raises ``UnknownLane``, or ``BadInput`` for what is no name."""
    try:
        return queue.lane_now(name)
    except UnknownLane:
        return queue.lane(name).get()  # a task's lane that nothing was submitted to yet


def number(cursor: str, field: str) -> int:
    """A cursor that is an id."""
    if not (cursor.isascii() and cursor.isdecimal() and len(cursor) <= 15):
        raise BadInput(field, f"{field}: this is no cursor of ours.")
    return int(cursor)

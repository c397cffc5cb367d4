"""``GET /stream``: everything that changes, as server-sent events; ``GET /state``: the same, once.

Mounted by ``app.py``. ``hub.py`` looks; this sends, to one browser tab each, and follows a log for
those who ask. It never polls, but for a log that somebody follows while its job runs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from importlib.metadata import version
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Query, Response
from starlette.types import Receive, Scope, Send

from lineclear.errors import BadInput, NoSuchJob, StoreError
from lineclear.queue import Queue
from lineclear.web import state
from lineclear.web.asked import API, Heard
from lineclear.web.asking import Marks
from lineclear.web.changes import Public, encode
from lineclear.web.guard import Still, Who, asks, lasts
from lineclear.web.hub import Hub
from lineclear.web.logs import Tail, marked
from lineclear.web.pages import static_hash
from lineclear.web.problems import Answer
from lineclear.web.subscriber import Subscriber

FOLLOWED_EVERY_S = 0.5
RETRY = b"retry: 2000\n\n"
HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
]

Follower = Coroutine[Any, Any, None]
LaneName = Annotated[str | None, Query(max_length=64)]
Text = Annotated[str, Query(max_length=200)]


def router(queue: Queue, *, boot: str, heard: Heard) -> APIRouter:
    routes = APIRouter(prefix=API, tags=["looking"])
    hub = Hub(queue, boot=boot, heard=heard)

    @routes.get("/state")
    def now(
        who: Annotated[Who, Depends(asks)], lane: LaneName = None, marks: Marks = 0
    ) -> Response:
        """The queue as it is now: the stream's snapshot, for those who cannot have a stream."""
        if lane is not None:
            queue.lane(lane)
        cursor = f"{boot}-{queue.last_seq()}"
        seen = {"cursor": cursor, **state.of(queue, lane)}
        return Answer(hub.words(seen, None if marks else who.name))

    @routes.get("/stream")
    async def stream(
        who: Annotated[Who, Depends(asks)],
        still: Annotated[Still, Depends(lasts)],
        *,
        after: Text = "",
        last_event_id: Annotated[str, Header(max_length=200)] = "",
        lane: LaneName = None,
        log: Text = "",
        slow: Annotated[int, Query(ge=0, le=1)] = 0,
        browser: Annotated[str, Query(max_length=64)] = "",
        marks: Marks = 0,
    ) -> Response:
        """Server-sent events: ``hello``, then what was missed or a ``snapshot``, then changes."""
        job, _, cursor = log.partition("@")
        if log and not (job.isascii() and job.isdecimal() and 0 < int(job) < 2**62):
            raise BadInput("log", "A log is named by a job's number and a cursor: 12@1.0.")
        if lane is not None:
            await asyncio.to_thread(queue.lane, lane)
        each = await hub.join(
            lane=lane, slow=bool(slow), browser=browser, me=None if marks else who.name,
            after=after or last_event_id,
        )  # fmt: skip
        hello = {
            "version": version("lineclear"),
            "boot": boot,
            "now_ms": queue.now_ms(),
            "tick_s": hub.tick_s,
            "static": static_hash(),
            "name": who.name,
            "role": who.role,
        }
        follows = partial(follow, queue, int(job), cursor or None, each) if log else None
        return EventStream(hub, each, RETRY + encode("hello", hello), still, follows)

    return routes


async def follow(queue: Queue, job: int, cursor: str | None, each: Subscriber) -> None:
    """Send a log as it grows, at the reader's pace, to its end."""

    def begin() -> Tail:
        return Tail(queue, job, cursor)

    def read(tail: Tail, *, changed: bool) -> Public | None:
        with marked(1):
            return tail.read(changed=changed)

    try:
        tail = await asyncio.to_thread(begin)
    except (NoSuchJob, BadInput) as error:
        each.put_log(encode("log", {"job": job, "lines": [], "end": None, "over": str(error)}))
        return
    try:
        changed = False
        while not tail.over:
            told = await asyncio.to_thread(read, tail, changed=changed)
            changed = False
            if told is not None:
                each.put_log(encode("log", each.words(told)))
                await each.log_taken()
                continue
            with suppress(TimeoutError):
                async with asyncio.timeout(FOLLOWED_EVERY_S if tail.grows else None):
                    await each.changed.wait()
            changed = each.changed.is_set()
            each.changed.clear()
    except StoreError:
        each.end()
    finally:
        tail.close()


class EventStream(Response):
    """One stream's answer. Whatever ends it, the hub is left."""

    def __init__(
        self,
        hub: Hub,
        each: Subscriber,
        hello: bytes,
        still: Still,
        follows: Callable[[], Follower] | None,
    ) -> None:
        super().__init__()
        self.raw_headers = HEADERS  # the length is not known
        self._hub, self._each, self._hello, self._follows = hub, each, hello, follows
        self._still = still

    async def __call__(self, _scope: Scope, receive: Receive, send: Send) -> None:
        sending = asyncio.create_task(self._send(send))
        until = {sending, asyncio.create_task(self._gone(receive))}
        beside = {asyncio.create_task(self._follows())} if self._follows else set()
        try:
            await asyncio.wait(until, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._hub.leave(self._each)
            for task in until | beside:
                task.cancel()
            await asyncio.gather(*until, *beside, return_exceptions=True)
        if not sending.cancelled() and (error := sending.exception()) is not None:
            raise error

    async def _send(self, send: Send) -> None:
        head = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
        with suppress(OSError):  # nobody is there any more
            await send(head)
            await send({"type": "http.response.body", "body": self._hello, "more_body": True})
            while (chunk := await self._each.next()) is not None and await self._still():
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _gone(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

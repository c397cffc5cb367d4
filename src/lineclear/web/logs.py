"""What a job printed, for the page: a part of its log by cursor, the whole as text, what is new.

``app.py`` mounts the routers, ``stream.py`` follows a log with ``Tail``. A cursor is opaque: the
try, and a ``LogReader`` position. It never keeps a whole log in memory, and writes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, Field

from lineclear import figures, words
from lineclear.errors import BadInput
from lineclear.job import Job, State
from lineclear.queue import Queue
from lineclear.web.asked import API
from lineclear.web.asking import JobId, Marks
from lineclear.web.problems import Answer
from lineclear.worker.logreader import LogLine, LogReader, Stream, read_lines

MOST_LINES = 5_000
AT_ONCE = 1_000
"""Lines of one event, and bytes of one read below."""
BYTES_AT_ONCE = 256 * 1024
OVER_KINDS = ("ended", "back in line", "to retry")

Try = Annotated[int | None, Query(alias="try", ge=1, lt=2**31)]
Lines = Annotated[int, Query(ge=1, le=MOST_LINES)]
Cursor = Annotated[str | None, Query(max_length=100)]


class Line(BaseModel):
    """``stream``: o (output), e (errors), l (Line Clear's own). ``continued``: the text goes on
    where that stream's line before was cut.
    """

    at_ms: int
    stream: Stream
    text: str
    continued: bool


class LogPart(BaseModel):
    """``start`` is there where earlier lines are; ``over`` says how the try ended."""

    lines: list[Line]
    start: str | None
    end: str
    number: Annotated[int, Field(alias="try")]
    over: str | None


def router(queue: Queue) -> APIRouter:
    routes = APIRouter(prefix=API, tags=["jobs"])

    @routes.get("/jobs/{job_id}/log", response_model=LogPart)
    def log(
        job_id: JobId,
        *,
        try_: Try = None,
        lines: Lines = 200,
        after: Cursor = None,
        before: Cursor = None,
        marks: Marks = 0,
    ) -> Response:
        """The last lines of a try's log, or those after or before a cursor."""
        job = queue.brief(job_id)
        cursor = after if after is not None else before
        number = which(job, try_, cursor)
        path, at = queue.log_path(job_id, number), None if cursor is None else cut(cursor)[1]
        with LogReader(path, last=None if cursor else lines, at=at) as reader, marked(marks):
            if after is None and before is not None:
                end = before
                found = [] if reader.dropped else reader.read_back(lines)
                start = None if reader.dropped else reader.earlier
            else:
                start = reader.earlier
                found = [GAP] if reader.dropped and after is not None else []
                while len(found) < lines and (new := reader.read_new(lines - len(found))):
                    found += new
                end = written(number, reader.position)
            return Answer(
                {
                    "lines": [told(line) for line in found],
                    "start": None if start is None else written(number, start),
                    "end": end,
                    "try": number,
                    "over": over(queue, job, number),
                }
            )

    return routes


def pages(queue: Queue) -> APIRouter:
    """What stands outside the API: the log as plain text."""
    routes = APIRouter(include_in_schema=False)

    @routes.get("/jobs/{job_id}/log.txt")
    def text(job_id: JobId, try_: Try = None) -> StreamingResponse:
        number = which(queue.brief(job_id), try_, None)
        return StreamingResponse(
            _raw(read_lines(queue.log_path(job_id, number))),
            media_type="text/plain; charset=utf-8",
            headers={
                "Content-Disposition": f'attachment; filename="job-{job_id}-try-{number}.log"',
                "X-Content-Type-Options": "nosniff",
                "Cache-Control": "no-store",
            },
        )

    return routes


def _raw(lines: Iterator[LogLine]) -> Iterator[bytes]:
    """The text alone, cut lines made whole."""
    before = None
    for line in lines:
        goes_on = line.continued and line.stream == before
        yield ("" if before is None or goes_on else "\n").encode() + line.text.encode()
        before = line.stream
    yield b"" if before is None else b"\n"


class Tail:
    """One log as it grows, for one who follows it. Belongs to one thread at a time."""

    def __init__(self, queue: Queue, job_id: int, cursor: str | None) -> None:
        self._queue, self._id, self._cursor = queue, job_id, cursor
        self._job = queue.brief(job_id)
        self._number = which(self._job, None, cursor)
        path = queue.log_path(job_id, self._number)
        at = None if cursor is None else cut(cursor)[1]
        self._reader = LogReader(
            path, last=200 if cursor is None else None, at=at, most_bytes=BYTES_AT_ONCE
        )
        self._gap = self._reader.dropped
        self.over = False

    @property
    def grows(self) -> bool:
        """Whether there may be more though nothing rings."""
        return self._job.state is State.RUNNING and self._job.attempt == self._number

    def read(self, *, changed: bool) -> dict[str, Any] | None:
        """The next lines, the end of the try with its last; ``None`` while there is nothing new."""
        if changed:  # looked at before reading: what is written until then is read below
            self._job = self._queue.brief(self._id)
        lines = self._reader.read_new(AT_ONCE)
        sentence = None if lines else over(self._queue, self._job, self._number)
        self.over = sentence is not None
        if not lines and sentence is None:
            return None
        if self._gap:
            lines, self._gap = [GAP, *lines], False
        return {
            "job": self._id,
            "try": self._number,
            "lines": [told(line) for line in lines],
            "end": written(self._number, self._reader.position),
            "over": sentence,
        }

    def close(self) -> None:
        self._reader.close()


GAP = LogLine(0, "l", "Lines in between were dropped.")


def told(line: LogLine) -> dict[str, Any]:
    return {
        "at_ms": line.at_ms,
        "stream": line.stream,
        "text": line.text,
        "continued": line.continued,
    }


def which(job: Job, try_: int | None, cursor: str | None) -> int:
    """The try that is meant: the one named, the cursor's, the last."""
    number = try_ or (cut(cursor)[0] if cursor else None) or max(job.attempt, 1)
    if number > max(job.attempt, 1):
        raise BadInput("try", f"Job {job.id} had {job.attempt} tries, so there is no try {number}.")
    return number


def cut(cursor: str) -> tuple[int | None, str]:
    number, _, position = cursor.partition(".")
    return (int(number) or None, position) if number.isdecimal() else (None, "")


def written(number: int, position: str) -> str:
    return f"{number}.{position}"


def over(queue: Queue, job: Job, number: int) -> str | None:
    """``Ended 03:12, done``; ``None`` while the try runs, or none has begun."""
    if job.attempt == 0 or (job.attempt == number and job.state is State.RUNNING):
        return None
    now_ms = queue.now_ms()
    for event in reversed(queue.events(job.id, limit=1_000)):
        if event.attempt == number and event.kind in OVER_KINDS:
            at = figures.clock(event.at_ms, now_ms=now_ms)
            return f"Ended {at}, {words.happened(event, now_ms=now_ms, me=queue.by)}"
    return "Ended"


@contextmanager
def marked(marks: int) -> Iterator[None]:
    """Moments and names as marks for the page, where it asks for them."""
    if not marks:
        yield
        return
    with figures.marked():
        yield

"""What a look at the queue shows, gathered once: for tables, ``--json`` and the API.

Called by the verbs that show something and by the page's server. It reads; it never changes
anything. A picture is one read transaction, and costs what it shows, not what waits or has ended.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from lineclear import estimate, words
from lineclear.database import Snapshot
from lineclear.errors import UnknownLane
from lineclear.estimate import Ahead, Left, Span, Usual
from lineclear.figures import iso
from lineclear.job import Job, Lane, State
from lineclear.looks import Look, Reason, look, why_waiting
from lineclear.queue import Queue
from lineclear.shown import (
    Picture,
    Row,
    fields,
    finite,
    lane_fields,
    lanes_document,
    parsed,
    shortened,
    state_fields,
    stats_fields,
)

__all__ = [
    "Gatherer",
    "Picture",
    "Row",
    "document",
    "fields",
    "finite",
    "lane_fields",
    "lanes_document",
    "parsed",
    "picture",
    "shortened",
    "state_fields",
    "stats_fields",
]

FEW = 3
"""Where more jobs run, no sentence names them."""

LOOKED_AHEAD = 200
"""Waiting jobs of a lane whose durations are added up; more are counted as unknown."""


class Gatherer:
    """Reads rows, each task's usual duration once. ``me`` is who reads them: "you"."""

    def __init__(self, queue: Queue, *, me: str | None = None) -> None:
        self.queue = queue
        self.me = queue.by if me is None else me
        self.now_ms = queue.now_ms()
        self.usual: Callable[[str], Usual | None] = cache(
            lambda task: estimate.usual(queue.usual(task))
        )

    def row(self, job: Job, *, lane: Lane | None = None) -> Row:
        """Any job, on its own."""
        if job.state is State.RUNNING:
            return self.running(job)
        if job.ended:
            return self.ended(job)
        at = lane or self.lane_of(job.lane)
        running = [self.running(other) for other in self.queue.running(job.lane)]
        return self.waiting(job, at, running, place=self.queue.place(job.id))

    def lane_of(self, name: str) -> Lane:
        """The lane of a stored job, which in a database changed by hand may be none."""
        try:
            return self.queue.lane_now(name)
        except UnknownLane:
            return Lane(name, concurrency=1, delay_ms=0, last_end_ms=None)

    def ended(self, job: Job) -> Row:
        seen = look(job, now_ms=self.now_ms)
        told = words.detail(job, seen, (), self.now_ms, me=self.me, kept=job.kept)
        return Row(job, seen, words.state_word(seen, job), told, words.amount(job))

    def running(self, job: Job, *, pace: Sequence[tuple[int, float]] | None = None) -> Row:
        seen = look(job, now_ms=self.now_ms)
        usual = self.usual(job.task)
        left: Left = None
        if seen is Look.RUNNING and job.total:
            left = estimate.time_left(
                self.queue.pace(job.id) if pace is None else pace,
                done=job.done,
                total=job.total,
                started_ms=job.started_ms,
                start_done=job.start_done,
                reports=job.moves,
            )
        told = words.detail(job, seen, (), self.now_ms)
        more = words.progress(job, seen, left=left, usual=usual, now_ms=self.now_ms)
        stakes = words.at_stake(job, kept=job.kept, now_ms=self.now_ms)
        word = words.state_word(seen, job)
        return Row(job, seen, word, told, more, left, usual, stakes=stakes)

    def running_of(self, seen: Snapshot, lane: str | None) -> list[Row]:
        """All that runs, in few statements."""
        self.usual = cache(lambda task: estimate.usual(seen.usual(task)))
        jobs = seen.running(lane)
        paces = seen.paces([job.id for job in jobs if job.total])
        return [self.running(job, pace=paces.get(job.id, ())) for job in jobs]

    def waiting(
        self,
        job: Job,
        lane: Lane,
        running: Sequence[Row],
        *,
        place: int | None,
        ahead: Ahead | None = None,
    ) -> Row:
        """``ahead`` is what its lane has before it, where that is known."""
        ids = tuple(row.job.id for row in running)
        reasons = why_waiting(job, lane, running=ids, place=place, now_ms=self.now_ms)
        if place is not None and not any(each.place for each in reasons):
            reasons = (*reasons, Reason("behind", place=place))
        seen = look(job, now_ms=self.now_ms)
        known = ahead is not None and not ahead.unknown and len(running) >= lane.concurrency
        starts = ahead.left().span if known and ahead is not None else None
        names = {row.job.id: row.job.name for row in running[:FEW]}
        told = words.detail(job, seen, reasons, self.now_ms, me=self.me, names=names, starts=starts)
        usual = self.usual(job.task)
        word = words.state_word(seen, job)
        return Row(job, seen, word, told, words.amount(job), None, usual, place, reasons, starts)

    def remaining(self, row: Row) -> Span | None:
        """What a job still takes: measured, else what its kind usually takes, else unknown."""
        if isinstance(row.left, Span):
            return row.left
        if row.usual is None or row.job.state is not State.RUNNING:
            return row.usual.span if row.usual else None
        ran_ms = self.now_ms - (row.job.started_ms or self.now_ms)
        span = row.usual.span
        if span.high_ms is None or span.high_ms <= ran_ms:
            return None
        return Span(max(0, span.low_ms - ran_ms), span.high_ms - ran_ms)


def picture(
    queue: Queue,
    *,
    waiting: int = 20,
    ended: int = 5,
    lane: str | None = None,
    me: str | None = None,
) -> Picture:
    """The whole queue, or one lane of it; ``waiting`` rows of each lane, the last ``ended``."""
    if lane is not None:
        queue.lane(lane)
    get = Gatherer(queue, me=me)
    with queue.snapshot() as seen:
        lanes = [each for each in seen.lanes() if lane in (None, each.name)]
        running = get.running_of(seen, lane)
        shown: list[Row] = []
        sentences = {}
        forecasts = []
        for each in lanes:
            here = [row for row in running if row.job.lane == each.name]
            ahead = Ahead(slots=each.concurrency, delay_ms=each.delay_ms)
            for row in here:
                ahead.add(get.remaining(row))
            jobs = seen.line(each.name, waiting) if each.waiting else []
            for job, place in jobs:
                row = get.waiting(job, each, here, place=place, ahead=ahead)
                shown.append(row)
                ahead.add(row.usual.span if row.usual else None)
            inside = sum(job.held_ms is None and job.run_at_ms is None for job, _ in jobs)
            tasks = seen.tasks_after(each.name, inside, LOOKED_AHEAD) if each.waiting else []
            for task in tasks:
                usual = get.usual(task)
                ahead.add(usual.span if usual else None)
            ahead.unknown += max(0, each.waiting - len(jobs) - len(tasks))
            forecasts.append(ahead.left())
            looks = [row.seen for row in here]
            sentences[each.name] = words.headline(
                [each], looks, now_ms=get.now_ms, forecast=forecasts[-1], me=get.me
            )
        last = [get.ended(job) for job in seen.recent(lane, ended)] if ended else []
    forecast = estimate.together(forecasts)
    text = words.headline(
        lanes, [row.seen for row in running], now_ms=get.now_ms, forecast=forecast, me=get.me
    )
    warnings = tuple(queue.warnings())
    return Picture(get.now_ms, text, lanes, running, shown, last, forecast, sentences, warnings)


def state(
    queue: Queue,
    *,
    waiting: int = 50,
    ended: int = 10,
    lane: str | None = None,
    me: str | None = None,
) -> dict[str, Any]:
    """The whole queue, or one lane, as the page knows it."""
    return state_fields(picture(queue, waiting=waiting, ended=ended, lane=lane, me=me))


def running(queue: Queue, *, lane: str | None = None, me: str | None = None) -> list[Row]:
    """What runs, alone: for a look that only follows progress."""
    get = Gatherer(queue, me=me)
    with queue.snapshot() as seen:
        return get.running_of(seen, lane)


def whole(queue: Queue, job_id: int, *, me: str | None = None) -> dict[str, Any]:
    """Everything of one job: its row with arguments and result whole, and what only its own page
    shows.
    """
    get = Gatherer(queue, me=me)
    job = queue.get(job_id)
    row = get.row(job)
    names = {each.id: each.name for each in queue.running(job.lane)} if row.reasons else {}
    usual = get.usual(job.task)
    return fields(row) | {
        "reasons": [
            words.reason(why, now_ms=get.now_ms, me=get.me, names=names) for why in row.reasons
        ],
        "kept": job.kept,
        "usual": words.usually(usual) if usual else None,
        "tries": job.attempt,
        "log": job.attempt > 0,
        "steps_done": queue.steps_done(job_id),
    }


def document(at: Queue, rows: Sequence[Row], **more: Any) -> str:
    """The one document of ``--json``: ISO 8601 times, durations in seconds, unknown is null."""
    body = {"version": 1, "now": iso(at.now_ms()), **more, "jobs": [fields(row) for row in rows]}
    return json.dumps(body, allow_nan=False, default=str)

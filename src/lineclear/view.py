"""What a look at the queue shows, gathered once: for the table, the live view and ``--json``.

Called by the verbs that show something. It reads; it never changes anything.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from lineclear import estimate, words
from lineclear.estimate import Forecast, Left, Span, Usual
from lineclear.figures import clock, iso
from lineclear.job import Job, Lane, State
from lineclear.looks import Look, Reason, look, why_waiting
from lineclear.queue import Queue

LOOKED_AHEAD = 200
"""Waiting jobs of a lane whose durations are added up; more are counted as unknown."""


@dataclass(frozen=True, slots=True)
class Row:
    """One job as it is shown."""

    job: Job
    seen: Look
    word: str
    detail: str
    progress: str = ""
    left: Left = None
    usual: Usual | None = None
    place: int | None = None
    reasons: tuple[Reason, ...] = ()
    starts: Span | None = None


@dataclass(frozen=True, slots=True)
class Picture:
    """The queue as it was at ``now_ms``."""

    now_ms: int
    headline: str
    lanes: list[Lane]
    running: list[Row]
    waiting: list[Row]
    ended: list[Row]
    forecast: Forecast

    @property
    def rows(self) -> list[Row]:
        return [*self.running, *self.waiting, *self.ended]


class Gatherer:
    """Reads rows, each task's usual duration once."""

    def __init__(self, queue: Queue) -> None:
        self.queue = queue
        self.me = queue.by
        self.now_ms = queue.now_ms()
        self._usual: Callable[[str], Usual | None] = cache(
            lambda task: estimate.usual(queue.usual(task))
        )

    def row(self, job: Job, *, lane: Lane | None = None) -> Row:
        """Any job, on its own."""
        if job.state is State.RUNNING:
            return self.running(job)
        if job.ended:
            seen = look(job, now_ms=self.now_ms)
            kept = finished(self.queue, job) if seen is Look.STOPPED else 0.0
            told = words.detail(job, seen, (), self.now_ms, me=self.me, kept=kept)
            return Row(job, seen, words.state_word(seen, job), told, words.amount(job))
        lanes = [lane] if lane else [each for each in self.queue.lanes() if each.name == job.lane]
        running = [self.running(other) for other in self.queue.running(job.lane)]
        return self.waiting(job, lanes[0], running, ahead=None)

    def running(self, job: Job) -> Row:
        seen = look(job, now_ms=self.now_ms)
        usual = self._usual(job.task)
        left: Left = None
        if seen is Look.RUNNING and job.total:
            left = estimate.time_left(
                self.queue.pace(job.id),
                done=job.done,
                total=job.total,
                started_ms=job.started_ms,
                start_done=job.start_done,
                reports=job.moves,
            )
        told = words.detail(job, seen, (), self.now_ms)
        more = words.progress(job, seen, left=left, usual=usual, now_ms=self.now_ms)
        return Row(job, seen, words.state_word(seen, job), told, more, left, usual)

    def waiting(
        self, job: Job, lane: Lane, running: Sequence[Row], *, ahead: Forecast | None
    ) -> Row:
        place = self.queue.place(job.id)
        ids = tuple(row.job.id for row in running)
        reasons = why_waiting(job, lane, running=ids, place=place, now_ms=self.now_ms)
        if place is not None and not any(each.place for each in reasons):
            reasons = (*reasons, Reason("behind", place=place))
        seen = look(job, now_ms=self.now_ms)
        known = ahead is not None and not ahead.unknown and len(running) >= lane.concurrency
        starts = ahead.span if known and ahead is not None else None
        names = {row.job.id: row.job.name for row in running}
        told = words.detail(job, seen, reasons, self.now_ms, me=self.me, names=names, starts=starts)
        usual = self._usual(job.task)
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


def finished(queue: Queue, job: Job) -> float:
    """The weight of a job's finished steps: what is surely there when it is taken up again."""
    return sum(step.weight for step in queue.steps(job.id))


def picture(queue: Queue, *, waiting: int = 20, ended: int = 5, lane: str | None = None) -> Picture:
    """The whole queue, or one lane of it."""
    get = Gatherer(queue)
    if lane is not None:
        queue.lane(lane)
    lanes = [each for each in queue.lanes() if lane in (None, each.name)]
    running = [get.running(job) for job in queue.running(lane)]
    shown: list[Row] = []
    forecasts = []
    for each in lanes:
        here = [row for row in running if row.job.lane == each.name]
        spans = [get.remaining(row) for row in here]
        line = queue.waiting(each.name, limit=max(waiting, LOOKED_AHEAD)) if each.waiting else []
        for at, job in enumerate(line):
            ahead = estimate.line_left(spans, slots=each.concurrency, delay_ms=each.delay_ms)
            row = get.waiting(job, each, here, ahead=ahead) if at < waiting else None
            if row is not None:
                shown.append(row)
            usual = estimate.usual(queue.usual(job.task)) if row is None else row.usual
            spans.append(usual.span if usual else None)
        spans += [None] * (each.waiting - len(line))
        forecasts.append(estimate.line_left(spans, slots=each.concurrency, delay_ms=each.delay_ms))
    forecast = estimate.together(forecasts)
    text = words.headline(
        lanes, [row.seen for row in running], now_ms=get.now_ms, forecast=forecast, me=get.me
    )
    last = [get.row(job) for job in queue.recent(lane, limit=ended)] if ended else []
    return Picture(get.now_ms, text, lanes, running, shown, last, forecast)


def document(at: Queue, rows: Sequence[Row], **more: Any) -> str:
    """The one document of ``--json``: ISO 8601 times, durations in seconds, unknown is null."""
    body = {"version": 1, "now": iso(at.now_ms()), **more, "jobs": [fields(row) for row in rows]}
    return json.dumps(body, allow_nan=False, default=str)


def lanes_document(seen: Picture) -> dict[str, Any]:
    """The queue's part of the document."""
    span = seen.forecast.span
    return {
        "sentence": seen.headline,
        "left_s": _range(span),
        "unknown": seen.forecast.unknown,
        "lanes": [
            {
                "name": lane.name,
                "slots": lane.concurrency,
                "delay_s": lane.delay_ms / 1000,
                "running": lane.running,
                "waiting": lane.waiting,
                "workers": lane.workers,
                "last_served": iso(lane.last_served_ms),
                "pauses": [
                    {
                        "by": pause.by,
                        "why": pause.why,
                        "since": iso(pause.since_ms),
                        "until": iso(pause.until_ms),
                    }
                    for pause in lane.pauses
                ],
            }
            for lane in seen.lanes
        ],
    }


def fields(row: Row) -> dict[str, Any]:
    """One job's public row: ``--json``, ``--jsonl`` and the names ``--format`` knows."""
    job = row.job
    part = words.share(job)
    now_ms = max(job.submitted_ms, job.ended_ms or 0, job.started_ms or 0)
    return {
        "id": job.id,
        "title": job.name,
        "task": job.task,
        "lane": job.lane,
        "key": job.key,
        "state": str(job.state),
        "look": str(row.seen),
        "word": row.word,
        "detail": row.detail,
        "place": row.place,
        "priority": job.priority,
        "try": job.attempt,
        "args": parsed(job.args),
        "done": _finite(job.done),
        "total": _finite(job.total),
        "unit": job.unit,
        "percent": None if part is None else int(words.percent(job).split()[-2]),
        "progress": row.progress,
        "note": job.note,
        "left_s": _range(row.left if isinstance(row.left, Span) else None),
        "starts_in_s": _range(row.starts),
        "cause": job.cause,
        "error": job.error,
        "result": parsed(job.result),
        "worked_s": job.worked_ms / 1000,
        "beat_age_s": None if job.beat_age_ms is None else job.beat_age_ms / 1000,
        "moved_age_s": None if job.moved_age_ms is None else job.moved_age_ms / 1000,
        "wish": job.wish,
        "added": _when(job.submitted_ms, now_ms),
        "added_by": job.submitted_by,
        "not_before": _when(job.run_at_ms, now_ms),
        "paused": _when(job.held_ms, now_ms),
        "started": _when(job.started_ms, now_ms),
        "ended": _when(job.ended_ms, now_ms),
        "ended_by": job.ended_by,
        "version": job.version,
    }


def _when(at_ms: int | None, now_ms: int) -> dict[str, str | None] | None:
    if at_ms is None:
        return None
    return {"at": iso(at_ms), "words": clock(at_ms, now_ms=now_ms)}


def _range(span: Span | None) -> list[float | None] | None:
    if span is None:
        return None
    return [span.low_ms / 1000, None if span.high_ms is None else span.high_ms / 1000]


def _finite(value: float | None) -> float | None:
    return value if value is not None and abs(value) < float("inf") else None


def _refuse(name: str) -> None:
    raise ValueError(name)


def parsed(text: str | None) -> Any:
    """JSON as it is; one row that cannot be read never takes the others with it: its raw text."""
    try:
        value = None if text is None else json.loads(text, parse_constant=_refuse)
        json.dumps(value, allow_nan=False)  # 1e999 reads as infinity, which is no JSON either
    except (ValueError, RecursionError):
        return {"cannot be shown": text}
    return value

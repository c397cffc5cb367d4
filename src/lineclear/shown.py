"""What is shown of a queue as plain data: rows, lanes and the whole; ``--json`` and the API. Pure.

``view.py`` gathers what is shown, the command line and the page's server pass these on as they are.
Nothing a job holds can break it: what cannot be shown says so in its own field.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lineclear import moves, terms, words
from lineclear.estimate import Forecast, Left, Span, Spread, Stats, Usual
from lineclear.figures import clock, iso
from lineclear.job import COUNT_LIMIT, Job, Lane, Pause
from lineclear.looks import Look, Reason, next_start_ms

CUT = 200
"""Characters of a payload too large for a list, or of one that cannot be shown."""


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
    stakes: str = ""


@dataclass(frozen=True, slots=True)
class Picture:
    """The queue as it was at ``now_ms``. ``sentences`` are each lane's own."""

    now_ms: int
    headline: str
    lanes: list[Lane]
    running: list[Row]
    waiting: list[Row]
    ended: list[Row]
    forecast: Forecast
    sentences: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    @property
    def rows(self) -> list[Row]:
        return [*self.running, *self.waiting, *self.ended]


def fields(row: Row) -> dict[str, Any]:
    """One job's public row: ``--json``, ``--jsonl``, the names ``--format`` knows, and the API."""
    job = row.job
    _, glyph, tone = terms.WORDS[row.seen]
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
        "glyph": glyph,
        "tone": tone,
        "detail": row.detail,
        "place": row.place,
        "priority": job.priority,
        "try": job.attempt,
        "acts": list(moves.acts(job)),
        "stakes": row.stakes,
        "args": payload(job.args, job.args_size),
        "done": finite(job.done),
        "total": finite(job.total),
        "unit": job.unit,
        "percent": None if part is None else int(words.percent(job).split()[-2]),
        "progress": row.progress,
        "note": job.note,
        "left_s": _range(row.left if isinstance(row.left, Span) else None),
        "starts_in_s": _range(row.starts),
        "cause": job.cause,
        "error": job.error,
        "result": payload(job.result, job.result_size),
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
        "submitted_ms": job.submitted_ms,
        "run_at_ms": job.run_at_ms,
        "held_ms": job.held_ms,
        "started_ms": job.started_ms,
        "ended_ms": job.ended_ms,
        "hidden": job.hidden_ms is not None,
        "parent": job.parent,
        "version": job.version,
    }


def lane_fields(lane: Lane, *, sentence: str, now_ms: int) -> dict[str, Any]:
    """One lane; ``sentence`` is its own headline."""
    opens_ms = next_start_ms(lane.last_end_ms, lane.delay_ms, now_ms=now_ms)
    return {
        "name": lane.name,
        "slots": lane.concurrency,
        "delay_s": lane.delay_ms / 1000,
        "running": lane.running,
        "waiting": lane.waiting,
        "workers": lane.workers,
        "last_served": iso(lane.last_served_ms),
        "last_served_ms": lane.last_served_ms,
        "pauses": [_pause(pause) for pause in lane.pauses],
        "sentence": sentence,
        "next_start_ms": opens_ms if opens_ms > now_ms else None,
        "counts_capped": lane.waiting >= COUNT_LIMIT,
    }


def _pause(pause: Pause) -> dict[str, Any]:
    return {
        "source": pause.source,
        "by": pause.by,
        "why": pause.why,
        "since": iso(pause.since_ms),
        "until": iso(pause.until_ms),
        "since_ms": pause.since_ms,
        "until_ms": pause.until_ms,
    }


def state_fields(seen: Picture) -> dict[str, Any]:
    """The whole queue as the page knows it, but for the stream's cursor."""
    return {
        "now_ms": seen.now_ms,
        "sentence": seen.headline,
        "tone": words.headline_tone(seen.lanes, [row.seen for row in seen.running]),
        "unserved": any(lane.waiting and not lane.workers for lane in seen.lanes),
        "lanes": [
            lane_fields(lane, sentence=seen.sentences.get(lane.name, ""), now_ms=seen.now_ms)
            for lane in seen.lanes
        ],
        "running": [fields(row) for row in seen.running],
        "waiting": [fields(row) for row in seen.waiting],
        "ended": [fields(row) for row in seen.ended],
        "warnings": list(seen.warnings),
    }


def stats_fields(seen: Stats) -> dict[str, Any]:
    """Statistics: durations in seconds, moments in milliseconds, unknown is null."""
    return {
        "since_ms": seen.since_ms,
        "now_ms": seen.now_ms,
        "every_s": seen.every_ms / 1000,
        "throughput": [
            {"at_ms": at_ms, "done": done, "failed": failed}
            for at_ms, done, failed in seen.throughput
        ],
        "tasks": [
            {
                "task": each.task,
                "done": each.done,
                "failed": each.failed,
                "ran": _spread(each.ran),
                "waited": _spread(each.waited),
            }
            for each in seen.tasks
        ],
        "oldest": None
        if seen.oldest is None
        else {"id": seen.oldest[0], "submitted_ms": seen.oldest[1]},
        "ranges": {"shown": seen.ranges, "inside": seen.inside, "words": words.range_rate(seen)},
        "capped": seen.capped,
    }


def _spread(of: Spread | None) -> dict[str, Any] | None:
    if of is None:
        return None
    return {
        "median_s": of.median_ms / 1000,
        "low_s": of.low_ms / 1000,
        "high_s": of.high_ms / 1000,
        "jobs": of.jobs,
    }


def lanes_document(seen: Picture) -> dict[str, Any]:
    """The queue's part of the ``--json`` document."""
    return {
        "sentence": seen.headline,
        "left_s": _range(seen.forecast.span),
        "unknown": seen.forecast.unknown,
        "lanes": state_fields(seen)["lanes"],
    }


def _when(at_ms: int | None, now_ms: int) -> dict[str, str | None] | None:
    if at_ms is None:
        return None
    return {"at": iso(at_ms), "words": clock(at_ms, now_ms=now_ms)}


def _range(span: Span | None) -> list[float | None] | None:
    if span is None:
        return None
    return [span.low_ms / 1000, None if span.high_ms is None else span.high_ms / 1000]


def finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def payload(text: str | None, size: int | None) -> Any:
    """Stored JSON, or its beginning and whole size where only that was read."""
    if text is not None and size is not None and len(text) < size:
        return {"cut": text[:CUT], "size": size}
    return parsed(text)


def shortened(text: str | None) -> Any:
    """The same for a payload that is here whole and may be too large for a list."""
    return (
        parsed(text) if text is None or len(text) <= 500 else {"cut": text[:CUT], "size": len(text)}
    )


def parsed(text: str | None) -> Any:
    """JSON as it is; one that cannot be read never takes the others with it."""
    try:
        value = None if text is None else json.loads(text, parse_constant=_refuse)
        json.dumps(value, allow_nan=False)  # 1e999 reads as infinity, which is no JSON either
        _ = text is None or "\\u" not in text or json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return {"cannot be shown": (text or "")[:CUT]}
    return value


def _refuse(name: str) -> None:
    raise ValueError(name)

"""What adding a job would do, for the form that asks before it adds. Called by submit.py.

It submits in a transaction that it takes back, so that nothing is reckoned in two ways. Nothing is
ever added, and nobody is woken.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from lineclear import estimate, words
from lineclear.job import Job, NewJob
from lineclear.looks import look, why_waiting
from lineclear.queue import Queue
from lineclear.replies import UNKNOWN_DURATION
from lineclear.store import acts, reads
from lineclear.view import picture


class _TakenBack(Exception):
    pass


def outlook(queue: Queue, new: NewJob, *, me: str) -> dict[str, Any]:
    """What adding this job would do. Nothing is added."""
    job, is_new, place = _as_if_added(queue, new)
    usual = estimate.usual(queue.usual(new.task))
    return {
        "job": None,
        "new": is_new,
        "place": place,
        "takes": UNKNOWN_DURATION if usual is None else words.usually(usual),
        "starts": _starts(queue, job, place, me=me),
    }


def _as_if_added(queue: Queue, new: NewJob) -> tuple[Job, bool, int | None]:
    added: list[tuple[Job, bool, int | None]] = []
    with suppress(_TakenBack), queue.store.write(durable=False) as tx:
        job, is_new = acts.submit(tx, new)
        added.append((job, is_new, reads.place(tx, job)))
        raise _TakenBack
    return added[0]


def _starts(queue: Queue, job: Job, place: int | None, *, me: str) -> str:
    seen = picture(queue, waiting=0, ended=0, lane=job.lane, me=me)
    lane = next(each for each in seen.lanes if each.name == job.lane)
    running = tuple(row.job.id for row in seen.running)
    reasons = why_waiting(job, lane, running=running, place=place, now_ms=seen.now_ms)
    last = place is None or place > lane.waiting
    known = last and not seen.forecast.unknown and len(running) >= lane.concurrency
    return words.detail(
        job,
        look(job, now_ms=seen.now_ms),
        reasons,
        seen.now_ms,
        me=me,
        names={row.job.id: row.job.name for row in seen.running},
        starts=seen.forecast.span if known else None,
    )

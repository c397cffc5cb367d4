"""What people see of a job beyond its stored state, computed when they look and stored nowhere.
Pure.

Two facts are kept apart: *alive* (the worker beats for it) and *moving* (the work itself advances).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import assert_never

from lineclear.job import Cause, Job, Lane, State, Wish

BEAT_MS = 10_000
SILENT_AFTER_MS = 3 * BEAT_MS
QUIET_AFTER_MS = 60_000
NO_ANSWER_AFTER_MS = 60_000


class Look(StrEnum):
    """The state words people read; ``words.py`` has the words."""

    WAITING = "waiting"
    SCHEDULED = "scheduled"
    RETRY_WAIT = "retry_wait"
    HELD = "held"
    RUNNING = "running"
    QUIET = "quiet"
    SILENT = "silent"
    WORKER_GONE = "worker_gone"
    STOPPING = "stopping"
    STOPPING_NO_ANSWER = "stopping_no_answer"
    STOPPING_NOW = "stopping_now"
    DONE = "done"
    FAILED = "failed"
    STOPPED = "stopped"
    KILLED = "killed"
    LOST = "lost"
    REMOVED = "removed"


def look(job: Job, *, now_ms: int) -> Look:
    """The one word for a job, as of the moment it was read."""
    match job.state:
        case State.QUEUED:
            return _look_queued(job, now_ms)
        case State.RUNNING:
            return _look_running(job, now_ms)
        case State.DONE:
            return Look.DONE
        case State.FAILED:
            return Look.LOST if job.cause is Cause.WORKER_LOST else Look.FAILED
        case State.CANCELLED:
            if job.cause is Cause.KILLED:
                return Look.KILLED
            never_ran = job.cause is Cause.REMOVED and job.attempt == 0
            return Look.REMOVED if never_ran or job.cause is Cause.REMOVED else Look.STOPPED
        case _ as never:
            assert_never(never)


def _look_queued(job: Job, now_ms: int) -> Look:
    if job.held_ms is not None:
        return Look.HELD
    if job.run_at_ms is not None and job.run_at_ms > now_ms:
        return Look.RETRY_WAIT if job.failures else Look.SCHEDULED
    return Look.WAITING


def _look_running(job: Job, now_ms: int) -> Look:
    if job.worker_alive is False:
        return Look.WORKER_GONE
    if silent(job):
        return Look.SILENT
    if job.wish in (Wish.KILL, Wish.REQUEUE):
        return Look.STOPPING_NOW
    if job.wish is Wish.CANCEL:
        asked_ms = now_ms - (job.wish_ms or now_ms)
        return Look.STOPPING_NO_ANSWER if asked_ms > NO_ANSWER_AFTER_MS else Look.STOPPING
    return Look.QUIET if quiet(job) else Look.RUNNING


def silent(job: Job) -> bool:
    """Not responding: no beat for three intervals. Unknown ages claim nothing."""
    return job.beat_age_ms is not None and job.beat_age_ms > SILENT_AFTER_MS


def quiet(job: Job) -> bool:
    """Alive, but the work has not moved for a minute and for five times its own usual gap."""
    if job.moved_age_ms is None:
        return False
    usual = 0.0
    if job.moves and job.moved_tick is not None and job.start_tick is not None:
        usual = (job.moved_tick - job.start_tick) / job.moves
    return job.moved_age_ms > max(QUIET_AFTER_MS, 5 * usual)


@dataclass(frozen=True, slots=True)
class Reason:
    """One reason why a waiting job does not run now. ``kind`` names it, the rest are its
    particulars.

    Kinds: ``held``, ``due``, ``retry``, ``no worker``, ``paused``, ``slots``, ``delay``,
    ``behind``, ``next``.
    """

    kind: str
    by: str = ""
    why: str = ""
    at_ms: int | None = None
    jobs: tuple[int, ...] = ()
    place: int | None = None


def why_waiting(
    job: Job, lane: Lane, *, running: tuple[int, ...], place: int | None, now_ms: int
) -> tuple[Reason, ...]:
    """Every reason that holds a waiting job back, the weightiest first; empty for one that does not
    wait.
    """
    if job.state is not State.QUEUED:
        return ()
    reasons = []
    if job.held_ms is not None:
        reasons.append(Reason("held", by=job.held_by or "", at_ms=job.held_ms))
    if job.run_at_ms is not None and job.run_at_ms > now_ms:
        kind = "retry" if job.failures else "due"
        reasons.append(Reason(kind, at_ms=job.run_at_ms, why=job.error or ""))
    if lane.workers == 0:
        reasons.append(Reason("no worker", at_ms=lane.last_served_ms))
    if job.forced_ms is None:
        reasons += [
            Reason("paused", by=pause.by, why=pause.why, at_ms=pause.until_ms)
            for pause in lane.pauses
            if pause.until_ms is None or pause.until_ms > now_ms
        ]
        opens_ms = next_start_ms(lane.last_end_ms, lane.delay_ms, now_ms=now_ms)
        if opens_ms > now_ms:
            reasons.append(Reason("delay", at_ms=opens_ms))
    if len(running) >= lane.concurrency:
        reasons.append(Reason("slots", jobs=running))
    if place is not None and place > 1:
        reasons.append(Reason("behind", place=place))
    return tuple(reasons) or (Reason("next", place=place),)


def next_start_ms(last_end_ms: int | None, delay_ms: int, *, now_ms: int) -> int:
    """When the lane's delay allows the next start. An end in the future (a clock set back) counts
    as now.
    """
    if last_end_ms is None or delay_ms == 0:
        return 0
    return min(last_end_ms, now_ms) + delay_ms

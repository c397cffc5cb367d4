"""The state machine: alone knows which state may follow which, and why a job is not running. Pure.

    (nothing) ──submit──► queued ──claim──► running ──finish──► done | failed | cancelled
                            ▲ │ remove, cancel   │                        │
                            │ └─► cancelled      │ interrupted, stop now, │
                            │                    │ superseded, retries    │
                            └────────────────────┘◄───────── retry ───────┘

Each function takes a job as it is and answers a ``Move``: the columns to set and the event to
write. A store executes moves inside one transaction and never invents one. What does not fit raises
``WrongState``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lineclear.endings import cut, judge
from lineclear.errors import WrongState
from lineclear.job import Cause, Ending, Job, State, Wish

Columns = Mapping[str, Any]

WISH_RANK = {None: 0, Wish.REQUEUE: 1, Wish.CANCEL: 2, Wish.KILL: 3}

NO_RUN: Columns = {
    "slot": None,
    "lease": None,
    "worker": None,
    "child_pid": None,
    "child_start": None,
    "beat_tick": None,
    "moved_tick": None,
    "start_tick": None,
    "publishing": None,
    "outcome": None,
    "wish": None,
    "wish_by": None,
    "wish_ms": None,
    "forced_ms": None,
}
"""What a job that is not running carries of a run: nothing. Wishes and force are cleared by every
end.
"""


@dataclass(frozen=True, slots=True)
class Move:
    """One change of a job: ``changes`` are columns to set, ``kind`` and ``detail`` the event."""

    kind: str
    changes: Columns
    detail: Mapping[str, Any] = field(default_factory=dict)
    by: str = ""
    wakes_workers: bool = False


def claim(
    job: Job,
    *,
    slot: int,
    lease: str,
    worker: str,
    now_ms: int,
    tick_ms: int,
    process: tuple[int, int] | None = None,
) -> Move:
    """queued → running, in ``slot`` under ``lease``; in that ``process`` where it is there already:
    its pid and start.
    """
    _expect(job, State.QUEUED, "started")
    changes = dict(NO_RUN) | {
        "state": State.RUNNING,
        "slot": slot,
        "lease": lease,
        "worker": worker,
        "attempt": job.attempt + 1,
        "run_revision": job.revision,
        "beat_tick": tick_ms,
        "moved_tick": tick_ms,
        "start_tick": tick_ms,
        "moves": 0,
        "started_ms": now_ms,
        "start_done": job.done,
        "run_at_ms": None,
        "error": None,
        "cause": None,
    }
    if process is not None:
        changes["child_pid"], changes["child_start"] = process
    return Move("claimed", changes, {"slot": slot, "worker": worker}, by=worker)


def hold(job: Job, *, by: str, now_ms: int, why: str = "") -> Move | None:
    """Set one waiting job aside; it keeps its place. ``None`` when it is held already."""
    _expect(job, State.QUEUED, "paused")
    if job.held_ms is not None:
        return None
    changes = {"held_ms": now_ms, "held_by": by, "forced_ms": None}
    return Move("held", changes, _with(why), by=by)


def release(job: Job, *, by: str, why: str = "") -> Move | None:
    """Back in line, at the place it kept."""
    _expect(job, State.QUEUED, "resumed")
    if job.held_ms is None:
        return None
    changes = {"held_ms": None, "held_by": None}
    return Move("released", changes, _with(why), by=by, wakes_workers=True)


def remove(job: Job, *, by: str, now_ms: int, why: str = "") -> Move:
    """Take one waiting job out of the line: it ends as cancelled, never started anew."""
    _expect(job, State.QUEUED, "removed")
    return _cancelled(Cause.REMOVED, by=by, now_ms=now_ms, why=why)


def unremove(job: Job, *, by: str) -> Move:
    """Undo of ``remove``: back at the place it had."""
    if job.state is not State.CANCELLED or job.cause is not Cause.REMOVED:
        raise WrongState(
            job.state, f"Job {job.id} is {job.state}, so its removal cannot be undone."
        )
    changes = {"state": State.QUEUED, "cause": None, "error": None, "hidden_ms": None}
    changes |= {"ended_ms": None, "ended_by": None}
    return Move("restored", changes, by=by, wakes_workers=True)


def cancel(job: Job, *, by: str, now_ms: int, why: str = "") -> Move | None:
    """Waiting: ends at once. Running: asked, and happens at the job's next safe point."""
    if job.state is State.QUEUED:
        return _cancelled(Cause.ASKED, by=by, now_ms=now_ms, why=why)
    return wish(job, Wish.CANCEL, by=by, now_ms=now_ms, why=why)


def orphan(job: Job, *, now_ms: int) -> Move:
    """The job that submitted it was stopped or removed: a waiting child ends with it."""
    _expect(job, State.QUEUED, "stopped")
    return _cancelled(Cause.PARENT_CANCELLED, by=f"job {job.parent}", now_ms=now_ms, why="")


def kill(job: Job, *, by: str, now_ms: int, why: str = "") -> Move | None:
    """Running: its process group is ended now and the job ends as cancelled. Waiting: the same as
    cancel.
    """
    if job.state is State.QUEUED:
        return _cancelled(Cause.ASKED, by=by, now_ms=now_ms, why=why)
    return wish(job, Wish.KILL, by=by, now_ms=now_ms, why=why)


def wish(job: Job, want: Wish, *, by: str, now_ms: int, why: str = "") -> Move | None:
    """Ask something of a running job. Wishes only rise; once the outcome is set none changes it
    (answers ``None``).
    """
    _expect(job, State.RUNNING, "stopped")
    if job.outcome is not None or WISH_RANK[job.wish] >= WISH_RANK[want]:
        return None
    changes: dict[str, Any] = {"wish": want, "wish_by": by, "wish_ms": now_ms}
    return Move("asked", changes, _with(why, wish=want), by=by, wakes_workers=True)


def force(job: Job, *, by: str, now_ms: int, why: str = "") -> Move | None:
    """Start one job though its lane is paused or its delay runs. Slots still hold."""
    _expect(job, State.QUEUED, "started now")
    if job.forced_ms is not None:
        return None
    changes = {"forced_ms": now_ms, "held_ms": None, "held_by": None, "run_at_ms": None}
    return Move("forced", changes, _with(why), by=by, wakes_workers=True)


def place(job: Job, *, priority: int, position: int, by: str, why: str = "") -> Move | None:
    """Another place in line."""
    _expect(job, State.QUEUED, "moved")
    if (priority, position) == (job.priority, job.position):
        return None
    before = _with(why, priority=job.priority, position=job.position)
    return Move("moved", {"priority": priority, "position": position}, before, by=by)


def retry(
    job: Job, *, by: str, start_over: bool, priority: int, position: int, why: str = ""
) -> Move:
    """An ended job back in line, with its finished steps unless it starts over."""
    if not job.ended:
        raise WrongState(
            job.state, f"Job {job.id} is {job.state}; only an ended job can be tried again."
        )
    changes = dict(NO_RUN) | {
        "state": State.QUEUED,
        "priority": priority,
        "position": position,
        "interruptions": 0,
        "failures": 0,
        "cause": None,
        "error": None,
        "result": None,
        "ended_ms": None,
        "ended_by": None,
        "hidden_ms": None,
        "run_at_ms": None,
        "held_ms": None,
        "held_by": None,
    }
    if start_over:
        changes |= {"done": None, "total": None, "note": "", "kept": 0.0}
        changes["revision"] = job.revision + 1
    detail = _with(why, start_over=start_over)
    return Move("retried", changes, detail, by=by, wakes_workers=True)


def ending_of(job: Job, retried: Move) -> Columns:
    """What a retry overwrites of how a job had ended, for ``unretry``."""
    return {name: getattr(job, name) for name in retried.changes}


def unretry(job: Job, was: Columns, *, since: Sequence[str], by: str) -> Move | None:
    """Undo of ``retry``: exactly as it had ended. ``since`` are the kinds of its events after the
    retry; ``None`` for a job that has done more than wait since.
    """
    if job.state is not State.QUEUED or not WAITED.issuperset(since):
        return None
    cause = None if was["cause"] is None else Cause(was["cause"])
    changes = dict(was) | {"state": State(was["state"]), "cause": cause}
    return Move("retry undone", changes, {"state": changes["state"]}, by=by)


WAITED = frozenset({"moved", "held", "released"})
"""Kinds of events that leave a waiting job waiting, in a place that goes with it."""


def acts(job: Job) -> tuple[str, ...]:
    """The acts a person can ask of this job as it is now, by the names of their buttons."""
    if job.ended:
        return ("retry",)
    if job.state is State.QUEUED:
        held = "hold" if job.held_ms is None else "release"
        return (held, "move", "remove", *(() if job.forced_ms is not None else ("force",)))
    asked = 3 if job.outcome is not None else WISH_RANK[job.wish]
    wishes = (("stop", Wish.CANCEL), ("kill", Wish.KILL))
    return tuple(name for name, want in wishes if WISH_RANK[want] > asked)


def resubmit(job: Job, *, args: str, title: str, by: str) -> Move:
    """A submit whose key belongs to a run that is being stopped: queued afresh when that
    run ends.
    """
    _expect(job, State.RUNNING, "asked again")
    changes = {"args": args, "title": title, "revision": job.revision + 1}
    return Move("asked again", changes, {"revision": job.revision + 1}, by=by)


def hide(job: Job, *, by: str, now_ms: int) -> Move:
    """Take an ended job out of the lists. Its row and its log stay."""
    if not job.ended:
        raise WrongState(job.state, f"Job {job.id} is {job.state}; only ended jobs are cleared.")
    return Move("hidden", {"hidden_ms": now_ms}, by=by)


def show(*, by: str) -> Move:
    """Undo of ``hide``."""
    return Move("shown again", {"hidden_ms": None}, by=by)


def finish(job: Job, ending: Ending, *, by: str, now_ms: int) -> Move:
    """The end of a run: the one place where it is decided what an attempt's end makes of
    the job.
    """
    _expect(job, State.RUNNING, "ended")
    verdict = judge(job, ending)
    started = job.started_ms if job.started_ms is not None else now_ms
    changes: dict[str, Any] = dict(NO_RUN) | {"worked_ms": job.worked_ms + max(0, now_ms - started)}
    detail: dict[str, Any] = {"state": verdict.state, "cause": verdict.cause}
    if verdict.error:
        detail["error"] = verdict.error
    if job.wish_by and verdict.state is not State.DONE:
        by = job.wish_by
    if job.revision > job.run_revision:
        changes |= {"state": State.QUEUED, "cause": Cause.SUPERSEDED, "error": None}
        changes |= {"done": None, "total": None, "note": "", "kept": 0.0}
        changes |= {"interruptions": 0, "failures": 0}
        detail["again"] = job.revision
        return Move("ended", changes, detail, by=by, wakes_workers=True)
    changes |= {"state": verdict.state, "cause": verdict.cause, "error": verdict.error}
    if verdict.state is State.QUEUED:
        changes["interruptions"] = job.interruptions + (1 if verdict.counts else 0)
        return Move("back in line", changes, detail, by=by, wakes_workers=True)
    if verdict.state is State.FAILED:
        changes["failures"] = job.failures + 1
        if verdict.cause not in NEVER_RETRIED and job.failures < job.options.retries:
            doubled = 2 ** min(job.failures, MOST_DOUBLINGS)
            wait_ms = int(job.options.retry_delay_s * 1000 * doubled)
            changes |= {"state": State.QUEUED, "run_at_ms": now_ms + wait_ms}
            detail |= {"state": State.QUEUED, "again_ms": now_ms + wait_ms}
            return Move("to retry", changes, detail, by=by, wakes_workers=True)
    changes |= {"ended_ms": now_ms, "ended_by": by, "result": verdict.result}
    if verdict.state is State.DONE and job.total is not None:
        changes["done"] = job.total
    return Move("ended", changes, detail, by=by, wakes_workers=True)


NEVER_RETRIED = frozenset({Cause.INTERRUPTED, Cause.WORKER_LOST})
MOST_DOUBLINGS = 16


def _cancelled(cause: Cause, *, by: str, now_ms: int, why: str) -> Move:
    error = {
        Cause.REMOVED: f"Removed by {by} before it started.",
        Cause.PARENT_CANCELLED: f"Stopped with {by}, which submitted it.",
    }.get(cause, f"Stopped, asked by {by}.")
    changes = dict(NO_RUN) | {
        "state": State.CANCELLED,
        "cause": cause,
        "error": error,
        "ended_ms": now_ms,
        "ended_by": by,
    }
    kind = "removed" if cause is Cause.REMOVED else "ended"
    detail = _with(why, state=State.CANCELLED, cause=cause)
    return Move(kind, changes, detail, by=by)


def _with(why: str, **detail: Any) -> dict[str, Any]:
    kept = {name: value for name, value in detail.items() if value is not None}
    return kept | {"why": cut(why)} if why else kept


def _expect(job: Job, state: State, act: str) -> None:
    if job.state is not state:
        raise WrongState(job.state, f"Job {job.id} is {job.state}, so it cannot be {act}.")

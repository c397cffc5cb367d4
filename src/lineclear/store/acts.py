"""What people do with jobs and lanes. Called by queue.py, and by the supervisor for jobs that
submit jobs.

Each act is one transaction: it reads, lets ``moves`` decide, writes the change with its event, and
rings.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import asdict, replace
from typing import TypeVar

from lineclear import moves
from lineclear.endings import cut
from lineclear.errors import BadInput, Refused, UnknownLane, WrongState
from lineclear.figures import count
from lineclear.job import Job, NewJob, State, Wish
from lineclear.moves import Move
from lineclear.store.base import Tx, apply, apply_all, job_of, note_event, one
from lineclear.store.places import To, bottom, target, top
from lineclear.store.rows import read_job
from lineclear.store.runs import cancel_children
from lineclear.store.undo import remember

EVERYTHING = 2**62

MOST_AT_ONCE = 1_000

T = TypeVar("T")


def submit(tx: Tx, new: NewJob) -> tuple[Job, bool]:
    """The job, and whether it is new: a live job with that key is answered instead of a
    second one.
    """
    tx.all("lane_add", lane=new.lane)
    if new.parent is not None:
        known = one(tx, "job_of_parent", parent=new.parent, ordinal=new.ordinal)
        if known is not None:
            return read_job(known), False
        _refuse_child(job_of(tx, new.parent))
    held = one(tx, "job_of_key", lane=new.lane, key=new.key)
    if held is not None:
        job = read_job(held)
        if job.wish in (Wish.CANCEL, Wish.KILL):
            move = moves.resubmit(job, args=new.args, title=new.title, by=new.by)
            job = apply(tx, job, move)
        return job, False
    at_top = top(tx, new.lane, new.priority) if new.first else None
    priority, position = at_top or (new.priority, bottom(tx, new.lane, new.priority))
    due = new.run_at_ms is not None and new.run_at_ms > tx.now_ms
    rows = tx.all(
        "job_add",
        lane=new.lane,
        task=new.task,
        app=new.app,
        args=new.args,
        key=new.key,
        title=new.title,
        priority=priority,
        position=position,
        run_at_ms=new.run_at_ms if due else None,
        held_ms=tx.now_ms if new.held_by else None,
        held_by=new.held_by,
        parent=new.parent,
        ordinal=new.ordinal,
        now_ms=tx.now_ms,
        by=new.by,
        unit=new.options.unit,
        options=json.dumps(asdict(new.options)),
    )
    job = job_of(tx, rows[0]["id"])
    tx.ring("work")
    added = Move("added", {}, {"task": new.task}, by=new.by)
    return apply(tx, job, added), True


def _refuse_child(parent: Job) -> None:
    if parent.state is not State.RUNNING or parent.wish in (Wish.CANCEL, Wish.KILL):
        raise WrongState(
            parent.state,
            f"Job {parent.id} is being stopped or has ended, so it can submit no more jobs.",
        )


def act(
    tx: Tx,
    job_id: int,
    decide: Callable[[Job], Move | None],
    *,
    if_version: int | None = None,
    if_state: State | None = None,
) -> Job:
    """One job's change: read, checked against what the asker saw, decided, applied.

    Raises:
        NoSuchJob: there is none.
        WrongState: the act does not fit, or the job is not what the asker saw any more.
    """
    job = _expected(tx, job_id, if_version, if_state)
    move = decide(job)
    if move is None:
        return job
    after = apply(tx, job, move)
    if after.state is State.CANCELLED:
        cancel_children(tx, [after.id])
    return after


def _expected(tx: Tx, job_id: int, if_version: int | None, if_state: State | None) -> Job:
    job = job_of(tx, job_id)
    if (if_version is not None and job.version != if_version) or (
        if_state and job.state is not if_state
    ):
        raise WrongState(
            job.state, f"Job {job_id} has changed: it is {job.state} now. Nothing was done."
        )
    return job


def move_to(
    tx: Tx,
    job_id: int,
    to: To,
    *,
    by: str,
    if_version: int | None = None,
    if_state: State | None = None,
    why: str = "",
) -> Job:
    """Another place in its lane's line."""
    job = _expected(tx, job_id, if_version, if_state)
    if job.state is not State.QUEUED:
        raise WrongState(job.state, f"Job {job.id} is {job.state}, so it cannot be moved.")
    wanted = target(tx, job, to)
    if wanted is None:
        return job
    job = job_of(tx, job_id)  # the line may have been renumbered to make room
    move = moves.place(job, priority=wanted[0], position=wanted[1], by=by, why=why)
    if move is None:
        return job
    remember(tx, "moved", [[job.id, job.priority, job.position, *wanted]], by=by)
    return apply(tx, job, move)


def retry(
    tx: Tx,
    job_id: int,
    *,
    by: str,
    start_over: bool,
    first: bool,
    if_version: int | None = None,
    if_state: State | None = None,
    why: str = "",
) -> Job:
    """An ended job back in line; refused where a live job holds its key, naming that job."""
    _expected(tx, job_id, if_version, if_state)
    after, was = _retry(tx, job_id, by=by, start_over=start_over, first=first, why=why)
    remember(tx, "retried", [was], by=by)
    return after


def retry_all(
    tx: Tx, job_ids: Iterable[int], *, by: str, start_over: bool, first: bool, why: str = ""
) -> tuple[tuple[Job, ...], tuple[tuple[int, str], ...]]:
    """Those that can be are tried again; the others with the sentence that says why not."""
    ids = _at_most(job_ids)
    done, refused = _each(
        ids[::-1] if first else ids,
        lambda job_id: _retry(tx, job_id, by=by, start_over=start_over, first=first, why=why),
    )
    if done:
        remember(tx, "retried", [was for _, was in done], by=by)
    turn = -1 if first else 1
    return tuple(after for after, _ in done)[::turn], tuple(refused)[::turn]


def _retry(
    tx: Tx, job_id: int, *, by: str, start_over: bool, first: bool, why: str
) -> tuple[Job, list[object]]:
    """The job in line, and how it had ended: whole, so that an undo loses nothing of its result."""
    row = one(tx, "job_get", id=job_id)
    job = job_of(tx, job_id) if row is None else read_job(row)
    holder = one(tx, "job_of_key", lane=job.lane, key=job.key) if job.ended else None
    if holder is not None:
        raise WrongState(
            job.state,
            f"Job {holder['id']} has the same key ({job.key}) and is live, so job {job_id} stays "
            "as it is.",
        )
    at_top = top(tx, job.lane, job.priority) if first else None
    priority, position = at_top or (job.priority, bottom(tx, job.lane, job.priority))
    move = moves.retry(
        job, by=by, start_over=start_over, priority=priority, position=position, why=why
    )
    after = apply(tx, job, move)
    return after, [job.id, tx.all("event_last")[0]["seq"], dict(moves.ending_of(job, move))]


def remove(
    tx: Tx,
    job_ids: Iterable[int],
    *,
    by: str,
    if_version: int | None = None,
    if_state: State | None = None,
    why: str = "",
) -> list[Job]:
    """Take waiting jobs out of the line, all or none."""
    ids = dict.fromkeys(job_ids)
    before = [_expected(tx, job_id, if_version, if_state) for job_id in ids]
    after = [_remove(tx, job, by=by, why=why) for job in before]
    _removed(tx, after, by=by)
    return after


def remove_all(
    tx: Tx, job_ids: Iterable[int], *, by: str, why: str = ""
) -> tuple[tuple[Job, ...], tuple[tuple[int, str], ...]]:
    """Those that wait are removed; the others with the sentence that says why not."""
    done, refused = _each(
        _at_most(job_ids), lambda job_id: _remove(tx, job_of(tx, job_id), by=by, why=why)
    )
    _removed(tx, done, by=by)
    return tuple(done), tuple(refused)


def _remove(tx: Tx, job: Job, *, by: str, why: str) -> Job:
    return apply(tx, job, moves.remove(job, by=by, now_ms=tx.now_ms, why=why))


def _removed(tx: Tx, jobs: list[Job], *, by: str) -> None:
    cancel_children(tx, [job.id for job in jobs])
    if jobs:
        remember(tx, "removed", [[job.id] for job in jobs], by=by)


def _at_most(job_ids: Iterable[int]) -> list[int]:
    ids = list(dict.fromkeys(job_ids))
    if len(ids) > MOST_AT_ONCE:
        raise BadInput("ids", f"At most {MOST_AT_ONCE:,} jobs at once, not {len(ids):,}.")
    return ids


def _each(ids: Iterable[int], do: Callable[[int], T]) -> tuple[list[T], list[tuple[int, str]]]:
    """Each is refused before anything of it is written."""
    done: list[T] = []
    refused: list[tuple[int, str]] = []
    for job_id in ids:
        try:
            done.append(do(job_id))
        except Refused as error:
            refused.append((job_id, str(error)))
    return done, refused


def remove_waiting(tx: Tx, lane: str, *, by: str, expect: int | None = None) -> list[int]:
    """Remove all waiting of a lane: held and not-due ones too, never what runs or has ended."""
    ids = [row["id"] for row in tx.all("job_waiting", lane=lane)]
    _refuse_other(len(ids), expect, State.QUEUED, "would be removed")
    apply_all(tx, ids, lambda job: moves.remove(job, by=by, now_ms=tx.now_ms))
    cancel_children(tx, ids)
    if ids:
        remember(tx, "cleared waiting", [[job_id] for job_id in ids], by=by)
    return ids


def clear(
    tx: Tx,
    *,
    states: Iterable[State],
    lane: str | None,
    before_ms: int | None,
    by: str,
    expect: int | None = None,
) -> list[int]:
    """Hide ended jobs from the lists; rows and logs stay."""
    moment = EVERYTHING if before_ms is None else before_ms
    wanted = [str(state) for state in states]
    rows = tx.all("job_hideable", before_ms=moment, lane=lane, states=json.dumps(wanted))
    ids = [row["id"] for row in rows]
    _refuse_other(len(ids), expect, "/".join(wanted), "would be cleared")
    apply_all(tx, ids, lambda job: moves.hide(job, by=by, now_ms=tx.now_ms))
    if ids:
        remember(tx, "hidden", [[job_id] for job_id in ids], by=by)
    return ids


def _refuse_other(number: int, expect: int | None, state: str, what: str) -> None:
    if expect is not None and number != expect:
        told = f"{count(number, 'job')} {what} now, not {expect:,}. Nothing was done."
        raise WrongState(state, told)


def known_lane(tx: Tx, lane: str, *, declared: Iterable[str] = ()) -> None:
    """Raises ``UnknownLane`` for a lane nothing was ever submitted to and no task declares."""
    if one(tx, "lane_get", lane=lane) is not None:
        return
    if lane in declared:
        tx.all("lane_add", lane=lane)
        return
    names = ", ".join(row["name"] for row in tx.all("lane_all")) or "none yet"
    raise UnknownLane("lane", f"There is no lane {lane!r}. Lanes here: {names}.")


def pause(tx: Tx, lane: str, *, by: str, why: str, until_ms: int | None, source: str) -> None:
    tx.all(
        "pause_set",
        lane=lane,
        source=source,
        by=by,
        why=cut(why),
        now_ms=tx.now_ms,
        until_ms=until_ms,
    )
    note_event(
        tx,
        "paused",
        lane=lane,
        by=by,
        detail={"source": source, "why": cut(why), "until_ms": until_ms},
    )
    tx.ring("work")


def resume(tx: Tx, lane: str, *, by: str, source: str | None) -> bool:
    """Clear one source's pause, or all; says whether there was one."""
    cleared = [row["source"] for row in tx.all("pause_clear", lane=lane, source=source)]
    if cleared:
        note_event(tx, "resumed", lane=lane, by=by, detail={"sources": cleared})
        tx.ring("work")
    return bool(cleared)


def set_delay(tx: Tx, lane: str, delay_ms: int, *, by: str) -> None:
    if delay_ms < 0:
        raise BadInput(
            "delay", f"The delay cannot be negative ({delay_ms / 1000:g} s). 0 means none."
        )
    tx.all("lane_set_delay", lane=lane, delay_ms=delay_ms)
    note_event(tx, "delay set", lane=lane, by=by, detail={"delay_ms": delay_ms})
    tx.ring("work")


def set_concurrency(tx: Tx, lane: str, concurrency: int, *, by: str) -> None:
    if not 1 <= concurrency <= MOST_SLOTS:
        raise BadInput(
            "slots",
            f"A lane has 1 to {MOST_SLOTS} slots, not {concurrency}. To start nothing, pause it.",
        )
    tx.all("lane_set_concurrency", lane=lane, concurrency=concurrency)
    note_event(tx, "slots set", lane=lane, by=by, detail={"concurrency": concurrency})
    tx.ring("work")


MOST_SLOTS = 1000


def stop_now(tx: Tx, lane: str, *, by: str, why: str) -> list[Job]:
    """Pause the lane and put what runs back in line at once; what was asked to stop already ends
    now, as asked. With nothing running it changes nothing.
    """
    running = [read_job(row) for row in tx.all("job_running", lane=lane)]
    asked = []
    for job in running:
        want = Wish.KILL if job.wish is Wish.CANCEL else Wish.REQUEUE
        move = moves.wish(job, want, by=by, now_ms=tx.now_ms, why=why)
        asked.append(replace(job) if move is None else apply(tx, job, move))
    if running:
        pause(tx, lane, by=by, why=why or "stopped now", until_ms=None, source="person")
    return asked

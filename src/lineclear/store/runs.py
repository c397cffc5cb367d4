"""What a worker does with jobs: claim, beat, steps, outcome, end, take-back. Called by worker/
alone.

Every write on behalf of a run carries its lease, and answers whether the lease still held; a lost
one changes nothing.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from lineclear import moves
from lineclear.clock import Place
from lineclear.endings import cut, write_outcome
from lineclear.errors import WrongState
from lineclear.job import ENDED, Ending, Job, Outcome, State, Wish
from lineclear.looks import next_start_ms
from lineclear.store.base import Row, Tx, apply, job_of, note_event, note_of_run, one
from lineclear.store.rows import clean, read_job, read_pause

EVERY_LANE = "*"

ProcessFor = Callable[[Job], tuple[int, int] | None]
"""The pid and start of the process a job will run in, where it is there already."""


def nowhere_yet(_: Job) -> None:
    """A process of its own is started after the claim."""


@dataclass(frozen=True, slots=True)
class Beat:
    """One lease's beat: what moved since the last one."""

    id: int
    lease: str
    moved: int = 0
    moves: int = 0
    moved_tick: int | None = None
    done: float | None = None
    total: float | None = None
    unit: str | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Sign:
    """A worker as the store knows it, with what is needed to judge whether it lives."""

    id: str
    host: str
    place: Place
    pid: int
    version: str
    lanes: tuple[str, ...]
    lease_ms: int
    started_ms: int

    def serves(self, lane: str) -> bool:
        return EVERY_LANE in self.lanes or lane in self.lanes


def add_worker(tx: Tx, sign: Sign) -> None:
    tx.all(
        "worker_add",
        id=sign.id,
        host=sign.host,
        boot=sign.place.boot,
        time_ns=sign.place.time_ns,
        pid_ns=sign.place.pid_ns,
        pid=sign.pid,
        version=sign.version,
        lanes=json.dumps(sign.lanes),
        lease_ms=sign.lease_ms,
        now_ms=tx.now_ms,
    )
    for lane in served_lanes(tx, sign.lanes):
        tx.all("lane_served", lane=lane, now_ms=tx.now_ms)
    note_event(tx, "worker started", by=sign.id, detail={"host": sign.host, "pid": sign.pid})
    tx.ring("work")


def drop_worker(tx: Tx, sign: Sign, *, kind: str = "worker stopped") -> bool:
    """Forget a worker. False where runs of it are left, which could not be judged without it."""
    if tx.all("job_of_worker", worker=sign.id):
        return False
    if not tx.all("worker_drop", id=sign.id):
        return True  # another has done it
    for lane in served_lanes(tx, sign.lanes):
        tx.all("lane_served", lane=lane, now_ms=tx.now_ms)
    note_event(tx, kind, by=sign.id, detail={"host": sign.host, "pid": sign.pid})
    return True


def signs(tx: Tx) -> list[Sign]:
    """Every worker that has not been dropped, dead or alive."""
    return [_sign(row) for row in tx.all("worker_all")]


def served_lanes(tx: Tx, lanes: tuple[str, ...]) -> list[str]:
    if EVERY_LANE in lanes:
        return [row["name"] for row in tx.all("lane_all")]
    return list(lanes)


def claim(tx: Tx, lane: str, worker: str, process_for: ProcessFor = nowhere_yet) -> Job | None:
    """Take the next job of ``lane`` into the lowest free slot; ``None`` when none may start."""
    tx.all("job_due", lane=lane, now_ms=tx.now_ms)
    row = one(tx, "lane_get", lane=lane)
    slot = None if row is None else _free_slot(tx, row)
    job = None if row is None or slot is None else _next(tx, row)
    return None if job is None or slot is None else _take(tx, job, slot, worker, process_for)


def claim_by_hand(tx: Tx, job_id: int, worker: str) -> Job | None:
    """The same claim for one job a person names: past pause and delay, never past the slots.

    Raises:
        NoSuchJob, WrongState: it is not there, or does not wait.
    """
    job = job_of(tx, job_id)
    if job.state is not State.QUEUED:
        raise WrongState(job.state, f"Job {job_id} is {job.state}, so it cannot be started.")
    row = one(tx, "lane_get", lane=job.lane)
    slot = None if row is None else _free_slot(tx, row)
    whole = one(tx, "job_get", id=job_id)
    return None if slot is None or whole is None else _take(tx, read_job(whole), slot, worker)


def _free_slot(tx: Tx, lane: Row) -> int | None:
    taken = [row["slot"] for row in tx.all("job_slots", lane=lane["name"])]
    if len(taken) >= lane["concurrency"]:
        return None
    return next(slot for slot in range(len(taken) + 1) if slot not in taken)


def _take(tx: Tx, job: Job, slot: int, worker: str, process_for: ProcessFor = nowhere_yet) -> Job:
    move = moves.claim(
        job,
        slot=slot,
        lease=secrets.token_hex(16),
        worker=worker,
        now_ms=tx.now_ms,
        tick_ms=tx.tick_ms,
        process=process_for(job),
    )
    tx.all("step_drop_older", job=job.id, revision=job.revision)
    return apply(tx, job, move)


def _next(tx: Tx, lane: Row) -> Job | None:
    name = lane["name"]
    if forced := one(tx, "job_forced_whole", lane=name):
        return read_job(forced)
    for expired in tx.all("pause_expire", lane=name, now_ms=tx.now_ms):
        note_event(tx, "resumed", lane=name, by="its time", detail={"source": expired["source"]})
    if tx.all("pause_all", lane=name):
        return None
    tx.all("lane_clock_set_back", lane=name, now_ms=tx.now_ms)
    if next_start_ms(lane["last_end_ms"], lane["delay_ms"], now_ms=tx.now_ms) > tx.now_ms:
        return None
    first = one(tx, "job_line_whole", lane=name)
    return read_job(first) if first else None


def steps_of(tx: Tx, job: int) -> dict[str, dict[str, Any]]:
    """The recorded steps of a job as the child wants them: weight and result by name."""
    return {
        row["name"]: {"weight": row["weight"], "result": row["result"]}
        for row in tx.all("step_all", job=job)
    }


def set_child(tx: Tx, job: Job, *, pid: int, start: int) -> bool:
    """Store the child's identity. ``run`` is sent only after this: no pid, nothing ran."""
    return bool(tx.all("job_child", id=job.id, lease=job.lease, pid=pid, start=start))


def beat(tx: Tx, beats: Iterable[Beat]) -> dict[int, tuple[Wish | None, str]]:
    """Renew leases in one statement. A job missing from the answer has lost its lease."""
    listed = [asdict(b) | {"unit": _clean(b.unit), "note": _clean(b.note)} for b in beats]
    rows = tx.all("beat", tick_ms=tx.tick_ms, beats=json.dumps(listed))
    if any(b["moved"] for b in listed):
        tx.ring("watch")
    return {
        row["id"]: (Wish(row["wish"]) if row["wish"] else None, row["wish_by"] or "")
        for row in rows
    }


def _clean(text: str | None) -> str | None:
    return None if text is None else clean(text)


def keep_pace(tx: Tx, job: Job, *, minute_ms: int, done: float) -> None:
    tx.all("pace_put", job=job.id, attempt=job.attempt, minute_ms=minute_ms, done=done)


def keep_step(
    tx: Tx, job: Job, *, name: str, weight: float, result: str | None, started_ms: int
) -> bool:
    """Record a finished step. Recording it again replaces it."""
    if not tx.all(
        "job_step_kept", id=job.id, lease=job.lease, tick_ms=tx.tick_ms, name=name, weight=weight
    ):
        return False
    tx.all(
        "step_put",
        job=job.id,
        name=name,
        weight=weight,
        result=result,
        started_ms=started_ms,
        now_ms=tx.now_ms,
        attempt=job.attempt,
        revision=job.run_revision,
    )
    note_of_run(tx, job, "step", {"name": cut(name)})
    return True


def set_publishing(tx: Tx, job: Job, temporary: str) -> bool:
    """Record a temporary file beside a target before it exists; a fresh beat at the same time."""
    return bool(
        tx.all(
            "job_publishing", id=job.id, lease=job.lease, publishing=temporary, tick_ms=tx.tick_ms
        )
    )


def set_outcome(tx: Tx, job: Job, outcome: Outcome) -> bool:
    """Store what the task says of its end; the slot is freed later, when its processes are gone."""
    text = write_outcome(outcome)
    return bool(tx.all("job_outcome", id=job.id, lease=job.lease, outcome=text))


def finish(
    tx: Tx, job: Job, ending: Ending, *, by: str, outcome: Outcome | None = None
) -> Job | None:
    """The end of a run, if its lease still holds; ``None`` when it is not this run's to end.

    ``outcome`` is the task's word where it comes with the end.
    """
    row = one(tx, "job_brief", id=job.id)
    fresh = read_job(row) if row else None
    if fresh is None or fresh.state is not State.RUNNING or fresh.lease != job.lease:
        return None
    if outcome is not None:
        fresh = replace(fresh, outcome=write_outcome(outcome))
    ended = apply(tx, fresh, moves.finish(fresh, ending, by=by, now_ms=tx.now_ms))
    if ending.why != "lost" and fresh.child_pid is not None:  # the delay counts from what ran
        tx.all("lane_ended", lane=job.lane, now_ms=tx.now_ms)
    if ended.state in ENDED:
        tx.all("pace_drop_earlier", job=job.id, attempt=ended.attempt)
    if ended.state is State.CANCELLED:
        cancel_children(tx, [ended.id])
    return ended


def cancel_children(tx: Tx, parents: list[int]) -> None:
    """Cancelling a parent ends its waiting children, and theirs."""
    while parents:
        rows = tx.all("job_waiting_children", parents=json.dumps(parents))
        for child in map(read_job, rows):
            apply(tx, child, moves.orphan(child, now_ms=tx.now_ms))
        parents = [row["id"] for row in rows]


def take_lease(tx: Tx, job: Job) -> Job | None:
    """First step of taking over from a stopped worker: its lease is replaced, the slot
    stays taken.
    """
    lease = secrets.token_hex(16)
    if not tx.all("job_new_lease", id=job.id, lease=job.lease, new_lease=lease):
        return None
    note_of_run(tx, job, "taken over", {"worker": job.worker})
    return job_of(tx, job.id)


def every_run(tx: Tx) -> list[Job]:
    """Every running job, without its arguments."""
    return [read_job(row) for row in tx.all("job_every_run")]


def next_wall_ms(tx: Tx, lanes: Iterable[str]) -> int | None:
    """The next wall-clock moment at which a claim in these lanes may succeed that cannot now: never
    when none is known.
    """
    moments: list[int] = []  # later ones only: what is due and cannot start waits for a ring
    for name in lanes:
        lane = one(tx, "lane_get", lane=name)
        if lane is None:
            continue
        due = one(tx, "next_due", lane=name, now_ms=tx.now_ms)
        if due is not None and due["at_ms"] is not None:
            moments.append(due["at_ms"])
        opens = next_start_ms(lane["last_end_ms"], lane["delay_ms"], now_ms=tx.now_ms)
        pauses = [read_pause(row) for row in tx.all("pause_all", lane=name)]
        ends = [pause.until_ms for pause in pauses if pause.until_ms is not None]
        if not pauses:
            moments.append(opens)
        elif len(ends) == len(pauses):
            moments.append(max(ends))
    return min((moment for moment in moments if moment > tx.now_ms), default=None)


def _sign(row: Mapping[str, Any]) -> Sign:
    return Sign(
        id=row["id"],
        host=row["host"],
        place=Place(row["boot"], row["time_ns"], row["pid_ns"]),
        pid=row["pid"],
        version=row["version"],
        lanes=tuple(json.loads(row["lanes"])),
        lease_ms=row["lease_ms"],
        started_ms=row["started_ms"],
    )

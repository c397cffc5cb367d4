"""What every store is: transactions with named statements, the journal, and a ring for each commit.

Called by ``acts``, ``runs`` and ``reads``, which hold everything that can be done and are the same
for every engine.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any, Protocol

from lineclear.bell import Room
from lineclear.errors import NoSuchJob, StoreError
from lineclear.job import Job
from lineclear.moves import Move
from lineclear.store.rows import clean, read_job

Row = Mapping[str, Any]


class Tx(Protocol):
    """One transaction. What it changes becomes visible, and rings, when it commits."""

    now_ms: int
    tick_ms: int
    committed: Callable[[], None]
    """Called once it is committed, before it is on disk."""

    def all(self, name: str, /, **parameters: Any) -> list[Row]:
        """Run a named statement; its rows are fetched at once."""

    def update_job(self, job: Job, changes: Mapping[str, Any]) -> bool:
        """Set these columns of a job that still has the version given; says whether it had."""

    def update_jobs(self, changes: Mapping[str, Any], *, after: int) -> int:
        """Set these columns of every job that has an event after this one, which becomes its last;
        answers how many.
        """

    def ring(self, *rooms: Room) -> None:
        """Ring these rooms when this transaction commits."""

    def savepoint(self) -> AbstractContextManager[None]:
        """What fails inside is undone alone."""


class Store(Protocol):
    """A database of jobs."""

    def write(self, *, durable: bool = True) -> AbstractContextManager[Tx]:
        """A writing transaction; on disk before the block is left, where ``durable``."""

    def read(self) -> AbstractContextManager[Tx]:
        """A reading transaction, one snapshot. Never hold it open across a wait."""

    def is_trouble(self, error: Exception) -> bool:
        """Whether this is the database being locked, full or gone, so that trying again makes
        sense.
        """

    def check(self) -> list[str]:
        """What is wrong with the database's contents, a sentence each; empty when nothing is."""

    def log_bytes(self) -> int:
        """Bytes of the write-ahead log; 0 where there is none."""

    def close(self) -> None:
        """Let go of the database. May be called twice."""


def one(tx: Tx, name: str, /, **parameters: Any) -> Row | None:
    rows = tx.all(name, **parameters)
    return rows[0] if rows else None


def job_of(tx: Tx, job_id: int) -> Job:
    """The job as moves need it: arguments and result cut short.

    Raises:
        NoSuchJob: there is none of that id.
    """
    row = one(tx, "job_brief", id=job_id)
    if row is None:
        raise NoSuchJob(f"There is no job {job_id}. `lineclear history --all` lists every job.")
    return read_job(row)


def note_event(
    tx: Tx,
    kind: str,
    *,
    job: Job | None = None,
    lane: str | None = None,
    by: str = "",
    detail: Mapping[str, Any] | None = None,
    attempt: int | None = None,
) -> int:
    """Write one line of the journal; answers its number."""
    rows = tx.all(
        "event_add",
        job=job.id if job else None,
        lane=job.lane if job else lane,
        at_ms=tx.now_ms,
        kind=kind,
        attempt=attempt if attempt is not None or job is None else job.attempt,
        by=by,
        detail=_told(detail or {}),
    )
    tx.ring("watch")
    return int(rows[0]["seq"])


def note_of_run(tx: Tx, job: Job, kind: str, detail: Mapping[str, Any]) -> None:
    """Write what happened within a run, and make it the last event of its job."""
    tx.all("event_chain", job=job.id, seq=note_event(tx, kind, job=job, detail=detail))


def apply(tx: Tx, job: Job, move: Move) -> Job:
    """Execute a move: its columns and its event, together. Answers the job as it is afterwards."""
    attempt = int(move.changes.get("attempt", job.attempt))
    seq = note_event(tx, move.kind, job=job, by=move.by, detail=move.detail, attempt=attempt)
    if not tx.update_job(job, dict(move.changes) | {"last_event": seq}):
        raise StoreError(
            f"Job {job.id} changed in the middle of a transaction. Please report this."
        )
    if move.wakes_workers:
        tx.ring("work")
    return replace(job, **move.changes, version=job.version + 1)


def apply_all(tx: Tx, ids: list[int], decide: Callable[[Job], Move]) -> None:
    """Execute one move for many jobs, in as many statements as for one: the move that is decided
    for the first of them, which must be what it would be for each.
    """
    if not ids:
        return
    move = decide(job_of(tx, ids[0]))
    last = tx.all("event_last")[0]["seq"] or 0
    tx.all(
        "event_add_all",
        ids=json.dumps(ids),
        now_ms=tx.now_ms,
        kind=move.kind,
        by=move.by,
        detail=_told(move.detail),
    )
    if tx.update_jobs(move.changes, after=last) != len(ids):
        raise StoreError("Jobs changed in the middle of a transaction. Please report this.")
    tx.ring("watch")
    if move.wakes_workers:
        tx.ring("work")


def _told(detail: Mapping[str, Any]) -> str:
    return json.dumps({k: clean(v) if isinstance(v, str) else v for k, v in detail.items()})

"""What can be taken back, and taking it back, inside transactions of ``acts``: ``moves`` decides
what becomes of each job.
"""

from __future__ import annotations

import json

from lineclear import moves
from lineclear.job import State
from lineclear.store.base import Tx, apply, apply_all, job_of, one

UNDO_MS = 7 * 24 * 3600 * 1000


def remember(tx: Tx, kind: str, jobs: list[list[object]], *, by: str) -> None:
    """Keep how things were, for ``undo``: each job's id, and what else is needed to take it back.
    The last thousand acts are kept.
    """
    rows = tx.all("undo_add", now_ms=tx.now_ms, by=by, kind=kind, jobs=json.dumps(jobs))
    tx.all("undo_prune", id=rows[0]["id"])


def undo(tx: Tx, *, by: str, which: int | None = None) -> tuple[str, list[int], int] | None:
    """Take back the act of that number, or the last one, of the last seven days: what it was, the
    jobs that changed, when.

    A job that has changed since in a way that cannot be taken back is left as it is.
    """
    since_ms = tx.now_ms - UNDO_MS
    name = "undo_last" if which is None else "undo_of"
    row = one(tx, name, since_ms=since_ms, which=which)
    if row is None:
        return None
    jobs = json.loads(row["jobs"])
    listed, at_ms = json.dumps([job[0] for job in jobs]), row["at_ms"]
    match row["kind"]:
        case "moved":
            ids = [job[0] for job in jobs if _move_back(tx, job, by=by)]
        case "retried":
            ids = [job[0] for job in jobs if _unretry(tx, *job, by=by)]
        case "hidden":
            ids = [found["id"] for found in tx.all("job_hidden_of", ids=listed, at_ms=at_ms)]
            apply_all(tx, ids, lambda _: moves.show(by=by))
        case _:
            ids = [found["id"] for found in tx.all("job_removed_of", ids=listed, at_ms=at_ms)]
            apply_all(tx, ids, lambda job: moves.unremove(job, by=by))
    tx.all("undo_drop", id=row["id"], since_ms=since_ms)
    return row["kind"], ids, at_ms


def _move_back(tx: Tx, moved: list[int], *, by: str) -> bool:
    """Only from where the move had put it: another's later move stands."""
    job_id, priority, position, to_priority, to_position = moved
    job = job_of(tx, job_id)
    if job.state is not State.QUEUED or (job.priority, job.position) != (to_priority, to_position):
        return False
    move = moves.place(job, priority=priority, position=position, by=by)
    if move is not None:
        apply(tx, job, move)
    return move is not None


def _unretry(tx: Tx, job_id: int, seq: int, was: dict[str, object], *, by: str) -> bool:
    since = [row["kind"] for row in tx.all("event_of_job", job=job_id, after=seq, limit=100)]
    job = job_of(tx, job_id)
    move = moves.unretry(job, was, since=since, by=by)
    if move is not None:
        apply(tx, job, move)
    return move is not None

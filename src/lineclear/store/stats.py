"""What was done, how fast, and whether ranges shown were right. Called by ``database.py`` alone.

It grows with the jobs that ended in the window, to the newest ``MOST`` of each task and state; the
history before it costs nothing.
"""

from __future__ import annotations

from lineclear import estimate
from lineclear.estimate import Ended, Stats
from lineclear.job import COUNT_LIMIT, ENDED, State
from lineclear.store.base import Tx, job_of
from lineclear.store.reads import pace

MOST = 10_000
JUDGED = 50
"""Done runs whose ranges are looked at again: the last that have a pace."""


def stats(tx: Tx, *, since_ms: int, lane: str | None) -> Stats:
    runs: list[Ended] = []
    capped = False
    for task in [row["task"] for row in tx.all("stats_tasks")]:
        for state in ENDED:
            rows = tx.all(
                "stats_ended", task=task, state=str(state), since_ms=since_ms, lane=lane, most=MOST
            )
            capped |= len(rows) >= MOST
            runs += [Ended(**dict(row)) for row in rows]
    every_ms, throughput = estimate.stretches(runs, since_ms=since_ms, now_ms=tx.now_ms)
    told = _judged(tx, runs)
    return Stats(
        since_ms=since_ms,
        now_ms=tx.now_ms,
        every_ms=every_ms,
        throughput=throughput,
        tasks=estimate.by_task(runs),
        ranges=len(told),
        inside=sum(told),
        oldest=_oldest(tx, lane),
        capped=capped,
    )


def _judged(tx: Tx, runs: list[Ended]) -> list[bool]:
    long = [
        run
        for run in runs
        if run.state == State.DONE
        and run.started_ms is not None
        and run.ended_ms - run.started_ms > 2 * estimate.TIME_NEEDED_MS
    ]
    told = []
    for run in sorted(long, key=lambda run: run.ended_ms, reverse=True)[:JUDGED]:
        job = job_of(tx, run.id)
        right = estimate.was_right(
            pace(tx, run.id),
            total=job.total,
            started_ms=run.started_ms or 0,
            start_done=job.start_done,
            ended_ms=run.ended_ms,
            reports=job.moves,
        )
        told += [] if right is None else [right]
    return told


def _oldest(tx: Tx, lane: str | None) -> tuple[int, int] | None:
    names = [row["name"] for row in tx.all("lane_all") if lane in (None, row["name"])]
    ids = [tx.all("stats_oldest", lane=name, most=COUNT_LIMIT)[0]["id"] for name in names]
    known = [job_of(tx, job_id) for job_id in ids if job_id is not None]
    first = min(known, key=lambda job: job.submitted_ms, default=None)
    return None if first is None else (first.id, first.submitted_ms)

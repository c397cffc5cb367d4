"""What was done and how right the ranges were, from runs that the store really kept."""

from __future__ import annotations

import pytest
from tests.store.ground import DONE, FAILED, LANE, HandClock, add, claimed, finish

from lineclear.job import Job
from lineclear.store import runs
from lineclear.store.sqlite import SqliteStore
from lineclear.store.stats import stats

MINUTE_MS = 60_000


def work(store: SqliteStore, clock: HandClock, *minutes: int) -> Job:
    """A job of ten pages a minute, but for the last ``minutes[1]``, in which it does nothing."""
    steady, idle = minutes
    add(store)
    clock.advance(5 * MINUTE_MS)
    job = claimed(store)
    for minute in range(1, steady + 1):
        clock.advance(MINUTE_MS)
        beat = runs.Beat(
            job.id, job.lease or "", moved=1, moves=1, done=10.0 * minute, total=10.0 * steady
        )
        with store.write(durable=False) as tx:
            runs.beat(tx, [beat])
            runs.keep_pace(tx, job, minute_ms=tx.now_ms, done=10.0 * minute)
    clock.advance(idle * MINUTE_MS)
    ended = finish(store, job, outcome=DONE)
    assert ended is not None
    return ended


def test_stats_tell_what_ended_how_long_it_took_and_waited(
    store: SqliteStore, clock: HandClock
) -> None:
    since_ms = clock.now_ms()
    work(store, clock, 20, 0)
    work(store, clock, 20, 60)
    add(store)
    finish(store, claimed(store), outcome=FAILED)
    add(store, lane="other")
    waits = add(store)
    with store.read() as tx:
        seen = stats(tx, since_ms=since_ms, lane=LANE)
        later = stats(tx, since_ms=clock.now_ms() + 1, lane=LANE)
    (task,) = seen.tasks
    assert (task.task, task.done, task.failed) == ("sleep", 2, 1)
    assert task.ran is not None and task.waited is not None
    assert (task.ran.jobs, task.waited.jobs) == (2, 3)
    assert 20 * MINUTE_MS <= task.ran.low_ms <= task.ran.median_ms <= task.ran.high_ms
    assert sum(done for _, done, _ in seen.throughput) == 2
    assert sum(failed for _, _, failed in seen.throughput) == 1
    assert seen.oldest == (waits.id, waits.submitted_ms)
    assert (seen.ranges, seen.inside) == (2, 1), "the idle one took longer than was said"
    assert (later.tasks, later.ranges) == ((), 0)


def test_stats_say_where_they_stopped(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lineclear.store.stats.MOST", 2)
    for _ in range(3):
        add(store)
        finish(store, claimed(store), outcome=DONE)
    with store.read() as tx:
        seen = stats(tx, since_ms=0, lane=None)
    assert (seen.capped, seen.tasks[0].done) == (True, 2)

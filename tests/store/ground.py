"""What the tests of the store stand on: a clock set by hand, jobs, and single acts of a worker."""

from __future__ import annotations

from typing import Any

from lineclear.clock import here
from lineclear.job import Ending, Job, NewJob, Outcome
from lineclear.store import acts, runs
from lineclear.store.runs import Sign
from lineclear.store.sqlite import SqliteStore

LANE = "line"
DONE = Outcome("done", result="1")
FAILED = Outcome("failed", error="It broke.")


class HandClock:
    """Time that passes when it is told to."""

    def __init__(self) -> None:
        self.wall_ms = 1_800_000_000_000
        self.lease_ms = 5_000_000

    def now_ms(self) -> int:
        return self.wall_ms

    def tick_ms(self) -> int:
        return self.lease_ms

    def advance(self, ms: int) -> None:
        self.wall_ms += ms
        self.lease_ms += ms


def new(**fields: Any) -> NewJob:
    known = {"task": "sleep", "lane": LANE, "args": "{}", "app": "app:sleep", "by": "ann"}
    return NewJob(**(known | fields))


def add(store: SqliteStore, **fields: Any) -> Job:
    with store.write() as tx:
        return acts.submit(tx, new(**fields))[0]


def claim(store: SqliteStore, *, lane: str = LANE, worker: str = "w1") -> Job | None:
    """Claimed, with a child spawned for it."""
    with store.write(durable=False) as tx:
        job = runs.claim(tx, lane, worker)
        assert job is None or runs.set_child(tx, job, pid=1, start=1)
        return job


def claimed(store: SqliteStore, *, lane: str = LANE, worker: str = "w1") -> Job:
    job = claim(store, lane=lane, worker=worker)
    assert job is not None
    return job


def finish(
    store: SqliteStore, job: Job, ending: Ending | None = None, outcome: Outcome | None = None
) -> Job | None:
    with store.write() as tx:
        if outcome is not None:
            assert runs.set_outcome(tx, job, outcome)
        return runs.finish(tx, job, ending or Ending(exit_code=0), by="w1")


def sign(worker: str = "w1", *, lanes: tuple[str, ...] = ("*",)) -> Sign:
    return Sign(worker, "host", here(), 1, "0", lanes, 60_000, 0)

"""What people see of a job: computed from what is stored and the moment, and nothing else."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest
from tests.unit.jobs import NOW_MS, queued, running

from lineclear.job import Cause, Job, Lane, Pause, State, Wish
from lineclear.looks import Look, Reason, look, next_start_ms, quiet, why_waiting
from lineclear.store.statements import JOB_COLUMNS

FRESH = {"beat_age_ms": 2_000, "moved_age_ms": 2_000, "worker_alive": True}


@pytest.mark.parametrize(
    ("job", "seen"),
    [
        (queued(), Look.WAITING),
        (queued(held_ms=1), Look.HELD),
        (queued(run_at_ms=NOW_MS + 1), Look.SCHEDULED),
        (queued(run_at_ms=NOW_MS), Look.WAITING),
        (queued(run_at_ms=NOW_MS + 1, failures=1), Look.RETRY_WAIT),
        (running(**FRESH), Look.RUNNING),
        (running(), Look.RUNNING),
        (running(**FRESH, wish=Wish.CANCEL, wish_ms=NOW_MS - 9), Look.STOPPING),
        (running(**FRESH, wish=Wish.CANCEL, wish_ms=NOW_MS - 61_000), Look.STOPPING_NO_ANSWER),
        (running(**FRESH, wish=Wish.KILL, wish_ms=NOW_MS), Look.STOPPING_NOW),
        (running(**FRESH, wish=Wish.REQUEUE, wish_ms=NOW_MS), Look.STOPPING_NOW),
        (queued(state=State.DONE), Look.DONE),
        (queued(state=State.FAILED, cause=Cause.RAISED), Look.FAILED),
        (queued(state=State.FAILED, cause=Cause.WORKER_LOST), Look.LOST),
        (queued(state=State.CANCELLED, cause=Cause.ASKED), Look.STOPPED),
        (queued(state=State.CANCELLED, cause=Cause.KILLED), Look.KILLED),
        (queued(state=State.CANCELLED, cause=Cause.REMOVED), Look.REMOVED),
        (queued(state=State.CANCELLED, cause=Cause.REMOVED, attempt=2), Look.REMOVED),
    ],
)
def test_each_job_has_one_word(job: Job, seen: Look) -> None:
    assert look(job, now_ms=NOW_MS) is seen


def test_e05_alive_and_moving_are_two_facts() -> None:
    silent = running(beat_age_ms=30_001, moved_age_ms=10, worker_alive=True)
    assert look(silent, now_ms=NOW_MS) is Look.SILENT
    still = running(beat_age_ms=10, moved_age_ms=60_001, worker_alive=True)
    assert look(still, now_ms=NOW_MS) is Look.QUIET
    assert look(replace(still, moved_age_ms=60_000), now_ms=NOW_MS) is Look.RUNNING


def test_e05_a_job_that_moves_seldom_is_quiet_only_after_five_of_its_own_gaps() -> None:
    slow = running(moves=2, start_tick=0, moved_tick=240_000, moved_age_ms=600_000)
    assert not quiet(slow)
    assert quiet(replace(slow, moved_age_ms=600_001))


def test_e06_a_dead_worker_is_seen_at_once_and_nothing_of_it_is_stored() -> None:
    gone = running(worker_alive=False, beat_age_ms=5, wish=Wish.CANCEL, wish_ms=NOW_MS)
    assert look(gone, now_ms=NOW_MS) is Look.WORKER_GONE
    computed = {f.name for f in fields(Job)} - set(JOB_COLUMNS)
    assert computed == {"beat_age_ms", "moved_age_ms", "worker_alive"}


def lane(**changes: object) -> Lane:
    return replace(Lane("line", 1, 0, None, workers=1), **changes)  # type: ignore[arg-type]


def kinds(job: Job, at: Lane, *, running: tuple[int, ...] = (), place: int = 1) -> list[str]:
    reasons = why_waiting(job, at, running=running, place=place, now_ms=NOW_MS)
    return [reason.kind for reason in reasons]


def test_e25_why_a_job_waits_says_every_reason_the_weightiest_first() -> None:
    assert kinds(queued(), lane()) == ["next"]
    assert kinds(queued(), lane(workers=0)) == ["no worker"]
    paused = (Pause("person", "ann", "tea", 1, None), Pause("disk", "guard", "full", 1, None))
    everything = lane(
        workers=0, pauses=paused, delay_ms=9_000, last_end_ms=NOW_MS - 1_000, concurrency=1
    )
    job = queued(held_ms=1, held_by="ann", run_at_ms=NOW_MS + 9)
    assert kinds(job, everything, running=(5,), place=3) == [
        "held", "due", "no worker", "paused", "paused", "delay", "slots", "behind",
    ]  # fmt: skip
    assert kinds(running(), everything) == []


def test_p03_pause_and_delay_do_not_hold_a_forced_job_back_but_slots_do() -> None:
    at = lane(pauses=(Pause("person", "ann", "", 1, None),), delay_ms=9_000, last_end_ms=NOW_MS)
    assert kinds(queued(forced_ms=1), at, running=(5,)) == ["slots"]


def test_p06_a_pause_that_is_over_is_no_reason() -> None:
    over = lane(pauses=(Pause("person", "ann", "", 1, NOW_MS), Pause("x", "y", "", 1, NOW_MS + 1)))
    (reason,) = why_waiting(queued(), over, running=(), place=1, now_ms=NOW_MS)
    assert reason == Reason("paused", by="y", why="", at_ms=NOW_MS + 1)


def test_p04_an_end_in_the_future_counts_as_now() -> None:
    assert next_start_ms(None, 5_000, now_ms=NOW_MS) == 0
    assert next_start_ms(NOW_MS - 1_000, 0, now_ms=NOW_MS) == 0
    assert next_start_ms(NOW_MS - 1_000, 5_000, now_ms=NOW_MS) == NOW_MS + 4_000
    assert next_start_ms(NOW_MS + 3_600_000, 5_000, now_ms=NOW_MS) == NOW_MS + 5_000

"""Two workers and one job: never two runs at once, whoever is stopped, killed or slow."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from itertools import pairwise

import pytest
from tests.workers import LONG_LEASE, Site, Worker

from lineclear import locks
from lineclear.clock import here
from lineclear.errors import WrongState
from lineclear.job import Cause, Ending, State
from lineclear.store import runs
from lineclear.store.runs import Sign

Make = Callable[..., Site]

LONG = """
@queue.task(lane="one", max_interruptions=100)
def long(ctx):
    say("start", ctx.attempt)
    while not (HERE / "finish").exists():
        say("alive", ctx.attempt)
        time.sleep(0.02)
        ctx.safe_point()
    (HERE / "output").write_text(str(ctx.attempt))
    say("stop", ctx.attempt)
    return ctx.attempt
"""


def spans(place: Site) -> list[tuple[int, int]]:
    """The first and the last sign of life of each attempt, in nanoseconds."""
    moments: dict[str, list[int]] = {}
    for moment, *_, attempt in place.diary:
        moments.setdefault(attempt, []).append(int(moment))
    return [(min(times), max(times)) for times in moments.values()]


def check_never_two(place: Site) -> None:
    ordered = sorted(spans(place))
    assert all(a[1] < b[0] for a, b in pairwise(ordered)), ordered


def both_there(place: Site) -> None:
    place.until(lambda: len(place.queue.workers()) == 2, what="a second worker")


@pytest.mark.parametrize("stopped", ["the supervisor alone", "the whole group"])
def test_e20_e21_p8_case_b4_case_b5_case_b7_a_stopped_worker_changes_nothing_more(
    make: Make, stopped: str
) -> None:
    place = make(LONG, LINECLEAR_BEAT_S="0.25", LINECLEAR_LEASE_S="0.9")
    job = place.submit("long")
    first = place.worker()
    place.running(job)
    place.until_said("start", 1)
    group = [first.pid] if stopped == "the supervisor alone" else place.processes()
    second = place.worker()
    both_there(place)
    place.stop(*group)
    began = time.monotonic()
    place.until_said("start", 2)
    assert time.monotonic() - began > 0.6, "not before the lease had run out"
    place.until(lambda: time.monotonic() - began > 3 * 0.9, what="three leases")
    check_never_two(place)
    for pid in group:
        if pid in place.processes():
            os.kill(pid, signal.SIGCONT)
    place.until(lambda: "its lease is lost" in first.said, what="the first worker to notice")
    place.touch("finish")
    (done,) = place.ended(job)
    assert (done.state, done.result, done.attempt) == (State.DONE, "2", 2)
    assert (place.folder / "output").read_text() == "2"
    kinds = place.kinds(job)
    assert kinds.count("taken over") == 1 and kinds.count("ended") == 1
    assert all(event.detail.get("state") != "failed" for event in place.events(job))
    check_never_two(place)
    another = place.submit("long")
    assert second.end() == 0
    assert place.ended(another)[0].state is State.DONE, "the first one goes on working"
    assert first.end() == 0
    place.check_idle()


@pytest.mark.parametrize("trouble", ["the machine is paused", "the database is locked"])
def test_p9_who_looks_first_after_all_were_held_up_ends_nobodys_work(
    make: Make, trouble: str
) -> None:
    place = make(LONG)
    job = place.submit("long")
    first, second = place.worker(), place.worker()
    both_there(place)
    beat = place.running(job).beat_tick
    place.until(lambda: place.job(job).beat_tick != beat, what="a beat")
    if trouble == "the machine is paused":
        for worker in (first, second):
            worker.signal(signal.SIGSTOP)
        time.sleep(2.5)  # the trouble itself, longer than the lease
        for worker in (second, first):
            worker.signal(signal.SIGCONT)
    else:
        with closing(sqlite3.connect(place.queue.database, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            time.sleep(2.5)  # the trouble itself, longer than the lease
            other.execute("ROLLBACK")
    beat = place.job(job).beat_tick
    place.until(lambda: place.job(job).beat_tick != beat, what="a beat")
    late = place.submit("long")
    place.touch("finish")
    assert [(one.state, one.attempt) for one in place.ended(job, late)] == [(State.DONE, 1)] * 2
    assert "taken over" not in place.kinds(job)
    assert [first.end(), second.end()] == [0, 0]
    place.check_idle()


def test_case_b8_stopping_and_going_on_at_random_never_gives_two_ends(make: Make) -> None:
    source = """
@queue.task(lane="one", max_interruptions=1000)
def short(ctx, number: int):
    with open(HERE / "busy", "a") as busy:
        import fcntl
        fcntl.flock(busy, fcntl.LOCK_EX | fcntl.LOCK_NB)  # raises where two run at once
        for _ in range(5):
            time.sleep(0.02)
            ctx.safe_point()
"""
    place = make(source, LINECLEAR_BEAT_S="0.05", LINECLEAR_LEASE_S="0.2")
    jobs = [place.submit("short", number=number) for number in range(12)]
    two: list[Worker] = [place.worker(), place.worker()]
    both_there(place)
    deadline = time.monotonic() + 60
    chance = random.Random(1)
    while not all(place.job(job).ended for job in jobs):
        assert time.monotonic() < deadline, place.report()
        victim = chance.choice(two)
        victim.signal(signal.SIGSTOP)
        time.sleep(chance.uniform(0.0, 0.6))  # around the lease: the jitter is what is tested
        victim.signal(signal.SIGCONT)
        time.sleep(chance.uniform(0.0, 0.2))
    for job in place.ended(*jobs):
        assert job.state is State.DONE, place.report(job.id)
        assert place.kinds(job.id).count("ended") == 1
    assert [worker.end() for worker in two] == [0, 0]
    place.check_idle()


def test_e05_p9_case_b1_a_child_that_never_lets_go_of_the_lock_is_alive(make: Make) -> None:
    source = """
@queue.task(lane="one")
def wedged(ctx):
    say("start", ctx.attempt)
    ctypes.PyDLL(None).usleep(3_000_000)  # a PyDLL call keeps the interpreter lock
    say("stop", ctx.attempt)
"""
    place = make(source, LINECLEAR_BEAT_S="0.2", LINECLEAR_LEASE_S="0.8")
    job = place.submit("wedged")
    first, second = place.worker(), place.worker()
    (done,) = place.ended(job)
    assert (done.state, done.attempt) == (State.DONE, 1)
    assert place.said("start", 1) == 1 and place.said("stop", 1) == 1
    assert "taken over" not in place.kinds(job)
    assert [first.end(), second.end()] == [0, 0]
    place.check_idle()


def test_case_b2_jobs_longer_than_the_lease_run_once_each(make: Make) -> None:
    source = """
@queue.task(lane="one")
def longer(ctx, number: int):
    say("start", number)
    time.sleep(0.2)
    say("stop", number)
"""
    place = make(source, LINECLEAR_BEAT_S="0.05", LINECLEAR_LEASE_S="0.16")
    jobs = [place.submit("longer", number=number) for number in range(20)]
    worker = place.worker()
    assert {job.attempt for job in place.ended(*jobs)} == {1}
    assert [line[1] for line in place.diary] == ["start", "stop"] * 20
    assert worker.end() == 0
    place.check_idle()


def test_e21_case_b7_a_run_whose_lease_is_lost_is_ended_and_its_end_not_recorded(
    make: Make,
) -> None:
    place = make(LONG, LINECLEAR_BEAT_S="30", LINECLEAR_LEASE_S="91")
    job = place.submit("long")
    worker = place.worker()
    lost = place.running(job)
    with place.queue.store.write() as tx:
        mine = runs.take_lease(tx, lost)
    place.touch("finish")
    place.until(lambda: "its lease is lost" in worker.said, what="the refused end")
    assert mine is not None
    now = place.job(job)
    assert (now.state, now.lease, now.outcome) == (State.RUNNING, mine.lease, None)
    with place.queue.store.write() as tx:
        assert runs.finish(tx, now, Ending("lost"), by="tester") is not None
    assert place.ended(job)[0].result == "2"
    assert worker.end() == 0
    place.check_idle()


def test_e21_the_first_refused_beat_ends_the_process_and_the_orphan_is_taken_back(
    make: Make,
) -> None:
    place = make(LONG)
    job = place.submit("long")
    worker = place.worker()
    lost = place.running(job)
    with place.queue.store.write() as tx:
        runs.take_lease(tx, lost)
    place.until(lambda: "its lease is lost" in worker.said, what="the refused beat")
    place.until_said("start", 2)
    place.touch("finish")
    assert place.ended(job)[0].result == "2"
    check_never_two(place)
    assert worker.end() == 0
    place.check_idle()


@pytest.mark.parametrize("record", ["present", "removed"])
def test_e20_case_a1_a_killed_workers_job_is_taken_at_once_by_one_that_waits(
    make: Make, record: str
) -> None:
    place = make(LONG, **LONG_LEASE)
    job = place.submit("long")
    first = place.worker()
    place.running(job)
    second = place.worker()
    both_there(place)
    if record == "removed":
        worker = place.job(job).worker
        with place.queue.store.write() as tx:
            tx.all("worker_drop", id=worker)
    first.kill()
    place.until_said("start", 2)
    check_never_two(place)
    place.touch("finish")
    assert place.ended(job)[0].attempt == 2
    assert second.end() == 0
    place.check_idle()
    assert list(place.queue.files.workers.iterdir()) == [] or record == "removed"


def test_e20_case_a2_case_a3_every_slot_is_freed_by_one_worker_with_no_slot(make: Make) -> None:
    place = make(LONG, **LONG_LEASE)
    jobs = [place.submit("long") for _ in range(3)]
    place.queue.lane("one").set_concurrency(3)
    first = place.worker()
    for job in jobs:
        place.running(job)
    first.kill()
    place.queue.lane("one").set_concurrency(1)
    second = place.worker()
    place.until(lambda: sum("back in line" in place.kinds(job) for job in jobs) == 3)
    place.touch("finish")
    assert [job.attempt for job in place.ended(*jobs)] == [2, 2, 2]
    lost = [event for event in place.events(jobs[0]) if event.kind == "back in line"]
    assert lost[0].attempt == 1 and lost[0].detail["cause"] == Cause.WORKER_LOST
    assert second.end() == 0
    place.check_idle()


def test_case_a5_killed_at_random_moments_no_job_is_lost(make: Make) -> None:
    source = """
@queue.task(lane="one", retries=3, max_interruptions=100)
def short(ctx, number: int):
    with ctx.step("only") as step:
        if not step.done:
            say("step", number)
    time.sleep(0.05)
"""
    place = make(source, **LONG_LEASE)
    jobs = [place.submit("short", number=number) for number in range(10)]
    chance = random.Random(2)
    for _ in range(8):
        worker = place.worker()
        place.until(lambda: len(place.queue.workers()) > 0)
        time.sleep(chance.uniform(0, 0.3))  # the moment itself is what is tested
        worker.kill()
        place.check()
    last = place.worker()
    assert {job.state for job in place.ended(*jobs)} == {State.DONE}
    assert {place.kinds(job).count("ended") for job in jobs} == {1}
    assert last.end() == 0
    place.check_idle()


def test_case_a7_a_job_that_kills_its_worker_three_times_has_failed_and_others_went_on(
    make: Make,
) -> None:
    source = """
@queue.task(lane="bad")
def bad(ctx):
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(60)

@queue.task(lane="good")
def good(ctx):
    pass
"""
    place = make(source, **LONG_LEASE)
    bad = place.submit("bad")
    for attempt in (1, 2, 3):
        assert place.worker().wait() == -signal.SIGKILL
        assert place.job(bad).attempt == attempt
    last, good = place.worker(), place.submit("good")
    failed, done = place.ended(bad, good)
    assert (failed.state, failed.cause, failed.attempt) == (State.FAILED, Cause.WORKER_LOST, 3)
    assert "lost its worker 3 times" in (failed.error or "")
    assert done.state is State.DONE
    assert last.end() == 0
    place.check_idle()


def test_case_a8_one_dead_run_behind_many_that_live_is_found_at_the_first_look(
    make: Make,
) -> None:
    place = make(
        """
@queue.task(lane="many")
def many(ctx):
    pass
""",
        **LONG_LEASE,
    )
    jobs = [place.submit("many") for _ in range(300)]
    lane = place.queue.lane("many")
    lane.set_concurrency(300)
    files, store = place.queue.files, place.queue.store
    files.make(files.workers)
    for name, count in (("a" * 32, 299), ("b" * 32, 1)):
        held = locks.take(files.lock(name), mode=0o600)
        with store.write() as tx:
            sign = Sign(name, "here", here(), os.getpid(), "0", ("many",), 600_000, tx.now_ms)
            runs.add_worker(tx, sign)
            for _ in range(count):
                assert runs.claim(tx, "many", name)
        if count == 1:
            os.close(held)
    try:
        worker = place.worker()
        place.ended(jobs[-1])
        assert len(place.queue.running()) == 299
        assert worker.end() == 0
    finally:
        os.unlink(files.lock("a" * 32))


@pytest.mark.parametrize("wish", ["cancel", "kill"])
def test_case_c6_case_a3_a_dead_job_asked_to_end_does_not_run_again(make: Make, wish: str) -> None:
    place = make(LONG, **LONG_LEASE)
    job = place.submit("long")
    first = place.worker()
    place.running(job)
    first.kill()
    getattr(place.queue, wish)(job)
    with pytest.raises(WrongState):
        place.queue.remove(job)
    second = place.worker()
    (gone,) = place.ended(job)
    assert (gone.state, gone.attempt) == (State.CANCELLED, 1)
    assert place.said("start", 2) == 0
    assert second.end() == 0
    place.check_idle()


def test_case_i3_an_unrelated_process_in_the_record_is_never_signalled(make: Make) -> None:
    place = make(LONG)
    job = place.submit("long")
    first = place.worker()
    mine = place.running(job)
    with place.queue.store.write() as tx:
        runs.set_child(tx, mine, pid=os.getpid(), start=1)
    place.stop(first.pid)
    second = place.worker()
    place.until_said("start", 2)
    check_never_two(place)
    first.kill()
    place.touch("finish")
    assert place.ended(job)[0].attempt == 2
    assert second.end() == 0
    place.check_idle()


def test_e20_a_claim_amid_a_workers_burial_keeps_the_workers_name(make: Make) -> None:
    """It claimed after the look that found it idle, and died before it was forgotten."""
    place = make(LONG, **LONG_LEASE)
    first = place.worker()
    place.until(lambda: len(place.queue.workers()) == 1)
    name = place.queue.workers()[0].id
    first.kill()
    job = place.submit("long")
    late = f"""
def claim(*_):
    from lineclear import Queue
    with Queue(sys.argv[1]).store.write() as tx:
        if not runs.every_run(tx):
            assert runs.claim(tx, "one", {name!r})

from lineclear.worker import claims, leases
around(leases, "sweep", before=claim)
real, looks = claims.Claims.look, []

def look(self, tx, *, held, closed):
    looks.append(1)
    return real(self, tx, held=held, closed=closed or len(looks) == 1)

claims.Claims.look = look
"""
    second = place.worker(sabotage=late)
    place.until_said("start", 2)
    place.touch("finish")
    assert place.ended(job)[0].attempt == 2
    assert second.end() == 0
    place.check_idle()

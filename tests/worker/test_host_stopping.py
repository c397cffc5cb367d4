"""One of several jobs in a host is stopped, or the host dies: whom that touches, and whom not."""

from __future__ import annotations

import os
import signal
import sqlite3
from collections.abc import Callable
from contextlib import closing
from functools import partial

import pytest
from tests.workers import LONG_LEASE, Site

from lineclear.job import Cause, Job, State

Make = Callable[..., Site]

TASKS = """
import asyncio

def loop(ctx, number):
    while not (HERE / f"go-{number}").exists():
        ctx.safe_point()
        yield

@queue.task(lane="shared")
async def waits(ctx, number: int):
    say("start", number, ctx.attempt, os.getpid())
    for _ in loop(ctx, number):
        await asyncio.sleep(0.01)
    return number

@queue.task(lane="shared")
async def computes(ctx, number: int):
    say("start", number, ctx.attempt, os.getpid())
    for _ in loop(ctx, number):
        time.sleep(0.001)

@queue.task(lane="shared")
async def asleep(ctx, number: int):
    say("start", number, ctx.attempt, os.getpid())
    try:
        await asyncio.sleep(600)
    finally:
        say("cleaned", number)

@queue.task(lane="shared", timeout_s=0.3)
async def limited(ctx, number: int):
    say("start", number, ctx.attempt, os.getpid())
    await asyncio.sleep(600)

@queue.task(lane="shared")
async def refuses(ctx, number: int):
    say("start", number, ctx.attempt, os.getpid())
    while True:
        try:
            await asyncio.sleep(600)
        except asyncio.CancelledError:
            say("refused", number)

@queue.task(lane="shared", runs_in="thread")
def listens(ctx, number: int):
    say("start", number, ctx.attempt, os.getpid())
    for _ in loop(ctx, number):
        time.sleep(0.01)
    return number

@queue.task(lane="shared", runs_in="thread")
def deaf(ctx, number: int):
    say("start", number, ctx.attempt, os.getpid())
    while ctx.attempt == 1:
        time.sleep(0.01)

@queue.task(lane="shared", runs_in="thread", timeout_s=0.3)
def limited_deaf(ctx, number: int):
    say("start", number, ctx.attempt, os.getpid())
    time.sleep(600)

@queue.task(lane="shared", runs_in="thread")
def exits(ctx, number: int):
    say("start", number, ctx.attempt, os.getpid())
    until("exit")
    os._exit(3)

@queue.task(lane="shared")
async def forks(ctx):
    if os.fork() == 0:
        return "the copy"
    await asyncio.sleep(0.3)
    return "the task"
"""


def start(place: Site, *names: str) -> list[int]:
    """A worker, and one job of each of these tasks in one host, numbered from 1."""
    place.queue.lane("shared").set_concurrency(len(names))
    ids = [place.submit(name, number=number) for number, name in enumerate(names, 1)]
    place.worker()
    for number in range(1, len(names) + 1):
        place.until(partial(host_of, place, number), what=f"the start of {names[number - 1]}")
    return ids


def host_of(place: Site, number: int, attempt: int = 1) -> int:
    found = [words for words in place.diary if words[1:4] == ["start", f"{number}", f"{attempt}"]]
    return int(found[0][4]) if found else 0


def end_well(place: Site, job: int, number: int) -> Job:
    place.touch(f"go-{number}")
    ended = place.ended(job)[0]
    assert ended.state is State.DONE, place.report(job)
    return ended


@pytest.mark.parametrize("task", ["waits", "computes", "listens"])
def test_e07_one_of_two_is_cancelled_at_its_safe_point_and_the_other_goes_on(
    make: Make, task: str
) -> None:
    place = make(TASKS, **LONG_LEASE)
    one, other = start(place, "waits", task)
    place.queue.cancel(other, by="somebody")
    ended = place.ended(other)[0]
    assert (ended.state, ended.cause) == (State.CANCELLED, Cause.ASKED), place.report(other)
    assert end_well(place, one, 1).attempt == 1


def test_e07_a_coroutine_without_safe_points_is_stopped_at_its_await_after_the_grace(
    make: Make,
) -> None:
    place = make(TASKS, LINECLEAR_GRACE_S="0.3", **LONG_LEASE)
    one, other = start(place, "waits", "asleep")
    place.queue.cancel(other, by="somebody")
    ended = place.ended(other)[0]
    assert (ended.state, ended.error) == (State.CANCELLED, "Stopped, asked by somebody.")
    assert place.said("cleaned", 2) == 1
    assert end_well(place, one, 1).attempt == 1


@pytest.mark.parametrize("act", ["kill", "stop now"])
def test_e16_a_coroutine_is_ended_alone_and_at_once(make: Make, act: str) -> None:
    place = make(TASKS, **LONG_LEASE)
    one, other = start(place, "waits", "asleep")
    if act == "kill":
        place.queue.kill(other, by="somebody")
        ended = place.ended(other)[0]
        assert (ended.state, ended.cause) == (State.CANCELLED, Cause.KILLED)
    else:
        place.queue.lane("shared").stop_now(by="somebody")
        place.until(lambda: place.job(other).state is State.QUEUED, what="back in line")
        place.until(lambda: place.job(one).state is State.QUEUED, what="back in line")
        assert place.job(other).interruptions == 0
        return
    assert place.said("cleaned", 2) == 1
    assert end_well(place, one, 1).attempt == 1


@pytest.mark.parametrize("task", ["deaf", "refuses"])
def test_e16_e09_who_does_not_answer_is_ended_with_the_host_and_others_are_back_uncounted(
    make: Make, task: str
) -> None:
    place = make(TASKS, LINECLEAR_KILL_S="0.3", **LONG_LEASE)
    one, two, other = start(place, "waits", "listens", task)
    place.queue.kill(other, by="somebody")
    ended = place.ended(other)[0]
    assert (ended.state, ended.cause) == (State.CANCELLED, Cause.KILLED), place.report(other)
    for number, job in ((1, one), (2, two)):
        place.until_attempt(job, 2)
        back = next(event for event in place.events(job) if event.kind == "back in line")
        assert f"ended to end job {other}" in back.detail["error"]
        assert place.job(job).interruptions == 0
        place.until(partial(host_of, place, number, 2), what="its second start")
        assert host_of(place, number, 2) != host_of(place, number)
        end_well(place, job, number)


def test_p13_a_host_that_dies_with_several_jobs_interrupts_all_of_them(make: Make) -> None:
    place = make(TASKS, **LONG_LEASE)
    ids = start(place, "waits", "listens")
    os.kill(host_of(place, 1), signal.SIGKILL)
    for number, job in enumerate(ids, 1):
        place.until_attempt(job, 2)
        assert place.job(job).interruptions == 1
        back = next(event for event in place.events(job) if event.kind == "back in line")
        assert "The process it shared with others was lost" in back.detail["error"]
        end_well(place, job, number)


def test_e10_p13_a_host_that_dies_with_one_job_is_that_jobs_failure(make: Make) -> None:
    place = make(TASKS, **LONG_LEASE)
    (job,) = start(place, "waits")
    os.kill(host_of(place, 1), signal.SIGSEGV)
    ended = place.ended(job)[0]
    assert (ended.state, ended.cause) == (State.FAILED, Cause.SIGNALLED)
    assert ended.error is not None and "signal 11 (SIGSEGV)" in ended.error
    again = place.submit("exits", number=2)
    place.touch("exit")
    ended = place.ended(again)[0]
    assert (ended.state, ended.error) == (State.FAILED, "Its process exited with code 3.")


def test_e10_a_time_limit_ends_a_coroutine_alone_and_a_deaf_thread_with_its_host(
    make: Make,
) -> None:
    place = make(TASKS, LINECLEAR_KILL_S="0.2", **LONG_LEASE)
    one, limited = start(place, "waits", "limited")
    ended = place.ended(limited)[0]
    assert (ended.state, ended.cause) == (State.FAILED, Cause.TIMED_OUT), place.report(limited)
    assert place.job(one).attempt == 1
    deaf = place.submit("limited_deaf", number=3)
    ended = place.ended(deaf)[0]
    assert (ended.state, ended.cause) == (State.FAILED, Cause.TIMED_OUT), place.report(deaf)
    place.until_attempt(one, 2)
    assert place.job(one).interruptions == 0
    end_well(place, one, 1)


def test_e09_a_worker_that_stops_interrupts_each_and_leaves_no_process(make: Make) -> None:
    place = make(TASKS, LINECLEAR_GRACE_S="0.4", LINECLEAR_KILL_S="0.4", **LONG_LEASE)
    ids = start(place, "waits", "listens", "asleep", "deaf", "computes")
    assert place.workers[0].end() == 0
    for job in map(place.job, ids):
        assert (job.state, job.cause, job.interruptions) == (
            State.QUEUED, Cause.INTERRUPTED, 1,
        ), place.report(job.id)  # fmt: skip
    place.check_idle()


def test_e20_a_killed_workers_host_dies_with_it_and_its_jobs_are_taken_at_once(make: Make) -> None:
    place = make(TASKS, **LONG_LEASE)
    ids = start(place, "waits", "deaf")
    first = host_of(place, 1)
    place.workers[0].kill()
    place.until(lambda: first not in place.processes(), what="the end of its host")
    place.worker()
    for number, job in enumerate(ids, 1):
        place.until_attempt(job, 2)
        assert place.job(job).interruptions == 1
        end_well(place, job, number)


def test_e20_p8_a_stopped_workers_host_is_ended_before_any_of_its_slots_is_given_away(
    make: Make,
) -> None:
    place = make(TASKS, LINECLEAR_BEAT_S="0.25", LINECLEAR_LEASE_S="0.9")
    ids = start(place, "waits", "listens")
    first = host_of(place, 1)
    place.worker()
    place.until(lambda: len(place.queue.workers()) == 2, what="a second worker")
    place.stop(place.workers[0].pid)
    for number, job in enumerate(ids, 1):
        place.until_attempt(job, 2)
        assert first not in place.processes()
        end_well(place, job, number)
    os.kill(place.workers[0].pid, signal.SIGCONT)
    place.until(lambda: len(place.queue.workers()) >= 1)
    place.check()


@pytest.mark.parametrize("task", ["asleep", "deaf"])
def test_e21_a_job_that_lost_its_lease_is_ended_and_the_other_is_not_counted(
    make: Make, task: str
) -> None:
    place = make(TASKS, LINECLEAR_BEAT_S="0.2", LINECLEAR_LEASE_S="600", LINECLEAR_KILL_S="0.3")
    one, other = start(place, "waits", task)
    with closing(sqlite3.connect(place.queue.database, timeout=10)) as database, database:
        database.execute(
            "UPDATE job SET lease = 'another', worker = 'another', version = version + 1 "
            "WHERE id = ?", (other,),
        )  # fmt: skip
    place.until(lambda: "its lease is lost" in place.workers[0].said, what="a lost lease")
    assert place.job(other).lease == "another" and place.job(other).state is State.RUNNING
    if task == "deaf":
        place.until_attempt(one, 2)
    assert end_well(place, one, 1).interruptions == 0


def test_p23_a_forked_copy_says_nothing_and_ends(make: Make) -> None:
    place = make(TASKS, **LONG_LEASE)
    job = place.submit("forks")
    worker = place.worker()
    ended = place.ended(job)[0]
    assert ended.result == '"the task"', place.report(job)
    worker.end()
    place.check_idle()

"""Lanes as real workers see them: pause, hold, delay, slots, force, due jobs, late workers."""

from __future__ import annotations

import signal
import sqlite3
from collections.abc import Callable
from contextlib import closing

import pytest
from tests.helpers import python
from tests.workers import LONG_LEASE, Site

from lineclear.errors import WrongState
from lineclear.job import State

Make = Callable[..., Site]

TASKS = """
@queue.task(lane="one")
def quick(ctx, number: int):
    say("start", number)
    say("stop", number)

@queue.task(lane="one")
def waits(ctx, number: int):
    say("start", number)
    while not (HERE / f"go-{number}").exists():
        ctx.safe_point()
        time.sleep(0.01)
    say("stop", number)
"""


def starts(place: Site) -> list[int]:
    return [int(line[2]) for line in place.diary if line[1] == "start"]


def test_e01_e19_submitting_starts_nothing_and_a_late_worker_finds_it(make: Make) -> None:
    place = make(TASKS, **LONG_LEASE)
    job = place.submit("quick", number=1)
    assert place.processes() == [] and place.job(job).state is State.QUEUED
    script = """
import os, signal, sys
from lineclear import Queue
from lineclear.store import acts
from lineclear.store.sqlite import SqliteStore
from lineclear.tasks import load_app
queue = load_app(sys.argv[1] + ":queue")
real = SqliteStore._sync_log
SqliteStore._sync_log = lambda self: os.kill(os.getpid(), signal.SIGKILL)
queue.submit("quick", {"number": 2})
"""

    def submit_and_die() -> None:
        with python(script, place.module) as process:
            assert process.wait(30) == -signal.SIGKILL

    submit_and_die()
    worker = place.worker()
    place.ended(job, 2)
    place.until(lambda: len(place.queue.workers()) == 1)
    submit_and_die()
    assert place.ended(3)[0].state is State.DONE, "killed after its commit, and heard"
    assert starts(place) == [1, 2, 2]
    assert worker.end() == 0
    place.check_idle()


def test_e13_e14_e15_pause_hold_release_remove(make: Make) -> None:
    place = make(TASKS, **LONG_LEASE)
    running, held, removed, last = (
        place.submit("waits", number=0),
        *(place.submit("quick", number=number) for number in (1, 2, 3)),
    )
    worker = place.worker()
    place.until_said("start", 0)
    lane = place.queue.lane("one")
    lane.pause("quiet hours")
    place.queue.hold(held)
    with pytest.raises(WrongState):
        place.queue.hold(running)
    with pytest.raises(WrongState):
        place.queue.remove(running)
    place.queue.remove(removed)
    place.touch("go-0")
    assert place.ended(running)[0].state is State.DONE, "what runs finishes"
    later = place.submit("quick", number=4)
    place.queue.force(later)
    assert place.ended(later)[0].state is State.DONE, "forced past the pause"
    assert starts(place) == [0, 4], "and opened the lane for no other"
    lane.resume()
    place.ended(last)
    assert place.job(held).state is State.QUEUED
    place.queue.release(held)
    assert place.ended(held)[0].state is State.DONE
    assert starts(place) == [0, 4, 3, 1]
    assert lane.remove_waiting() == 0
    assert worker.end() == 0
    place.check_idle()


def test_e18_order_and_priority_hold(make: Make) -> None:
    place = make(TASKS, **LONG_LEASE)
    place.queue.store  # noqa: B018  the file is there before the lane is paused
    jobs = [place.submit("quick", number=number) for number in range(4)]
    place.queue.move(jobs[3], "top")
    place.queue.prioritize(jobs[2], 5)
    place.queue.move(jobs[0], ("after", jobs[1]))
    worker = place.worker()
    place.ended(*jobs)
    assert starts(place) == [2, 3, 1, 0]
    assert worker.end() == 0


def test_p1_slots_lowered_from_three_to_one_while_three_run(make: Make) -> None:
    place = make(TASKS, **LONG_LEASE)
    jobs = [place.submit("waits", number=number) for number in range(5)]
    lane = place.queue.lane("one")
    lane.set_concurrency(3)
    workers = [place.worker(), place.worker()]
    for number in range(3):
        place.until_said("start", number)
    lane.set_concurrency(1)
    place.touch("go-0")
    place.touch("go-1")
    place.ended(jobs[0], jobs[1])
    quick = place.submit("quick", number=9)
    assert place.job(jobs[3]).state is State.QUEUED, "two ended, one still runs: no slot is free"
    place.touch("go-2")
    place.until_said("start", 3)
    assert place.job(jobs[4]).state is State.QUEUED
    place.touch("go-3")
    place.touch("go-4")
    place.ended(quick)
    assert starts(place)[3:] == [3, 4, 9], "one after the other"
    assert [worker.end() for worker in workers] == [0, 0]
    place.check_idle()


def test_e17_the_delay_holds_for_all_workers_and_a_change_is_in_force_at_once(
    make: Make,
) -> None:
    place = make(TASKS, **LONG_LEASE)
    jobs = [place.submit("quick", number=number) for number in range(3)]
    lane = place.queue.lane("one")
    lane.set_delay(500)
    workers = [place.worker(), place.worker()]
    place.ended(*jobs)
    said = {(line[1], line[2]): int(line[0]) for line in place.diary}
    for number in range(2):
        assert said["start", f"{number + 1}"] - said["stop", f"{number}"] > 0.49e9
    lane.set_delay(3_600_000)
    late, forced = (place.submit("quick", number=number) for number in (8, 9))
    place.queue.force(forced)
    place.ended(forced)
    assert place.queue.why(late)[0].kind == "delay"
    lane.set_delay(0)
    assert place.ended(late)[0].state is State.DONE
    lane.set_delay(3_600_000)
    assert [worker.end(timeout_s=10) for worker in workers] == [0, 0], "it never delays stopping"
    place.check_idle()


def test_p5_p16_due_jobs_start_when_due_though_the_lane_was_full(make: Make) -> None:
    place = make(TASKS, **LONG_LEASE)
    first = place.submit("waits", number=0)
    worker = place.worker()
    place.until_said("start", 0)
    due = place.queue.add("quick", {"number": 1}, run_at_ms=place.queue.now_ms() + 300).job.id
    lane = place.queue.lane("one")
    lane.pause(until_ms=place.queue.now_ms() + 300)
    place.until(lambda: place.queue.now_ms() > (place.job(due).run_at_ms or 0) + 200)
    used = cpu_ticks(worker.pid)
    place.until(lambda: place.queue.now_ms() > place.job(due).submitted_ms + 1000)
    assert cpu_ticks(worker.pid) - used < 20, "nothing spins while what is due cannot start"
    place.touch("go-0")
    done, _ = place.ended(due, first)
    assert done.state is State.DONE
    soon = place.queue.now_ms() + 400
    last = place.queue.add("quick", {"number": 2}, run_at_ms=soon).job.id
    (done,) = place.ended(last)
    assert done.started_ms is not None and done.started_ms >= soon
    assert worker.end() == 0
    place.check_idle()


def cpu_ticks(pid: int) -> int:
    """Hundredths of a second of processor time, so far."""
    with open(f"/proc/{pid}/stat") as stat:
        fields = stat.read().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def test_e16_case_c7_wishes_in_every_state_are_answered(make: Make) -> None:
    """Waiting, scheduled, held, ended; between claim and start has a test of its own."""
    place = make(TASKS, **LONG_LEASE)
    waiting = place.submit("quick", number=1)
    later = place.queue.add("quick", {"number": 2}, run_at_ms=place.queue.now_ms() + 10**7).job.id
    held = place.queue.add("quick", {"number": 3}, held=True).job.id
    for job in (waiting, later, held):
        assert place.queue.cancel(job).state is State.CANCELLED
        with pytest.raises(WrongState, match="cancelled"):
            place.queue.kill(job)
    worker, last = place.worker(), place.submit("quick", number=4)
    place.ended(last)
    assert starts(place) == [4]
    assert worker.end() == 0


def test_e02_e18_a_job_run_by_hand_takes_the_same_claim(make: Make) -> None:
    place = make(TASKS, **LONG_LEASE)
    first, second = (place.submit("waits", number=number) for number in (0, 1))
    place.queue.lane("one").pause()
    by_hand = """
import functools
supervisor.run_worker = functools.partial(supervisor.run_worker, only_job={})
"""
    mine = place.worker("one", sabotage=by_hand.format(second))
    place.until_said("start", 1)
    refused = place.worker("one", sabotage=by_hand.format(first))
    assert refused.wait() == 1
    assert "its lane has no free slot" in refused.said
    again = place.worker("one", sabotage=by_hand.format(second))
    assert again.wait() == 1
    assert "so it cannot be started" in again.said
    place.touch("go-1")
    assert mine.wait() == 0
    assert place.job(second).state is State.DONE
    assert starts(place) == [1] and place.queue.workers() == []
    place.check_idle()


def test_what_a_running_task_submits_starts_while_it_runs(make: Make) -> None:
    place = make(
        """
@queue.task(lane="other")
def child(ctx):
    say("child")

@queue.task(lane="one")
def parent(ctx):
    ctx.submit(child)
    until("go")
""",
        **LONG_LEASE,
    )
    parent, worker = place.submit("parent"), place.worker()
    place.until_said("child")
    assert place.job(parent).state is State.RUNNING
    place.touch("go")
    place.ended(parent)
    assert worker.end() == 0


def test_a_row_that_cannot_be_claimed_undoes_no_end_and_stops_its_lane_only(make: Make) -> None:
    place = make(
        """
@queue.task(lane="one")
def first(ctx):
    say("first")
    until("go")

@queue.task(lane="one")
def broken(ctx):
    pass

@queue.task(lane="two")
def second(ctx):
    say("second")
""",
        **LONG_LEASE,
    )
    first = place.submit("first")
    worker = place.worker()
    place.until_said("first")
    broken = place.submit("broken")
    with closing(sqlite3.connect(place.queue.database, timeout=10)) as database:
        database.execute("UPDATE job SET attempt = 9223372036854775807 WHERE id = ?", (broken,))
        database.commit()
    place.touch("go")
    assert place.ended(first)[0].state is State.DONE
    assert place.ended(place.submit("second"))[0].state is State.DONE
    assert worker.end() == 0


def test_a_run_by_hand_serves_no_lane(make: Make) -> None:
    place = make(
        """
@queue.task(lane="one")
def waits(ctx):
    say("runs")
    until("go")
""",
        **LONG_LEASE,
    )
    job = place.submit("waits")
    hand = place.worker(
        sabotage=f"""
real = supervisor.run_worker
supervisor.run_worker = lambda database, lanes: real(database, lanes=lanes, only_job={job})
"""
    )
    place.until_said("runs")
    assert [one.lanes for one in place.queue.workers()] == [()]
    place.touch("go")
    assert hand.wait() == 0

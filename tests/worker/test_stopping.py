"""A running job that is asked to end, and a worker that is: what is kept, and what is gone."""

from __future__ import annotations

import os
import signal
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing

import pytest
from tests.workers import LONG_LEASE, Site

from lineclear.errors import WrongState
from lineclear.job import Cause, State
from lineclear.worker import linux

Make = Callable[..., Site]

TASKS = """
@queue.task(lane="one")
def parts(ctx, number: int = 0, stop_after: int = 1):
    say("start", number, ctx.attempt)
    for part in ctx.steps(range(3), name=lambda part: f"part {part}"):
        say("part", number, part)
        with ctx.publish(HERE / f"{number}-{part}.txt") as staged:
            with staged.open("w") as file:
                file.write("half ")
                file.flush()
                say("half", number, part)
                while part == stop_after and not (HERE / "go").exists():
                    ctx.safe_point()
                    time.sleep(0.01)
                file.write("whole")
    return number

@queue.task(lane="one", max_interruptions=3)
def forever(ctx):
    say("start", ctx.attempt)
    while not (HERE / "go").exists():
        ctx.safe_point()
        time.sleep(0.01)

@queue.task(lane="one")
def deaf(ctx):
    say("start", ctx.attempt)
    time.sleep(600)

@queue.task(lane="one")
def stubborn(ctx):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    say("start", ctx.attempt)
    subprocess.run(["sh", "-c", 'trap "" TERM; sleep 600 | sleep 600'])

@queue.task(lane="one")
def writes(ctx, listens: bool = False):
    subprocess.Popen(["sh", "-c", "while :; do echo x; done"], stdout=open(HERE / "grows", "w"))
    say("start", ctx.attempt)
    while True:
        time.sleep(0.01)
        listens and ctx.safe_point()

@queue.task(lane="one")
def quick(ctx):
    say("quick")
"""


def staging(place: Site) -> list[str]:
    folder = place.queue.files.staging(0, 0).parent
    return [one.name for one in folder.iterdir()] if folder.exists() else []


def test_e07_a_cancelled_job_leaves_nothing_half_made(make: Make) -> None:
    place = make(TASKS, **LONG_LEASE)
    job, after = place.submit("parts"), place.submit("quick")
    worker = place.worker()
    place.until_said("half", 0, 1)
    place.queue.cancel(job, by="somebody", why="wrong book")
    (gone, done) = place.ended(job, after)
    assert (gone.state, gone.cause, gone.ended_by) == (State.CANCELLED, Cause.ASKED, "somebody")
    assert done.state is State.DONE
    assert [step.name for step in place.queue.steps(job)] == ["part 0"]
    assert (place.folder / "0-0.txt").read_text() == "half whole"
    assert not (place.folder / "0-1.txt").exists() and staging(place) == []
    with pytest.raises(WrongState, match="cancelled"):
        place.queue.cancel(job)
    place.touch("go")
    place.queue.retry(job)
    assert place.ended(job)[0].state is State.DONE
    assert [place.said("part", 0, part) for part in range(3)] == [1, 2, 1]
    assert worker.end() == 0
    place.check_idle()


@pytest.mark.parametrize(
    "moment", ["around(own, 'spawn', before=ask)", "around(runs, 'set_child', before=ask)"]
)
@pytest.mark.parametrize("wish", ["cancel", "kill"])
def test_case_c7_a_cancel_between_claim_and_start_is_heard(
    make: Make, moment: str, wish: str
) -> None:
    place = make(TASKS, **LONG_LEASE)
    job = place.submit("forever")
    ask = f"""
import threading, time
def ask(*args, **_):
    # Not here: the store is amid a transaction. And not awaited where that would be itself.
    from lineclear import Queue
    def asking():
        Queue(sys.argv[1]).{wish}(1)
        asked.set()
    asked = threading.Event()
    threading.Thread(target=asking).start()
    hasattr(args[0], "rooms") or asked.wait(20)
{moment}
"""
    worker = place.worker(sabotage=ask)
    (gone,) = place.ended(job)
    assert (gone.state, gone.attempt) == (State.CANCELLED, 1)
    assert worker.end() == 0
    place.check_idle()


def test_case_c3_a_wish_whose_ring_is_lost_comes_with_the_next_beat(make: Make) -> None:
    place = make(TASKS)
    job, worker = place.submit("forever"), place.worker()
    place.until_said("start", 1)
    for door in place.queue.files.bell.glob("work-*"):
        door.unlink()
    place.queue.cancel(job)
    assert place.ended(job)[0].state is State.CANCELLED
    assert worker.end() == 0
    place.check_idle()


def test_case_c4_e18_a_wish_reaches_its_own_job_only(make: Make) -> None:
    place = make(TASKS, **LONG_LEASE)
    place.queue.tasks["forever"].submit()
    place.queue.lane("one").set_concurrency(2)
    two = place.submit("parts", number=2)
    workers = [place.worker(), place.worker()]
    place.running(1)
    place.until_said("half", 2, 1)
    place.queue.cancel(1)
    assert place.ended(1)[0].state is State.CANCELLED
    assert place.job(two).state is State.RUNNING
    place.touch("go")
    assert place.ended(two)[0].state is State.DONE
    assert [worker.end() for worker in workers] == [0, 0]
    place.check_idle()


def test_case_c1_case_c2_kill_ends_blocking_code_before_it_says_so(make: Make) -> None:
    place = make(TASKS, **LONG_LEASE)
    job, after = place.submit("stubborn"), place.submit("quick")
    worker = place.worker()
    place.until_said("start", 1)
    mark = f"{place.job(job).worker}.{job}.1"
    place.until(lambda: len(linux.marked(mark)) == 4, what="a shell and two programs")
    place.queue.cancel(job)
    place.queue.kill(job)
    (gone,) = place.ended(job)
    assert linux.marked(mark) == []
    assert (gone.state, gone.cause) == (State.CANCELLED, Cause.KILLED)
    assert place.ended(after)[0].state is State.DONE
    assert worker.end() == 0
    place.check_idle()


@pytest.mark.parametrize("how", ["cancel at a safe point", "kill", "stop now"])
def test_case_h3_no_file_grows_after_the_end(make: Make, how: str) -> None:
    place = make(TASKS, **LONG_LEASE)
    job = place.submit("writes", listens=how == "cancel at a safe point")
    worker = place.worker()
    grows = place.folder / "grows"
    place.until(lambda: grows.exists() and grows.stat().st_size > 1000, what="the writer to write")
    with pytest.raises(WrongState, match="running"):
        place.queue.remove(job)
    if how == "stop now":
        place.queue.lane("one").stop_now()
        place.until(lambda: place.job(job).state is State.QUEUED)
    else:
        (place.queue.kill if how == "kill" else place.queue.cancel)(job)
        assert place.ended(job)[0].state is State.CANCELLED
    size = grows.stat().st_size
    assert linux.marked(f"{place.queue.workers()[0].id}.{job}") == []
    assert worker.end() == 0
    place.check_idle()
    assert grows.stat().st_size == size


def test_e16_p3_stop_now_puts_back_at_once_uncounted_and_pauses(make: Make) -> None:
    place = make(TASKS, **LONG_LEASE)
    lane = place.queue.lane("one") if place.submit("deaf") else None
    assert lane is not None
    others = [place.submit("quick") for _ in range(2)]
    worker = place.worker()
    for attempt in range(1, 5):
        place.until_said("start", attempt)
        assert [job.id for job in lane.stop_now(by="somebody", why="noise")] == [1]
        place.until(lambda: place.job(1).state is State.QUEUED)
        back = place.job(1)
        assert (back.cause, back.interruptions, back.forced_ms) == (Cause.STOPPED_NOW, 0, None)
        assert place.queue.place(1) == 1 and staging(place) == []
        assert lane.get().pauses[0].why == "noise"
        assert lane.stop_now() == [], "with nothing running it does nothing but say so"
        lane.resume()
    place.until_said("start", 5)
    place.queue.kill(1)
    assert [job.state for job in place.ended(*others)] == [State.DONE] * 2
    assert worker.end() == 0
    place.check_idle()


def test_e09_p13_case_i5_a_stopped_worker_puts_jobs_back_with_their_steps(make: Make) -> None:
    place = make(TASKS, **LONG_LEASE)
    first, second = place.submit("parts", number=1), place.submit("quick")
    worker = place.worker()
    place.until_said("half", 1, 1)
    assert worker.end() == 0
    place.check_idle()
    back = place.job(first)
    assert (back.state, back.cause, back.interruptions) == (State.QUEUED, Cause.INTERRUPTED, 1)
    assert [place.queue.place(one) for one in (first, second)] == [1, 2]
    assert place.queue.workers() == []
    place.touch("go")
    worker = place.worker()
    done, _ = place.ended(first, second)
    assert (done.state, done.attempt, done.failures) == (State.DONE, 2, 0)
    assert [place.said("part", 1, part) for part in range(3)] == [1, 2, 1]
    assert worker.end() == 0


def test_e09_p13_three_interruptions_without_a_step_have_failed(make: Make) -> None:
    place = make(TASKS, **LONG_LEASE)
    job = place.submit("forever")
    for attempt in (1, 2, 3):
        worker = place.worker()
        place.until_said("start", attempt)
        assert worker.end() == 0
    failed = place.job(job)
    assert (failed.state, failed.cause) == (State.FAILED, Cause.INTERRUPTED)
    assert "interrupted 3 times" in (failed.error or "")
    place.check_idle()


def test_e09_case_i7_after_the_grace_time_comes_term_then_kill(make: Make) -> None:
    place = make(TASKS, LINECLEAR_GRACE_S="0.3", LINECLEAR_KILL_S="0.4")
    job = place.submit("stubborn")
    worker = place.worker()
    place.until_said("start", 1)
    began = time.monotonic()
    assert worker.end() == 0
    assert time.monotonic() - began > 0.6
    assert (place.job(job).state, place.job(job).cause) == (State.QUEUED, Cause.INTERRUPTED)
    place.check_idle()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_e09_a_second_signal_ends_now(make: Make, number: int) -> None:
    place = make(TASKS, LINECLEAR_GRACE_S="600", LINECLEAR_KILL_S="600")
    job = place.submit("deaf")
    worker = place.worker()
    place.until_said("start", 1)
    worker.signal(number)
    place.until(lambda: "stopping" in worker.said, what="the first signal to be heard")
    assert place.job(job).state is State.RUNNING
    worker.signal(number)
    assert worker.wait() == 0
    assert (place.job(job).state, place.job(job).cause) == (State.QUEUED, Cause.INTERRUPTED)
    place.check_idle()


def test_e09_a_third_signal_does_not_wait_for_a_database_that_does_not_answer(
    make: Make,
) -> None:
    place = make(TASKS, **LONG_LEASE)
    job = place.submit("deaf")
    worker = place.worker()
    place.until_said("start", 1)
    with closing(sqlite3.connect(place.queue.database, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        for times in (1, 2, 3):
            worker.signal(signal.SIGTERM)
            place.until(lambda: worker.process.poll() or "stopping" in worker.said)
            if times == 2:
                place.until(lambda: not linux.marked(f"{place.job(job).worker}.{job}"))
        assert worker.wait() == 130
        other.execute("ROLLBACK")
    again = place.worker()
    place.until_said("start", 2)
    place.queue.kill(job)
    place.ended(job)
    assert again.end() == 0
    place.check_idle()


@pytest.mark.parametrize(
    "moment",
    [
        "around(runs, 'claim', after=lambda job: job and term())",
        "around(own, 'spawn', before=term)",
        "around(own, 'spawn', after=term)",
        "around(runs, 'set_child', after=term)",
        "around(runs, 'set_outcome', after=term)",
        "around(own, 'kill_tree', before=term)",
        "around(runs, 'finish', after=term)",
        "around(run, 'unseated', before=term)",
    ],
)
def test_e09_case_b7_asked_to_stop_at_any_moment_every_job_is_back_or_done(
    make: Make, moment: str
) -> None:
    place = make(TASKS, **LONG_LEASE)
    place.touch("go")
    jobs = [place.submit("parts", number=number) for number in range(3)]
    term = """
sent = []
def term(*_, **__):
    if not sent:
        sent.append(os.kill(os.getpid(), signal.SIGTERM))
"""
    assert place.worker(sabotage=term + moment).wait() == 0
    states = [place.job(job).state for job in jobs]
    assert set(states) <= {State.QUEUED, State.DONE}
    assert place.queue.workers() == []
    place.check_idle()
    last = place.worker()
    assert {job.state for job in place.ended(*jobs)} == {State.DONE}
    for job in jobs:
        assert place.kinds(job).count("ended") == 1
    assert last.end() == 0


def test_case_c8_case_c9_e13_a_pause_outlives_whoever_set_it(make: Make) -> None:
    place = make(TASKS, **LONG_LEASE)
    job, later = place.submit("parts"), [place.submit("quick") for _ in range(5)]
    first = place.worker()
    place.until_said("half", 0, 1)
    until_ms = place.queue.now_ms() + 3_600_000
    script = f"""
import os, signal, sys
from lineclear import Queue
queue = Queue(sys.argv[1])
queue.lane("one").pause("backup", until_ms={until_ms}, source="backup.sh", by="cron")
os.kill(os.getpid(), signal.SIGKILL)
"""
    from tests.helpers import python

    with python(script, place.queue.database) as process:
        assert process.wait(30) == -signal.SIGKILL
    first.kill()
    three = [place.worker() for _ in range(3)]
    place.until(lambda: place.job(job).state is State.QUEUED, what="the job to be back")
    place.until(lambda: len(place.queue.workers()) == 3)
    (pause,) = place.queue.lane("one").get().pauses
    assert (pause.by, pause.why, pause.source) == ("cron", "backup", "backup.sh")
    assert pause.until_ms == until_ms
    assert place.queue.running() == [] and place.said("start", 0, 2) == 0
    assert place.queue.place(job) == 1
    place.touch("go")
    place.queue.lane("one").resume()
    assert {one.state for one in place.ended(job, *later)} == {State.DONE}
    assert [worker.end() for worker in three] == [0, 0, 0]
    place.check_idle()


def test_case_g9_a_cancel_within_a_moment_of_each_steps_end_repeats_none(make: Make) -> None:
    source = """
@queue.task(lane="one")
def parts(ctx):
    for part in ctx.steps(range(40), name=lambda part: f"part {part}"):
        with ctx.publish(HERE / f"out-{part}") as staged:
            staged.write_text("once")
        say("part", part)
"""
    place = make(source, **LONG_LEASE)
    job, worker = place.submit("parts"), place.worker()
    cancelled = 0
    for part in range(0, 40, 3):
        place.until_said_or_ended(job, "part", part)
        if not place.job(job).ended:
            place.queue.cancel(job)
            cancelled += place.ended(job)[0].state is State.CANCELLED
            made = {p.name: p.stat().st_mtime_ns for p in place.folder.glob("out-*")}
            if place.job(job).state is State.CANCELLED:
                place.queue.retry(job)
    assert place.ended(job)[0].state is State.DONE
    assert cancelled > 3
    assert [place.said("part", part) for part in range(40)] == [1] * 40
    for name, moment in made.items():
        assert (place.folder / name).stat().st_mtime_ns == moment
    assert worker.end() == 0
    place.check_idle()


def test_p12_a_submit_of_a_key_that_is_being_cancelled_runs_afresh(make: Make) -> None:
    source = """
@queue.task(lane="one", key="same")
def keyed(ctx, text: str):
    with ctx.step("first") as step:
        if not step.done:
            say("first", text)
    say("start", text)
    while text == "old":
        time.sleep(0.01)
        (HERE / "go").exists() and ctx.safe_point()
    return text
"""
    place = make(source, **LONG_LEASE)
    job, worker = place.submit("keyed", text="old"), place.worker()
    place.until_said("start", "old")
    assert place.submit("keyed", text="other") == job, "one live job for each key"
    place.queue.cancel(job)
    assert place.submit("keyed", text="new") == job
    place.touch("go")
    (done,) = place.ended(job)
    assert (done.state, done.result, done.attempt) == (State.DONE, '"new"', 2)
    assert place.said("first", "new") == 1, "no step of an older revision is taken for done"
    assert worker.end() == 0
    place.check_idle()


def test_a_worker_leaves_nothing_of_itself_behind(make: Make) -> None:
    place = make(TASKS)
    for _ in range(2):
        worker = place.worker()
        place.until(lambda: len(place.queue.workers()) == 1)
        worker.kill()
        worker = place.worker()
        place.until_alone(worker)
        assert worker.end() == 0
    assert os.listdir(place.queue.files.workers) == []
    assert place.queue.workers() == []
    before_its_name = "around(runs, 'add_worker', after=die)"
    assert place.worker(sabotage=before_its_name).wait() == -signal.SIGKILL
    assert len(os.listdir(place.queue.files.workers)) == 1
    job, worker = place.submit("quick"), place.worker()
    place.ended(job)
    assert worker.end() == 0
    assert os.listdir(place.queue.files.workers) == []


def test_a_service_manager_that_signals_everybody_interrupts_and_fails_nothing(make: Make) -> None:
    place = make(TASKS, **LONG_LEASE)
    job, worker = place.submit("deaf"), place.worker()
    place.until_said("start", 1)
    child = place.running(job).child_pid
    assert child is not None
    worker.signal(signal.SIGTERM)
    place.until(lambda: "stopping" in worker.said, what="the worker to stop")
    os.kill(child, signal.SIGTERM)
    assert worker.wait() == 0
    after = place.job(job)
    assert (after.state, after.cause) == (State.QUEUED, Cause.INTERRUPTED)

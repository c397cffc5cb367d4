"""A worker in trouble: its database locked or full, its memory gone. And what it never loads."""

from __future__ import annotations

import ctypes
import os
import signal
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from tests.workers import LONG_LEASE, Site, site

from lineclear.errors import StoreRefused
from lineclear.job import Cause, State

Make = Callable[..., Site]

STEPS = """
@queue.task(lane="one")
def steps(ctx, number: int = 0):
    for part in ctx.steps(range(4), name=str):
        say("part", number, part)
        if part == 1 and not (HERE / "go").exists():
            say("ready")
            until("go")
    return number
"""


def test_e26_a_database_locked_for_seconds_loses_nothing(make: Make) -> None:
    place = make(STEPS, **LONG_LEASE)
    jobs = [place.submit("steps", number=number) for number in range(2)]
    worker = place.worker()
    place.until_said("ready")
    with closing(sqlite3.connect(place.queue.database, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        place.touch("go")
        time.sleep(2)  # the trouble itself, not a wait for something
        other.execute("ROLLBACK")
    assert {job.state for job in place.ended(*jobs)} == {State.DONE}
    for number in range(2):
        assert [place.said("part", number, part) for part in range(4)] == [1] * 4
    assert worker.end() == 0
    place.check_idle()


def test_e26_a_database_that_was_moved_away_is_missed_and_nothing_is_lost_with_it(
    make: Make,
) -> None:
    place = make(STEPS, **LONG_LEASE)
    job = place.submit("steps")
    worker = place.worker()
    place.until_said("ready")
    away = place.folder / "away"
    place.queue.database.rename(away)
    place.touch("go")
    place.until(lambda: "moved, deleted or replaced" in worker.said, what="the trouble to be said")
    with pytest.raises(StoreRefused, match="moved, deleted or replaced"):
        place.queue.cancel(job)
    away.rename(place.queue.database)
    (done,) = place.ended(job)
    assert done.state is State.DONE
    assert [place.said("part", 0, part) for part in range(4)] == [1] * 4
    assert worker.end() == 0
    place.check_idle()


def test_e09_e26_a_machine_without_room_fails_no_job_and_its_lane_says_why(make: Make) -> None:
    """The worker really has no descriptor left for the process of a job, until it is resumed."""
    place = make(STEPS, **LONG_LEASE)
    place.touch("go")
    first, second = (place.submit("steps", number=number) for number in range(2))
    scarce = """
import resource
real, calls = own.spawn, []
def spawn(*args, **more):
    calls.append(1)
    if len(calls) > 1:
        return real(*args, **more)
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (os.dup(0), limits[1]))
    try:
        return real(*args, **more)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
own.spawn = spawn
"""
    worker = place.worker(sabotage=scarce)
    lane = place.queue.lane("one")
    place.until(lambda: lane.get().pauses, what="the lane to wait for room")
    (pause,) = lane.get().pauses
    assert (pause.source, pause.by) == ("worker", "the worker")
    assert "Too many open files" in pause.why and pause.until_ms is not None
    waiting = place.job(first)
    assert (waiting.state, waiting.cause, waiting.interruptions, waiting.failures) == (
        State.QUEUED,
        Cause.NOT_STARTED,
        0,
        0,
    )
    assert place.job(second).attempt == 0
    lane.resume()
    assert {job.state for job in place.ended(first, second)} == {State.DONE}
    assert worker.end() == 0
    place.check_idle()


@contextmanager
def small_disk(folder: Path) -> Iterator[None]:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(b"tmpfs", os.fsencode(folder), b"tmpfs", 0, b"size=2m") != 0:
        pytest.skip(f"no small disk can be mounted here: {os.strerror(ctypes.get_errno())}")
    try:
        yield
    finally:
        libc.umount2(os.fsencode(folder), 2)


def test_e26_a_full_disk_is_said_and_what_was_accepted_is_stored_later(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    source = STEPS.replace("return number", 'return "x" * 200_000')
    with small_disk(disk), site(disk, source, **LONG_LEASE) as place:
        job = place.submit("steps")
        worker = place.worker()
        place.until_said("ready")
        fill(disk / "filler")
        place.touch("go")
        place.until(lambda: "No space is left" in worker.said, what="the trouble to be said")
        assert place.job(job).state is State.RUNNING
        (disk / "filler").unlink()
        (done,) = place.ended(job)
        assert done.state is State.DONE and len(done.result or "") > 200_000
        assert [place.said("part", 0, part) for part in range(4)] == [1] * 4
        assert worker.end() == 0
        place.check_idle()


def fill(path: Path) -> None:
    with path.open("wb", buffering=0) as filler:
        for size in (65536, 4096):
            try:
                while filler.write(b"x" * size) == size:
                    pass
            except OSError:
                continue


MEMORY = Path("/sys/fs/cgroup/memory")


@contextmanager
def little_memory(megabytes: int) -> Iterator[Path]:
    """A control group with so much memory; the test is left out where none can be made."""
    group = MEMORY / f"lineclear-test-{os.getpid()}"
    try:
        group.mkdir()
    except OSError as error:
        pytest.skip(
            f"no memory control group (version 1) can be made here ({error.strerror}); "
            "test_e20_worker_and_child_killed_at_once kills both by other means"
        )
    try:
        (group / "memory.limit_in_bytes").write_text(str(megabytes * 2**20))
        yield group
    finally:
        deadline = time.monotonic() + 10
        while group.exists() and time.monotonic() < deadline:
            try:
                group.rmdir()
            except OSError:
                time.sleep(0.01)  # the kernel is not through with those it killed


HUNGRY = """
@queue.task(lane="one")
def hungry(ctx, too: bool):
    Path(GROUP, "cgroup.procs").write_text(str(os.getpid()))
    if too:  # the worker is in it as well, and the first to be chosen
        Path(GROUP, "cgroup.procs").write_text(str(os.getppid()))
        Path("/proc", str(os.getppid()), "oom_score_adj").write_text("1000")
    if ctx.attempt > 1:
        return "done"
    say("eats")
    if too:  # shared memory: it fills the group, and is nobody's to be chosen for
        held = os.memfd_create("held")
        while True:
            os.write(held, b"x" * 2**20)
    held = [bytearray(2**20) for _ in range(1000)]

@queue.task(lane="two")
def other(ctx):
    say("other")
    until("go")
"""


def test_e10_case_c5_case_i4_a_job_the_memory_killer_ends_is_named_and_others_go_on(
    make: Make,
) -> None:
    with little_memory(120) as group:
        place = make(f"GROUP = {str(group)!r}\n{HUNGRY}", **LONG_LEASE)
        hungry, other = place.submit("hungry", too=False), place.submit("other")
        # The worker counts kills in its own group, and reads which that is from its own file.
        count = f"""
from lineclear.worker import linux
linux._oom_counters = lambda: [Path({str(group)!r}, "memory.oom_control")]
"""
        worker = place.worker(sabotage=count)
        place.until_said("other")
        (failed,) = place.ended(hungry)
        assert (failed.state, failed.cause) == (State.FAILED, Cause.OUT_OF_MEMORY)
        assert "memory ran out" in (failed.error or "")
        os.kill(place.running(other).child_pid or 0, signal.SIGKILL)
        assert place.ended(other)[0].cause == Cause.SIGNALLED, "not by the same stroke"
        assert worker.end() == 0
        place.check_idle()


def test_case_a4_worker_and_child_ended_by_the_memory_killer_leave_no_run(make: Make) -> None:
    with little_memory(120) as group:
        place = make(f"GROUP = {str(group)!r}\n{HUNGRY}", **LONG_LEASE)
        job = place.submit("hungry", too=True)
        first = place.worker()
        assert first.wait() == -signal.SIGKILL
        place.until(lambda: not place.processes(), what="the end of the child")
        second = place.worker()
        assert "eats" in place.diary[0]
        (done,) = place.ended(job)
        assert (done.state, done.attempt) == (State.DONE, 2)
        lost = [event for event in place.events(job) if event.kind == "back in line"]
        assert [event.detail["cause"] for event in lost] == ["worker lost"]
        second.end()


def test_e22_the_supervisor_loads_neither_the_application_nor_what_it_does_not_need(
    make: Make,
) -> None:
    place = make(STEPS, **LONG_LEASE)
    place.touch("go")
    report = """
import atexit
atexit.register(lambda: Path("modules").write_text("\\n".join(sys.modules)))
"""
    job, worker = place.submit("steps"), place.worker(sabotage=report)
    assert place.ended(job)[0].state is State.DONE
    maps = Path(f"/proc/{worker.pid}/maps").read_text()
    assert "pydantic" not in maps
    assert worker.end() == 0
    modules = set((place.folder / "modules").read_text().split())
    heavy = {"pydantic", "typer", "rich", "lineclear.queue", "lineclear.context", "numpy"}
    assert modules & {*heavy, place.module.stem} == set()


def test_an_end_that_waits_for_a_locked_database_is_not_called_off(make: Make) -> None:
    place = make(
        """
@queue.task(lane="one")
def ends(ctx):
    say("ready")
    until("go")
    say("over")
""",
        **LONG_LEASE,
    )
    job = place.submit("ends")
    worker = place.worker(sabotage="run.DRAIN_S = 0.2")
    place.until_said("ready")
    with closing(sqlite3.connect(place.queue.database, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        place.touch("go")
        place.until_said("over")
        time.sleep(0.5)  # the end is said, and waits
        worker.signal(signal.SIGTERM)
        place.until(lambda: "stopping" in worker.said, what="the first signal")
        worker.signal(signal.SIGTERM)
        time.sleep(1)  # the trouble itself
        other.execute("ROLLBACK")
    assert worker.wait() == 0
    assert place.job(job).state is State.DONE

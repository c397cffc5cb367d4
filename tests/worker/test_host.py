"""Coroutines and threads that share their lane's host process: each has all that a job has."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from tests.workers import LONG_LEASE, Site

from lineclear.job import Cause, State

Make = Callable[..., Site]

TASKS = """
import asyncio, logging

@queue.task(lane="shared")
async def waits(ctx, number: int):
    say("start", number, ctx.attempt, os.getpid())
    while not (HERE / f"go-{number}").exists():
        ctx.safe_point()
        await asyncio.sleep(0.01)
    return number

@queue.task(lane="shared")
async def quick(ctx, number: int = 0, size: int = 0):
    say("quick", number, os.getpid())
    await asyncio.sleep(0.02)
    return [number, "x" * size]

@queue.task(lane="shared")
async def large(ctx, text: str):
    return len(text)

@queue.task(lane="shared")
async def prints(ctx, name: str):
    print("first", name)
    await asyncio.sleep(0.01)
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    logging.info("logged %s", name)
    await asyncio.to_thread(print, "in a thread of", name)
    ctx.log.info("told %s", name)
    sys.stdout.buffer.write(b"bytes " + name.encode() + b" \\xff\\n")
    print("no line end", name, end="")
    await asyncio.gather(*(asyncio.to_thread(print, f"{part} of {name}") for part in range(3)))
    raise ValueError(name)

@queue.task(lane="shared", runs_in="thread")
def prints_too(ctx, name: str):
    for part in range(200):
        print(name, part)
        sys.stderr.write(f"{name} {part}\\n")

@queue.task(lane="shared")
async def nobody(ctx):
    await (await asyncio.create_subprocess_exec("echo", "a program says")).wait()
    os.write(2, b"written below Python\\n")
    await asyncio.sleep(0.2)

@queue.task(lane="shared", max_interruptions=5)
async def parts(ctx, number: int):
    async for part in ctx.steps(range(3), name=lambda p: f"part {p}", weight=lambda _: 10):
        say("part", number, part)
        async with ctx.publish(HERE / f"{number}-{part}.txt") as staged:
            staged.write_text("half ")
            say("half", number, part)
            while part == 1 and not (HERE / "go").exists():
                ctx.safe_point()
                await asyncio.sleep(0.01)
            staged.write_text("whole")
    async with ctx.step("block") as step:
        if not step.done:
            step.result = [(await ctx.submit(quick, number=n))[0] for n in range(2)]
    ctx.kept.joinpath("note").write_text("kept")
    once = await ctx.step("once", lambda: asyncio.sleep(0, result=step.result))
    return [once, await ctx.step("plain", lambda: sorted(os.listdir(ctx.kept)))]

@queue.task(lane="shared")
async def side_by_side(ctx):
    async def one(name):
        async with ctx.step(name) as step:
            await asyncio.sleep(0.01)
            step.result = (await ctx.submit(quick, number=1))[0]
        return step.result
    return await asyncio.gather(one("a"), one("b"))

@queue.task(lane="shared", runs_in="thread")
def threaded(ctx, number: int):
    with ctx.step("one") as step:
        step.result = ctx.submit(quick, number=number)[0]
    with ctx.publish(HERE / "threaded.txt") as staged:
        staged.write_text("whole")
    return [step.result, threading.current_thread() is threading.main_thread()]
"""


def lines(place: Site, job: int) -> list[str]:
    """What is in a job's log, each line behind its stream's letter."""
    text = place.queue.files.log(job, place.job(job).attempt).read_text()
    return [line.partition(" ")[2] for line in text.splitlines()]


def test_e02_two_at_a_time_in_one_process_and_never_more(make: Make) -> None:
    place = make(TASKS, **LONG_LEASE)
    place.queue.lane("shared").set_concurrency(2)
    ids = [place.submit("quick", number=number) for number in range(12)]
    worker = place.worker()
    assert all(job.state is State.DONE for job in place.ended(*ids))
    assert len({words[3] for words in place.diary}) == 1, "one process for all"
    worker.end()
    place.check()
    slots = {event.detail["slot"] for event in place.events() if event.kind == "claimed"}
    assert slots == {0, 1}
    place.check_idle()


def test_e02_lanes_do_not_share_a_process_and_other_lanes_jobs_have_their_own(make: Make) -> None:
    other = """
@queue.task(lane="other")
async def elsewhere(ctx):
    return os.getpid()

@queue.task(lane="shared")
def own(ctx):
    return os.getpid()
"""
    place = make(TASKS + other, **LONG_LEASE)
    place.queue.lane("shared").set_concurrency(3)
    ids = [place.submit(name) for name in ("elsewhere", "own", "own", "quick")]
    place.worker()
    done = place.ended(*ids)
    pids = {job.result for job in done[:3]} | {place.diary[0][3]}
    assert len(pids) == 4, place.report()


def test_what_each_job_prints_is_in_its_own_log(make: Make) -> None:
    place = make(TASKS, **LONG_LEASE)
    place.queue.lane("shared").set_concurrency(4)
    names = ("ann", "bob")
    ids = [place.submit("prints", name=name) for name in names]
    threads = [place.submit("prints_too", name=name) for name in ("cat", "dog")]
    place.worker()
    place.ended(*ids, *threads)
    for job, name in zip(ids, names, strict=True):
        assert place.job(job).error == f"ValueError: {name}"
        said = lines(place, job)
        assert said[:3] == [f"o first {name}", f"e logged {name}", f"o in a thread of {name}"]
        assert re.search(rf"e .* INFO told {name}", said[3])
        assert said[4] == f"o bytes {name} \ufffd"
        printed = "".join(line[2:] for line in said[5:] if line.startswith("o"))
        assert all(f"{part} of {name}" in printed for part in range(3))
        assert f"no line end {name}" in printed
        assert said[-1] == f"e ValueError: {name}"
        assert not any(other in "".join(said) for other in ("cat", "dog"))
    for job, name in zip(threads, ("cat", "dog"), strict=True):
        for letter in "oe":
            mine = [line for line in lines(place, job) if line.startswith(letter)]
            assert mine == [f"{letter} {name} {part}" for part in range(200)]


def test_what_no_job_can_be_told_for_is_in_the_host_log_and_the_job_says_so(make: Make) -> None:
    place = make(TASKS, **LONG_LEASE)
    job = place.submit("nobody")
    place.worker()
    place.ended(job)
    host_log = place.queue.files.host_log("shared")
    assert f"in {host_log}" in lines(place, job)[0]
    said = host_log.read_text()
    assert "a program says" in said and "written below Python" in said


def test_e08_p25_a_coroutine_resumes_at_its_steps_and_submits_its_children_once(make: Make) -> None:
    place = make(TASKS, **LONG_LEASE)
    job = place.submit("parts", number=1)
    first = place.worker()
    place.until_said("half", 1, 1)
    place.until(lambda: place.job(job).note == "part 1", what="its progress")
    seen = place.job(job)
    assert (seen.done, seen.total) == (10, 30)
    assert (place.folder / "1-0.txt").read_text() == "whole"
    assert not (place.folder / "1-1.txt").exists()
    first.end()
    assert place.job(job).state is State.QUEUED
    assert place.job(job).interruptions == 1
    place.check_idle()
    place.touch("go")
    place.worker()
    ended = place.ended(job)[0]
    children = [job + 1, job + 2]
    assert ended.result == f'[{children},["note"]]'.replace(" ", ""), place.report(job)
    assert [place.said("part", 1, part) for part in range(3)] == [1, 2, 1]
    assert all(child.state is State.DONE for child in place.ended(*children))
    assert all(child.parent == job for child in place.ended(*children))
    assert {step.name for step in place.queue.steps(job)} == {
        *(f"part {part}" for part in range(3)), "block", "once", "plain",
    }  # fmt: skip


def test_p25_steps_side_by_side_number_their_children_apart(make: Make) -> None:
    place = make(TASKS, **LONG_LEASE)
    job = place.submit("side_by_side")
    place.worker()
    ended = place.ended(job)[0]
    assert ended.state is State.DONE, place.report(job)
    children = place.ended(job + 1, job + 2)
    assert {child.key for child in children} == {f"{job}-a-1", f"{job}-b-1"}


def test_e08_a_thread_has_the_context_of_a_process_of_its_own(make: Make) -> None:
    place = make(TASKS, **LONG_LEASE)
    job = place.submit("threaded", number=5)
    place.worker()
    ended = place.ended(job)[0]
    assert ended.result == f"[{job + 1},false]", place.report(job)
    assert (place.folder / "threaded.txt").read_text() == "whole"


def test_e05_each_job_of_a_host_is_alive_and_moving_by_itself(make: Make) -> None:
    still = """
@queue.task(lane="shared", runs_in="thread")
def still(ctx):
    say("still")
    until("go-2")
"""
    place = make(TASKS + still, LINECLEAR_BEAT_S="0.1", LINECLEAR_LEASE_S="60")
    place.queue.lane("shared").set_concurrency(2)
    moving, quiet = place.submit("waits", number=1), place.submit("still")
    place.worker()
    place.until_said("still")
    before = place.running(quiet)
    place.until(lambda: place.job(moving).moves > 3, what="moves")
    after = place.job(quiet)
    assert after.moves == before.moves == 0
    place.until(lambda: (place.job(quiet).beat_tick or 0) > (before.beat_tick or 0), what="a beat")
    place.touch("go-1")
    place.touch("go-2")
    place.ended(moving, quiet)


def test_once_the_application_is_loaded_its_jobs_may_submit_while_others_start(make: Make) -> None:
    checked = """
from typing import Annotated
from pydantic import AfterValidator

def seen(value):
    say("bound", value, "LINECLEAR_LOADING" in os.environ)
    return value

@queue.task(lane="shared")
async def checked(ctx, value: Annotated[int, AfterValidator(seen)]):
    pass
"""
    place = make(TASKS + checked, **LONG_LEASE)
    place.worker()
    for value in (1, 2):
        place.ended(place.submit("checked", value=value))
    assert [words[3] for words in place.diary] == ["False"] * 4, place.diary


def all_wait(pid: int, trace: Path) -> bool:
    """Every thread is in a call that it had begun before, or has begun since."""
    threads = {thread.name for thread in Path(f"/proc/{pid}/task").iterdir()}
    traced = {line.partition(" ")[0] for line in trace.read_text().splitlines()}
    return threads <= traced


def test_e19_an_idle_worker_with_a_host_and_the_host_itself_make_no_system_call(make: Make) -> None:
    if not shutil.which("strace"):
        pytest.skip("strace is not installed")
    place = make(TASKS, **LONG_LEASE)
    worker = place.worker()
    place.ended(*(place.submit("quick", number=number) for number in range(3)))
    (host,) = hosts(place)
    for pid in (worker.pid, host):
        trace = place.folder / f"trace-{pid}"
        command = ["strace", "-f", "-o", str(trace), "-p", str(pid)]
        strace = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        try:
            assert strace.stderr
            if "attached" not in (line := strace.stderr.readline()):
                pytest.skip(f"this machine does not let strace in: {line}")
            place.until(partial(all_wait, pid, trace), what="every thread to wait")
            before = trace.read_text()
            with pytest.raises(subprocess.TimeoutExpired):
                strace.wait(2)
            assert trace.read_text() == before
        finally:
            strace.terminate()
            strace.communicate()


def test_arguments_and_results_of_megabytes_pass(make: Make) -> None:
    place = make(TASKS, **LONG_LEASE)
    place.queue.lane("shared").set_concurrency(2)
    there = place.submit("large", text="é" * 2_000_000)
    back = place.submit("quick", size=3_000_000)
    place.worker()
    done = place.ended(there, back)
    assert done[0].result == "2000000" and done[1].result_size == 3_000_000 + 6


def test_case_i5_a_host_is_replaced_after_its_jobs_and_above_its_memory_without_a_failure(
    make: Make,
) -> None:
    hungry = """
HELD = []

@queue.task(lane="shared")
async def hungry(ctx):
    say("quick", 0, os.getpid())
    HELD.append(bytearray(os.urandom(1)) * 150_000_000)
"""
    place = make(TASKS + hungry, LINECLEAR_HOST_JOBS="4", LINECLEAR_HOST_MB="150", **LONG_LEASE)
    place.queue.lane("shared").set_concurrency(2)
    ids = [place.submit("quick", number=number) for number in range(10)]
    worker = place.worker()
    assert all(job.state is State.DONE and job.attempt == 1 for job in place.ended(*ids))
    pids = [words[3] for words in place.diary]
    assert len(set(pids)) == 3 and max(map(pids.count, pids)) == 4, pids
    for _ in range(2):
        assert place.ended(place.submit("hungry"))[0].state is State.DONE
    assert place.diary[-1][3] != place.diary[-2][3], "the first had grown too large"
    place.until(lambda: len(hosts(place)) <= 1, what="the end of the hosts that were replaced")
    worker.end()
    place.check_idle()


def hosts(place: Site) -> list[int]:
    return [
        pid
        for pid in place.processes()
        if b"lineclear.worker.host\0" in Path(f"/proc/{pid}/cmdline").read_bytes()
    ]


def test_case_d1_what_cannot_be_loaded_has_failed_and_once_mended_runs_in_a_new_host(
    make: Make,
) -> None:
    place = make(TASKS, **LONG_LEASE)
    first = place.submit("quick")
    whole = place.module.read_text()
    place.module.write_text("raise RuntimeError('half written')\n")
    place.worker()
    failed = place.ended(first)[0]
    assert failed.cause is Cause.NOT_STARTED, failed
    assert failed.error is not None and "RuntimeError: half written" in failed.error
    place.module.write_text(whole)
    second = place.submit("quick")
    assert place.ended(second)[0].state is State.DONE, place.report(second)

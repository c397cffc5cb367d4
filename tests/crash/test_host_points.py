"""Killed at every point at which jobs of a host begin and end: nothing lost, doubled or left."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.workers import LONG_LEASE, Site, site

from lineclear.job import State

TASKS = """
import asyncio

@queue.task(lane="shared")
async def parts(ctx, number: int):
    async for part in ctx.steps(range(2), name=lambda part: f"part {part}", weight=lambda _: 10):
        say("part", number, part, ctx.attempt)
        async with ctx.publish(HERE / f"{number}-{part}.txt") as staged:
            await asyncio.sleep(0.01)
            staged.write_text("whole")
    return number

@queue.task(lane="shared", runs_in="thread")
def threaded(ctx, number: int):
    for part in ctx.steps(range(2), name=lambda part: f"part {part}", weight=lambda _: 10):
        say("part", number, part, ctx.attempt)
        time.sleep(0.01)
    return number

@queue.task(lane="shared")
async def held(ctx, number: int):
    await ctx.step("part 0", lambda: say("part", number, 0, ctx.attempt))
    say("kept", number)
    while ctx.attempt == 1:
        await asyncio.sleep(0.01)
    return number

def after_the_other(number):
    while not any("kept 1" in line for line in open(HERE / "diary")):
        yield
    die()

@queue.task(lane="shared")
async def kills(ctx, number: int):
    await ctx.step("part 0", lambda: say("part", number, 0, ctx.attempt))
    for _ in after_the_other(number) if ctx.attempt == 1 else ():
        await asyncio.sleep(0.01)
    return number

@queue.task(lane="shared", runs_in="thread")
def kills_from_a_thread(ctx, number: int):
    ctx.step("part 0", lambda: say("part", number, 0, ctx.attempt))
    for _ in after_the_other(number) if ctx.attempt == 1 else ():
        time.sleep(0.01)
    return number
"""
POINTS = {
    "amid the claim": "around(runs, 'claim', after=lambda job: job and die())",
    "before the host": "around(hosts, 'spawn', before=die)",
    "after the host": "around(hosts, 'spawn', after=die)",
    "amid storing its pid": "around(runs, 'set_child', after=die)",
    "before run is sent": "around(Talk, '_run', before=die)",
    "amid storing a step": "around(runs, 'keep_step', after=die)",
    "after a step is stored": "around(Talk, '_answer', before=die)",
    "amid recording a publish": "around(runs, 'set_publishing', after=die)",
    "when its end is heard": "around(HostRun, '_end_heard', after=die)",
    "amid storing the end": "around(runs, 'finish', after=die)",
    "with the next one claimed": "around(supervisor.Supervisor, 'ended', after=die)",
    "committed, not on the disk": "around(run, 'seated', after=die)",
    "after the end is stored": "around(run, 'unseated', before=die)",
    "before the hosts are let go": "around(hosts.Hosts, 'close', before=die)",
}
TO_STOP = ("before the hosts are let go",)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Site]:
    with site(tmp_path, TASKS, **LONG_LEASE) as made:
        yield made


def check_done(place: Site, ids: list[int], *, kept: dict[int, set[str]]) -> None:
    """All are done, and what was kept at the crash was not done again."""
    for job in place.ended(*ids):
        assert (job.state, job.result) == (State.DONE, str(job.id)), place.report(*ids)
        for part in range(2):
            times = [
                words for words in place.diary if words[1:4] == ["part", f"{job.id}", f"{part}"]
            ]
            assert len(times) == 1 or f"part {part}" not in kept[job.id], (job.id, part, times)


@pytest.mark.parametrize("slots", [1, 3])
@pytest.mark.parametrize("point", POINTS)
def test_e08_e20_p13_p14_p18_killed_at_every_point_of_a_hosts_life(
    place: Site, point: str, slots: int
) -> None:
    place.queue.lane("shared").set_concurrency(slots)
    tasks = ("parts", "threaded", "parts", "parts")
    ids = [place.submit(name, number=number) for number, name in enumerate(tasks, 1)]
    first = place.worker(sabotage=POINTS[point])
    if point in TO_STOP:
        place.ended(*ids)
        first.signal(signal.SIGTERM)
    assert first.wait() == -signal.SIGKILL, first.said
    place.until(lambda: not place.processes(), what="the end of all it had started")
    kept = {job: {step.name for step in place.queue.steps(job)} for job in ids}
    again = place.worker()
    check_done(place, ids, kept=kept)
    place.until_alone(again)
    assert again.end() == 0
    place.check_idle()


@pytest.mark.parametrize("murderer", ["kills", "kills_from_a_thread"])
def test_p13_a_host_killed_in_a_step_is_survived_by_all_its_jobs(
    place: Site, murderer: str
) -> None:
    place.queue.lane("shared").set_concurrency(2)
    ids = [place.submit(name, number=number) for number, name in enumerate(("held", murderer), 1)]
    worker = place.worker()
    check_done(place, ids, kept={job: {"part 0"} for job in ids})
    assert {place.job(job).attempt for job in ids} == {2}, place.report(*ids)
    assert {place.job(job).interruptions for job in ids} == {1}
    assert worker.end() == 0
    place.check_idle()

"""Killed at every named point of a job's life, then started again: nothing lost, doubled, left."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.workers import Site, site

from lineclear.job import State

PARTS = 3
WHOLE = "a whole part, "

TASKS = f"""
from lineclear import publishing

WHOLE, PARTS = {WHOLE!r}, {PARTS}
POINT = (HERE / "point").read_text() if (HERE / "point").exists() else ""
replace, sync = publishing.replace, publishing.sync

def hit(name):
    if name == POINT and once("hit"):
        die()

def published(staged, target, temporary):
    hit("before rename")
    replace(staged, target, temporary)
    hit("after rename")

publishing.replace = published

@queue.task(lane="book")
def book(ctx, number: int):
    hit("before the first step")
    for part in ctx.steps(range(PARTS), name=lambda part: f"part {{part}}", weight=lambda _: 10):
        say("part", number, part, ctx.attempt)
        with ctx.publish(HERE / f"{{number}}-{{part}}.txt") as staged:
            with staged.open("w") as file:
                for line in range(100):
                    file.write(WHOLE)
                    ctx.safe_point(advance=0.1)
                    if line == 50 and part == 1:
                        file.flush()
                        hit("in a step")
        if part == 1:
            hit("between two steps")
    hit("after the last step")
    say("returns", number, ctx.attempt)
    return number
"""

SUPERVISOR = {
    "amid the claim": "around(runs, 'claim', after=lambda job: job and die())",
    "after the claim": "around(own, 'spawn', before=die)",
    "after spawn": "around(own, 'spawn', after=die)",
    "amid storing the pid": "around(runs, 'set_child', after=die)",
    "before run is sent": "around(Talk, '_run', before=die)",
    "at the first beat": "around(runs, 'beat', after=die)",
    "amid storing a step": "around(runs, 'keep_step', after=die)",
    "after a step is stored": "around(Talk, '_answer', before=die)",
    "amid recording a publish": "around(runs, 'set_publishing', after=die)",
    "amid storing the outcome": "around(runs, 'set_outcome', after=die)",
    "between ended and reap": "around(own, 'kill_tree', before=die)",
    "before the end is stored": "around(OwnRun, '_finish', before=die)",
    "amid storing the end": "around(runs, 'finish', after=die)",
    "after the end is stored": "around(run, 'unseated', before=die)",
}
CHILD = (
    "before the first step",
    "in a step",
    "between two steps",
    "before rename",
    "after rename",
    "after the last step",
)


WITH_CHILD = ("before run is sent", "after a step is stored", "amid storing the outcome")
KILL_CHILD_TOO = """
import lineclear.worker.processes as processes
real_die = die

def die(*_, **__):
    for pid in processes.linux.children():
        if b"worker.child" in processes.linux.read_proc(f"{pid}/cmdline"):
            os.kill(pid, signal.SIGKILL)
    real_die()

"""


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Site]:
    with site(tmp_path, TASKS) as made:
        yield made


def kept(place: Site, number: int) -> set[str]:
    return {step.name for step in place.queue.steps(number)}


def check_files(place: Site, *, least: int = 0) -> None:
    """What is published is whole."""
    files = list(place.folder.glob("[0-9]*-[0-9].txt"))
    assert len(files) >= least
    for file in files:
        assert file.read_text() == WHOLE * 100, file


def check_done(place: Site, *ids: int, before: dict[int, set[str]], ended: set[int]) -> None:
    """Every job is done, once; what was kept at the crash was not done again."""
    for job in place.ended(*ids):
        assert (job.state, job.result) == (State.DONE, str(job.id)), place.report(*ids)
        assert kept(place, job.id) == {f"part {part}" for part in range(PARTS)}
        for part in range(PARTS):
            times = [
                line[4] for line in place.diary if line[1:4] == ["part", f"{job.id}", f"{part}"]
            ]
            once = f"part {part}" in before[job.id] or job.id in ended or job.attempt == 1
            assert len(times) == 1 or not once, (job.id, part, times)
    check_files(place, least=PARTS * len(ids))


@pytest.mark.parametrize(
    ("point", "victims"),
    [*((point, "worker") for point in SUPERVISOR), *((point, "both") for point in WITH_CHILD)],
)
def test_e08_e20_p14_case_a3_case_a5_case_a6_case_g1_killed_at_every_point(
    place: Site, point: str, victims: str
) -> None:
    ids = [place.submit("book", number=number) for number in (1, 2)]
    sabotage = (KILL_CHILD_TOO if victims == "both" else "") + SUPERVISOR[point]
    first = place.worker(sabotage=sabotage)
    assert first.wait() == -signal.SIGKILL, first.said
    place.until(lambda: not place.processes(), what="the end of all it had started")
    check_files(place)
    before = {one: kept(place, one) for one in ids}
    ended = {one for one in ids if place.job(one).ended}
    outcome = {one for one in ids if place.job(one).outcome is not None}
    again = place.worker()
    check_done(place, *ids, before=before, ended=ended | outcome)
    assert again.end() == 0
    place.check_idle()


WEDGE = """
import time
answers = []
def wedge(*_):
    answers.append(1)
    while len(answers) == 2 and not Path("go").exists():  # its step is kept, nobody is told
        time.sleep(0.01)
around(Talk, '_answer', before=wedge)
"""
KILL_PARENT = "    os.kill(os.getppid(), signal.SIGKILL)\n        die()"
TAKING = """
from lineclear.worker import leases
{}
"""


@pytest.mark.parametrize(
    "point",
    [
        "around(leases, 'sweep', after=die)",
        "around(leases, 'wipe', after=die)",
        "around(runs, 'finish', after=die)",
        "around(runs, 'drop_worker', after=die)",
    ],
)
def test_e20_case_a2_killed_while_it_takes_back(place: Site, point: str) -> None:
    (place.folder / "point").write_text("in a step")
    place.module.write_text(place.module.read_text().replace("    die()", KILL_PARENT))
    ids = [place.submit("book", number=number) for number in (1, 2)]
    assert place.worker().wait() == -signal.SIGKILL
    assert place.worker(sabotage=TAKING.format(point)).wait() == -signal.SIGKILL
    before = {one: kept(place, one) for one in ids}
    last = place.worker()
    check_done(place, *ids, before=before, ended=set())
    assert place.job(ids[0]).attempt == 2
    assert last.end() == 0
    place.check_idle()
    assert list(place.queue.files.workers.iterdir()) == []


@pytest.mark.parametrize(
    "point",
    [
        "around(runs, 'take_lease', after=die)",
        "around(leases, 'kill_tree', before=die)",
        "around(leases, 'kill_tree', after=die)",
        "around(leases, 'wipe', after=die)",
    ],
)
def test_e20_p8_killed_while_it_takes_over(place: Site, point: str) -> None:
    ids = [place.submit("book", number=number) for number in (1, 2)]
    place.env |= {"LINECLEAR_BEAT_S": "0.25", "LINECLEAR_LEASE_S": "0.9"}
    wedged = place.worker(sabotage=WEDGE)
    place.until(lambda: kept(place, ids[0]), what="the first step")
    assert place.worker(sabotage=TAKING.format(point)).wait() == -signal.SIGKILL
    before = {one: kept(place, one) for one in ids}
    last = place.worker()
    check_done(place, *ids, before=before, ended=set())
    place.touch("go")
    place.until(lambda: "its lease is lost" in wedged.said, what="the first worker to notice")
    assert [wedged.end(), last.end()] == [0, 0]
    place.check_idle()


@pytest.mark.parametrize("point", CHILD)
def test_e10_the_child_killed_at_every_point_has_failed_and_is_tried_again(
    place: Site, point: str
) -> None:
    (place.folder / "point").write_text(point)
    one, two = (place.submit("book", number=number) for number in (1, 2))
    worker = place.worker()
    failed, done = place.ended(one, two)
    assert (failed.state, failed.cause) == (State.FAILED, "signalled")
    assert "SIGKILL" in (failed.error or "") and done.state is State.DONE
    check_files(place, least=PARTS)
    before = {one: kept(place, one), two: kept(place, two)}
    place.queue.retry(one)
    check_done(place, one, two, before=before, ended={two})
    assert place.job(one).attempt == 2
    assert worker.end() == 0
    place.check_idle()


@pytest.mark.parametrize("point", CHILD)
def test_e20_worker_and_child_killed_at_once(place: Site, point: str) -> None:
    """The child kills its parent first, then itself."""
    place.module.write_text(place.module.read_text().replace("    die()", KILL_PARENT))
    (place.folder / "point").write_text(point)
    ids = [place.submit("book", number=number) for number in (1, 2)]
    first = place.worker()
    assert first.wait() == -signal.SIGKILL
    place.until(lambda: not place.processes(), what="the end of all it had started")
    check_files(place)
    before = {one: kept(place, one) for one in ids}
    again = place.worker()
    check_done(place, *ids, before=before, ended=set())
    assert place.job(ids[0]).attempt == 2
    assert again.end() == 0
    place.check_idle()


def test_p10_a_killed_keeper_is_replaced_at_once_and_disturbs_nothing(place: Site) -> None:
    ids = [place.submit("book", number=number) for number in (1, 2)]
    worker = place.worker()
    for _ in range(3):
        old = place.keeper(worker)
        os.kill(old, signal.SIGKILL)
        place.until_not(place.keeper, worker, was=old)
    check_done(place, *ids, before={one: set() for one in ids}, ended=set(ids))
    assert worker.end() == 0
    place.check_idle()

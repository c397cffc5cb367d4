"""Every control of the page pressed in a real browser on real jobs under a real worker, and what
the database says afterwards. Each act is waited for where it counts: in the database.
"""

from __future__ import annotations

import re
import signal
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from functools import partial

import pytest
from playwright.sync_api import Locator, Page, expect
from tests.browser.conftest import Browse
from tests.browser.harness import DESK, PHONE, Ground
from tests.helpers import wait_until

from lineclear import LineClearError
from lineclear.job import Job, State

ARMED_MS = 700
BOTH = pytest.mark.parametrize("size", [PHONE, DESK], ids=["390", "1280"])


@pytest.fixture(scope="module", autouse=True)
def working(shared: Ground) -> None:
    shared.site.worker()
    shared.site.ended(shared.site.submit("quick"))  # two lanes, each with a section of its own


@pytest.fixture
def night(shared: Ground) -> Iterator[Ground]:
    """The module's ground; nothing runs, waits or is paused when the test is over."""
    queue = shared.queue
    yield shared
    for lane in queue.lanes():
        handle = queue.lane(lane.name)
        handle.stop_now()
        handle.set_delay(0)
        handle.set_concurrency(1)
    wait_until(lambda: not queue.running(), timeout_s=20, what="the running jobs' ends")
    for lane in queue.lanes():
        with suppress(LineClearError):
            queue.lane(lane.name).remove_waiting()
        queue.lane(lane.name).resume()
    queue.clear(states=[State.DONE, State.FAILED, State.CANCELLED])


def row(page: Page, job_id: int) -> Locator:
    return page.locator(f".column .row[data-id='{job_id}']")


def button(at: Page | Locator, name: str) -> Locator:
    return at.get_by_role("button", name=name, exact=True)


def twice(page: Page, at: Page | Locator, first: str, again: str) -> None:
    """Both presses, the second when it counts."""
    button(at, first).click()
    armed = button(at, again)
    expect(armed).to_have_text("Again?")
    page.wait_for_timeout(ARMED_MS)  # before 600 ms it would be a double tap
    armed.click()


def item(page: Page, job_id: int, name: str) -> None:
    """Something of the job's ⋯ menu."""
    button(
        row(page, job_id), f"More for {row(page, job_id).locator('.title').inner_text()}"
    ).click()
    button(page.get_by_role("dialog"), name).click()


def lane_item(page: Page, lane: str, name: str) -> Locator:
    button(page.get_by_label(f"lane {lane}", exact=True), f"More for lane {lane}").click()
    return page.get_by_role("dialog").get_by_role("button", name=re.compile(f"^{name}"))


def running(made: Ground, name: str, *, pages: float = 0) -> Job:
    return made.site.running(made.site.submit("slow", name=name, pages=pages))


def line(made: Ground, lane: str = "render") -> list[str]:
    waiting = [job for job in made.queue.jobs(limit=50) if job.state is State.QUEUED]
    order = sorted((job for job in waiting if job.lane == lane), key=lambda job: job.position)
    return [job.title for job in order]


def in_order(made: Ground, titles: list[str]) -> bool:
    return line(made) == titles


@BOTH
def test_e07_stop_takes_two_presses_and_reaches_the_job(
    night: Ground, browse: Browse, size: dict[str, int]
) -> None:
    name = f"Dune-{size['width']}"
    job = running(night, name, pages=980)
    night.at(name, 412, unit="pages")
    page = browse(night, size=size).page
    expect(row(page, job.id)).to_contain_text("412 of 980 pages · 42 %")
    box = button(row(page, job.id), f"Stop {name}").bounding_box()
    button(row(page, job.id), f"Stop {name}").click()
    armed = button(row(page, job.id), f"Press again to stop {name}")
    expect(row(page, job.id)).to_contain_text("Press again to stop.")
    assert armed.bounding_box() == box
    assert night.site.job(job.id).wish is None
    page.wait_for_timeout(ARMED_MS)
    armed.click()
    night.site.until_said("raised", name, "Cancelled")
    expect(row(page, job.id)).to_contain_text("Stopped")
    ended = night.queue.get(job.id)
    assert ended.state is State.CANCELLED
    expect(row(page, job.id)).to_contain_text("by you")


def test_e16_stop_now_ends_a_job_that_does_not_answer(night: Ground, browse: Browse) -> None:
    job = night.site.running(night.site.submit("deaf", name="Ulysses"))
    page = browse(night, f"jobs/{job.id}", size=DESK).page
    twice(page, page, "Stop Ulysses", "Press again to stop Ulysses")
    expect(page.locator("main")).to_contain_text("Stopping")
    assert night.site.job(job.id).state is State.RUNNING
    twice(page, page, "Stop Ulysses now", "Press again to stop now Ulysses")
    (ended,) = night.site.ended(job.id)
    assert (ended.state, ended.cause) == (State.CANCELLED, "killed")
    expect(page.locator("main")).to_contain_text("Killed")


def test_e16_stop_now_of_a_lane_puts_its_job_back_and_pauses(night: Ground, browse: Browse) -> None:
    job = night.site.running(night.site.submit("deaf", name="Walden"))
    page = browse(night, size=DESK).page
    lane_item(page, "render", "Stop everything in lane render now").click()
    again = page.get_by_role("dialog").get_by_role("button", name=re.compile("^Press again"))
    expect(page.get_by_role("dialog")).to_contain_text(
        "Press again to stop 1 job at once and pause."
    )
    page.wait_for_timeout(ARMED_MS)
    again.click()
    night.site.until(lambda: night.site.job(job.id).state is State.QUEUED)
    lane = night.queue.lane("render").get()
    assert lane.pauses and not lane.running and night.site.job(job.id).interruptions == 0
    expect(row(page, job.id)).to_contain_text("Waiting")


@BOTH
def test_e13_case_c9_a_pause_says_who_why_and_until_when(
    night: Ground, browse: Browse, size: dict[str, int]
) -> None:
    name = f"Emma-{size['width']}"
    job = running(night, name)
    waits = night.site.submit("slow", name="Persuasion")
    page = browse(night, size=size).page
    lane_item(page, "render", "Pause for a time").click()
    sheet = page.get_by_role("dialog")
    sheet.get_by_role("textbox").fill("guests are asleep")
    button(sheet, "1 h").click()
    night.site.until(lambda: night.queue.lane("render").get().pauses)
    (pause,) = night.queue.lane("render").get().pauses
    left_s = ((pause.until_ms or 0) - night.queue.now_ms()) / 1000
    assert pause.why == "guests are asleep" and 3590 < left_s < 3601
    lane = page.get_by_label("lane render", exact=True)
    expect(lane).to_contain_text("guests are asleep")
    expect(lane).to_contain_text("you")
    night.end(name)
    night.site.ended(job.id)
    expect(row(page, waits)).to_contain_text("paused")
    assert night.site.job(waits).state is State.QUEUED
    button(lane, "Resume lane render").click()
    night.site.running(waits)
    expect(row(page, waits)).to_contain_text("Running")


def test_e13_pause_all_and_resume_all(night: Ground, browse: Browse) -> None:
    running(night, "Evelina")
    page = browse(night, size=DESK).page
    button(page, "Pause every lane").click()
    night.site.until(lambda: all(lane.pauses for lane in night.queue.lanes()))
    expect(page.locator(".toast")).to_contain_text("No new jobs will start. 1 is still running.")
    expect(page.get_by_role("heading", level=1)).to_contain_text("paused", ignore_case=True)
    button(page, "Resume every lane").click()
    night.site.until(lambda: not any(lane.pauses for lane in night.queue.lanes()))


def test_e17_delay_and_slots_are_in_force_at_once(night: Ground, browse: Browse) -> None:
    job = running(night, "Middlemarch")
    waits = night.site.submit("slow", name="Silas Marner")
    page = browse(night, size=DESK).page
    lane_item(page, "render", "Delay between jobs").click()
    button(page.get_by_role("dialog"), "15 minutes").click()
    night.site.until(lambda: night.queue.lane("render").get().delay_ms == 900_000)
    night.end("Middlemarch")
    night.site.ended(job.id)
    lane = page.get_by_label("lane render", exact=True)
    expect(lane).to_contain_text("left of the delay")
    button(lane, "Start next now").click()
    night.site.running(waits)
    lane_item(page, "render", "Jobs at once").click()
    button(page.get_by_role("dialog"), "2 slots").click()
    night.site.until(lambda: night.queue.lane("render").get().concurrency == 2)


@BOTH
def test_e14_hold_and_release_keep_the_place(
    night: Ground, browse: Browse, size: dict[str, int]
) -> None:
    running(night, "Kim")
    ids = [night.site.submit("slow", name=name) for name in ("She", "Vathek")]
    page = browse(night, size=size).page
    item(page, ids[0], "Pause She")
    night.site.until(lambda: night.site.job(ids[0]).held_ms is not None)
    expect(row(page, ids[0])).to_contain_text("when resumed")
    if size is DESK:
        button(row(page, ids[0]), "Resume She").click()
    else:
        item(page, ids[0], "Resume She")
    night.site.until(lambda: night.site.job(ids[0]).held_ms is None)
    assert line(night) == ["She", "Vathek"]


@BOTH
def test_e18_move_up_down_to_the_top_and_to_the_bottom(
    night: Ground, browse: Browse, size: dict[str, int]
) -> None:
    running(night, "Lilith")
    a, b, c = (night.site.submit("slow", name=name) for name in ("A", "B", "C"))
    page = browse(night, size=size).page
    steps = (
        (c, "Move C to the top", ["C", "A", "B"]),
        (c, "Move C down", ["A", "C", "B"]),
        (a, "Move A to the bottom", ["C", "B", "A"]),
        (b, "Move B up", ["B", "C", "A"]),
    )
    for job, name, expected in steps:
        if size is DESK and name == "Move B up":
            button(row(page, job), name).click()
        else:
            item(page, job, name)
        wait_until(partial(in_order, night, expected), what=name)
        titles = page.get_by_label("lane render", exact=True).locator("ol").last.locator(".title")
        expect(titles).to_have_text(expected)


@BOTH
def test_e15_remove_can_be_undone(night: Ground, browse: Browse, size: dict[str, int]) -> None:
    running(night, "Ivanhoe")
    job = night.site.submit("slow", name="Waverley")
    page = browse(night, size=size).page
    if size is DESK:
        button(row(page, job), "Remove Waverley").click()
    else:
        item(page, job, "Remove Waverley")
    night.site.until(lambda: night.site.job(job).state is State.CANCELLED)
    expect(row(page, job)).to_contain_text("Removed")
    button(page, "Undo").click()
    night.site.until(lambda: night.site.job(job).state is State.QUEUED)
    expect(row(page, job)).to_contain_text("Waiting")


def test_e15_remove_all_waiting_names_what_it_takes(night: Ground, browse: Browse) -> None:
    running(night, "Candide")
    ids = [night.site.submit("slow", name=f"Tale {n}") for n in range(7)]
    page = browse(night, size=DESK).page
    lane_item(page, "render", "Remove all waiting").click()
    question = page.get_by_role("dialog")
    expect(question).to_contain_text("Tale 0, Tale 1, Tale 2, Tale 3, Tale 4 and 2 more")
    expect(button(question, "Cancel")).to_be_focused()
    button(question, "Cancel").click()
    assert len(line(night)) == 7
    lane_item(page, "render", "Remove all waiting").click()
    button(page.get_by_role("dialog"), "Remove 7 jobs").click()
    night.site.until(lambda: not line(night))
    button(page, "Undo").click()
    night.site.until(lambda: len(line(night)) == 7)
    assert {night.site.job(one).state for one in ids} == {State.QUEUED}


@BOTH
def test_retry_and_retry_all_failed_with_an_honest_count(
    night: Ground, browse: Browse, size: dict[str, int]
) -> None:
    ids = [night.site.submit("fail", name=f"Solaris {n}") for n in range(3)]
    night.site.ended(*ids)
    night.queue.lane("other").pause()
    page = browse(night, size=size).page
    expect(row(page, ids[0])).to_contain_text("voice file missing")
    button(row(page, ids[0]), "Retry Solaris 0").click()
    night.site.until(lambda: night.site.job(ids[0]).state is State.QUEUED)
    page.goto(f"{night.server.url}history")
    button(page, "Retry all failed (2)").click()
    night.site.until(lambda: {night.site.job(one).state for one in ids} == {State.QUEUED})
    button(page, "Undo").click()
    night.site.until(lambda: night.site.job(ids[2]).state is State.FAILED)
    assert night.site.job(ids[0]).state is State.QUEUED


def test_p3_force_starts_one_job_of_a_paused_lane(night: Ground, browse: Browse) -> None:
    night.queue.lane("render").pause()
    first, second = (night.site.submit("slow", name=name) for name in ("Utopia", "Erewhon"))
    page = browse(night, size=DESK).page
    item(page, second, "Start Erewhon now")
    night.site.running(second)
    expect(row(page, second)).to_contain_text("Running")
    assert night.site.job(first).state is State.QUEUED


def test_clear_ended_hides_what_was_chosen(night: Ground, browse: Browse) -> None:
    done, failed = night.site.submit("quick"), night.site.submit("fail")
    night.site.ended(done, failed)
    page = browse(night, size=DESK).page
    button(page, "Clear ended…").click()
    question = page.get_by_role("dialog")
    expect(question).to_contain_text("Done only (1)")
    button(question, "Hide 1 job").click()
    night.site.until(lambda: night.site.job(done).hidden_ms is not None)
    expect(row(page, done)).to_have_count(0)
    assert night.site.job(failed).hidden_ms is None
    button(page, "Undo").click()
    expect(row(page, done)).to_have_count(1)


@BOTH
def test_e01_add_from_the_form(night: Ground, browse: Browse, size: dict[str, int]) -> None:
    night.queue.lane("other").pause()
    page = browse(night, "add", size=size).page
    page.get_by_label("What").select_option("rich")
    page.get_by_role("spinbutton", name="book").fill(str(size["width"]))
    page.get_by_role("combobox", name="voice").select_option("amy")
    page.locator("form").get_by_role("button", name="Add", exact=True).click()
    night.site.until(lambda: f"Read {size['width']}" in line(night, "other"))
    expect(page.get_by_text("Added as 1st").first).to_be_visible()


def test_e24_progress_claims_only_what_was_told(night: Ground, browse: Browse) -> None:
    job = running(night, "Faust")
    page = browse(night, size=DESK).page
    it = row(page, job.id)
    bar = it.get_by_role("progressbar")
    expect(it).to_contain_text("Running")
    expect(bar).to_be_hidden()
    night.at("Faust", 412, unit="pages")
    expect(it).to_contain_text("412 pages so far")
    expect(bar).to_be_hidden()
    night.at("Faust", 979.9, 980)
    expect(it).to_contain_text("99 %")
    expect(bar).to_have_attribute("aria-valuemax", "980")
    night.at("Faust", 5000, 980)
    expect(it).not_to_contain_text("100 %")
    night.end("Faust")
    expect(it).to_contain_text("Done")


def test_e05_e06_e25_a_worker_that_is_stopped_and_one_that_is_gone(
    serving: Callable[..., Ground], browse: Browse
) -> None:
    made = serving(LINECLEAR_BEAT_S="10", LINECLEAR_LEASE_S="600")
    worker = made.site.worker()
    job = running(made, "Hero")
    made.site.submit("slow", name="Leander")
    page = browse(made, size=DESK).page
    expect(row(page, job.id)).to_contain_text("Running")
    made.site.stop(worker.pid)
    with closing(sqlite3.connect(made.queue.database)) as database, database:
        database.execute("UPDATE job SET beat_tick = beat_tick - 360000 WHERE beat_tick NOT NULL")
    page.reload()
    expect(row(page, job.id)).to_contain_text("Not responding")
    expect(row(page, job.id)).to_contain_text("last sign of life 6 min ago")
    worker.signal(signal.SIGCONT)
    worker.kill()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Nobody serves", timeout=15_000)

"""The Job screen: everything about one job, as it changes; nothing that is not known."""

from __future__ import annotations

import math
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest
from playwright.sync_api import Page, expect
from tests.browser import harness
from tests.browser.conftest import Browse
from tests.browser.harness import DESK, PHONE, TASKS, Ground
from tests.helpers import wait_until

from lineclear.job import State

FLAKY = """
@queue.task(lane="other", title="{name}", retries=1, retry_delay_s=0.1)
def flaky(ctx: Context, name: str):
    for number in range(30):
        print("try", ctx.attempt, "line", number)
    raise RuntimeError("voice file missing")
"""


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    """One server and worker for all; every test has jobs of its own names."""
    with harness.ground(tmp_path_factory.mktemp("jobs"), source=TASKS + FLAKY) as made:
        made.queue.lane("other").set_concurrency(30)
        made.queue.lane("render").set_concurrency(30)
        made.site.worker()
        yield made


def headings(page: Page) -> list[str]:
    return page.locator(".job h3:visible").all_inner_texts()


def test_a_running_job_moves_as_it_works(ground: Ground, browse: Browse) -> None:
    job = ground.site.submit("slow", name="The Hobbit", pages=980)
    ground.site.running(job)
    page = browse(ground, f"jobs/{job}").page
    expect(page.get_by_role("heading", name="The Hobbit")).to_be_visible()
    expect(page.locator(".job-state")).to_contain_text("Running")
    bar = page.locator(".job-progress .bar")
    ground.at("The Hobbit", 412, 980, unit="pages", note="chapter 14 of 19")
    expect(page.locator(".job-progress")).to_contain_text("412 of 980 pages · 42 %")
    expect(page.locator(".job-note")).to_have_text("chapter 14 of 19")
    expect(bar).to_have_attribute("aria-valuenow", "412")
    ground.at("The Hobbit", 500, 980, unit="pages")
    expect(page.locator(".job-progress")).to_contain_text("500 of 980 pages · 51 %")
    ground.end("The Hobbit")
    expect(page.locator(".job-state")).to_contain_text("Done")
    expect(page.locator(".job-result")).to_contain_text('"name": "The Hobbit"')
    expect(page.locator(".timeline")).to_contain_text("started, try 1")


def test_stopping_it_takes_two_presses_and_says_who(ground: Ground, browse: Browse) -> None:
    job = ground.site.submit("slow", name="Emma")
    ground.site.running(job)
    page = browse(ground, f"jobs/{job}").page
    stop = page.get_by_role("button", name="Stop Emma", exact=True)
    stop.click()
    expect(page.locator(".job-head .said")).to_contain_text("Press again to stop.")
    page.wait_for_timeout(650)  # a second press counts from 600 ms on
    page.get_by_role("button", name="Press again to stop Emma").click()
    ground.site.ended(job)
    expect(page.locator(".job-state")).to_contain_text("Stopped")
    expect(page.locator(".job-state")).to_contain_text("by you")
    expect(page.locator(".timeline")).to_contain_text("by you")
    expect(page.get_by_role("button", name="Retry Emma", exact=True)).to_be_visible()


def test_a_failed_job_shows_its_last_lines_first_and_its_trace_on_demand(
    ground: Ground, browse: Browse
) -> None:
    job = ground.site.submit("flaky", name="Solaris")
    ground.site.ended(job)
    page = browse(ground, f"jobs/{job}").page
    short = page.locator(".job-short")
    expect(short.locator(".log-line")).to_have_count(20)
    expect(short.locator(".log-line").last).to_contain_text("RuntimeError: voice file missing")
    assert headings(page)[:2] == ["The last it printed", "Why it ended"]
    expect(page.locator(".job-why")).to_contain_text("voice file missing")
    page.get_by_text("Show trace").click()
    expect(page.locator(".trace")).to_contain_text("Traceback (most recent call last)")
    expect(page.locator(".trace")).to_contain_text("raise RuntimeError")
    # Each try has its own log.
    tabs = page.get_by_role("tab")
    expect(tabs).to_have_text(["Try 1", "Try 2"])
    expect(page.get_by_role("tabpanel")).to_contain_text("try 1 line 0")
    tabs.nth(1).click()
    expect(page.get_by_role("tabpanel")).to_contain_text("try 2 line 0")
    tabs.nth(1).press("ArrowLeft")
    expect(tabs.nth(0)).to_be_focused()


def test_a_waiting_job_says_every_reason(served: Ground, browse: Browse) -> None:
    job = served.site.submit("slow", name="Dune")
    served.queue.lane("render").pause("voice is being changed", by="anna")
    page = browse(served, f"jobs/{job}").page
    waits = page.locator(".job-waits li")
    expect(waits.nth(0)).to_contain_text("Nobody serves its lane.")
    expect(waits.nth(1)).to_contain_text("paused by anna (voice is being changed)")
    served.queue.lane("render").resume()
    expect(page.locator(".job-waits")).not_to_contain_text("paused by anna")


def test_inputs_are_copied_and_lead_to_add(ground: Ground, browse: Browse) -> None:
    job = ground.site.submit("rich", book=271, voice="amy")
    visit = browse(ground, f"jobs/{job}")
    page = visit.page
    visit.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.locator(".job-inputs").get_by_role("button", name="Copy").click()
    expect(page.locator(".toast")).to_contain_text("Copied the arguments.")
    assert '"book": 271' in page.evaluate("navigator.clipboard.readText()")
    page.get_by_role("link", name="Add again with changes").click()
    expect(page).to_have_url(re.compile(rf"/add\?again={job}$"))


def test_case_d1_what_cannot_be_decoded_says_so_and_shows_its_text(
    ground: Ground, browse: Browse
) -> None:
    job = ground.queue.submit("slow", {"name": "Broken"}, held=True).id
    with closing(sqlite3.connect(ground.queue.database)) as database, database:
        database.execute("UPDATE job SET args = ? WHERE id = ?", ('{"name": NaN, <b>', job))
    page = browse(ground, f"jobs/{job}").page
    inputs = page.locator(".job-inputs")
    expect(inputs).to_contain_text("The arguments cannot be decoded. This is their raw text.")
    expect(inputs.locator(".data")).to_have_text('{"name": NaN, <b>')


def test_case_d4_a_megabyte_of_arguments_leaves_the_page_usable(
    ground: Ground, browse: Browse
) -> None:
    job = ground.queue.submit("swallow", {"data": "a" * 1_000_000}, held=True).id
    page = browse(ground, f"jobs/{job}", size=PHONE).page
    expect(page.get_by_role("button", name="Remove swallow")).to_be_in_viewport()
    data = page.locator(".job-inputs .data")
    assert len(data.inner_text()) < 11_000
    box = data.bounding_box()
    assert box
    assert box["height"] < 500
    page.get_by_role("button", name=re.compile("Show 50,000 more of 1,000,")).click()
    assert len(data.inner_text()) > 60_000
    ground.queue.lane(ground.queue.get(job).lane).pause("a rest", by="anna")
    expect(page.locator(".job-waits")).to_contain_text("paused by anna")
    assert len(data.inner_text()) > 60_000  # what was opened stays open
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.get_by_role("button", name="Remove swallow").click()
    expect(page.locator(".job-state")).to_contain_text("Removed")


@pytest.mark.parametrize(
    ("done", "total", "told"),
    [
        ("12", "7", "7 of 7 pages · 99 %"),
        ("12", "40", "12 of 40 pages · 30 %"),
        ("12", "0", "7 of 7 pages · 99 %"),
        ("5", "1e9", "5 of 1,000,000,000 pages · 0 %"),
    ],
)
def test_case_d6_progress_stays_between_0_and_100(
    ground: Ground, browse: Browse, done: str, total: str, told: str
) -> None:
    name = f"Odd {done} of {total}"
    job = ground.site.submit("slow", name=name, pages=7)
    ground.site.running(job)
    page = browse(ground, f"jobs/{job}").page
    ground.at(name, done, total, unit="pages")
    amount = page.locator(".job-progress .amount")
    expect(amount).to_contain_text(told)
    assert "-" not in amount.inner_text()
    bar = page.locator(".job-progress .bar")
    if bar.is_visible():
        width = float(bar.locator("i").evaluate("e => parseFloat(e.style.width)"))
        assert 0 <= width < 100
        now, most = (float(bar.get_attribute(f"aria-value{a}") or "nan") for a in ("now", "max"))
        assert 0 <= now <= most < math.inf


def test_case_d7_a_resumed_job_begins_where_it_was(ground: Ground, browse: Browse) -> None:
    site = ground.site
    job = site.submit("step", name="Blue", count=5)
    site.running(job)
    page = browse(ground, f"jobs/{job}").page
    for number in range(3):
        site.touch(f"Blue.{number}")
    expect(page.locator(".steps li")).to_have_count(3)
    ground.queue.cancel(job)
    site.ended(job)
    expect(page.locator(".job-state")).to_contain_text("kept 3")
    page.get_by_role("button", name="Retry Blue", exact=True).click()
    site.running(job, attempt=2)
    expect(page.locator(".job-state")).to_contain_text("try 2")
    expect(page.locator(".job-progress")).to_contain_text("3 of 5")
    expect(page.locator(".job-progress")).to_contain_text("60 %")
    expect(page.locator(".job-progress")).not_to_contain_text("left ")
    expect(page.locator(".steps li")).to_have_count(3)
    site.touch("Blue.3")
    expect(page.locator(".job-progress")).to_contain_text("80 %")


def test_case_d8_the_job_goes_on_without_the_browser(served: Ground, browse: Browse) -> None:
    site = served.site
    site.worker()
    first = browse(served, "add?task=step")
    first.page.get_by_label("name").fill("Blue")
    first.page.get_by_label("count").fill("4")
    first.page.locator("form.adding [type=submit]").click()
    job = wait_until(lambda: next((each.id for each in served.queue.running()), None))
    first.check()
    first.context.close()
    for number in range(2):
        site.touch(f"Blue.{number}")
    wait_until(lambda: len(served.queue.steps(job)) == 2)
    page = browse(served, f"jobs/{job}", size=PHONE).page
    expect(page.locator(".job-state")).to_contain_text("Running")
    expect(page.locator(".job-progress")).to_contain_text("2 of 4")
    expect(page.locator(".steps li")).to_have_count(2)
    served.queue.cancel(job)
    site.ended(job)
    expect(page.get_by_role("button", name="Retry Blue", exact=True)).to_be_visible()
    page.get_by_role("button", name="Retry Blue", exact=True).click()
    site.running(job, attempt=2)
    expect(page.locator(".job-progress")).to_contain_text("2 of 4")


def test_the_pace_chart_says_in_words_and_numbers_what_it_shows(
    ground: Ground, browse: Browse
) -> None:
    site = ground.site
    job = site.submit("slow", name="Dracula", pages=980)
    site.running(job)
    ground.at("Dracula", 190, 980)
    wait_until(lambda: ground.queue.get(job).done == 190)
    minute = ground.queue.now_ms() // 60_000 * 60_000
    points = [(job, minute - 60_000 * (20 - at), 10 * at) for at in range(20)]
    with closing(sqlite3.connect(ground.queue.database)) as database, database:
        database.executemany("INSERT INTO pace VALUES (?, 1, ?, ?)", points)
    page = browse(ground, f"jobs/{job}").page
    chart = page.locator(".job-pace figure")
    expect(chart).to_contain_text(re.compile(r"190 pages in 2\d min, about (9|9.5|10) a minute, "))
    expect(chart.get_by_role("img")).to_have_attribute("aria-label", re.compile("^Pace: 190 pages"))
    assert len(chart.locator(".chart-line").get_attribute("d") or "") > 100
    chart.get_by_text("Show as a table").click()
    expect(chart.locator("tbody tr").nth(19)).to_contain_text("190")


def test_there_is_no_such_job(ground: Ground, browse: Browse) -> None:
    visit = browse(ground, "jobs/4711")
    visit.expect("404")
    expect(visit.page.get_by_role("alert").first).to_contain_text("There is no job 4711.")


def test_the_pane_beside_the_list_is_the_short_form(served: Ground, browse: Browse) -> None:
    served.site.worker()
    job = served.site.submit("slow", name="The Hobbit")
    served.site.running(job)
    page = browse(served, size=DESK).page
    pane = page.locator(".pane")
    expect(pane.get_by_role("heading", name="The Hobbit")).to_be_visible()
    expect(pane.get_by_role("button", name="Stop The Hobbit", exact=True)).to_be_visible()
    assert pane.get_by_text("Raw JSON").count() == 0
    assert served.queue.get(job).state is State.RUNNING
